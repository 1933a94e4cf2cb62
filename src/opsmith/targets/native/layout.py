"""The bytes between a task's worker and a candidate's process: the arrays of a trial, and what came of them.

Inputs are the length of a header, the header (JSON: for each draw where its inputs lie, how large its outputs are, and
the numbers that the function is called with), and the arrays, each at a multiple of ALIGNMENT. Outputs are a head of
fixed size and, pass by pass and draw by draw, the bytes of every output; or the head alone, where it says what was
written outside of an output. Outputs come from a hostile process: nothing is read before its size is checked.

No torch, no numpy: a candidate's process imports this.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from opsmith.timing.inputs import ALIGNMENT

_LONGEST_HEADER = 1 << 20  # bytes
_LENGTH = struct.Struct("<q")
_HEAD = struct.Struct("<8s5q")  # mark; pass, draw, output, side and distance of damage, or -1
_MARK = b"outputs\n"
_UNDAMAGED = (-1, -1, -1, -1, -1)


@dataclass(frozen=True)
class Pass:
    """One run of all draws, in surroundings of its own. Its bytes say a kind of memory (`surroundings`)."""

    variant: str  # the artefact that is called
    canary: int  # around arrays
    heap: int  # in fresh memory of the heap
    poison: int  # in outputs before a call
    is_reversed: bool = False  # the last draw first
    has_old_outputs: bool = False  # outputs hold what another call may have left, in place of `poison`
    has_old_heap: bool = False  # fresh memory holds zeros, or bytes of the trial's arrays, in place of `heap`
    is_ordinary: bool = False  # arrays lie in the heap, and are used again from call to call


PATTERN, ZERO, DELAYED, DEPLOYED = "pattern", "zero", "delayed", "deployed"  # variants of a build: `variants`

# As floats the bytes are large numbers (0x7B), large negative ones (0xFB) and NaN (0xFF), of every width.
PASSES = (
    Pass(PATTERN, canary=0x7B, heap=0x7B, poison=0xFF),
    Pass(PATTERN, canary=0xFB, heap=0xFB, poison=0x7B, is_reversed=True, has_old_outputs=True),
    Pass(ZERO, canary=0xFF, heap=0x7B, poison=0x7B, is_reversed=True, has_old_heap=True),
)
_DELAYED = Pass(DELAYED, canary=0xFB, heap=0xFB, poison=0x7B, is_reversed=True)
THREADED_PASSES = (*PASSES, _DELAYED)
ORDINARY = Pass(DEPLOYED, canary=0, heap=0, poison=0, has_old_outputs=True, is_ordinary=True)


def choose_passes(threads: int) -> tuple[Pass, ...]:
    """Programs with threads are also run with delays between their loads and stores."""
    return PASSES if threads == 1 else THREADED_PASSES


def choose_full_passes(threads: int) -> tuple[Pass, ...]:
    """Those of a program that is to be kept, in its own process: delays three times, and the build that a user has."""
    delays = (_DELAYED, _DELAYED) if threads > 1 else ()
    return (*choose_passes(threads), *delays, ORDINARY)


@dataclass(frozen=True)
class DrawLayout:
    """What the function is called with for one draw: bytes of its arrays, and the numbers behind them."""

    inputs: tuple[int, ...]  # bytes of each
    outputs: tuple[int, ...]
    numbers: tuple[int | float, ...]  # whole ones are int64_t, the others double


@dataclass(frozen=True)
class TrialLayout:
    """The draws of a trial, how many threads a program has, and the passes over the draws."""

    draws: tuple[DrawLayout, ...]
    threads: int = 1
    passes: tuple[Pass, ...] = ()  # none given: those of so many threads
    seed: str = ""  # what surroundings are drawn from

    def __post_init__(self) -> None:
        if not self.passes:
            object.__setattr__(self, "passes", choose_passes(self.threads))

    @property
    def outputs_size(self) -> int:
        """Bytes of the outputs of one pass."""
        return sum(sum(draw.outputs) for draw in self.draws)


@dataclass(frozen=True)
class Damage:
    """A byte outside of an output that a program wrote."""

    number: int  # of the pass
    draw: int
    output: int
    is_behind: bool  # else before its first byte
    distance: int  # bytes from the end of the output, or from its begin


@dataclass(frozen=True)
class Overstaffing:
    """A team of more threads than a program has."""

    number: int  # of the pass
    draw: int
    threads: int  # that it asked for


class LayoutError(ValueError):
    """Bytes that are not what they should be."""


# -- inputs


def write_inputs(layout: TrialLayout, arrays: Iterable[bytes | memoryview]) -> bytes:
    """The bytes of a trial. `arrays`: those of all inputs of the first draw, then of the next."""
    draws = [[draw.inputs, draw.outputs, draw.numbers] for draw in layout.draws]
    passes = [astuple(pass_) for pass_ in layout.passes]
    words = {"threads": layout.threads, "passes": passes, "seed": layout.seed, "draws": draws}
    header = json.dumps(words).encode()
    pieces: list[bytes | memoryview] = [_LENGTH.pack(len(header)), header]
    size = _LENGTH.size + len(header)
    for array in arrays:
        padding = -size % ALIGNMENT
        pieces += [bytes(padding), array]
        size += padding + len(array)
    return b"".join(pieces)


def read_inputs(data: memoryview) -> tuple[TrialLayout, list[list[memoryview]]]:
    """The inverse of `write_inputs`: the arrays of each draw, as views of the data.

    Raises LayoutError, or what reading junk raises: the bytes come from a process of the task's author.
    """
    (length,) = _LENGTH.unpack_from(data)
    if not 0 <= length <= _LONGEST_HEADER:
        raise LayoutError(f"a header of {length} bytes in place of at most {_LONGEST_HEADER}")
    place = _LENGTH.size + length
    header = json.loads(bytes(data[_LENGTH.size : place]))
    draws = tuple(DrawLayout(*map(tuple, draw)) for draw in header["draws"])
    arrays = []
    for draw in draws:
        views = []
        for size in draw.inputs:
            place += -place % ALIGNMENT
            if size < 0 or place + size > len(data):
                raise LayoutError(f"an array of {size} bytes at {place}, of {len(data)} in all")
            views.append(data[place : place + size])
            place += size
        arrays.append(views)
    passes = tuple(Pass(*pass_) for pass_ in header["passes"])
    return TrialLayout(draws, header["threads"], passes, header["seed"]), arrays


# -- outputs


def write_outputs(outputs: Iterable[bytes]) -> bytes:
    """Those of every pass in turn, each with its draws in order."""
    return b"".join([_HEAD.pack(_MARK, *_UNDAMAGED), *outputs])


def write_damage(damage: Damage) -> bytes:
    side = int(damage.is_behind)
    return _HEAD.pack(_MARK, damage.number, damage.draw, damage.output, side, damage.distance)


def write_overstaffing(finding: Overstaffing) -> bytes:
    return _HEAD.pack(_MARK, finding.number, finding.draw, -1, -1, finding.threads)


def read_outputs(layout: TrialLayout, data: bytes | memoryview) -> list[memoryview] | Damage | Overstaffing:
    """The bytes of each pass, or what else was found. Raises LayoutError for anything else."""
    view = memoryview(data)
    if len(view) < _HEAD.size:
        raise LayoutError(f"{len(view)} bytes")
    mark, *words = _HEAD.unpack_from(view)
    if mark != _MARK:
        raise LayoutError("bytes that do not begin as outputs do")
    body, passes = view[_HEAD.size :], len(layout.passes)
    if tuple(words) != _UNDAMAGED:
        return _read_damage(layout, words, passes)
    size = layout.outputs_size
    if len(body) != size * passes:
        raise LayoutError(f"{len(body)} bytes of outputs in place of {size * passes}")
    return [body[number * size : (number + 1) * size] for number in range(passes)]


def _read_damage(layout: TrialLayout, words: Sequence[int], passes: int) -> Damage | Overstaffing:
    number, draw, output, side, distance = words
    if output == side == -1 and 0 <= number < passes and 0 <= draw < len(layout.draws) and distance > layout.threads:
        return Overstaffing(number, draw, distance)
    is_sound = 0 <= number < passes and 0 <= draw < len(layout.draws) and side in (0, 1)
    if not is_sound or not 0 <= output < len(layout.draws[draw].outputs) or distance < 0:
        raise LayoutError("a place that the trial does not have")
    return Damage(number, draw, output, bool(side), distance)
