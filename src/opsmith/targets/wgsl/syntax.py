"""What a WGSL module declares, by its tokens: functions, variables, structures, constants, with their attributes.

Expressions are left as tokens: their grammar and all types are naga's to judge. Raises WgslSyntaxError where a text
breaks off or has no declaration where one must stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from opsmith.targets.wgsl.lexing import NAME, ODD, WgslToken, split_source

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_DIRECTIVES = ("enable", "requires", "diagnostic")
_SHORT_VECTOR = re.compile(r"vec([234])([fhiu])")
_ENTRIES = {"f": "f32", "h": "f16", "i": "i32", "u": "u32"}
DEEPEST = 64  # brackets within brackets


class WgslSyntaxError(Exception):
    """A text that is no module."""

    def __init__(self, line: int, actual: str, expected: str, remedy: str = "") -> None:
        super().__init__(f"line {line}: given {actual}; expected {expected}")
        self.line, self.given, self.expected, self.remedy = line, actual, expected, remedy


@dataclass(frozen=True)
class Attribute:
    """`@workgroup_size(64, 1)`."""

    name: str
    arguments: tuple[str, ...]  # texts without blanks
    start: int  # of all its text
    end: int


@dataclass(frozen=True)
class Member:
    """A parameter of a function, or a field of a structure."""

    name: str
    type: str  # without blanks
    attributes: tuple[Attribute, ...]
    line: int

    @property
    def builtin(self) -> str:
        """`local_invocation_id`; "": it is none."""
        return next(
            (entry.arguments[0] for entry in self.attributes if entry.name == "builtin" and entry.arguments), ""
        )


@dataclass(frozen=True)
class ModuleVariable:
    """A variable of the module: `var<storage, read> x: array<f32>`."""

    name: str
    space: str  # storage, uniform, workgroup, private, ...
    access: str  # read, read_write; "": it says none
    type: str
    attributes: tuple[Attribute, ...]
    line: int

    def find_number(self, name: str) -> int | None:
        """That of `@group(0)` or `@binding(1)`, where it is written in digits."""
        for attribute in self.attributes:
            if attribute.name == name and len(attribute.arguments) == 1:
                digits = attribute.arguments[0].rstrip("iu")
                return int(digits) if digits.isdecimal() and len(digits) < 6 else None
        return None


@dataclass(frozen=True)
class WgslFunction:
    """A function, an entry point among them."""

    name: str
    attributes: tuple[Attribute, ...]
    parameters: tuple[Member, ...]
    tokens: tuple[WgslToken, ...]  # of the body, its braces among them
    line: int
    name_start: int
    result: str  # its type; "": none

    @property
    def is_entry(self) -> bool:
        return any(attribute.name in ("compute", "vertex", "fragment") for attribute in self.attributes)

    @property
    def workgroup_size(self) -> tuple[str, ...]:
        sizes = (entry.arguments for entry in self.attributes if entry.name == "workgroup_size")
        return next(sizes, ())

    @cached_property
    def names(self) -> frozenset[str]:
        """Those that its body mentions, but for fields."""
        return frozenset(token.text for _, token in list_names(self.tokens))


@dataclass(frozen=True)
class Module:
    """A whole program."""

    functions: Mapping[str, WgslFunction]
    variables: Mapping[str, ModuleVariable]
    structures: Mapping[str, tuple[Member, ...]]
    structure_lines: Mapping[str, int]
    constants: Mapping[str, str]  # of const and override: the value's text; "": none
    aliases: Mapping[str, str]
    directives: Sequence[tuple[str, str, int]]  # word, the rest, line
    repeated: Sequence[tuple[str, int]]  # names that are declared twice, with the second line

    def list_reachable(self, entry: str) -> list[WgslFunction]:
        """The functions that a kernel calls, itself first."""
        names, place = [entry], 0
        while place < len(names):
            called = self.functions[names[place]].names & self.functions.keys()
            names += sorted(called - set(names))
            place += 1
        return [self.functions[name] for name in names]

    def list_used(self, entry: str) -> list[ModuleVariable]:
        """The variables of the module that a kernel uses, by itself or by what it calls."""
        names = frozenset().union(*(function.names for function in self.list_reachable(entry)))
        return [variable for name, variable in self.variables.items() if name in names]

    def resolve_type(self, text: str, depth: int = 0) -> str:
        """The type without aliases at its front, those of vectors among them (`vec4f`)."""
        if text in self.aliases and depth < 8:
            return self.resolve_type(self.aliases[text], depth + 1)
        short = _SHORT_VECTOR.fullmatch(text)
        return f"vec{short[1]}<{_ENTRIES[short[2]]}>" if short else text

    def list_builtins(self, parameter: Member) -> list[str]:
        """What a parameter of a kernel asks for: one builtin, or one for each field of its structure; "": another
        thing."""
        members = self.structures.get(parameter.type, ())
        return [parameter.builtin] if parameter.builtin or not members else [member.builtin for member in members]

    def compute_number(self, text: str) -> int | None:
        """What a text of digits, constants and + - * / comes to; None: it is more than that."""
        return _compute_number(text, self.constants, 0)


def read_module(source: str) -> Module:
    """Raises WgslSyntaxError."""
    return _ModuleReader(split_source(source)).read_all()


class _ModuleReader:
    """Reads declarations one after another."""

    def __init__(self, tokens: list[WgslToken]) -> None:
        self._tokens, self._place = tokens, 0
        self._functions: dict[str, WgslFunction] = {}
        self._variables: dict[str, ModuleVariable] = {}
        self._structures: dict[str, tuple[Member, ...]] = {}
        self._structure_lines: dict[str, int] = {}
        self._constants: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._directives: list[tuple[str, str, int]] = []
        self._repeated: list[tuple[str, int]] = []
        self._names: set[str] = set()

    def read_all(self) -> Module:
        for token in self._tokens:
            if token.kind == ODD:
                raise WgslSyntaxError(token.line, f"`{token.text}`", "WGSL", "close the comment" * (token.text == "/*"))
        self._match = match_brackets(self._tokens)
        while self._place < len(self._tokens):
            self._read_declaration()
        return Module(
            self._functions,
            self._variables,
            self._structures,
            self._structure_lines,
            self._constants,
            self._aliases,
            self._directives,
            self._repeated,
        )

    # -- tokens

    @property
    def _token(self) -> WgslToken:
        if self._place >= len(self._tokens):
            last = self._tokens[-1]
            raise WgslSyntaxError(last.line, "the end of the text", "the rest of a declaration")
        return self._tokens[self._place]

    def _take(self, text: str = "") -> WgslToken:
        token = self._token
        if text and token.text != text:
            raise WgslSyntaxError(token.line, f"`{token.text[:80]}`", f"`{text}`")
        self._place += 1
        return token

    def _take_name(self) -> WgslToken:
        token = self._take()
        if token.kind != NAME:
            raise WgslSyntaxError(token.line, f"`{token.text[:80]}`", "a name")
        return token

    def _take_until(self, *ends: str) -> list[WgslToken]:
        """The tokens before the next of these marks outside of brackets, which stays."""
        start = self._place
        while self._token.text not in ends:
            closing = self._match.get(self._place)
            self._place = self._place + 1 if closing is None else closing + 1
        return self._tokens[start : self._place]

    # -- declarations

    def _read_declaration(self) -> None:
        attributes = self._read_attributes()
        token = self._take()
        if token.text == ";":
            return
        if token.text in _DIRECTIVES and not attributes:
            names = join_tokens(self._take_until(";"))
            self._directives.append((token.text, names, token.line))
            self._take(";")
            return
        readers = {
            "fn": self._read_function,
            "var": self._read_variable,
            "struct": self._read_structure,
            "const": self._read_constant,
            "override": self._read_constant,
            "alias": self._read_alias,
            "const_assert": self._skip_assertion,
        }
        if token.text not in readers:
            expected = "a declaration: fn, var, struct, const, override, alias"
            raise WgslSyntaxError(token.line, f"`{token.text[:80]}`", expected)
        readers[token.text](attributes)

    def _read_attributes(self) -> tuple[Attribute, ...]:
        attributes = []
        while self._place < len(self._tokens) and self._token.text == "@":
            start = self._take().start
            name = self._take_name()
            arguments, end = self._read_arguments(name.end)
            attributes.append(Attribute(name.text, arguments, start, end))
        return tuple(attributes)

    def _read_arguments(self, end: int) -> tuple[tuple[str, ...], int]:
        """Those in brackets, and where they end."""
        if self._place >= len(self._tokens) or self._token.text != "(":
            return (), end
        texts = []
        self._take("(")
        while self._token.text != ")":
            texts.append(join_tokens(self._take_until(",", ")")))
            if self._token.text == ",":
                self._take(",")
        return tuple(texts), self._take(")").end

    def _note_name(self, token: WgslToken) -> str:
        if token.text in self._names:
            self._repeated.append((token.text, token.line))
        self._names.add(token.text)
        return token.text

    def _read_function(self, attributes: tuple[Attribute, ...]) -> None:
        name = self._take_name()
        parameters = self._read_members("(", ")")
        result = join_tokens(self._take_until("{", ";"))
        brace = self._token
        if brace.text != "{":
            raise WgslSyntaxError(brace.line, "`;`", "the body of the function")
        closing = self._match[self._place]
        body = tuple(self._tokens[self._place : closing + 1])
        self._place = closing + 1
        self._functions[self._note_name(name)] = WgslFunction(
            name.text, attributes, parameters, body, name.line, name.start, result.removeprefix("->")
        )

    def _read_members(self, opening: str, closing: str) -> tuple[Member, ...]:
        members = []
        self._take(opening)
        while self._token.text != closing:
            attributes = self._read_attributes()
            name = self._take_name()
            self._take(":")
            type_ = join_tokens(self._take_until_type(",", closing))
            members.append(Member(name.text, type_, attributes, name.line))
            if self._token.text == ",":
                self._take(",")
        self._take(closing)
        return tuple(members)

    def _take_until_type(self, *ends: str) -> list[WgslToken]:
        """The tokens of a type, whose templates hold commas."""
        start, depth = self._place, 0
        while depth > 0 or self._token.text not in ends:
            token = self._token
            depth += (token.text == "<") - (token.text == ">")
            if token.text in (";", "{", "}") and token.text not in ends:
                raise WgslSyntaxError(token.line, f"`{token.text}`", "the rest of a type")
            closing = self._match.get(self._place)
            self._place = self._place + 1 if closing is None else closing + 1
        return self._tokens[start : self._place]

    def _read_variable(self, attributes: tuple[Attribute, ...]) -> None:
        words: list[str] = []
        if self._token.text == "<":
            self._take("<")
            words = join_tokens(self._take_until(">")).split(",")
            self._take(">")
        name = self._take_name()
        type_tokens: list[WgslToken] = []
        if self._token.text == ":":
            self._take(":")
            type_tokens = self._take_until_type("=", ";")
        self._take_until(";")
        self._take(";")
        space, access = (*words, "", "")[:2]
        self._variables[self._note_name(name)] = ModuleVariable(
            name.text, space or "handle", access, join_tokens(type_tokens), attributes, name.line
        )

    def _read_structure(self, attributes: tuple[Attribute, ...]) -> None:
        name = self._take_name()
        self._structure_lines[name.text] = name.line
        self._structures[self._note_name(name)] = self._read_members("{", "}")

    def _read_constant(self, attributes: tuple[Attribute, ...]) -> None:
        name = self._take_name()
        self._take_until("=", ";")
        value = ""
        if self._token.text == "=":
            self._take("=")
            value = join_tokens(self._take_until(";"))
        self._take(";")
        if attributes:
            value = ""
        self._constants[self._note_name(name)] = value

    def _read_alias(self, attributes: tuple[Attribute, ...]) -> None:
        name = self._take_name()
        self._take("=")
        self._aliases[self._note_name(name)] = join_tokens(self._take_until(";"))
        self._take(";")

    def _skip_assertion(self, attributes: tuple[Attribute, ...]) -> None:
        self._take_until(";")
        self._take(";")


def list_names(tokens: Sequence[WgslToken]) -> Iterator[tuple[int, WgslToken]]:
    """The names among tokens, but for fields, with their places."""
    for place, token in enumerate(tokens):
        if token.kind == NAME and (place == 0 or tokens[place - 1].text != "."):
            yield place, token


def match_brackets(tokens: Sequence[WgslToken]) -> dict[int, int]:
    """The place of the bracket that closes each that opens. Raises WgslSyntaxError."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token.text in _CLOSING:
            opened.append(place)
            if len(opened) > DEEPEST:
                actual = f"more than {DEEPEST} brackets within brackets"
                raise WgslSyntaxError(token.line, actual, f"at most {DEEPEST}", "name parts of the expression")
        elif token.text in _CLOSING.values():
            if not opened or _CLOSING[tokens[opened[-1]].text] != token.text:
                raise WgslSyntaxError(token.line, f"`{token.text}`", "a bracket that closes an open one")
            pairs[opened.pop()] = place
    if opened:
        token = tokens[opened[-1]]
        raise WgslSyntaxError(token.line, f"`{token.text}` that nothing closes", f"`{_CLOSING[token.text]}`")
    return pairs


