"""Times of the plain programs in TVM and in C, call beside call in one process: `tvm-against-c.md`.

Both are machine code behind one function with the same arguments. Of each problem the largest of the inputs that its
verdicts rest on is taken; a turn calls the one, then the other, about 2 ms each, and the median over turns of the ratio
of their processor times is given with its interval of 95 % by order statistics. Run it where TVM is installed:

    .venv-bridges/tvm/bin/python experiments/tvm_against_c.py > experiments/tvm-against-c.md
"""

from __future__ import annotations

import ctypes
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from opsmith.devices.describe import describe_device
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.native.calls import PROGRAM
from opsmith.targets.native.layout import read_inputs
from opsmith.targets.native.signature import FUNCTION

TURNS, TURN_S = 61, 0.002


def load_call(language: str, name: str, folder: Path) -> Callable[[], None]:
    """One call of a problem's plain program on the inputs of its largest trial."""
    (task,), target = load_tasks([f"kernels/{name}"], language), get_target(language)
    trials = (target.encode_inputs(trial) for trial in target.list_trials(task))
    layout, arrays = read_inputs(memoryview(max(trials, key=len)))
    path = folder / f"{language}_{name}.so"
    path.write_bytes(target.build_timed(task, task.impl).artefacts[PROGRAM])
    draw = layout.draws[0]
    blocks = [ctypes.create_string_buffer(bytes(view), view.nbytes + 64) for view in arrays[0]]
    blocks += [ctypes.create_string_buffer(size + 64) for size in draw.outputs]
    places = [ctypes.addressof(block) for block in blocks]  # moved to a multiple of 64, as they are judged
    for block, place, size in zip(
        blocks, places, [view.nbytes for view in arrays[0]] + list(draw.outputs), strict=True
    ):
        ctypes.memmove(place + -place % 64, bytes(block)[:size], size)
    numbers = [ctypes.c_int64(n) if isinstance(n, int) else ctypes.c_double(n) for n in draw.numbers]
    arguments = [*(ctypes.c_void_p(place + -place % 64) for place in places), *numbers]
    function = ctypes.CDLL(str(path))[FUNCTION]
    function.restype = None
    call = lambda: function(*arguments)  # noqa: E731 - it holds its blocks
    call.blocks = blocks
    return call


def time_calls(call: Callable[[], None], count: int) -> float:
    begin = time.thread_time()
    for _ in range(count):
        call()
    return (time.thread_time() - begin) / count


def find_median(values: list[float]) -> tuple[float, float, float]:
    """With its interval of 95 %."""
    ordered, half = sorted(values), 0.98 * math.sqrt(len(values))
    middle = (len(values) - 1) / 2
    return statistics.median(values), ordered[math.floor(middle - half)], ordered[math.ceil(middle + half)]


def print_table() -> None:
    print("| problem | C, us | TVM, us | time in C by time in TVM | 95 % |\n|---|---|---|---|---|")
    ratios = []
    for name in sorted(task.id for task in load_tasks(["kernels"], "tvm")):
        with tempfile.TemporaryDirectory() as folder:
            calls = [load_call(language, name, Path(folder)) for language in ("c", "tvm")]
        counts = [max(1, round(TURN_S / min(time_calls(call, 3) for _ in range(3)))) for call in calls]
        turns = [[time_calls(*pair) for pair in zip(calls, counts, strict=True)] for _ in range(TURNS)]
        c, tvm = (1e6 * statistics.median(column) for column in zip(*turns, strict=True))
        ratio, low, high = find_median([first / second for first, second in turns])
        ratios.append(ratio)
        print(f"| {name} | {c:.1f} | {tvm:.1f} | {ratio:.2f} | {low:.2f} to {high:.2f} |", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"| geometric mean of {len(ratios)} | | | {mean:.2f} | |")


if __name__ == "__main__":
    print("# Plain programs in TVM beside those in C\n")
    print(
        "Above 1 TVM's is the faster one. Both are what a problem is shown with: simple loops, one thread, no tuning."
    )
    print("C by gcc -O3, TVM by LLVM for the same instruction set; processor time of calls in turn, 2 ms each.")
    print("Texts differ where the languages do: top_k is by insertion in C, by selection in TVM.")
    print("Made by `experiments/tvm_against_c.py`, which says how.\n")
    device, tools = describe_device(), get_target("tvm").describe_toolchain()
    print(f"{TURNS} turns each; {device.name}, shared with other work; {tools}.\n")
    print_table()
