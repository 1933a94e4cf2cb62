"""What a built library asks of others: functions that a kernel has a use for, and none that look around or reach out.

The names are those that the file itself states, so that no macro and no declaration hides one. It is asked of what
would be kept: a library that others take away must not read their environment or files.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from itertools import islice

from opsmith.records import Diagnostic

_NUMERIC = ("libm.so", "libmvec.so", "libgcc_s.so", "ld-linux")  # of which any function may be called
_THREADS = "libgomp.so"
_SETTER = re.compile(r"omp_(set_(?!(nest_)?lock$)|fulfill|display|target|pause)")
_OF_C = re.compile(
    r"(__)?mem\w+|(__)?str\w+|malloc\w*|calloc|realloc\w*|free|aligned_alloc|posix_memalign|(l|ll)?abs|(l|ll)?div"
    r"|qsort(_r)?|bsearch|s?rand(om)?(_r)?|ato(i|l|ll|f)|abort|exit|_Exit|__errno_location|__stack_chk_fail"
    r"|__cxa_finalize|__assert_fail|__tls_get_addr|(__)?(frexp|ldexp|modf|scalbn|copysign|finite|isinf|isnan|signbit)[fl]?"
)
_ENVIRONMENT = re.compile(r"fe(set|enable|disable|update|hold|clear|raise)\w*")  # of floats, in the whole process
_WEAK_OF_STARTS = re.compile(r"__gmon_start__|_ITM_\w+|__cxa_finalize")  # of every library that a compiler links
_DYNSYM, _VERNEED, _VERSYM = 11, 0x6FFFFFFE, 0x6FFFFFFF
_SECTION, _SYMBOL, _NEED, _VERSION = (struct.Struct(form) for form in ("<IIQQQQIIQQ", "<IBBHQQ", "<HHIII", "<IHHII"))
_MOST = 5  # findings


def check_imports(library: bytes) -> tuple[Diagnostic, ...]:
    """What it asks for that no kernel needs."""
    foreign = sorted({name for name, owner in _list_imports(library) if not _is_allowed(name, owner)})
    return tuple(
        Diagnostic(
            "COMPILE",
            "linker",
            f"a use of {name[:80]}",
            "functions of <math.h>, <string.h> and <stdlib.h> that depend on their arguments alone, and OpenMP",
            "remove it: a kernel computes its outputs from its inputs",
        )
        for name in islice(foreign, _MOST)
    )


def _is_allowed(name: str, owner: str) -> bool:
    if not owner:
        return bool(_WEAK_OF_STARTS.fullmatch(name))
    if owner.startswith(_THREADS):
        return not _SETTER.match(name)
    if owner.startswith(_NUMERIC):
        return not _ENVIRONMENT.fullmatch(name)
    return bool(_OF_C.fullmatch(name))


def _list_imports(library: bytes) -> Iterator[tuple[str, str]]:
    """Names that are not defined there, each with the library that it is expected from; "": from any, or none."""
    (start,) = struct.unpack_from("<Q", library, 40)
    size, count = struct.unpack_from("<HH", library, 58)
    sections = [_SECTION.unpack_from(library, start + number * size) for number in range(count)]
    by_type = {section[1]: section for section in sections if section[1] in (_DYNSYM, _VERNEED, _VERSYM)}
    symbols = by_type[_DYNSYM]
    texts = sections[symbols[6]][4]
    owners = _read_owners(library, by_type[_VERNEED], texts) if _VERNEED in by_type else {}
    for number in range(1, symbols[5] // _SYMBOL.size):
        name, _, _, section, _, _ = _SYMBOL.unpack_from(library, symbols[4] + number * _SYMBOL.size)
        if section == 0:
            version = struct.unpack_from("<H", library, by_type[_VERSYM][4] + 2 * number)[0] if owners else 0
            yield _read_text(library, texts + name), owners.get(version & 0x7FFF, "")


def _read_owners(library: bytes, needs: tuple[int, ...], texts: int) -> dict[int, str]:
    """The libraries by the numbers of versions."""
    owners, place = {}, needs[4]
    for _ in range(needs[7]):
        _, count, file, first, following = _NEED.unpack_from(library, place)
        at = place + first
        for _ in range(count):
            _, _, number, _, further = _VERSION.unpack_from(library, at)
            owners[number & 0x7FFF] = _read_text(library, texts + file)
            at += further
        place += following
    return owners


def _read_text(library: bytes, place: int) -> str:
    return library[place : library.index(b"\0", place)].decode("ascii", "replace")
