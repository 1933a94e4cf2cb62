"""YAML text -> values that know their line and column, and the findings made about them.

Built for files of unknown origin: at most 256 KiB, 24 levels and 10,000 values, no anchors, aliases or tags, and no
exception but TaskError, whose message is bounded too. It does not know what a file is about; its reader does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from opsmith.errors import TaskError
from opsmith.records import Diagnostic, printable

MAX_BYTES = 1 << 18
MAX_DEPTH = 24
MAX_VALUES = 10_000
MAX_INT = 2**63
MAX_PLAIN = 100  # characters of a number, date or other scalar that is no text: a sexagesimal one costs their square
MAX_FINDINGS = 50  # the reader stops at the last one
MAX_WORDS = 600  # characters of what was given and of what was expected

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTRUCTOR: Any = yaml.constructor.SafeConstructor()
_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")  # what YAML takes for the end of a line
_OPEN_BLOCK = re.compile(r"^(\s*)(?:- )?[\w]+: [|>][-+]?\s*(?:#.*)?$")


@dataclass(frozen=True)
class Located:
    """A value and its place, counted from 1. `value`: a scalar, a list of Located, or a dict of str to Located."""

    value: Any
    line: int
    column: int
    raw: str = ""  # a scalar as written
    literal: bool = False  # a block after "|": its lines are lines of the file

    def strip_places(self) -> Any:
        """The value without places."""
        if isinstance(self.value, dict):
            return {key: entry.strip_places() for key, entry in self.value.items()}
        if isinstance(self.value, list):
            return [entry.strip_places() for entry in self.value]
        return self.value


@dataclass
class Findings:
    """Everything found in one file so far."""

    text: str
    where: str = ""  # the file's name in the TaskError
    errors: list[Diagnostic] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lines: Sequence[str] = _BREAK.split(self.text)

    def add_error(
        self,
        node: Located,
        where: str,
        given: str,
        expected: str,
        remedy: str = "",
        code: tuple[int, int] | None = None,
    ) -> None:
        """Add a finding at a value, or at (line, column) of the code that the value holds."""
        line, column = self.locate_code(node, *code) if code else (node.line, node.column)
        self.add_finding(line, column, where, given, expected, remedy)

    def add_finding(self, line: int, column: int, where: str, given: str, expected: str, remedy: str = "") -> None:
        text = printable(self.lines[line - 1].strip()[:200], "\t") if 0 < line <= len(self.lines) else ""
        given, expected = _shorten_words(given), _shorten_words(expected)
        self.errors.append(
            Diagnostic("TASK", _shorten_words(where), given, expected, _shorten_words(remedy), line, column, text)
        )
        if len(self.errors) == MAX_FINDINGS:
            self.raise_errors()

    def refuse_file(self, mark: Any, given: str, expected: str, remedy: str = "") -> None:
        """A finding against the file as YAML, at a mark of the parser."""
        self.add_finding(mark.line + 1, mark.column + 1, "file", given, expected, remedy)

    def add_warning(self, node: Located, message: str) -> None:
        self.warnings.append(f"line {node.line}, column {node.column}: {message}")

    def locate_code(self, node: Located, line: int, column: int) -> tuple[int, int]:
        """Where line and column of a literal block's code lie in the file; the block's head for other styles."""
        if not node.literal:
            return node.line, node.column
        code = node.raw.split("\n")
        here = min(node.line + line, len(self.lines))
        shift = len(self.lines[here - 1]) - len(code[line - 1]) if line <= len(code) else 0
        return here, max(1, shift + column)

    def raise_errors(self) -> None:
        """Raise TaskError if there are errors: every finding, in the order of the lines."""
        if not self.errors:
            return
        errors = sorted(self.errors, key=lambda error: (error.line or 0, error.column or 0))
        name = self.where or "task file"
        rows = [f"{name}: {len(errors)} problem{'s' if len(errors) > 1 else ''}"]
        rows += [f"{name}:{error.line}:{error.column}:\n{error.block()}" for error in errors]
        raise TaskError("\n".join(rows), errors)


def _shorten_words(words: str) -> str:
    return words if len(words) <= MAX_WORDS else f"{words[:MAX_WORDS]} ..."


def load_yaml(text: str, where: str = "") -> tuple[Located | None, Findings]:
    """The root value of a YAML text and an empty list of findings. Raises TaskError when it cannot be read at all."""
    findings = Findings(text[:MAX_BYTES], where)
    root = None
    if _is_sound(text, findings):
        try:
            _refuse_unsafe(text, findings)
            node = None if findings.errors else yaml.compose(text, _LOADER)
            root = _convert_node(node, findings) if node is not None else None
        except yaml.YAMLError as error:
            _report_syntax(error, findings)
    findings.raise_errors()
    return root, findings


def _is_sound(text: str, findings: Findings) -> bool:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        line, column = _find_place(text, error.start)
        findings.add_finding(line, column, "file", f"the code point U+{ord(text[error.start]):04X}", "UTF-8 text")
        return False
    if size > MAX_BYTES:
        findings.add_finding(1, 1, "file", f"{size} bytes", f"at most {MAX_BYTES}", "keep data out of the task file")
    return size <= MAX_BYTES


def _refuse_unsafe(text: str, findings: Findings) -> None:
    """Refuse, before anything is built, what could make a small file large: depth, anchors, aliases, tags."""
    depth = 0
    event: Any
    for number, event in enumerate(yaml.parse(text, _LOADER)):
        mark = event.start_mark
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            findings.refuse_file(mark, f"lists and mappings {depth} deep", f"at most {MAX_DEPTH} levels")
        elif number > MAX_VALUES:
            findings.refuse_file(mark, f"more than {MAX_VALUES} values", "fewer")
        elif isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            kind = "alias *" if isinstance(event, yaml.AliasEvent) else "anchor &"
            findings.refuse_file(mark, f"the {kind}{event.anchor}", "no anchors or aliases", "write it out")
        elif getattr(event, "tag", None) is not None:
            findings.refuse_file(mark, f"the tag {str(event.tag)[:60]!r}", "no tags", "leave it out")
        if findings.errors:
            return


def _convert_node(node: Any, findings: Findings) -> Located:
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    if isinstance(node, yaml.SequenceNode):
        return Located([_convert_node(entry, findings) for entry in node.value], line, column)
    if isinstance(node, yaml.MappingNode):
        return Located(_convert_mapping(node, findings), line, column)
    return Located(_convert_scalar(node, findings), line, column, node.value, node.style == "|")


def _convert_mapping(node: Any, findings: Findings) -> Mapping[str, Located]:
    entries: dict[str, Located] = {}
    for key, entry in node.value:
        if not isinstance(key, yaml.ScalarNode):
            findings.refuse_file(key.start_mark, "a list or mapping as a key", "a word, such as inputs")
        elif key.value in entries:
            expected = f"once (line {entries[key.value].line})"
            findings.refuse_file(key.start_mark, f"the key {key.value!r} a second time", expected)
        else:
            entries[key.value] = _convert_node(entry, findings)
    return entries


def _convert_scalar(node: Any, findings: Findings) -> Any:
    """A scalar by YAML's rules; what Python cannot hold in bounds is a finding."""
    try:
        if node.tag == "tag:yaml.org,2002:str":
            node.value.encode()
            return node.value
        if len(node.value) > MAX_PLAIN:
            raise ValueError(node.tag)
        value = _CONSTRUCTOR.yaml_constructors[node.tag](_CONSTRUCTOR, node)
        if not isinstance(value, int) or abs(value) < MAX_INT:
            return value
    except (ValueError, OverflowError, KeyError, yaml.YAMLError):  # UnicodeEncodeError is a ValueError
        pass
    kind = node.tag.rpartition(":")[2]
    excerpt = f"{node.value[:40]!r}, which YAML reads as {kind}"
    findings.refuse_file(node.start_mark, excerpt, f"a {kind} that exists", "quote it if it is a text")
    return None


