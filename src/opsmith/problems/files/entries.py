"""One mapping of an author's file: takes its keys as the values that are wanted, and reports what is not as it should
be.

Readers return None for what is absent or wrong; what is wrong is in the findings by then.
"""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opsmith.problems.dims import Dim
from opsmith.problems.files.nodes import Findings, Located
from opsmith.problems.files.texts import CodeFinding, check_value, normalise_code

RESERVED = frozenset(
    {"step", "torch", "ctx", "input_data", "input", "state", "len", "list", "tuple", "zip", "enumerate", "range"}
)
RESERVED_IN_PROBLEMS = RESERVED - {"step", "input", "state"}  # which code of STeP tasks alone sees
MAX_NAME = 100
MAX_TEXTS = 100  # in one list; every hand-made input is drawn, and judged, twice
_NUMBER = re.compile(r"[-+]?(\.?inf|\d+(\.\d*)?(e[-+]?\d+)?|\.\d+(e[-+]?\d+)?)", re.I)


@dataclass
class FileNames:
    """What the entries of one file have in common: names, and the dims that need sizes."""

    owners: dict[str, str] = field(default_factory=dict)  # every name of the file -> what it names
    dims: list[tuple[Dim, Located, str]] = field(default_factory=list)  # with place, in file order
    extra: dict[str, Any] = field(default_factory=dict)  # unknown keys
    reserved: frozenset[str] = RESERVED  # what nothing may be called

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(symbol for dim, _, _ in self.dims for symbol in dim.symbols)


