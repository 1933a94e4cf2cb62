"""What the emulator finds, in words: the line, what which thread did where, and what to try. One sentence each."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from opsmith.targets.gpu.emulator.dialect import FindingWords
from opsmith.targets.gpu.emulator.library import LibraryFile, Variable
from opsmith.targets.gpu.plan import INPUT, ResolvedLaunch


class EmulatorFinding(Exception):
    """What a program does wrong; its text is the finding, and begins with `line N: `."""

    def __init__(self, line: int | None, words: str, remedy: str) -> None:
        place = f"line {line}: " if line is not None else ""
        super().__init__(f"{place}{words}" + (f"; try: {remedy}" if remedy else ""))
        self.line, self.words, self.remedy = line, words, remedy


class _Kind(IntEnum):
    """FindingKind of emulator.cpp."""

    NONE = 0
    RACE = 1
    UNINITIALISED = 2
    OUTSIDE = 3
    CONSTANT = 4
    DIVERGENT = 5
    WAITING = 6
    NOT_IN_MASK = 7
    MISALIGNED = 8
    BOUNDS = 9
    STOPPED = 10
    FOREIGN = 11
    SPINNING = 12
    LIMIT = 13
    SUSPICION = 14
    READ_ONLY = 15


class Record(ctypes.Structure):
    """Finding of emulator.cpp."""

    kind: int
    place: int
    other_place: int
    thread: int
    other_thread: int
    block: int
    other_block: int
    size: int
    is_writing: int
    other_is_writing: int
    region: int
    detail: int
    mask: int
    other_detail: int
    offset: int
    value: int
    _fields_ = tuple(
        (name, ctypes.c_int64 if name in ("offset", "value") else ctypes.c_uint32) for name in __annotations__
    )


def read_record(address: int) -> Record:
    """A copy."""
    return Record.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(Record)))


@dataclass(frozen=True)
class Array:
    """An array of a draw where the emulator has put it."""

    name: str
    kind: str
    element: int  # bytes of an entry
    start: int
    size: int  # bytes

    def write(self, data: bytes | memoryview) -> None:
        memoryview((ctypes.c_char * self.size).from_address(self.start)).cast("B")[:] = data


@dataclass(frozen=True)
class LaunchScene:
    """What a launch runs with."""

    words: FindingWords
    file: LibraryFile
    launch: ResolvedLaunch
    arrays: Sequence[Array]  # in the order of their regions


_DYNAMIC, _DEVICE, _FIRST_SHARED = 2, 3, 4  # regions of emulator.cpp
_LINE = 0x80000000
_DOES = ("reads", "writes", "changes")


def describe_finding(record: Record, scene: LaunchScene) -> EmulatorFinding:
    """A record in words."""
    return _Words(record, scene).describe()


@dataclass(frozen=True)
class _Memory:
    """What an access went to."""

    name: str
    entry: int  # bytes
    size: int
    place: str  # `the output`, or the dialect's word for memory of a block
    is_shared: bool = False


class _Words:
    """The words for one record."""

    def __init__(self, record: Record, scene: LaunchScene) -> None:
        self._record, self._scene, self._words = record, scene, scene.words

    def describe(self) -> EmulatorFinding:
        kind = _Kind(self._record.kind) if self._record.kind in list(_Kind) else _Kind.NONE
        words, remedy = getattr(self, f"_describe_{kind.name.lower()}")()
        return EmulatorFinding(self._find_line(self._record.place), words, remedy)

    # -- who and where

    def _find_line(self, place: int) -> int | None:
        return place & ~_LINE if place & _LINE else self._scene.file.find_line(place)

    def _name_line(self, place: int) -> str:
        line = self._find_line(place)
        return f"line {line}" if line is not None else "a line that is not known"

    @property
    def _kernel(self) -> str:
        return self._scene.launch.kernel

    def _name_block(self, number: int) -> str:
        x, y, _ = self._scene.launch.grid
        return f"{self._words.block} ({number % x}, {number // x % y}, {number // x // y})"

    def _name_thread(self, number: int) -> str:
        x, y, z = self._scene.launch.block
        if y * z == 1:
            return f"{self._words.thread} {number}"
        return f"{self._words.thread} ({number % x}, {number // x % y}, {number // x // y})"

    @property
    def _actor(self) -> str:
        record = self._record
        return f"{self._name_thread(record.thread)} of {self._name_block(record.block)} of {self._kernel}"

    # -- what was accessed

    def _find_memory(self) -> _Memory:
        region, size = self._record.region, self._record.size or 4
        shared = self._scene.file.list_shared()
        if region == _DYNAMIC:
            return _Memory(f"dynamic {self._words.shared}", size, self._scene.launch.shared, self._words.shared, True)
        if _FIRST_SHARED <= region < _FIRST_SHARED + len(shared):
            variable = shared[region - _FIRST_SHARED]
            return _Memory(variable.name, size, variable.size, self._words.shared, True)
        number = region - _FIRST_SHARED - len(shared)
        if 0 <= number < len(self._scene.arrays):
            array = self._scene.arrays[number]
            return _Memory(array.name, array.element, array.size, f"the {array.kind}")
        if region == _DEVICE:
            variable = self._find_variable()
            return _Memory(variable.name, size, variable.size, self._words.variable)
        return _Memory("memory", size, 0, "memory")

    def _find_variable(self) -> Variable:
        variables = self._scene.file.list_device()
        first = variables[0].start // 64 * 64 if variables else 0
        inside = (v for v in variables if v.start <= first + self._record.offset < v.start + v.size)
        return next(inside, Variable("a variable", 0, 0))

    def _name_entry(self, memory: _Memory) -> str:
        if self._record.region == _DYNAMIC:
            return f"dynamic {self._words.shared} at byte {self._record.offset}"
        if self._record.region == _DEVICE:
            return memory.name
        return f"{memory.name}[{self._record.offset // memory.entry}]"

    # -- kinds

    def _describe_race(self) -> tuple[str, str]:
        record, memory = self._record, self._find_memory()
        entry, other_line = self._name_entry(memory), self._name_line(record.other_place)
        does, did = _DOES[record.is_writing], _DOES[record.other_is_writing]
        how = " atomically" if record.is_writing == 2 else ""
        other_how = " atomically" if record.other_is_writing == 2 else ""
        words_of = self._words
        space = words_of.shared if memory.is_shared else words_of.device
        begin = f"race on {space}: {self._actor} {does} {entry}{how}"
        if record.detail:
            whose = f"{self._name_thread(record.other_thread)} of {self._name_block(record.other_block)}"
            words = f"{begin}, {whose} {did} it{other_how} at {other_line}, and {words_of.block}s have no order"
            return words, f"let one {words_of.block} do both, use atomics, or split the work into two launches"
        same_warp = record.thread // 32 == record.other_thread // 32
        barrier = f"barrier or {words_of.warp_barrier}" if same_warp else "barrier"
        whose = self._name_thread(record.other_thread)
        words = f"{begin}, {whose} {did} it{other_how} at {other_line} with no {barrier} between"
        warp = f" ({words_of.thread}s of a {words_of.warp} do not run in lock step)" if same_warp else ""
        if memory.is_shared or not record.other_is_writing == record.is_writing == 1:
            alternative = f", or {words_of.warp_barrier}" if same_warp else ""
            own = words_of.barrier if memory.is_shared else words_of.device_barrier or words_of.barrier
            return words + warp, f"{own} between the two{alternative}"
        return words + warp, f"let one {words_of.thread} write each entry, or use atomics"

    def _describe_uninitialised(self) -> tuple[str, str]:
        memory = self._find_memory()
        does = "changes" if self._record.is_writing else "reads"
        entry = self._name_entry(memory)
        whose = f"no {self._words.thread} of the {self._words.block}" if memory.is_shared else "nobody"
        words = f"{self._actor} {does} {entry}, {memory.place} that {whose} has written"
        if memory.is_shared:
            return words, f"write every entry that is read, then {self._words.barrier}"
        return words, "write it first, in this kernel or in a launch before it"

    def _describe_outside(self) -> tuple[str, str]:
        record, memory = self._record, self._find_memory()
        does = _DOES[record.is_writing] if record.is_writing < 2 else "changes"
        if record.region < _DYNAMIC or record.region == _DEVICE:
            words = f"{self._actor} {does} {record.size} bytes outside of all arrays of the launch"
            return words, "check the pointer and its index"
        entries = memory.size // memory.entry
        if record.offset < 0:
            distance = -(record.offset // memory.entry)
            side = f"{distance} {'entry' if distance == 1 else 'entries'} before its begin"
        else:
            distance = (record.offset + record.size - memory.size - 1) // memory.entry + 1
            side = f"{distance} {'entry' if distance == 1 else 'entries'} beyond its end"
        has = f"{entries} {'entry' if entries == 1 else 'entries'}"
        if record.region == _DYNAMIC:
            has = f"{memory.size} bytes by shared= of the plan"
            words = f"{self._actor} {does} {self._name_entry(memory)}, outside of it: it has {has}"
            return words, "raise shared= on the launch's line, or check the index"
        first, last = record.offset // memory.entry, (record.offset + record.size - 1) // memory.entry
        entry = f"{memory.name}[{first}]" + (f" to {memory.name}[{last}]" if last > first else "")
        words = f"{self._actor} {does} {entry}, outside of {memory.name}: {side}; {memory.name} has {has}"
        if memory.is_shared:
            return words, "a larger array, or a check of the index"
        return words, "a guard such as `if (i < n)`"

    def _describe_constant(self) -> tuple[str, str]:
        record, memory = self._record, self._find_memory()
        if memory.place == f"the {INPUT}":
            return f"{self._actor} writes {self._name_entry(memory)}, an input", "write to outputs and workspaces only"
        return f"{self._actor} writes {record.size} bytes of constants", "write to outputs and workspaces only"

    def _describe_divergent(self) -> tuple[str, str]:
        record = self._record
        other_thread = self._name_thread(record.other_thread)
        block = self._name_block(record.block)
        first = (
            f"divergent barrier: {self._name_thread(record.thread)} of {block} of {self._kernel} waits at this barrier"
        )
        if record.detail:
            words = f"{first}, {other_thread} at the one on {self._name_line(record.other_place)}"
            return (
                words,
                f"let all {self._words.thread}s of the {self._words.block} reach the same {self._words.barrier}",
            )
        words = f"{first}, which {other_thread} has ended without reaching"
        return words, "no return before the barrier and no barrier within a condition: guard the work, not the barrier"

    @property
    def _operation(self) -> str:
        operations = self._words.operations
        return operations[self._record.detail] if self._record.detail < len(operations) else "an operation"

    def _describe_waiting(self) -> tuple[str, str]:
        record, warp = self._record, self._words.warp
        where = self._words.barrier if record.other_detail == 1 else f"another operation of the {warp}"
        words = (
            f"divergent {warp}: {self._actor} waits in {self._operation} with mask 0x{record.mask:08x}, which names "
            f"{self._name_thread(record.other_thread)}; that one waits in {where} on "
            f"{self._name_line(record.other_place)}"
        )
        return words, "let all lanes of the mask call the same operation, or name only those that do"

    def _describe_not_in_mask(self) -> tuple[str, str]:
        record = self._record
        lane = record.thread % 32
        words = f"{self._actor} calls {self._operation} with mask 0x{record.mask:08x}, in which its lane {lane} is not"
        return words, f"a mask with all lanes that call it, such as {self._words.full_mask} where all do"

    def _describe_misaligned(self) -> tuple[str, str]:
        record, memory = self._record, self._find_memory()
        need = f"which must lie at a multiple of {record.detail} bytes"
        words = f"misaligned access: {self._actor} accesses {memory.name} at byte {record.offset}, {need}"
        return words, "vector types only where the index is a multiple of their entries, or scalar accesses"

    def _describe_bounds(self) -> tuple[str, str]:
        type_ = self._scene.file.read_text_at(self._record.offset).strip("'")
        words = f"{self._actor} uses index {self._record.value} of a shared or local array of type {type_}"
        return words, "a larger array, or a check of the index"

    def _describe_stopped(self) -> tuple[str, str]:
        what = self._words.trap if self._record.detail == 1 else "an assertion that does not hold"
        return f"{self._actor} reaches {what}", ""

    def _describe_foreign(self) -> tuple[str, str]:
        does, thread = _DOES[self._record.is_writing], self._words.thread
        return (
            f"{self._actor} {does} a local variable of another {thread}",
            f"{self._words.shared} for what {thread}s share",
        )

    def _describe_spinning(self) -> tuple[str, str]:
        words = f"{self._actor} has looked at one place four million times, which does not change"
        return words, f"no waiting for other {self._words.block}s: they need not run at the same time"

    def _describe_limit(self) -> tuple[str, str]:
        return f"not emulated: more than 65519 {self._words.warp_barrier} between two barriers", ""

    def _describe_suspicion(self) -> tuple[str, str]:
        record = self._record
        why = (f"does not exist in this {self._words.block}", "has ended", "does not take part")[
            min(record.other_detail, 2)
        ]
        words = f"{self._actor} reads the value of lane {record.detail}, which {why}, and outputs depend on it"
        blocks = f"{self._words.block}s of a multiple of 32 {self._words.thread}s"
        return words, f"let all 32 lanes take part: {blocks} and no early return"

    def _describe_read_only(self) -> tuple[str, str]:
        record, memory, load = self._record, self._find_memory(), self._words.read_only
        if record.detail:
            return f"{self._actor} reads {memory.name} by {load}, which is for {self._words.device}", "an ordinary read"
        entry, other = self._name_entry(memory), self._name_line(record.other_place)
        does = f"reads {entry} by {load}" if not record.is_writing else f"{_DOES[record.is_writing]} {entry}"
        did = "is written" if not record.is_writing else f"is read by {load}"
        words = f"{self._actor} {does}, which {did} at {other} in the same launch: what a cache holds may be old"
        return words, f"an ordinary read, or another launch; {load} is for what a launch only reads"

    def _describe_none(self) -> tuple[str, str]:
        return f"the emulator stopped {self._kernel} without a reason that it can tell", ""
