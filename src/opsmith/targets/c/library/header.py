"""What C sees of a library: the public header, and the one that precedes each program.

A program keeps its own text. The header before it gives `kernel` the operator's name as its symbol, and everything else
in the file stays in it (`-fwhole-program`), so that many programs live in one shared object. Texts of authors stand in
line comments, which end with a line of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opsmith.records import printable
from opsmith.targets.native.library.module import OperatorEntry, describe_reference
from opsmith.targets.native.signature import Signature, make_signature

_TOP = """\
/* {package}: operators on contiguous row-major arrays, each tested against its reference. Made by `opsmith export`.

   Arrays never overlap, hold what their comments say, and begin at multiples of 64 bytes, as they did when the programs
   were judged. Inputs are never written. What stands in them is not checked: an index beyond its table reads what is
   not there. A bf16 number is the upper half of a float's bits. */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif
"""
_BOTTOM = """
/* The instruction sets that the programs were built for. */
extern const char {package}_isa[];

#ifdef __cplusplus
}}
#endif
#endif
"""


def write_public_header(package: str, entries: Sequence[OperatorEntry]) -> str:
    """The documented prototypes of all operators."""
    top = _TOP.format(package=package, guard=f"{package.upper()}_H")
    return top + "".join(_write_operator(package, entry) for entry in entries) + _BOTTOM.format(package=package)


def write_unit_header(package: str, entry: OperatorEntry, unit: str = "") -> str:
    """What precedes a program when it is compiled: that of its verdict, with a symbol of its own.

    unit: of one of several programs of an operator, which nothing outside of the library sees.
    """
    signature = make_signature(entry.problem)
    visibility = "hidden" if unit else "default"
    attributes = f'__attribute__((externally_visible, visibility("{visibility}")))'
    prototype = f'{signature.prototype[:-1]} __asm__("{package}_{unit or entry.name}") {attributes};'
    return signature.header.replace(signature.prototype, prototype)


def write_isa_unit(package: str) -> str:
    """The unit that says what all of them were built for; ISA is a macro of the build."""
    return f"extern const char {package}_isa[];\nconst char {package}_isa[] = ISA;\n"


def _write_operator(package: str, entry: OperatorEntry) -> str:
    signature = make_signature(entry.problem)
    comment = "".join(map(_write_comment, _describe_operator(entry, signature)))
    return f"\n{comment}//\n{_write_prototype(signature, f'{package}_{entry.name}')}\n"


def _write_comment(line: str) -> str:
    """A backslash at its end would make the next line one of the comment."""
    text = f"// {printable(line)}".rstrip()
    return f"{text} //\n" if text.endswith("\\") else f"{text}\n"


def _write_prototype(signature: Signature, name: str) -> str:
    """Without `restrict`, which C++ lacks and callers do not need."""
    declarations = [argument.declaration.replace(" *restrict", " *") for argument in signature.arguments]
    lines = ",\n    ".join(declaration.replace("* ", "*") for declaration in declarations)
    extension = "__extension__ " if "_Float16" in lines else ""  # of gcc's: no warning where standard C is asked for
    return f"{extension}void {name}(\n    {lines});"


def _describe_operator(entry: OperatorEntry, signature: Signature) -> Iterator[str]:
    yield f"{entry.name}: {entry.task_id}"
    yield from (f"  {argument.name}: {argument.meaning}" for argument in signature.arguments)
    if entry.threads > 1:
        yield f"  Call omp_set_num_threads({entry.threads}) before: it was judged with as many."
    yield from ["Computes, in the words of PyTorch:", *describe_reference(entry.problem)]
