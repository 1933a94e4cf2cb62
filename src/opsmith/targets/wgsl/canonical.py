"""The canonical form of a WGSL program: equal for programs that differ in names, comments and layout only.

Every name that the program declares becomes a number, in the order in which names are first mentioned; fields keep
theirs, which swizzles cannot be told from. The launch plan is a part of the form.
"""

from __future__ import annotations

from itertools import pairwise

from opsmith.targets.gpu.canonical import write_plan_of
from opsmith.targets.wgsl.lexing import NAME, WgslToken, split_source
from opsmith.targets.wgsl.syntax import list_names

_DECLARING = frozenset("fn var let const struct alias override".split())  # noqa: SIM905


def write_canonical(source: str) -> str:
    """The canonical form of a text that passed the checks of PARSE."""
    tokens = split_source(source)
    declared = _list_declared(tokens)
    numbers: dict[str, str] = {}
    words = []
    places = {place for place, token in list_names(tokens) if token.text in declared}
    for place, token in enumerate(tokens):
        words.append(numbers.setdefault(token.text, f"%{len(numbers)}") if place in places else token.text)
    return f"{write_plan_of(source, numbers)}{' '.join(words)}\n"


def _list_declared(tokens: list[WgslToken]) -> set[str]:
    """Names behind `fn`, `var<...>`, `let` and the like, and those of parameters."""
    names: set[str] = set()
    for place, (token, after) in enumerate(pairwise(tokens)):
        if token.text not in _DECLARING:
            continue
        if token.text == "var" and after.text == "<":
            end = next((i for i in range(place, len(tokens)) if tokens[i].text == ">"), place)
            names |= {entry.text for entry in tokens[end + 1 : end + 2] if entry.kind == NAME}
        elif after.kind == NAME:
            names.add(after.text)
        if token.text == "fn":
            names |= _list_parameters(tokens[place:])
    return names


def _list_parameters(tokens: list[WgslToken]) -> set[str]:
    """Those of the function that begins there: names in its brackets with a colon behind."""
    names: set[str] = set()
    for token, after in pairwise(tokens):
        if token.text == "{":
            break
        if token.kind == NAME and after.text == ":":
            names.add(token.text)
    return names
