"""What gcc's vectoriser says of the loops of a source, read from its dump (`-fdump-tree-vect-details`).

The dump of a loop begins with `Analyzing loop at kernel.c:8`; it is looked at with one width of vectors after the
other, of which the first says why. A text that has another form gives no remarks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_SECTION = re.compile(r"^Analyzing loop at (?:[^\s:]*:)?(\d+)$", re.MULTILINE)
_VECTORISED = re.compile(
    r"^[^\s:]+:(\d+):\d+: optimized:\s+loop vectorized(?: using (\d+) byte vectors| using variable)?", re.MULTILINE
)
_ANALYSED = re.compile(r"\*{5} Analysis\s+(?:failed|succeeded) with vector mode")
_MISSED = re.compile(r"^(?:analyze_innermost: )?[^\s:]+:(\d+):\d+: missed:\s+(.*)$", re.MULTILINE)
_STEP = re.compile(r"^\tstep: ([^\n]+)\n(?:\t[^\n]*\n)*?\tbase_object: ([^\n]+)$", re.MULTILINE)
_CAST = re.compile(r"\((?:ssizetype|sizetype|(?:long |unsigned |int ?|u?int\d+_t)+)\) ?")
_VERSION = re.compile(r"(?<=\w)_\d+(?:\(D\))?")
_IN_ORDER = "in-order (fold-left) reduction"
_COST = re.compile(
    r"vector iteration cost = (\d+) divided by the scalar iteration cost = (\d+) .*vectorization factor = (\d+)"
)
_CALL = re.compile(r"(?:statement clobbers memory|relevant stmt not supported): (?:\S+ = )?(?:__builtin_)?(\w+) \(")
_OWN_WORDS = "the compiler says: "
_FORMS = re.compile(r"loop nest containing|multiple nested loops")
_REASONS: Sequence[tuple[str, str]] = (  # of a message, and what it means
    (r"control flow in loop", "a branch in it, or a way out of it, cannot be turned into a selection"),
    (r"reduction used in loop", "what it accumulates is used in the same round (a scan, or an index beside a maximum)"),
    (
        r"multiple types in double reduction or condition reduction or fold-left",
        "it accumulates converted numbers in the order of the program, which may not be changed",
    ),
    (r"evolution of base is not affine", "an address follows from data: an index that is read, not counted"),
    (r"complicated access pattern", "its accesses to memory have no constant step"),
    (
        r"dependence between|bad data dependence",
        "a round may need what an earlier one has written, as far as it can tell",
    ),
    (r"number of iterations cannot be computed", "it cannot tell beforehand how many rounds there are"),
    (r"conversion not supported by target", "it converts between types of numbers for which it knows no vector form"),
    (r"unsupported use in stmt", "a value of one round is used by the next in a way that is no plain sum or maximum"),
)


@dataclass(frozen=True)
class LoopRemark:
    """What the vectoriser says of the loop at a line."""

    line: int
    vector_bytes: int = 0  # of the vectors that it works with; 0: it is not vectorised
    is_in_order: bool = False  # what it accumulates is accumulated in the order of the program
    is_nest: bool = False  # it is left alone since it holds loops
    reasons: tuple[str, ...] = ()  # why it is not vectorised
    steps: Mapping[str, str] = field(default_factory=dict)  # bytes from round to round, by array


def read_loop_dump(text: str, element_bytes: Mapping[str, int]) -> tuple[LoopRemark, ...]:
    """A remark for each line that has loops. `element_bytes`: of the arrays by name; those that are read or written
    element by element have no step in it."""
    widths: dict[int, int] = {}
    for match in _VECTORISED.finditer(text):
        widths[int(match[1])] = max(widths.get(int(match[1]), 0), int(match[2] or 0) or 1)
    remarks: dict[int, LoopRemark] = {}
    for line, section in _split_sections(text):
        if line not in remarks:
            remarks[line] = _read_section(line, section, widths.get(line, 0), element_bytes)
    return tuple(remarks.values())


def _split_sections(text: str) -> Iterator[tuple[int, str]]:
    """The line of each loop, and what is said of it with the first width of vectors."""
    _, *pieces = _SECTION.split(text)
    for line, section in zip(pieces[::2], pieces[1::2], strict=True):
        analysed = _ANALYSED.search(section)
        yield int(line), section[: analysed.start()] if analysed else section


def _read_section(line: int, section: str, vector_bytes: int, element_bytes: Mapping[str, int]) -> LoopRemark:
    is_nest = _FORMS.search(section) is not None
    reasons = () if vector_bytes or is_nest else _choose_reasons(section)
    steps = dict(_list_steps(section, element_bytes))
    return LoopRemark(line, vector_bytes, _IN_ORDER in section, is_nest, reasons, steps)


def _choose_reasons(section: str) -> tuple[str, ...]:
    """In words, each once; the compiler's own where there are no others."""
    reasons = dict.fromkeys(_list_reasons(section))
    ours = [reason for reason in reasons if not reason.startswith(_OWN_WORDS)]
    return tuple(ours or [*reasons][:1])


def _list_reasons(section: str) -> Iterator[str]:
    for match in _MISSED.finditer(section):
        line, message = match[1], match[2]
        if call := _CALL.search(message):
            yield f"line {line} calls {call[1]}, of which it knows no vector form here"
        elif cost := _COST.search(message):
            vector, scalar, factor = map(int, cost.groups())
            yield (
                f"not worth it by its estimate: {factor} rounds at once cost {vector}, one by one "
                f"{factor} x {scalar} = {factor * scalar}"
            )
        elif words := next((words for pattern, words in _REASONS if re.search(pattern, message)), ""):
            yield words if "affine" not in message else f"line {line}: {words}"
        elif message.startswith("not vectorized: ") and "profitable" not in message:
            yield f"{_OWN_WORDS}{_clean_expression(message.removeprefix('not vectorized: '))}"


def _list_steps(section: str, element_bytes: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Arrays whose neighbouring rounds do not touch neighbours."""
    for match in _STEP.finditer(section):
        names = [name for name in element_bytes if re.search(rf"\b{re.escape(name)}(_\d+)?\(D\)", match[2])]
        step = _clean_expression(match[1])
        if not names or not step or step.lstrip("-") in (str(element_bytes[names[0]]), "0"):
            continue
        yield names[0], step if not re.search(r"(?<!\w)_\d+", step) else ""


def _clean_expression(text: str) -> str:
    """An expression of the compiler's without its casts and versions of variables."""
    text = _VERSION.sub("", _CAST.sub("", text)).strip()
    while text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        text = text[1:-1].strip()
    return text
