"""The kernels of a Metal program as their text says them: parameters, attributes, and memory of threadgroups.

Read by tokens: no parser of C++ takes `[[buffer(0)]]` behind a parameter and `device` before a type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, pairwise

from opsmith.targets.gpu.emulator.source import blank_texts
from opsmith.targets.native.tokens import Token, TokenKind, split_lines

SPACES = frozenset({"device", "constant", "threadgroup", "thread"})
_SHARED = re.compile(r"\bthreadgroup\b")
_ATTRIBUTE = re.compile(r"\[\[[^\[\]]*\]\]")
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class MetalAttribute:
    """`[[name(argument)]]`."""

    name: str
    argument: str | None  # as it is written
    line: int


@dataclass(frozen=True)
class MetalParameter:
    """One parameter as it is written."""

    name: str  # "": it has none
    words: tuple[str, ...]  # all but its name and its attributes: `device const float *`
    attributes: tuple[MetalAttribute, ...]
    line: int

    @property
    def is_pointer(self) -> bool:
        return "*" in self.words

    def find_number(self, name: str) -> int | None:
        """The number in brackets of an attribute; None: it has no such attribute, or another text there."""
        texts = (attribute.argument or "" for attribute in self.attributes if attribute.name == name)
        return next((int(text) for text in texts if text.isdecimal() and len(text) < 4), None)

    @property
    def is_const(self) -> bool:
        return "const" in self.words or "constant" in self.words

    @property
    def type(self) -> str:
        """Without address space, qualifiers and marks: `float4`, `atomic<uint>`."""
        left_out = SPACES | {"const", "volatile", "*", "&", "__restrict", "restrict"}
        words = [word for word in self.words if word not in left_out]
        return "".join(f" {word}" if word.isidentifier() else word for word in words).strip()

    @property
    def text(self) -> str:
        return " ".join((*self.words, self.name)).strip()


@dataclass(frozen=True)
class MetalKernel:
    """A kernel's name and parameters, as they are written."""

    name: str
    result: str  # `void`
    parameters: tuple[MetalParameter, ...]
    line: int  # of its name, from 1
    is_template: bool

    @cached_property
    def buffers(self) -> Mapping[int, int]:
        """The places of parameters that buffers are given for, by the buffer's number: the one that is written, or the
        first that is free."""
        numbers = {place: parameter.find_number("buffer") for place, parameter in enumerate(self.parameters)}
        taken = {number: place for place, number in numbers.items() if number is not None}
        for place, parameter in enumerate(self.parameters):
            is_held = parameter.is_pointer or "&" in parameter.words
            if numbers[place] is None and is_held and not parameter.attributes and "threadgroup" not in parameter.words:
                taken[next(number for number in count() if number not in taken)] = place
        return taken


def list_code(source: str) -> list[Token]:
    """The tokens outside of directives."""
    return [token for line in split_lines(source) if not line.is_directive for token in line.tokens]


def list_kernels(source: str) -> list[MetalKernel]:
    """Those that a text defines or declares; never raises."""
    tokens = list_code(source)
    return [head for place, token in enumerate(tokens) if token.text == "kernel" for head in _read_head(tokens, place)]


def _read_head(tokens: Sequence[Token], start: int) -> Iterator[MetalKernel]:
    place = start + 1
    while [token.text for token in tokens[place : place + 2]] == ["[", "["]:  # [[kernel]], or another attribute
        place = _find_end(tokens, place)
    if [token.text for token in tokens[place : place + 2]] == ["]", "]"]:
        place += 2
    if len(tokens) < place + 3 or tokens[place + 1].kind is not TokenKind.NAME or tokens[place + 2].text != "(":
        return
    result, name, opener = tokens[place], tokens[place + 1], place + 2
    end = _find_end(tokens, opener)
    parts = [part for part in split_at_commas(tokens[opener + 1 : end - 1]) if part]
    if [[token.text for token in part] for part in parts] == [["void"]]:
        parts = []
    is_template = start > 0 and tokens[start - 1].text == ">"
    yield MetalKernel(name.text, result.text, tuple(map(_read_parameter, parts)), name.line, is_template)


def _find_end(tokens: Sequence[Token], opener: int) -> int:
    """The place behind the bracket that closes the one there; the end of the text where nothing does."""
    depth = 0
    for place in range(opener, len(tokens)):
        depth += (tokens[place].text in _CLOSERS) - (tokens[place].text in _CLOSERS.values())
        if depth == 0:
            return place + 1
    return len(tokens)


def split_at_commas(tokens: Sequence[Token]) -> list[list[Token]]:
    """Those between commas outside of brackets, `<` and `>` among them."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in "([{<") - (token.text in ")]}>")
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _read_parameter(tokens: Sequence[Token]) -> MetalParameter:
    attributes, rest, place = list[MetalAttribute](), list[Token](), 0
    while place < len(tokens):
        end = _find_end(tokens, place)
        if [token.text for token in tokens[place : place + 2]] == ["[", "["]:
            attributes += read_attributes(tokens[place + 2 : end - 2])
            place = end
        else:
            rest.append(tokens[place])
            place += 1
    is_named = len(rest) > 1 and rest[-1].kind is TokenKind.NAME
    words = tuple(token.text for token in (rest[:-1] if is_named else rest))
    return MetalParameter(rest[-1].text if is_named else "", words, tuple(attributes), tokens[0].line)


def read_attributes(tokens: Sequence[Token]) -> Iterator[MetalAttribute]:
    """Those between `[[` and `]]`."""
    for part in split_at_commas(tokens):
        words = [token.text for token in part]
        if words:
            argument = "".join(words[2:-1]) if words[1:2] == ["("] else None
            name = words[0] if argument is not None or len(words) == 1 else " ".join(words)
            yield MetalAttribute(name, argument, part[0].line)


def find_attributes(source: str) -> Iterator[MetalAttribute]:
    """All of a program."""
    tokens = list_code(source)
    for place, (token, after) in enumerate(pairwise(tokens)):
        if token.text == after.text == "[" and after.place == token.place + 1:
            yield from read_attributes(tokens[place + 2 : _find_end(tokens, place) - 2])


def blank_attributes(source: str) -> str:
    """Blanks for all attributes; the lines stay, and so do places."""
    return _ATTRIBUTE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def find_threadgroup(source: str) -> Iterator[tuple[int, bool, bool]]:
    """Each `threadgroup` of a text: its place, whether it declares a variable there (and no pointer to one), and
    whether it begins a statement, as it must for that."""
    text = blank_attributes(blank_texts(source))
    for match in _SHARED.finditer(text):
        before = text[: match.start()].rstrip()
        yield match.start(), not _is_pointer(text, match.end()), before == "" or before[-1] in ";{}"


def _is_pointer(text: str, place: int) -> bool:
    """Whether a `*` or `&` comes before whatever ends the declarator's type and name."""
    depth = 0
    for character in text[place : place + 400]:
        depth += (character == "<") - (character == ">")
        if depth <= 0 and character in "*&":
            return True
        if depth <= 0 and character in ";,=[]{}":
            return False
    return False
