"""What the process does in which torch is timed: a problem's reference, eager and compiled, beside its plain program.

`python -m opsmith.measuring.torch_process ORDER`, where ORDER is a file of JSON in the folder of the process, and the
answers are files beside it. No candidate is ever in it: the reference and the plain program are the author's, so that
the clock in the process is believed. Each figure is of a fork of its own, which has drawn its memory anew. The sides
take turns on equal inputs, which were put there just before. What a call into torch costs is part of its time, the
memory for its outputs too: whoever calls it pays that.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import random
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from opsmith.measuring.data_worker import encode_draw
from opsmith.measuring.grain import list_inputs
from opsmith.measuring.slots import NumpyMixer
from opsmith.problems.authored import compile_function
from opsmith.problems.drawing import draw_data
from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.problems.faults import TaskFault
from opsmith.problems.precision import default_dtype, default_of, dtype_of
from opsmith.problems.problem import Problem
from opsmith.records import content_hash
from opsmith.targets.native.calls import DRIVER, PROCESSOR_CLOCK, PROGRAM, WALL_CLOCK, ProgramCaller
from opsmith.targets.native.layout import read_inputs
from opsmith.targets.native.signature import FUNCTION
from opsmith.targets.native.trials import make_trials
from opsmith.timing.engine import NUMBER, SLOT_MEMORY, Side, Turn, choose_slot_count
from opsmith.timing.inputs import InputMixer, SlotLayout, draw_noises

PLAIN, EAGER, COMPILE = "plain", "eager", "compile"
ORDER = "order.json"
DRAWS = 4  # that inputs are mixed of
WARM_UPS = 2  # rounds before the first one that counts
_LEAST_NS, _SLOWER = 1e6, 5  # as of the loop that times candidates
_CLOSE = 0.05  # what compiled outputs may differ from eager ones, as a share of the largest entry
_LONGEST_REASON = 300  # characters
_AGAIN_S = 5  # from one alarm to the next


class TorchOrder(NamedTuple):
    """What one process times."""

    text: str  # of the task
    shape_sets: Mapping[str, Mapping[str, int]]
    partners: Sequence[str]  # eager, compile
    processes: int  # forks of each shape set
    rounds: int  # that count, in each
    seed: int
    threads: int
    seconds: int  # of each fork
    compile_seconds: int  # of torch.compile in it


class TimedCallee(Protocol):
    """One side."""

    def time_calls(self, slots: Sequence[int]) -> int:
        """Nanoseconds of one call for each slot."""


class _Program:
    """The plain program, called as it is beside a candidate."""

    def __init__(self, layout: SlotLayout, memory: memoryview, threads: int) -> None:
        request = {
            "function": FUNCTION,
            "sides": [PROGRAM],
            "places": layout.places,
            "numbers": layout.arrays.numbers,
            "threads": threads,
        }
        paths = {name: os.path.abspath(name) for name in (DRIVER, PROGRAM)}
        self._caller, self._stride = ProgramCaller(request, paths, memory), layout.stride

    def time_calls(self, slots: Sequence[int]) -> int:
        return self._caller.time_calls(b"".join(map(NUMBER.pack, (0, *(slot * self._stride for slot in slots)))))


class _Function:
    """A function on torch's tensors, which lie in the slots."""

    def __init__(self, function: Callable[..., Any], bind: Callable[[int], Mapping[str, Any]], threads: int) -> None:
        """`bind`: what it is called with for a slot."""
        self._function, self._bind = function, bind
        self._clock = WALL_CLOCK if threads > 1 else PROCESSOR_CLOCK

    def time_calls(self, slots: Sequence[int]) -> int:
        function, clock, read_clock = self._function, self._clock, time.clock_gettime_ns
        calls = [self._bind(slot) for slot in slots]
        begin = read_clock(clock)
        for arguments in calls:
            function(**arguments)
        return read_clock(clock) - begin


# -- one shape set in one fork


