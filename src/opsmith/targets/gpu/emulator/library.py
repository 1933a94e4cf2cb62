"""What a library's file says of itself: its shared arrays, and which line of the program made which code.

Reads ELF of 64 bits and the line table of DWARF 4, as our build writes them. No torch, no numpy: a candidate's process
imports this. The file was built from the candidate's text, so junk in it can only spoil the words of a finding.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NAME = re.compile(r"(\d+)([A-Za-z_]\w*)$")
_OBJECT = 1  # STT_OBJECT
_EXTENDED, _COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE = 0, 1, 2, 3, 4  # DW_LNS_
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2  # DW_LNE_


@dataclass(frozen=True)
class Variable:
    """An array or number of the program that is not on a stack."""

    name: str
    start: int  # from the first byte of the library in memory
    size: int
    symbol: str = ""  # which names the function that it stands in, too


@dataclass(frozen=True)
class _Row:
    address: int
    is_program: bool
    line: int


class LibraryFile:
    """The bytes of a library, and the file of the program that it was made of."""

    def __init__(self, data: bytes, program: str) -> None:
        self._data, self._program = data, program

    @cached_property
    def _sections(self) -> Mapping[str, tuple[int, int, int]]:
        """Address, offset and size by name."""
        (start,) = struct.unpack_from("<Q", self._data, 0x28)
        count, names = struct.unpack_from("<HH", self._data, 0x3C)
        rows = [_SECTION.unpack_from(self._data, start + 64 * number) for number in range(count)]
        texts = rows[names][4]
        return {self._read_text(texts + row[0]): (row[3], row[4], row[5]) for row in rows}

    def _read_text(self, place: int) -> str:
        return self._data[place : self._data.index(b"\0", place)].decode(errors="replace")

    def _list_symbols(self) -> Iterator[tuple[str, int, int]]:
        _, start, size = self._sections[".symtab"]
        _, names, _ = self._sections[".strtab"]
        for place in range(start, start + size, _SYMBOL.size):
            name, info, _, section, value, length = _SYMBOL.unpack_from(self._data, place)
            if info & 15 == _OBJECT and section and length:
                yield self._read_text(names + name), value, length

    def list_shared(self) -> list[Variable]:
        """The static shared arrays, in the order of their addresses."""
        return [
            variable for variable in self._list_variables("opsmith_shared") if variable.name != "opsmith_dynamic_memory"
        ]

    def list_device(self) -> list[Variable]:
        return self._list_variables("opsmith_device")

    def _list_variables(self, section: str) -> list[Variable]:
        address, _, size = self._sections.get(section, (0, 0, 0))
        inside = (
            Variable(read_name(symbol), value, length, symbol)
            for symbol, value, length in self._list_symbols()
            if address <= value < address + size
        )
        return sorted(inside, key=lambda variable: variable.start)

    def read_text_at(self, offset: int) -> str:
        """The text at a place of the library in memory; "": there is none."""
        for address, start, size in self._sections.values():
            if address and address <= offset < address + size:
                return self._read_text(start + offset - address)[:80]
        return ""

    # -- lines

    @cached_property
    def _rows(self) -> list[_Row]:
        _, start, size = self._sections.get(".debug_line", (0, 0, 0))
        return sorted(_read_rows(self._data[start : start + size], self._program), key=lambda row: row.address)

    def find_line(self, address: int) -> int | None:
        """The line of the program that made the instruction before an address. Code of our headers counts to the line
        of the program before it."""
        index = bisect_right([row.address for row in self._rows], address - 1) - 1
        while index >= 0:
            if self._rows[index].is_program:
                return self._rows[index].line
            index -= 1
        return None


def read_name(symbol: str) -> str:
    """The variable's own name: `tile` of `_ZZN12_GLOBAL__N_17softmaxEPKfPfE4tile`."""
    stem = re.sub(r"(?:_\d+|\.\d+)+$", "", symbol)
    for candidate in (symbol, stem, stem.removesuffix("E")):
        for length in range(1, min(len(candidate), 200)):
            name = candidate[-length:]
            if candidate[:-length].endswith(str(length)) and not name[0].isdigit():
                return name
    return symbol


def _read_rows(data: bytes, program: str) -> Iterator[_Row]:
    place = 0
    while place + 4 <= len(data):
        (length,) = struct.unpack_from("<I", data, place)
        yield from _LineProgram(data[place + 4 : place + 4 + length], program).list_rows()
        place += 4 + length


class _LineProgram:
    """The line table of one file that was compiled."""

    def __init__(self, data: bytes, program: str) -> None:
        self._data = data
        self._address, self._file, self._line = 0, 1, 1
        header: int
        (header,) = struct.unpack_from("<I", data, 2)
        self._end = 6 + header
        self._least, _, _, self._base, self._range, self._first = struct.unpack_from("<BBBbBB", data, 6)
        self._lengths = data[12 : 12 + self._first - 1]
        self._place = 12 + self._first - 1
        self._programs = self._read_files(program)

    def _read_files(self, program: str) -> set[int]:
        """The numbers of that file."""
        while self._read_word():
            pass
        programs, number = set(), 1
        while name := self._read_word():
            if name.rpartition("/")[2] == program:
                programs.add(number)
            for _ in range(3):
                self._read_unsigned()
            number += 1
        return programs

    def _read_word(self) -> str:
        end = self._data.index(b"\0", self._place)
        word = self._data[self._place : end].decode(errors="replace")
        self._place = end + 1
        return word

    def _read_unsigned(self) -> int:
        value, shift = 0, 0
        while True:
            byte = int(self._data[self._place])
            self._place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def _read_signed(self) -> int:
        start = self._place
        value = self._read_unsigned()
        bits = 7 * (self._place - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def list_rows(self) -> Iterator[_Row]:
        self._place = self._end
        self._address, self._file, self._line = 0, 1, 1
        while self._place < len(self._data):
            code = self._data[self._place]
            self._place += 1
            if code >= self._first:
                self._address += (code - self._first) // self._range * self._least
                self._line += self._base + (code - self._first) % self._range
            if code >= self._first or code == _COPY:
                yield _Row(self._address, self._file in self._programs, self._line)
            elif code == _EXTENDED:
                self._follow_extended()
            else:
                self._follow_standard(code)

    def _follow_extended(self) -> None:
        length, code = self._read_unsigned(), self._data[self._place]
        if code == _SET_ADDRESS:
            (self._address,) = struct.unpack_from("<Q", self._data, self._place + 1)
        elif code == _END_SEQUENCE:
            self._address, self._file, self._line = 0, 1, 1
        self._place += length

    def _follow_standard(self, code: int) -> None:
        if code == _ADVANCE_PC:
            self._address += self._read_unsigned() * self._least
        elif code == _ADVANCE_LINE:
            self._line += self._read_signed()
        elif code == _SET_FILE:
            self._file = self._read_unsigned()
        elif code == _CONST_ADD_PC:
            self._address += (255 - self._first) // self._range * self._least
        elif code == _FIXED_ADVANCE_PC:
            self._address += struct.unpack_from("<H", self._data, self._place)[0]
            self._place += 2
        else:
            for _ in range(self._lengths[code - 1]):
                self._read_unsigned()