class Entry:
    """A mapping at a place of the file, e.g. `inputs[0]`; `where` is "" for the file itself."""

    def __init__(self, findings: Findings, names: FileNames, node: Located, where: str, keys: Sequence[str]) -> None:
        self.findings, self.names, self.at, self.where = findings, names, node, where
        self._found: Mapping[str, Located] = node.value if isinstance(node.value, dict) else {}
        if not isinstance(node.value, dict):
            findings.add_error(node, where or "file", describe_node(node), f"a mapping with the keys {', '.join(keys)}")
        self.extra = {key: value.strip_places() for key, value in self._found.items() if key not in keys}
        for key in self.extra:
            message = f"{self.place_of(key)}: unknown key without meaning; known: {', '.join(keys)}"
            findings.add_warning(self._found[key], message)

    # ---- findings
    def place_of(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def report_error(self, node: Located | None, key: str, given: str, expected: str, remedy: str = "") -> None:
        self.findings.add_error(node or self.at, self.place_of(key), given, expected, remedy)

    def code_error(self, node: Located, key: str, finding: CodeFinding) -> None:
        """A finding inside a code block, at its line of the file."""
        lead = len(node.raw) - len(node.raw.lstrip("\n"))  # blank lines that the normal form drops
        place = (finding.line + lead, finding.column)
        self.findings.add_error(node, self.place_of(key), finding.given, finding.expected, finding.remedy, code=place)

    # ---- values of any kind
    def get(self, key: str) -> Located | None:
        """The value, or None where it is absent or null."""
        node = self._found.get(key)
        return None if node is None or node.value is None else node

    def need_value(self, key: str, expected: str) -> Located | None:
        """The value; absent or null is a finding."""
        node = self.get(key)
        if node is None and isinstance(self.at.value, dict):
            self.report_error(self._found.get(key), key, f"no {key}", expected, f"add `{key}:`")
        return node

    def take_kind(self, key: str, kind: type, expected: str, remedy: str = "", needed: str = "") -> Located | None:
        """The value where it is of a kind. `needed`: what is expected of a value that must not be absent."""
        node = self.need_value(key, needed) if needed else self.get(key)
        if node is None or isinstance(node.value, kind):
            return node
        self.report_error(node, key, describe_node(node), expected, remedy)
        return None

    def list_items(self, key: str) -> list[Located]:
        """The entries of a list; [] where it is absent or no list."""
        node = self.take_kind(key, list, "a list", "write each entry after a dash")
        return [] if node is None else node.value

    def read_text(self, key: str) -> tuple[str, Located] | None:
        """A code text in normal form and its place; None where it is absent or blank."""
        node = self.take_kind(key, str, "a text", f"write `{key}: |` and the code below it")
        if node is None or not (text := normalise_code(node.value)):
            return None
        return text, node

    def read_values(self, key: str) -> tuple[str, ...]:
        """A list of code texts, each of which has a value."""
        texts = [self.read_value(node, f"{key}[{number}]") for number, node in enumerate(self.list_few(key))]
        return tuple(text for text in texts if text is not None)

    def list_few(self, key: str) -> list[Located]:
        """The entries of a list of texts; [] where there are too many."""
        items = self.list_items(key)
        if len(items) <= MAX_TEXTS:
            return items
        self.report_error(
            self.get(key), key, f"{len(items)} texts", f"at most {MAX_TEXTS}", "one text may say several things"
        )
        return []

    def read_value(self, node: Located, place: str) -> str | None:
        """A code text that has a value, in normal form."""
        if not isinstance(node.value, str):
            self.report_error(node, place, describe_node(node), "a text", "write `- |` and the code below it")
            return None
        text = normalise_code(node.value)
        if problem := check_value(text):
            self.code_error(node, place, problem)
        return text

    def read_int(self, key: str) -> int | None:
        """An int."""
        node = self.get(key)
        if node is not None and type(node.value) is not int:
            self.report_error(node, key, describe_node(node), "an int")
        return node.value if node is not None and type(node.value) is int else None

    def read_tolerance(self, key: str, largest: float) -> float | None:
        """A number from 0 to `largest`."""
        node = self.get(key)
        number = as_number(node.value) if node is not None else None
        if node is not None and (number is None or not 0 <= number <= largest):
            self.report_error(node, key, describe_node(node), f"a number >= 0, at most {largest:g}", "1.0e-4")
            return None
        return None if number is None else float(number)

    # ---- names
    def read_name(self, key: str) -> str | None:
        """A name that Python takes for one."""
        node = self.need_value(key, "a name")
        if node is None or (isinstance(node.value, str) and is_name(node.value, self.names.reserved)):
            return node.value if node is not None else None
        expected = describe_names(self.names.reserved)
        self.report_error(node, key, describe_node(node), expected, "" if isinstance(node.value, str) else "quote it")
        return None

    def read_own_name(self, key: str, what: str) -> str | None:
        """A name that nothing else in the file has; from here on it names `what`."""
        name, node = self.read_name(key), self.get(key)
        return name if name is not None and node is not None and self.claim_name(key, name, node, what) else None

    def claim_name(self, key: str, name: str, node: Located, what: str) -> bool:
        """Whether nothing else in the file has that name; from here on it names `what`."""
        if name in self.names.owners:
            mistake = f"{name!r}, already {self.names.owners[name]}"
            self.report_error(node, key, mistake, "a name of its own", f"{name}_2")
            return False
        self.names.owners[name] = f"{what} of line {node.line}"
        return True


def describe_node(node: Located | None) -> str:
    """A value in a few words."""
    if node is None or node.value is None:
        return "nothing"
    if isinstance(node.value, dict):
        return "a mapping"
    return f"a list of {len(node.value)}" if isinstance(node.value, list) else repr(node.raw)[:80]


def describe_names(reserved: frozenset[str]) -> str:
    return f"a name: letters, digits and _, not a Python keyword, none of {', '.join(sorted(reserved))}"


def is_name(text: str, reserved: frozenset[str] = RESERVED) -> bool:
    """Whether a text can name a stream, fn or symbol: an identifier that is free and stays itself in Python."""
    plain = len(text) <= MAX_NAME and text.isidentifier() and unicodedata.normalize("NFKC", text) == text
    return plain and not keyword.iskeyword(text) and text not in reserved


def as_number(value: Any) -> float | None:
    """A number as YAML gives it, or as the strings that YAML 1.1 leaves: -inf, inf, 1e-5."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return float(value.strip().lower().replace(".inf", "inf"))
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return None
    return value
