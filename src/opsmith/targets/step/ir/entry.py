"""One mapping of a task file: takes its keys as the values that are wanted, and reports what is not as it should be.

Readers return None for what is absent or wrong; what is wrong is in the findings by then.
"""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from opsmith.targets.step.ir import code as ir_code
from opsmith.targets.step.ir.nodes import Findings, Located
from opsmith.targets.step.language.dims import Dim
from opsmith.targets.step.language.types import (
    DType,
    Multihot,
    StepTypeError,
    element_dims,
    fields_of,
    parse_dims,
    parse_type,
)

T = TypeVar("T")

RESERVED = frozenset(
    {"step", "torch", "ctx", "input_data", "input", "state", "len", "list", "tuple", "zip", "enumerate", "range"}
)
MAX_NAME = 100
MAX_TEXTS = 100  # in one list; every hand-made input is drawn, and judged, twice
_NUMBER = re.compile(r"[-+]?(\.?inf|\d+(\.\d*)?(e[-+]?\d+)?|\.\d+(e[-+]?\d+)?)", re.I)


@dataclass
class FileNames:
    """What the entries of one file have in common: names, and the dims that need sizes."""

    taken: dict[str, str] = field(default_factory=dict)  # every name of the file -> what it names
    dims: list[tuple[Dim, Located, str]] = field(default_factory=list)  # with place, in file order
    ones: list[tuple[Multihot, int, Located, str]] = field(default_factory=list)  # a Multihot and its most ones per row
    extra: dict[str, Any] = field(default_factory=dict)  # unknown keys

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(symbol for dim, _, _ in self.dims for symbol in dim.symbols)