def time_shape(order: TorchOrder, name: str, number: int) -> dict[str, Any]:
    """`times`, ns of one call by side and round, and `reasons`, why a side has none. Raises TaskFault, ValueError."""
    torch.set_num_threads(order.threads)
    trials = make_trials(order.text)
    problem, sizes = trials.data.problem, dict(order.shape_sets[name])
    mixer = _draw_inputs(problem, order.text, sizes)
    layout = mixer.layout
    choose_slot_count(1.0, layout.stride, SLOT_MEMORY)  # which raises where the arrays of a call do not fit
    memory = memoryview(mmap.mmap(-1, SLOT_MEMORY))
    mixer.fill_slots(memory, _make_turn(range(1), order.seed, 0))
    bind = cache(partial(_bind_slot, problem, sizes, layout, memory))
    with default_dtype(default_of(False)), torch.no_grad():
        functions, reasons = _prepare_functions(order, problem, sizes, bind(0))
        callees: dict[str, TimedCallee] = {PLAIN: _Program(layout, memory, order.threads)}
        callees |= {side: _Function(function, bind, order.threads) for side, function in functions.items()}
        return {"times": _time_rounds(order, (name, number), callees, mixer, layout, memory), "reasons": reasons}


def _draw_inputs(problem: Problem, text: str, sizes: Mapping[str, int]) -> InputMixer:
    trials = [read_inputs(memoryview(encode_draw(text, sizes, seed))) for seed in range(DRAWS)]
    layout = SlotLayout(trials[0][0].draws[0])
    inputs = list_inputs(problem, sizes)
    draws = [[bytes(array) for array in draw] for _, (draw,) in trials]
    return NumpyMixer(layout, inputs, draws, draw_noises(inputs, secrets.randbits(64)))


def _bind_slot(
    problem: Problem, sizes: Mapping[str, int], layout: SlotLayout, memory: memoryview, slot: int
) -> dict[str, Any]:
    """What the reference is called with for one slot."""
    tensors: dict[str, Any] = {}
    for entry, place, size in zip(problem.tensors, layout.places, layout.arrays.inputs, strict=False):
        start, count = slot * layout.stride + place, size // BYTES_BY_DTYPE[entry.type.dtype]
        numbers = torch.frombuffer(memory, dtype=dtype_of(entry.type.dtype), count=count, offset=start)
        tensors[entry.name] = numbers.view(entry.type.shape_at(sizes))
    return {**tensors, **problem.scalars}


def _prepare_functions(
    order: TorchOrder, problem: Problem, sizes: Mapping[str, int], arguments: Mapping[str, Any]
) -> tuple[dict[str, Callable[..., Any]], dict[str, str]]:
    """The functions that work, each called once, and why others do not. Raises TaskFault."""
    reference = _load_reference(problem, sizes)
    expected = reference(**arguments)
    functions: dict[str, Callable[..., Any]] = {EAGER: reference}
    reasons = {}
    if COMPILE in order.partners:
        try:
            with _limit_seconds(order.compile_seconds, order.seconds):
                compiled = torch.compile(reference, fullgraph=True)
                reasons[COMPILE] = _compare_outputs(expected, compiled(**arguments))
            functions[COMPILE] = compiled
        except Exception as error:
            late = f"not compiled after {order.compile_seconds} s"
            reasons[COMPILE] = f"torch.compile: {late if late in str(error) else _describe_error(error)}"
    reasons = {side: reason for side, reason in reasons.items() if reason}
    return {side: functions[side] for side in functions if side in order.partners and side not in reasons}, reasons


@contextmanager
def _limit_seconds(seconds: int, later: int) -> Iterator[None]:
    """An alarm that raises TimeoutError in the block, again and again where that is caught; `later`: the seconds after
    the block in which the process ends."""

    def raise_timeout(number: int, frame: object) -> None:
        signal.alarm(_AGAIN_S)
        raise TimeoutError(f"not compiled after {seconds} s")

    signal.signal(signal.SIGALRM, raise_timeout)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(later)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _load_reference(problem: Problem, sizes: Mapping[str, int]) -> Callable[..., Any]:
    """The author's function, in the namespace of a draw."""
    code, name = compile_function(problem.reference, "reference")
    namespace = draw_data(problem, sizes, 0).namespace
    exec(code, namespace)
    function: Callable[..., Any] = namespace[name]
    return function


def _compare_outputs(expected: Any, outputs: Any) -> str:
    """How compiled outputs differ grossly from eager ones; "": they do not."""
    for number, (value, output) in enumerate(zip(_list_tensors(expected), _list_tensors(outputs), strict=True)):
        largest = float(value.double().nan_to_num().abs().max()) if value.numel() else 0.0
        if not torch.allclose(output.double(), value.double(), rtol=_CLOSE, atol=_CLOSE * largest, equal_nan=True):
            return f"torch.compile: output {number} differs from that of eager"
    return ""


