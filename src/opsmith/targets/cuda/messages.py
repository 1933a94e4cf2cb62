"""What NVRTC says of a source, as findings: the first errors, each with its line, and nothing of this machine.

Its front end writes `kernel.cu(5): error: identifier "flot" is undefined`, the line and a caret; ptxas writes lines of
its own. An error inside a header is told at the line of the source that led there. Warnings are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opsmith.records import Diagnostic
from opsmith.running.compiler import CompileRefusal
from opsmith.targets.cuda.nvrtc_process import SOURCE
from opsmith.targets.native.messages import Advice, choose_advice, cut_line, hide_paths, place_finding, show_line

KIND = "COMPILE"
MOST = 5  # findings of one compile

_ERROR = re.compile(r"^(?P<file>[^\n(]*)\((?P<line>\d+)\): (?:catastrophic )?error(?: #\d+(?:-D)?)?: (?P<text>.*)$")
_NAMES = "__nv_name_map"  # where it looks up the names of kernels
_LOST = re.compile(rf"^{_NAMES}\(\d+\): error(?: #\d+(?:-D)?)?: identifier \"(\w+)\" is undefined")
_ENTRY = re.compile(r"^(?:[^\n(]*\(\d+\): (?:\w+ )?(?:error|warning|remark)|\d+ errors? detected|ptxas )")
_AT_LINE = re.compile(r"at line (\d+)(?: of (\S+))?")
_CARET = re.compile(r"^\s*\^\s*$")
_TOOLS = re.compile(r"^(?:ptxas|nvvm|NVVM)[^:]*\b(?:error|fatal)\b[^:]*:\s*(?P<text>.*)$")
_SHARED = re.compile(
    r"Entry function '([^']+)' uses too much shared data \((0x[0-9a-f]+) bytes(?: \+ [^,]*)?, (0x[0-9a-f]+) max"
)
_OF_HALVES = r"half2?|(?:__|make_)half\w*|__\w+2half\w*"
_OF_BFLOATS = r"\w*bfloat16\w*"
_OF_FP8 = r"__nv_(?:fp8\w*|cvt_\w*fp8\w*)|__NV_\w+"
_ADVICE: Advice = (
    (rf"identifier \"({_OF_FP8})\" is undefined", "a name that is declared above its use", "#include <cuda_fp8.h>"),
    (
        rf"identifier \"({_OF_BFLOATS})\" is undefined",
        "a name that is declared above its use",
        "#include <cuda_bf16.h>",
    ),
    (rf"identifier \"({_OF_HALVES})\" is undefined", "a name that is declared above its use", "#include <cuda_fp16.h>"),
    (
        r"identifier \"(.+?)\" is undefined",
        "a name that is declared above its use",
        "declare {0}, include the header that declares it, or correct its spelling",
    ),
    (
        r"without execution space annotations",
        "a function that runs on the device",
        "write __device__ before its definition",
    ),
    (
        r"calling a __host__ function(?:\(?\"?(.*?)\"?\)?)? from a",
        "a function that runs on the device",
        "write __device__ before its definition",
    ),
    (r"expression must be a modifiable lvalue", "a write to an output", "inputs are const: write to outputs only"),
    (
        r"no instance of (?:overloaded )?function(?: template)? \"(.+?)\" matches",
        "arguments that a form of {0} takes",
        "look at their number and types, and convert them",
    ),
    (
        r"more than one instance of overloaded function \"(.+?)\" matches",
        "arguments of equal types",
        "convert the arguments to one type",
    ),
    (
        r"value of type \"(.+?)\" cannot be (?:assigned to an entity|used to initialize an entity) of type \"(.+?)\"",
        "a value of type {1}",
        "convert it",
    ),
    (
        r"argument of type \"(.+?)\" is incompatible with parameter of type \"(.+?)\"",
        "an argument of type {1}",
        "convert it",
    ),
    (
        r"too (?:few|many) arguments in function call",
        "the number of arguments that it takes",
        "look at its declaration",
    ),
    (r"no operator \"(.+?)\" matches", "operands that {0} takes", "convert one of them"),
    (r"already been (?:defined|declared)|redefinition", "one definition of a name", "remove one of them"),
    (r"cannot open source file \"(.+?)\"", "a header that is allowed", "remove the #include"),
    (r"excessive recursion|recursive instantiation", "templates that end", "write a loop"),
    (r"^expected an? (.+)$", "{0}", "close what is open on that line or on the one before"),
    (r"^this declaration has no storage class|^unrecognized token", "CUDA C++", "correct the line"),
)


@dataclass(frozen=True)
class _Place:
    """Where in the source an error shows."""

    line: int  # from 1
    column: int | None  # from 1; None: not said


def explain_refusal(
    refusal: CompileRefusal, source: str, launches: Mapping[str, int] | None = None
) -> tuple[Diagnostic, ...]:
    """The findings of a compile that failed, one at least. `launches`: the line of the plan that names each kernel."""
    lines = source.split("\n")
    rows = refusal.messages.splitlines()
    findings = [*_read_errors(rows, lines), *_read_lost_kernels(rows, launches or {}), *_read_tool_errors(rows, lines)]
    distinct = tuple(dict.fromkeys(findings))[:MOST]
    return distinct or (_explain_limit(refusal.limit) if refusal.limit else _explain_remainder(rows),)


def _explain_limit(limit: str) -> Diagnostic:
    remedy = "write a shorter program: smaller constant arrays, less unrolling, fewer templates and macros"
    return Diagnostic(KIND, "compiler", "a program that takes it more than its limit", f"at most {limit}", remedy)


def _read_errors(rows: Sequence[str], lines: Sequence[str]) -> Iterator[Diagnostic]:
    for number, row in enumerate(rows):
        match = _ERROR.match(row)
        if match is not None and match["file"] != _NAMES:
            tail = _list_tail(rows[number + 1 :])
            yield _explain_error(match["text"], _find_place(match, tail), lines)


def _read_lost_kernels(rows: Sequence[str], launches: Mapping[str, int]) -> Iterator[Diagnostic]:
    """Kernels that the plan names and the compiler does not see: a preprocessor took them out."""
    for row in rows:
        match = _LOST.match(row)
        if match is not None:
            actual, expected = f"no kernel {match[1]} once the preprocessor has run", "a kernel that is compiled"
            remedy = "take it out of #if"
            yield Diagnostic(KIND, f"launch {match[1]}", actual, expected, remedy, launches.get(match[1]))


def _list_tail(rows: Sequence[str]) -> list[str]:
    """What belongs to an error: the rows before the next one."""
    tail = []
    for row in rows:
        if _ENTRY.match(row):
            break
        tail.append(row)
    return tail


def _find_place(match: re.Match[str], tail: Sequence[str]) -> _Place | None:
    """That of the error itself, or the place in the source that led to it."""
    if match["file"] == SOURCE:
        caret = next((row for row in tail if _CARET.match(row)), None)
        return _Place(int(match["line"]), None if caret is None else caret.index("^") - 1)
    places = [_AT_LINE.search(row) for row in tail]
    own = [place for place in places if place is not None and place[2] in (None, SOURCE)]
    return _Place(int(own[-1][1]), None) if own else None


def _explain_error(message: str, place: _Place | None, lines: Sequence[str]) -> Diagnostic:
    text = clean_text(message)
    expected, remedy = choose_advice(message, _ADVICE, clean_text, "CUDA C++ that the compiler takes")
    if place is None or not 1 <= place.line <= len(lines):
        return Diagnostic(KIND, "a header that the program includes", text, expected, remedy)
    where = _name_token(lines[place.line - 1], place.column)
    return Diagnostic(KIND, where, text, expected, remedy, place.line, place.column, show_line(lines, place.line))


def _name_token(line: str, column: int | None) -> str:
    if column is None:
        return "on this line"
    token = re.match(r"\w+|[^\w\s]{1,3}", line[max(column - 1, 0) :])
    return f"at {clean_text(token[0])}" if token else "at the end of the line"


def _read_tool_errors(rows: Sequence[str], lines: Sequence[str]) -> Iterator[Diagnostic]:
    """Of what makes machine code: it names kernels by their symbols."""
    for row in rows:
        match = _TOOLS.match(row)
        shared = _SHARED.search(row)
        if shared is not None:
            name = _demangle_name(shared[1])
            actual = f"kernel {name} with {int(shared[2], 16)} bytes of static shared memory"
            expected = f"at most {int(shared[3], 16)} of a block"
            remedy = "use smaller tiles, or dynamic shared memory (shared=... in the plan)"
            finding = Diagnostic(KIND, "ptxas", actual, expected, remedy)
            yield place_finding(finding, rf"\b{re.escape(name)}\s*\(", lines)  # where it is defined
        elif match is not None and "ptxas fatal" not in row:
            yield Diagnostic(KIND, "ptxas", clean_text(match["text"]), "a kernel that the architecture can run")


def _demangle_name(symbol: str) -> str:
    """A kernel's own name: it stands behind its length.

    >>> _demangle_name("_Z7row_sumPKfPfi"), _demangle_name("row_sum")
    ('row_sum', 'row_sum')
    """
    match = re.match(r"_Z(\d+)", symbol)
    return symbol[match.end() : match.end() + int(match[1])] if match else clean_text(symbol)


def _explain_remainder(rows: Sequence[str]) -> Diagnostic:
    """What is no error of a known form."""
    plain = [row for row in rows if row.strip() and "Compilation terminated" not in row]
    if not plain or plain[-1].startswith(("Traceback", "nvrtc:", "Fatal Python", "Segmentation")):
        remedy = "write it more simply: less nesting, shorter expressions"
        return Diagnostic(KIND, "compiler", "a program on which it broke down", "one that it can compile", remedy)
    return Diagnostic(KIND, "compiler", clean_text(plain[0]), "CUDA C++ that the compiler takes")


def clean_text(text: str) -> str:
    """One printable line of sensible length without paths of this machine."""
    return cut_line(hide_paths(text))
