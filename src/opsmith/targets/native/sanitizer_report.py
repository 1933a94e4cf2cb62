"""What AddressSanitizer and UndefinedBehaviorSanitizer say of a candidate, as findings with the line.

Their texts hold addresses and paths of this machine; a finding holds neither, and is the same on every run. Places are
told by the names that the task gives: `reads 4 bytes, 8 bytes behind the end of input x`. What is not understood is
left out: the finding that was to be explained stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opsmith.records import Diagnostic, printable
from opsmith.targets.native.messages import Advice, choose_advice
from opsmith.targets.native.sanitized import DIRECTION, REACH

KIND, WHERE = "RUN", "run with sanitizers"
MOST = 3  # findings of one run
LONGEST = 200  # characters of a sanitizer's own words, and of a line of the source
_NULL_PAGES = 1 << 16  # addresses below are offsets from a null pointer

_ERROR = re.compile(r"ERROR: AddressSanitizer: (.*)")
_ADDRESS = re.compile(r"address (0x[0-9a-f]+)")
_SIZED = re.compile(r"^(READ|WRITE) of size (\d{1,9}) at", re.MULTILINE)
_SIGNALLED = re.compile(r"caused by a (READ|WRITE) memory access")
_ARRAY = re.compile(r"^opsmith array (\d{1,4}) ([0-9a-f]{1,16}) (\d{1,15})$", re.MULTILINE)
_FRAME = re.compile(r"^ +#\d+ 0x[0-9a-f]+ in \S+ (?:\S*/)?([\w.+-]+):(\d{1,7})\b", re.MULTILINE)
_SIDE = r"is located (\d{1,15}) bytes (to the right of|to the left of|after|before|inside of) "
_REGION = re.compile(_SIDE + r"(\d{1,15})-byte region")
_GLOBAL = re.compile(
    _SIDE + r"global variable '([\w.]{1,80})' defined in '[^']*?:(\d{1,7})(?::\d+)?' \(0x[0-9a-f]+\) of size"
)
_VARIABLE = re.compile(
    r"'([\w.]{1,80})' \(line (\d{1,7})\) <== Memory access at offset -?\d+ (?:partially )?"
    r"(overflows|underflows|is inside)"
)
_RUNTIME = re.compile(r"^(?:\S*/)?([\w.+-]+):(\d{1,7}):(\d{1,7}): runtime error: (.*)$", re.MULTILINE)
_POINTER = re.compile(r"(?:address )?0x[0-9a-f]+")
_SIDES = {"to the right of": "behind", "after": "behind", "to the left of": "before", "before": "before"}

_END = "end the loop at the last entry: the last row, column or vector may not be full"
_START = "look at an index that may go below 0"
_OUTLIVED = "use memory before it is freed, and variables inside of their block"
_FAULTS: Sequence[tuple[str, str, str, str]] = (  # words of the report, what is given, what is expected, what to try
    ("attempting double-free", "frees memory that is free already", "one free for each malloc", "remove one of them"),
    (
        "attempting free",
        "frees what malloc did not give",
        "free of pointers from malloc, as they came",
        "free the pointer that malloc gave",
    ),
    ("heap-use-after-free", "{access} of memory that was freed", "memory that is not freed yet", _OUTLIVED),
    ("stack-use-after", "{access} of a variable that is gone", "variables inside of their block", _OUTLIVED),
    (
        "stack-overflow",
        "takes more stack than there is",
        "small arrays on the stack, and an end to recursion",
        "take large arrays from malloc",
    ),
    (
        "memcpy-param-overlap",
        "memcpy between places that overlap",
        "places that do not overlap",
        "use memmove, or look at the length",
    ),
    ("negative-size-param", "a length below 0", "a length of 0 or more", "look at how the length is computed"),
    (
        "FPE",
        "an integer division by 0, or one whose result is too large",
        "a divisor that is not 0",
        "look at sizes that may be 0 or small",
    ),
    ("ILL", "runs into an instruction that is none", "code that is meant to be reached", "remove traps"),
    ("BUS", "{access} at an address that is not aligned", "an aligned address", "use unaligned loads and stores"),
    (
        "",
        "{access} far outside of all arrays",
        "an index inside of the array",
        "look at how the index is computed: type, order of the axes, values of an index input",
    ),
)
_BEHAVIOURS: Advice = (  # by UBSan's words
    (r"index .* out of bounds", "an index inside of the array", "look at the bounds of the loop"),
    (r"signed integer overflow", "a result that the type holds", "compute it in int64_t"),
    (r"division by zero", "a divisor that is not 0", "look at sizes that may be 0 or small"),
    (r"shift", "a shift by less than the bits of the type, of a number of 0 or more", "shift unsigned numbers"),
    (r"null pointer", "a pointer into an array", "malloc gives NULL where memory is short: look at its argument"),
    (r"misaligned", "an address that is a multiple of the type's alignment", "use unaligned loads, or memcpy"),
    (r"variable length array", "a length above 0", "take it from malloc, or look at its length"),
    (r"insufficient space", "an index inside of the array", "look at the bounds of the loop"),
    (r"not a valid value", "a value that the type has", "set it before it is read"),
)


_LEFT_DIRECTION = Diagnostic(
    KIND,
    WHERE,
    "returns with the direction flag set: memory is copied backwards from there on",
    "the flags of the processor as they were",
    "leave out __writeeflags",
)


@dataclass(frozen=True)
class ArrayLabel:
    """An array of the function in the words of its task."""

    words: str  # input x
    formula: str  # M * N: how many entries it has; "": one
    entry_bytes: int
    is_input: bool

    def describe_bound(self, size: int) -> str:
        """Where an index must lie, for an array of `size` bytes."""
        if not self.formula:
            return f"index 0: {self.words} is one number"
        return f"an index below {self.formula} = {size // self.entry_bytes}"


@dataclass(frozen=True)
class _Access:
    """One access to memory that a sanitizer reports."""

    verb: str  # reads, writes, touches
    width: int | None  # bytes
    address: int | None

    @property
    def words(self) -> str:
        return self.verb if self.width is None else f"{self.verb} {_count_bytes(self.width)}"


@dataclass(frozen=True)
class ReportReader:
    """Reads the reports on one program."""

    source: str
    file: str  # the name that the compiler knew it by
    labels: Sequence[ArrayLabel]  # of the function's arrays, in order

    def read_report(self, messages: str) -> tuple[Diagnostic, ...]:
        """The findings of a run, that of memory first."""
        first = (_LEFT_DIRECTION,) if DIRECTION in messages.splitlines() else tuple(self._explain_memory(messages))
        lines = {finding.line for finding in first}
        others = (finding for finding in self._explain_behaviour(messages) if finding.line not in lines)
        return tuple(dict.fromkeys((*first, *others)))[:MOST]

    # -- memory

    def _explain_memory(self, messages: str) -> Iterator[Diagnostic]:
        error = _ERROR.search(messages)
        if error is None:
            return
        report = messages[error.start() :]
        access = _read_access(error[1], report)
        arrays = _ARRAY.findall(messages[: error.start()])  # of the last call
        places = {int(number): (int(begin, 16), int(size)) for number, begin, size in arrays}
        line = self._find_line(report.partition("\n\n")[0])
        # these may be of one of the function's arrays, whose surroundings are poisoned or not mapped
        is_array = error[1].startswith(("use-after-poison", "unknown-crash", "SEGV"))
        words = self._describe_array(access, places) if is_array else None
        words = words or self._describe_own(access, report)
        yield self._make_finding(line, None, *(words or _describe_fault(error[1], access)))

    def _describe_array(self, access: _Access, places: Mapping[int, tuple[int, int]]) -> tuple[str, str, str] | None:
        """Given, expected and remedy where one of the function's arrays is meant."""
        for number, (begin, size) in places.items():
            if access.address is None or number >= len(self.labels):
                continue
            offset = access.address - begin
            if -REACH <= offset < size + REACH:
                return _describe_offset(access, self.labels[number], offset, size)
        return None

    def _describe_own(self, access: _Access, report: str) -> tuple[str, str, str] | None:
        """Given, expected and remedy where an array of the program itself is meant, or no array at all."""
        if access.address is not None and 0 <= access.address < _NULL_PAGES:
            return f"{access.words} through a null pointer", "a pointer into an array", "look at what malloc gave"
        if variable := _VARIABLE.search(report):
            side = {"overflows": "behind the end of ", "underflows": "before the start of "}.get(variable[3], "in ")
            return _describe_bounds(access, f"{side}{variable[1]}, the variable of line {variable[2]}")
        if declared := _GLOBAL.search(report):
            side = _measure_distance(int(declared[1]), _SIDES.get(declared[2], ""))
            return _describe_bounds(access, f"{side}{declared[3]}, the array of line {declared[4]}")
        if (region := _REGION.search(report)) and region[2] in _SIDES:
            line = self._find_line(report[region.end() :])
            side = _measure_distance(int(region[1]), _SIDES[region[2]])
            size = _count_bytes(int(region[3]))
            return _describe_bounds(access, f"{side}the {size} that line {line} allocates")
        return None

    # -- behaviour that C does not define

    def _explain_behaviour(self, messages: str) -> Iterator[Diagnostic]:
        for file, line, column, words in _RUNTIME.findall(messages):
            if file == self.file:
                expected, remedy = choose_advice(words, _BEHAVIOURS, str, "behaviour that C defines")
                yield self._make_finding(
                    int(line), int(column), printable(_POINTER.sub("an address", words))[:LONGEST], expected, remedy
                )

    # -- lines

    def _find_line(self, stack: str) -> int | None:
        """The line of the innermost call that is the program's."""
        lines = (int(line) for file, line in _FRAME.findall(stack) if file == self.file)
        return next(lines, None)

    def _make_finding(self, line: int | None, column: int | None, given: str, expected: str, remedy: str) -> Diagnostic:
        lines = self.source.split("\n")
        if line is None or not 1 <= line <= len(lines):
            return Diagnostic(KIND, WHERE, given, expected, remedy)
        text = printable(lines[line - 1].strip()[:LONGEST])
        return Diagnostic(KIND, WHERE, given, expected, remedy, line, column, text)