class Entry:
    """A mapping at a place of the file, e.g. `inputs[0]`; `where` is "" for the file itself."""

    def __init__(self, findings: Findings, names: FileNames, at: Located, where: str, known: Sequence[str]) -> None:
        self.findings, self.names, self.at, self.where = findings, names, at, where
        self._found: Mapping[str, Located] = at.value if isinstance(at.value, dict) else {}
        if not isinstance(at.value, dict):
            findings.error(at, where or "file", kind(at), f"a mapping with the keys {', '.join(known)}")
        self.extra = {key: value.plain() for key, value in self._found.items() if key not in known}
        for key in self.extra:
            message = f"{self.place(key)}: unknown key without meaning; known: {', '.join(known)}"
            findings.warn(self._found[key], message)

    # ---- findings
    def place(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def error(self, at: Located | None, key: str, given: str, expected: str, remedy: str = "") -> None:
        self.findings.error(at or self.at, self.place(key), given, expected, remedy)

    def code_error(self, at: Located, key: str, found: ir_code.CodeFinding) -> None:
        """A finding inside a code block, at its line of the file."""
        lead = len(at.raw) - len(at.raw.lstrip("\n"))  # blank lines that the normal form drops
        place = (found.line + lead, found.column)
        self.findings.error(at, self.place(key), found.given, found.expected, found.remedy, code=place)

    # ---- values of any kind
    def get(self, key: str) -> Located | None:
        """The value, or None where it is absent or null."""
        found = self._found.get(key)
        return None if found is None or found.value is None else found

    def need(self, key: str, expected: str) -> Located | None:
        """The value; absent or null is a finding."""
        found = self.get(key)
        if found is None and isinstance(self.at.value, dict):
            self.error(self._found.get(key), key, f"no {key}", expected, f"add `{key}:`")
        return found

    def items(self, key: str) -> list[Located]:
        """The entries of a list; [] where it is absent or no list."""
        at = self.get(key)
        if at is not None and not isinstance(at.value, list):
            self.error(at, key, kind(at), "a list", "write each entry after a dash")
        return at.value if at is not None and isinstance(at.value, list) else []

    def text(self, key: str) -> tuple[str, Located] | None:
        """A code text in normal form and its place; None where it is absent or blank."""
        at = self.get(key)
        if at is not None and not isinstance(at.value, str):
            self.error(at, key, kind(at), "a text", f"write `{key}: |` and the code below it")
        if at is None or not isinstance(at.value, str):
            return None
        text = ir_code.code(at.value)
        return (text, at) if text else None

    def values(self, key: str) -> tuple[str, ...]:
        """A list of code texts, each of which has a value."""
        found = [self.value(at, f"{key}[{number}]") for number, at in enumerate(self.few(key))]
        return tuple(text for text in found if text is not None)

    def few(self, key: str) -> list[Located]:
        """The entries of a list of texts; [] where there are too many."""
        items = self.items(key)
        if len(items) <= MAX_TEXTS:
            return items
        self.error(self.get(key), key, f"{len(items)} texts", f"at most {MAX_TEXTS}", "one text may say several things")
        return []

    def value(self, at: Located, place: str) -> str | None:
        """A code text that has a value, in normal form."""
        if not isinstance(at.value, str):
            self.error(at, place, kind(at), "a text", "write `- |` and the code below it")
            return None
        text = ir_code.code(at.value)
        if problem := ir_code.check_value(text):
            self.code_error(at, place, problem)
        return text

    def whole(self, key: str) -> int | None:
        """An int."""
        at = self.get(key)
        if at is not None and type(at.value) is not int:
            self.error(at, key, kind(at), "an int")
        return at.value if at is not None and type(at.value) is int else None

    def tolerance(self, key: str, largest: float) -> float | None:
        """A number from 0 to `largest`."""
        at = self.get(key)
        number = as_number(at.value) if at is not None else None
        if at is not None and (number is None or not 0 <= number <= largest):
            self.error(at, key, kind(at), f"a number >= 0, at most {largest:g}", "1.0e-4")
            return None
        return None if number is None else float(number)

    # ---- names, types and dims
    def word(self, key: str) -> str | None:
        """A name that Python takes for one."""
        at = self.need(key, "a name")
        if at is None or (isinstance(at.value, str) and is_name(at.value)):
            return at.value if at is not None else None
        expected = f"a name: letters, digits and _, not a Python keyword, none of {', '.join(sorted(RESERVED))}"
        self.error(at, key, kind(at), expected, "" if isinstance(at.value, str) else "quote it")
        return None

    def own_name(self, key: str, what: str) -> str | None:
        """A name that nothing else in the file has; from here on it names `what`."""
        name, at = self.word(key), self.get(key)
        if name is None or at is None:
            return None
        if name in self.names.taken:
            self.error(at, key, f"{name!r}, already {self.names.taken[name]}", "a name of its own", f"{name}_2")
            return None
        self.names.taken[name] = f"{what} of line {at.line}"
        return name

    def dtype(self, key: str) -> DType | None:
        """An element type; its dims are noted."""
        at = self.need(key, "a type, such as fp32 or Buffer(fp32, [D])")
        found = None if at is None else self._parsed(key, at, lambda: parse_type(at.plain()))
        if at is not None and found is not None:
            dims = [dim for part in fields_of(found) for dim in element_dims(part)]
            self.names.dims += [(dim, at, self.place(key)) for dim in dims]
        return found

    def dims(self) -> tuple[Dim, ...]:
        """The dims of a tensor, noted; () where something is wrong with them."""
        at = self.need("dims", "a list of dims, innermost first, such as [M, N]")
        if at is None:
            return ()
        if not isinstance(at.value, list) or not at.value:
            return self._parsed("dims", at, lambda: parse_dims(at.plain())) or ()
        found = [self._dim(item) for item in at.value]
        return tuple(dim for dim in found if dim is not None) if None not in found else ()

    def _dim(self, at: Located) -> Dim | None:
        dims = self._parsed("dims", at, lambda: parse_dims([at.plain()]))
        if dims is None:
            return None
        self.names.dims.append((dims[0], at, self.place("dims")))
        return dims[0]

    def _parsed(self, key: str, at: Located, parse: Callable[[], T]) -> T | None:
        """What `parse` gives; a StepTypeError becomes a finding."""
        try:
            return parse()
        except StepTypeError as error:
            given, _, rest = str(error).partition("; expected ")
            expected, _, remedy = rest.partition("; try: ")
            self.error(at, key, given.removeprefix("given "), expected, remedy)
            return None


def kind(at: Located | None) -> str:
    """A value in a few words."""
    if at is None or at.value is None:
        return "nothing"
    if isinstance(at.value, dict):
        return "a mapping"
    return f"a list of {len(at.value)}" if isinstance(at.value, list) else repr(at.raw)[:80]


def is_name(text: str) -> bool:
    """Whether a text can name a stream, fn or symbol: an identifier that is free and stays itself in Python."""
    plain = len(text) <= MAX_NAME and text.isidentifier() and unicodedata.normalize("NFKC", text) == text
    return plain and not keyword.iskeyword(text) and text not in RESERVED


def as_number(value: Any) -> float | None:
    """A number as YAML gives it, or as the strings that YAML 1.1 leaves: -inf, inf, 1e-5."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return float(value.strip().lower().replace(".inf", "inf"))
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    return value
