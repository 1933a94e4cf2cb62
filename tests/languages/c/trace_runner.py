"""What a user of FlashInfer Trace does with an exported data set, with torch alone: build each solution from its JSON,
run it beside its definition's reference at every workload, compare. `python trace_runner.py FOLDER`: a JSON line each."""

import json
import sys
import tempfile
from pathlib import Path

import torch
from torch.utils.cpp_extension import load

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64}
DTYPES |= {"int8": torch.int8, "int32": torch.int32, "int64": torch.int64, "bool": torch.bool}


def main(folder):
    for path in sorted(Path(folder).glob("solutions/*/*/*.json")):
        solution = json.loads(path.read_text())
        operator, name = path.parts[-3:-1]
        definition = json.loads((Path(folder) / "definitions" / operator / f"{name}.json").read_text())
        lines = (Path(folder) / "workloads" / operator / f"{name}.jsonl").read_text().splitlines()
        with tempfile.TemporaryDirectory() as place:
            function = build_solution(solution, Path(place))
            for number, line in enumerate(lines):
                error = compare_run(function, definition, json.loads(line)["workload"], number)
                print(json.dumps({"name": solution["name"], "workload": number, "error": error}), flush=True)


def build_solution(solution, place):
    for source in solution["sources"]:
        (place / source["path"]).write_text(source["content"])
    assert solution["spec"]["language"] == "cpp"
    assert solution["spec"]["destination_passing_style"]
    file, _, entry = solution["spec"]["entry_point"].partition("::")
    return getattr(load(solution["name"], [str(place / file)], build_directory=str(place), extra_cflags=["-O0"]), entry)


def compare_run(function, definition, workload, seed):
    """The largest error in units of the larger of 1 and the expected magnitude."""
    axes = {name: axis.get("value") for name, axis in definition["axes"].items()} | workload["axes"]
    torch.manual_seed(seed)
    inputs = [draw_input(spec, workload["inputs"][name], axes) for name, spec in definition["inputs"].items()]
    outputs = [
        torch.empty([axes[axis] for axis in spec["shape"] or ()], dtype=DTYPES[spec["dtype"]])
        for spec in definition["outputs"].values()
    ]
    namespace = {"__name__": "reference"}
    exec(definition["reference"], namespace)
    expected = namespace["run"](*inputs)
    function(*inputs, *outputs)
    values = expected if isinstance(expected, tuple) else (expected,)
    return max(measure_error(output, value) for output, value in zip(outputs, values, strict=True))


def draw_input(spec, entry, axes):
    if entry["type"] == "scalar":
        return entry["value"]
    return torch.randn([axes[axis] for axis in spec["shape"]]).to(DTYPES[spec["dtype"]])


def measure_error(output, value):
    assert (output.dtype, output.shape) == (value.dtype, value.shape)
    return float(((output.double() - value.double()).abs() / value.double().abs().clamp(min=1)).max())


main(sys.argv[1])