def _list_tensors(outputs: Any) -> list[Tensor]:
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def _describe_error(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])}"[:_LONGEST_REASON]


def _time_rounds(
    order: TorchOrder,
    place: tuple[str, int],
    callees: Mapping[str, TimedCallee],
    mixer: InputMixer,
    layout: SlotLayout,
    memory: memoryview,
) -> dict[str, list[float]]:
    """Rounds in which every side has a turn, in a random order, on inputs of equal numbers."""
    slots = _count_slots(callees, mixer, layout, memory)
    generator = random.Random(content_hash("torch", str(order.seed), *map(str, place)))
    times: dict[str, list[float]] = {side: [] for side in callees}
    gc.collect()
    gc.disable()
    for number in range(-WARM_UPS, order.rounds):
        turn = _make_turn(generator.sample(range(slots), slots), generator.getrandbits(48), number)
        for side in generator.sample(sorted(callees), len(callees)):
            mixer.fill_slots(memory, turn)
            elapsed = callees[side].time_calls(turn.slots)
            if not turn.is_warm_up:
                times[side].append(elapsed / slots)
    return times


def _make_turn(slots: Sequence[int], input_seed: int, number: int) -> Turn:
    return Turn(number, Side.PROGRAM, tuple(slots), input_seed, (number + WARM_UPS) * len(slots))


def _count_slots(callees: Mapping[str, TimedCallee], mixer: InputMixer, layout: SlotLayout, memory: memoryview) -> int:
    """As many as a turn needs, as in the loop that times candidates."""
    capacity = choose_slot_count(1.0, layout.stride, SLOT_MEMORY)
    count, elapsed = 0, [0]
    while min(elapsed) < _LEAST_NS and count < capacity:
        count = min(4 * count or 1, capacity)
        mixer.fill_slots(memory, _make_turn(range(count), count, 0))
        elapsed = [min(callee.time_calls(range(count)) for _ in range(3)) for callee in callees.values()]
    call_ns = max(1, min(elapsed), max(elapsed) / _SLOWER) / count
    return choose_slot_count(call_ns, layout.stride, SLOT_MEMORY)


# -- all of an order


def time_forks(order: TorchOrder) -> None:
    """A file `name_answer(number, place)` for each fork and shape set; forks come one after another."""
    if COMPILE in order.partners:
        _load_compiler()
    partners = dict.fromkeys(order.shape_sets, order.partners)
    for number in range(order.processes):
        for place, name in enumerate(order.shape_sets):
            file = name_answer(number, place)
            _time_fork(order._replace(partners=partners[name]), name, number, file)
            partners[name] = [partner for partner in partners[name] if partner not in _read_refused(file)]


def _read_refused(file: str) -> Mapping[str, str]:
    """The sides that have no figure: they would have none in another fork."""
    with suppress(OSError, ValueError):
        refused: Mapping[str, str] = json.loads(Path(file).read_text("utf-8")).get("reasons", {})
        return refused
    return {}


def _load_compiler() -> None:
    """Torch's compiler, once for all forks, and what it asks the one of C++."""
    with suppress(Exception):  # each fork will say it
        import_module("torch._inductor.compile_fx")
        import_module("torch._inductor.cpu_vec_isa").pick_vec_isa()


def _time_fork(order: TorchOrder, name: str, number: int, file: str) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(order.seconds)
            Path(file).write_text(json.dumps(_answer_safely(order, name, number)), encoding="utf-8")
        finally:
            os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == -signal.SIGALRM:
        Path(file).write_text(json.dumps({"problem": f"torch had not ended after {order.seconds} s"}), encoding="utf-8")
    elif status:
        Path(file).write_text(json.dumps({"problem": f"the process of torch ended with {status}"}), encoding="utf-8")


def _answer_safely(order: TorchOrder, name: str, number: int) -> dict[str, Any]:
    try:
        return time_shape(order, name, number)
    except TaskFault as fault:
        return {"problem": str(fault.diagnostic)[:_LONGEST_REASON]}
    except BaseException as error:  # SystemExit and its like, raised by an author's code
        return {"problem": _describe_error(error)}


def name_answer(number: int, place: int) -> str:
    """The file of fork `number` of the shape set at `place` in the order."""
    return f"{number}-{place}.json"


if __name__ == "__main__":
    time_forks(TorchOrder(**json.loads(Path(sys.argv[1]).read_text("utf-8"))))
