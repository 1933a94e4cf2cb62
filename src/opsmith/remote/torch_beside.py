"""Times torch beside packed kernels, where torch is: eager, and torch.compile, whose kernels on a GPU are Triton's.

    python3 torch_beside.py FOLDER [--device cpu] [--modes eager]     # beside runner.py, which it takes the data from

The references of the packed problems run on the same data as the kernels, in the declared types, without gradients, in
a process without any candidate. Each call is timed by the device's events, with the device idle and its cache flushed.
What it finds goes to `results/torch.json`: nanoseconds, the median and the quartiles of fifty calls.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if not __package__:  # started as a file: what it imports lies beside it
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from opsmith.timing.carried import PackedFolder
from opsmith.timing.inputs import expand_draw, read_arrays

REFERENCES, RESULTS = "references.json", "torch.json"
CALLS, WARM_UPS = 50, 5
FLUSH_BYTES = 128 << 20


def measure_references(folder: Path, device: str | None, modes: Sequence[str]) -> dict[str, Any]:
    """Every shape set of every program, or why it has no time."""
    import torch  # noqa: PLC0415 - what is looked for

    packed = json.loads((folder / REFERENCES).read_text(encoding="utf-8"))
    device = device or str(packed["device"])
    torch.set_default_device(device)
    rows = []
    for program, shape_set, reference in _list_references(folder, packed["references"]):
        row = {"key": shape_set["key"], "name": f"{program['name']} at {shape_set['name']}"}
        for mode in modes:
            try:
                with torch.no_grad():
                    row[mode] = _time_reference(torch, folder, shape_set, reference, (mode, device))
            except Exception as error:  # torch and its compilers raise anything
                row[mode] = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(row["name"], file=sys.stderr)
        rows.append(row)
    name = "cpu" if device == "cpu" else str(torch.cuda.get_device_name(0))
    return {"torch": torch.__version__, "device": name, "rows": rows}


def _list_references(folder: Path, references: Any) -> list[tuple[Any, Any, Any]]:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return [
        (program, shape_set, references[shape_set["key"]])
        for program in manifest["programs"]
        for shape_set in program["sets"]
    ]


def _time_reference(torch: Any, folder: Path, shape_set: Any, reference: Any, how: tuple[str, str]) -> dict[str, float]:
    mode, device = how
    inputs = _make_inputs(torch, folder, shape_set, reference, device)
    namespace = {"torch": torch, **shape_set["sizes"], **reference["scalars"]}
    exec(compile(reference["text"], "reference", "exec"), namespace)
    function = namespace[reference["function"]]
    if mode == "compile":
        torch.compiler.reset()
        function = torch.compile(function, dynamic=False)
    time_call = _time_on_gpu if device != "cpu" else _time_on_cpu
    times = time_call(torch, lambda: function(**inputs, **reference["scalars"]))
    low, middle, high = statistics.quantiles(times, n=4)
    return {"median_ns": middle, "quarter_ns": low, "three_quarters_ns": high}


def _make_inputs(torch: Any, folder: Path, shape_set: Any, reference: Any, device: str) -> dict[str, Any]:
    arrays = expand_draw(read_arrays(shape_set["inputs"]), PackedFolder(folder).read_file, 1, 0)
    inputs = {}
    for (name, dtype, shape), array in zip(reference["inputs"], arrays):
        numbers = torch.frombuffer(bytearray(array), dtype=getattr(torch, dtype))
        inputs[name] = numbers.view(shape).to(device)
    return inputs


def _time_on_gpu(torch: Any, call: Callable[[], Any]) -> list[float]:
    flushed = torch.empty(FLUSH_BYTES, dtype=torch.int8)
    times = []
    for number in range(WARM_UPS + CALLS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flushed.zero_()
        torch.cuda.synchronize()
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times += [begin.elapsed_time(end) * 1e6] if number >= WARM_UPS else []
    return times


def _time_on_cpu(torch: Any, call: Callable[[], Any]) -> list[float]:
    times = []
    for number in range(WARM_UPS + CALLS):
        begin = time.perf_counter_ns()
        call()
        times += [float(time.perf_counter_ns() - begin)] if number >= WARM_UPS else []
    return times


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Time torch beside packed kernels.")
    parser.add_argument("folder", nargs="?", default=".")
    parser.add_argument("--device", help="default: the one that the kernels were packed for")
    parser.add_argument("--modes", default="eager,compile")
    options = parser.parse_args(arguments)
    folder = Path(options.folder)
    try:
        answer = measure_references(folder, options.device, options.modes.split(","))
    except ImportError as error:
        print(f"torch_beside: {error}; expected a Python that has torch", file=sys.stderr)
        return 1
    (folder / "results").mkdir(exist_ok=True)
    (folder / "results" / RESULTS).write_text(json.dumps(answer, indent=1), encoding="utf-8")
    print(folder / "results" / RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
