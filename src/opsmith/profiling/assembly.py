"""The innermost loops of an assembly text, as gcc writes it with `-g1`: which instructions, from which lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LABEL = re.compile(r"^(\.L\w+):")
_JUMP = re.compile(r"^\t(?:j[a-z]+|b\.?[a-z]*|cb[a-z]+|tb[a-z]+)\t(?:[^\n]*[\s,])?(\.L\w+)\s*$")
_PLACE = re.compile(r"^\t\.loc \d+ (\d+) ")
_INSTRUCTION = re.compile(r"^\t([a-z][a-z0-9.]*)\b")


@dataclass(frozen=True)
class MachineLoop:
    """A loop of machine code that holds no other."""

    first_line: int  # of the source
    last_line: int
    instructions: tuple[str, ...]  # of a round, in order; a way around some of them is not taken

    @property
    def mnemonics(self) -> tuple[str, ...]:
        return tuple(text.split()[0] for text in self.instructions)


def list_innermost_loops(assembly: str) -> list[MachineLoop]:
    """In the order of the text. A loop begins at a label that a later instruction jumps back to."""
    lines = assembly.splitlines()
    spans = list(_list_spans(lines))
    inner = [span for span in spans if not any(_is_within(other, span) for other in spans if other != span)]
    return [loop for begin, end in inner if (loop := _read_loop(lines, begin, end)) is not None]


def _list_spans(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first and the last line of each loop; of several jumps to one label the last one."""
    places: dict[str, int] = {}
    ends: dict[int, int] = {}
    for number, line in enumerate(lines):
        if label := _LABEL.match(line):
            places[label[1]] = number
        elif (jump := _JUMP.match(line)) and jump[1] in places:
            ends[places[jump[1]]] = number
    yield from ends.items()


def _is_within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _read_loop(lines: Sequence[str], begin: int, end: int) -> MachineLoop | None:
    """None where it is nobody's line, or where the function's end stands in it: it is no loop of the source then."""
    inside = [int(match[1]) for line in lines[begin : end + 1] if (match := _PLACE.match(line))]
    before = (int(match[1]) for line in reversed(lines[:begin]) if (match := _PLACE.match(line)))
    numbers = [number for number in inside or [next(before, 0)] if number]
    instructions = tuple(line.strip() for line in lines[begin : end + 1] if _INSTRUCTION.match(line))
    loop = MachineLoop(min(numbers), max(numbers), instructions) if numbers else None
    return None if loop is None or "ret" in loop.mnemonics else loop