def join_tokens(tokens: Sequence[WgslToken]) -> str:
    """Their text without blanks but those between names."""
    pieces: list[str] = []
    for before, token in zip((None, *tokens), tokens, strict=False):
        if before is not None and before.kind == NAME and token.kind == NAME:
            pieces.append(" ")
        pieces.append(token.text)
    return "".join(pieces)


def _compute_number(text: str, constants: Mapping[str, str], depth: int) -> int | None:
    if depth > 16 or len(text) > 200:
        return None
    reader = _NumberReader([token.text for token in split_source(text)], constants, depth)
    value = reader.read_sum()
    return value if not reader.texts else None


class _NumberReader:
    """Reads + - * / over whole numbers; None is what it cannot compute."""

    def __init__(self, texts: list[str], constants: Mapping[str, str], depth: int) -> None:
        self.texts, self._constants, self._depth = texts, constants, depth

    def read_sum(self) -> int | None:
        value = self._read_product()
        while self.texts and self.texts[0] in "+-":
            sign, right = self.texts.pop(0), self._read_product()
            value = None if value is None or right is None else value + (right if sign == "+" else -right)
        return value

    def _read_product(self) -> int | None:
        value = self._read_factor()
        while self.texts and self.texts[0] in "*/":
            sign, right = self.texts.pop(0), self._read_factor()
            if value is None or right is None or (sign == "/" and right == 0):
                value = None
            else:
                value = value * right if sign == "*" else value // right
        return value

    def _read_factor(self) -> int | None:
        if not self.texts:
            return None
        text = self.texts.pop(0)
        if text == "(":
            value = self.read_sum()
            return value if self.texts and self.texts.pop(0) == ")" else None
        if text in ("u32", "i32") and self.texts[:1] == ["("]:
            return self._read_factor()
        if text in self._constants:
            return _compute_number(self._constants[text], self._constants, self._depth + 1)
        return _read_digits(text.rstrip("iu"))


def _read_digits(digits: str) -> int | None:
    """A number in decimal or hexadecimal digits, of sensible length."""
    if len(digits) > 11:
        return None
    try:
        return int(digits, 16 if digits[:2].lower() == "0x" else 10)
    except ValueError:
        return None