def _read_access(words: str, report: str) -> _Access:
    address = _ADDRESS.search(words)
    sized, signalled = _SIZED.search(report), _SIGNALLED.search(report)
    verb = {"READ": "reads", "WRITE": "writes"}.get((sized or signalled or ("", ""))[1], "touches memory")
    return _Access(verb, int(sized[2]) if sized else None, int(address[1], 16) if address else None)


def _describe_offset(access: _Access, label: ArrayLabel, offset: int, size: int) -> tuple[str, str, str]:
    """An access `offset` bytes from the start of an array of `size` bytes."""
    if offset < 0:
        return f"{access.words}, {_measure_distance(-offset, 'before')}{label.words}", "an index of 0 or more", _START
    if offset >= size:
        given = f"{access.words}, {_measure_distance(offset - size, 'behind')}{label.words}"
        return given, label.describe_bound(size), _END
    if access.width is not None and offset + access.width > size:
        return f"{access.words} across the end of {label.words}", label.describe_bound(size), _END
    if not label.is_input or access.verb == "reads":
        given = f"{access.words} in {label.words} when the call is over"
        return given, "nothing that goes on after the function has returned", "wait for threads before it returns"
    given = f"{access.words} in {label.words}, which is not to be written"
    return given, "inputs that stay as they are", "write to outputs and to arrays of the program"


def _describe_bounds(access: _Access, place: str) -> tuple[str, str, str]:
    return f"{access.words}, {place}", "an index inside of it", _START if "before the start" in place else _END


def _measure_distance(distance: int, side: str) -> str:
    """`8 bytes behind the end of `."""
    edge = {"behind": "behind the end of ", "before": "before the start of "}.get(side)
    if edge is None:
        return "inside of "
    return f"right {edge}" if distance == 0 else f"{_count_bytes(distance)} {edge}"


def _describe_fault(words: str, access: _Access) -> tuple[str, str, str]:
    row = next(row for row in _FAULTS if row[0] in words)
    return row[1].format(access=access.words), row[2], row[3]


def _count_bytes(number: int) -> str:
    return "1 byte" if number == 1 else f"{number} bytes"
