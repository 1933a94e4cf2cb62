"""A new language is one folder, one line of a table and one extra: nothing else of the package names it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from opsmith.targets import get_target
from opsmith.targets.lookup import LANGUAGES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "opsmith"
TABLE = PACKAGE / "targets" / "lookup.py"
PLATFORMS = {"cuda": "gpu/nvidia"}  # where the maker's own name of its platform is a word: what several languages share
WITHOUT_PACKAGES = frozenset({"metal"})  # languages that need a compiler and no extra
LABORATORY = ROOT / "src" / "opsmith_lab"
LISTS = {  # outside of the packages, where a language has a line or more: its extra, its tools, its page
    *("pyproject.toml", "constraints.txt", "Makefile", "mkdocs.yml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"),
    *(".ci/run", ".ci/structure.py"),
}
DATA = r"opsmith/suites/\w+/plain|opsmith_lab/(attacks/{language}(/\w+)?|study/templates)"  # folders of its programs
SEARCHES = LABORATORY / "bench" / "schedule_sizes.py"  # a table of searches, each with the language that it writes
LATER = [name for name in LANGUAGES if name not in ("step", "c")]  # those that came when there was a table


def list_names(path: Path) -> Iterator[tuple[int, str]]:
    """Texts that are one word, and modules that are imported, with their lines.

    Left out is what chooses nothing by a language's name: types (`Literal` of others' formats), and what is looked for
    in a text (`"cuda" in message`).
    """
    tree = ast.parse(path.read_text("utf-8"))
    said: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            said |= {id(each) for each in ast.walk(node.annotation)}
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In) and is_text(node.comparators[0]):
            said.add(id(node.left))
    for node in ast.walk(tree):
        if id(node) in said:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (
                (node.lineno, word) for word in re.split(r"[\s:,|]+", node.value) if " " not in node.value.strip()
            )
        elif isinstance(node, ast.ImportFrom):
            base = (node.module or "").removeprefix("opsmith.targets")
            yield node.lineno, base.strip(".").partition(".")[0]
            yield from ((node.lineno, name.name) for name in node.names if node.module == "opsmith.targets")
        elif isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name.removeprefix("opsmith.targets.").partition(".")[0]


def is_text(node: ast.expr) -> bool:
    """Whether a name is that of a text, not of a collection."""
    return isinstance(node, ast.Name) and node.id in ("message", "text", "line")


def list_strangers(language: str) -> list[str]:
    """Where a module outside the language's folder names it."""
    own = {PACKAGE / "targets" / name for name in (language, PLATFORMS.get(language, language))}
    own.add(LABORATORY / language)
    return [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted([*PACKAGE.rglob("*.py"), *LABORATORY.rglob("*.py")])
        if not own & {*path.parents} and path not in (TABLE, SEARCHES)
        for line, name in list_names(path)
        if name == language
    ]


@pytest.mark.parametrize("language", LATER)
def test_a_language_is_one_folder_one_line_and_one_extra(language: str) -> None:
    assert (PACKAGE / "targets" / language / "__init__.py").is_file()
    assert len(re.findall(rf'^    "{language}": ', TABLE.read_text("utf-8"), re.MULTILINE)) == 1
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert (language in extras) is (language not in WITHOUT_PACKAGES)
    assert list_strangers(language) == []


@pytest.mark.parametrize("language", LATER)
def test_outside_of_its_folder_a_language_adds_data_and_lines_of_lists(language: str) -> None:
    suffix, own = get_target(language).suffix, PACKAGE / "targets" / language
    folders = {path.parent for path in (ROOT / "src").rglob(f"*{suffix}") if own not in path.parents}
    data = re.compile(DATA.format(language=language))
    assert [folder for folder in folders if not data.fullmatch(folder.relative_to(ROOT / "src").as_posix())] == []
    texts = [*ROOT.glob("*.*"), ROOT / "Makefile", *(ROOT / ".ci").iterdir()]
    word = re.compile(rf"\b{language}\b", re.IGNORECASE)
    named = {path.relative_to(ROOT).as_posix() for path in texts if path.is_file() and word.search(path.read_text())}
    assert {"pyproject.toml", "mkdocs.yml"} <= named <= LISTS


def test_the_search_sees_a_module_that_names_a_language(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    lines = [
        "from opsmith.targets.wgsl.source import x",
        'if name == "cuda":',
        "    import opsmith.targets.wgsl",
        "from opsmith.targets import wgsl",
        'device = "cuda:0"',
        'pattern = "wgsl|cuda"',
        'is_asked = "cuda" in message or kind in ("wgsl", name)',
    ]
    path.write_text("\n".join(lines))
    names = sorted((line, name) for line, name in list_names(path) if name in ("cuda", "wgsl"))
    assert names == [
        (1, "wgsl"),
        (2, "cuda"),
        (3, "wgsl"),
        (4, "wgsl"),
        (5, "cuda"),
        (6, "cuda"),
        (6, "wgsl"),
        (7, "wgsl"),
    ]


def test_asking_for_one_language_imports_no_other() -> None:
    code = "import sys; from opsmith.targets import get_target, TARGETS; get_target('c');"
    code += "print([name for name in TARGETS if name != 'c' and f'opsmith.targets.{name}' in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['problem']"  # what task files are read by
