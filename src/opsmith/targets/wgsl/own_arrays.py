"""Arrays, vectors and matrices that each invocation has for itself, and pointers to them: how long, and where so named.

A checked form looks at their indices: WGSL reads and writes another entry, or none, where one lies beyond the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from opsmith.targets.wgsl.lexing import WgslToken
from opsmith.targets.wgsl.source import split_array
from opsmith.targets.wgsl.syntax import Module, WgslFunction, join_tokens, match_brackets

_VECTOR = re.compile(r"vec([234])(?:<\w+>|[fiuh])?")
_MATRIX = re.compile(r"mat([234])x([234])(?:<\w+>|[fh])?")
_POINTER = re.compile(r"ptr<(?:function|private),(.*)>")
_ENDS = frozenset({"=", ";", "(", ")", "}"})  # of a type


@dataclass(frozen=True)
class OwnArray:
    """A name between two tokens of a function's body. `lengths`: texts, outermost first; none: it is no array."""

    name: str
    start: int
    end: int
    lengths: tuple[str, ...]
    is_pointer: bool = False


OwnNames = dict[str, list[OwnArray]]


def list_own_arrays(module: Module, function: WgslFunction) -> OwnNames:
    """All names of a function that are its own, and of private variables; inner ones behind those that they hide."""
    names: OwnNames = {}
    end = len(function.tokens)
    for variable in module.variables.values():
        if variable.space == "private":
            names[variable.name] = [OwnArray(variable.name, -1, end, list_lengths(module, variable.type))]
    for parameter in function.parameters:
        pointed = _POINTER.fullmatch(module.resolve_type(parameter.type))
        lengths = list_lengths(module, pointed[1]) if pointed else ()
        names.setdefault(parameter.name, []).append(OwnArray(parameter.name, -1, end, lengths, True))
    for own in _list_declared(module, function.tokens, names):
        names.setdefault(own.name, []).append(own)
    return names


def find_own_array(names: OwnNames, name: str, place: int) -> OwnArray | None:
    """What a name means at a place, where that is an array or a pointer to one."""
    own = next((entry for entry in reversed(names.get(name, ())) if entry.start < place < entry.end), None)
    return own if own is not None and own.lengths else None


def list_lengths(module: Module, text: str) -> tuple[str, ...]:
    """Of a type's axes, those of vectors and matrices among them; none where one has no length."""
    type_, lengths = module.resolve_type(text), []
    while type_.startswith("array<"):
        element, length = split_array(type_)
        lengths.append(length)
        type_ = module.resolve_type(element)
    vector = _VECTOR.fullmatch(type_) or _MATRIX.fullmatch(type_)
    lengths += vector.groups() if vector else ()
    return tuple(lengths) if all(lengths) else ()


def _list_declared(module: Module, tokens: Sequence[WgslToken], names: OwnNames) -> Iterator[OwnArray]:
    """Each looks up those before it in `names`, which grows."""
    match = match_brackets(tokens)
    opened: list[int] = []
    for place, (word, name) in enumerate(pairwise(tokens)):
        while opened and match[opened[-1]] <= place:
            opened.pop()
        if place in match:
            opened.append(place)
        if word.text in ("let", "var", "const"):
            pointed = _read_pointed(tokens, place, names) if word.text == "let" else ()
            value = _read_type(tokens, place + 2, match) if word.text != "const" else ""
            if word.text == "let" and not module.resolve_type(value).startswith("array<"):
                value = ""  # naga takes no computed index of a matrix that is a value
            end = _find_scope_end(tokens, match, opened)
            yield OwnArray(name.text, place, end, pointed or list_lengths(module, value), bool(pointed))


def _read_pointed(tokens: Sequence[WgslToken], place: int, names: OwnNames) -> tuple[str, ...]:
    """The lengths of what `let q = &name;` points to."""
    words = [token.text for token in tokens[place + 2 : place + 6]]
    if len(words) < 4 or words[:2] != ["=", "&"] or words[3] != ";":
        return ()
    target = find_own_array(names, words[2], place)
    return target.lengths if target is not None else ()


def _read_type(tokens: Sequence[WgslToken], start: int, match: dict[int, int]) -> str:
    """The type behind `:`, or of the one value behind `=`; "": it is not written there."""
    end, depth = start + 1, 0
    while depth > 0 or tokens[end].text not in _ENDS:
        depth += (tokens[end].text == "<") - (tokens[end].text == ">")
        if tokens[end].text in (";", "}"):
            return ""  # a template that nobody closes
        end += 1
    if tokens[start].text == "=" and (end not in match or tokens[match[end] + 1].text != ";"):
        return ""
    return join_tokens(tokens[start + 1 : end]) if tokens[start].text in (":", "=") else ""


def _find_scope_end(tokens: Sequence[WgslToken], match: dict[int, int], opened: Sequence[int]) -> int:
    """The brace that ends the block of a declaration; of one in the head of a `for`, the brace that ends its body."""
    if not opened:
        return len(tokens)
    opening = opened[-1] if tokens[opened[-1]].text != "(" else match[opened[-1]] + 1
    return match.get(opening, len(tokens))