def _report_syntax(error: yaml.YAMLError, findings: Findings) -> None:
    """One finding for a text that is not YAML, with the usual causes as remedy."""
    if isinstance(error, yaml.MarkedYAMLError):
        lost_key = "expected ':'" in (error.problem or "")
        mark = (error.context_mark if lost_key else None) or error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = error.problem or error.context or "not YAML"
    else:
        raw = getattr(error, "character", None)
        offset = next((i for i, char in enumerate(findings.text) if raw in (char, ord(char))), 0)
        (line, column), problem = _find_place(findings.text, offset), getattr(error, "reason", "not YAML")
    text = findings.lines[line - 1].strip()[:80] if line <= len(findings.lines) else ""
    findings.add_finding(line, column, "file", repr(text), f"YAML: {problem}", _suggest_remedy(findings.lines, line))


def _suggest_remedy(lines: Sequence[str], line: int) -> str:
    here = lines[line - 1] if line <= len(lines) else ""
    opened = next((match for row in reversed(lines[: line - 1]) if (match := _OPEN_BLOCK.match(row))), None)
    if "\t" in here[: len(here) - len(here.lstrip())]:
        return "indent with spaces, not tabs"
    if re.search(r"[\[{].*(?:Buffer|Multihot)\(", here):
        return 'quote types inside [ ] and { }: [fp32, "Buffer(fp32, [D])"]'
    if opened and here and len(here) - len(here.lstrip()) <= len(opened[1]):
        return f"indent the code below `{opened[0].strip()}` by two spaces more than its key"
    return "check brackets, colons and indentation; write code below `key: |`"


def _find_place(text: str, offset: int) -> tuple[int, int]:
    before = _BREAK.split(text[:offset])
    return len(before), len(before[-1]) + 1
