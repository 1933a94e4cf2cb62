"""Troubleshooting has an entry for every kind of finding, everybody a verdict is charged to, and every exit code."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import opsmith.errors
from docs.blocks import DOCS
from opsmith.errors import OpsmithError
from opsmith.records import Boundary, Stage

PAGE = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
SOURCE = Path(opsmith.errors.__file__).parent
MAKERS = {"Diagnostic", "Disagreement", "make_fault", "blame_author"}  # the kind is their first argument


def list_kinds() -> set[str]:
    """The kinds of findings that the sources name, as constants or where one is made."""
    texts = (path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    return {kind for text in texts if any(name in text for name in MAKERS) for kind in find_kinds(ast.parse(text))}


def find_kinds(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            yield from read_texts([*node.args[:1], *(word.value for word in node.keywords if word.arg == "kind")])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "error" in node.func.attr:
            yield from (text for text in read_texts(node.args) if re.fullmatch("[A-Z]{2,8}", text))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "KIND":
            yield from read_texts([node.value])


def read_texts(nodes: list[ast.expr]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_every_kind_of_finding_has_an_entry() -> None:
    kinds = list_kinds()
    assert {"LANG", "TYPE", "OUT", "COMPILE", "DATA", "STATE", "RULE", "PLAN", "TASK", "FN", "OURS"} <= kinds
    entries = set(re.findall(r"^### ([A-Z]+)$", PAGE, re.MULTILINE))
    assert kinds | {boundary.name for boundary in Boundary} - {"CANDIDATE"} <= entries


def test_every_stage_and_exit_code_is_explained() -> None:
    assert [stage for stage in Stage.ORDER if not re.search(rf"^\| [A-Z, ]*\b{stage}\b", PAGE, re.MULTILINE)] == []
    for error in filter(lambda error: error.__module__ == OpsmithError.__module__, OpsmithError.__subclasses__()):
        assert re.search(rf"^\| {error.exit_code} \|.*`{error.__name__}`", PAGE, re.MULTILINE), error
