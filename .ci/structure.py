"""Numbers of the packages' structure, held by `make check`: layers, names, sizes.

    python .ci/structure.py [--all]      # a row a number; with --all every offender

A number beyond its limit in LIMITS makes the exit code 1. What a folder may import stands in the
table of docs/design/architecture.md and nowhere else.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = "opsmith"
PACKAGES = (PACKAGE, "opsmith_lab")  # the core, which imports nothing of the laboratory; and that one
VAGUE = frozenset(
    "found given made known asked told left wanted seen kept done said taken shown judged at it item one other others"
    " part parts whole rest more most".split()
)
GLOSSARY = ROOT / "docs/design/words.md"
TEXTS = (".py", ".md", ".html", ".jinja", ".js", ".yaml")
SETTINGS = f"{PACKAGE}.settings"  # the module of settings objects
LIMITS = {  # number -> (the most that is allowed today, the goal): what a rename brings down stays down
    "import cycles": (0, 0),
    "imports that the table does not allow": (0, 0),
    "settings objects of more than 12 fields": (0, 0),
    "words that the glossary does not use": (0, 0),
    "public class names defined twice": (0, 0),
    "functions of more than 60 lines": (0, 0),
    "one-word function names, %": (8.5, 40.0),
    "vague bindings, %": (0.4, 2.0),
}


@dataclass
class Module:
    name: str  # opsmith.targets.step
    path: Path
    tree: ast.Module = field(repr=False)

    @cached_property
    def imports(self) -> set[str]:
        """The modules of the packages that are imported when this one is: names under TYPE_CHECKING and imports inside
        functions do not count."""
        return {name for node in _top_level(self.tree) for name in _imported(node) if name.startswith(PACKAGE)}

    @property
    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        yield from (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    def place(self, node: ast.stmt | ast.expr | ast.arg) -> str:
        return f"{self.path.relative_to(ROOT)}:{node.lineno}"


def main(arguments: list[str]) -> int:
    modules = read_modules()
    numbers, offenders = measure(modules)
    print(f"{len(modules)} modules, {sum(len(m.path.read_text().splitlines()) for m in modules)} lines")
    failed = False
    for name, number in numbers.items():
        most, goal = LIMITS[name]
        failed |= number > most
        print(f"{'NO' if number > most else 'ok':3}{name:44}{number:8.4g}   at most {most:g}, goal {goal:g}")
        if number > most or "--all" in arguments:
            few = None if "--all" in arguments else 12
            print(*(f"     {row}" for row in offenders[name][:few]), sep="\n")
    return 1 if failed else 0


def read_modules() -> list[Module]:
    return [Module(_module_name(path), path, ast.parse(path.read_text("utf-8"))) for path in sorted(_files())]


def _files() -> Iterator[Path]:
    yield from (path for package in PACKAGES for path in (SOURCE / package).rglob("*.py"))


def _module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def measure(modules: list[Module]) -> tuple[dict[str, float], dict[str, list[str]]]:
    """The numbers by the names of LIMITS, and what stands behind each."""
    offenders = {
        "import cycles": find_cycles(modules),
        "imports that the table does not allow": find_forbidden_imports(modules),
        "public class names defined twice": find_repeated_classes(modules),
        "functions of more than 60 lines": find_long_functions(modules),
        "settings objects of more than 12 fields": find_large_settings(modules),
        "words that the glossary does not use": find_unused_words(),
    }
    numbers: dict[str, float] = {name: len(rows) for name, rows in offenders.items()}
    for name, (rows, share) in {
        "one-word function names, %": find_one_word_functions(modules),
        "vague bindings, %": find_vague_bindings(modules),
    }.items():
        offenders[name], numbers[name] = rows, share
    return {name: numbers[name] for name in LIMITS}, offenders


# -- layers


def find_cycles(modules: list[Module]) -> list[str]:
    """Strongly connected components of more than one module, by Tarjan's algorithm."""
    known = {module.name for module in modules}
    edges = {module.name: sorted(_existing(module.imports, known) - {module.name}) for module in modules}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[str] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in edges[name]:
            if target not in index:
                visit(target)
            if target in stack:
                low[name] = min(low[name], low[target])
        if low[name] == index[name]:
            component = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(component) > 1:
                cycles.append(" <-> ".join(component))

    for name in edges:
        if name not in index:
            visit(name)
    return cycles


def _existing(names: set[str], known: set[str]) -> set[str]:
    """`a.b.c` is module a.b where c is a name in it."""
    return {name if name in known else name.rpartition(".")[0] for name in names} & known


def find_forbidden_imports(modules: list[Module]) -> list[str]:
    """Imports from a place of the package that the table in architecture.md does not name."""
    allowed = read_import_table()
    rooms = sorted(allowed, key=len, reverse=True)
    rows = []
    for module in modules:
        if module.name == PACKAGE:  # what `import opsmith` offers
            continue
        room = _room(module.name, rooms)
        if room is None:
            rows.append(f"{module.name}: no row of the table in architecture.md")
            continue
        targets = {_room(name, rooms) for name in module.imports} - {room, None}
        bad = sorted(str(target) for target in targets if not _is_allowed(room, str(target), allowed[room]))
        rows += [f"{module.path.relative_to(ROOT)} imports {target}" for target in bad]
    return rows


def _is_allowed(room: str, target: str, rights: set[str]) -> bool:
    """`all` are the rooms of the own package, and those of the core."""
    return target in rights or ("all" in rights and target.partition(".")[0] in (PACKAGE, room.partition(".")[0]))


def read_import_table() -> dict[str, set[str]]:
    """Room -> what it may import, from the rows of the table whose first cells are names in backticks."""
    text = (ROOT / "docs/design/architecture.md").read_text("utf-8")
    table: dict[str, set[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            rights = set(re.findall(r"[a-z_][\w./]*", re.sub(r"\([^)]*\)", "", cells[2])))
            for name in re.findall(r"`([^`]+)`", cells[0]):
                table[_dotted(name)] = {right if right == "all" else _dotted(right) for right in rights}
    return table


def _dotted(name: str) -> str:
    path = name.strip("/").removesuffix(".py").replace("/", ".")
    return path if path.partition(".")[0] in PACKAGES else f"{PACKAGE}.{path}"


def _room(module: str, rooms: list[str]) -> str | None:
    return next((room for room in rooms if module == room or module.startswith(f"{room}.")), None)


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in tree.body:
        if isinstance(node, ast.Try):
            yield from node.body
        elif not isinstance(node, ast.If):
            yield node


def _imported(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


# -- names and sizes


def find_repeated_classes(modules: list[Module]) -> list[str]:
    places = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.place(node))
    return [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]


def find_long_functions(modules: list[Module]) -> list[str]:
    lengths = [(module.place(node), node.name, _length(node)) for module in modules for node in module.functions]
    return [f"{place} {name}: {length} lines" for place, name, length in lengths if length > 60]


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def find_one_word_functions(modules: list[Module]) -> tuple[list[str], float]:
    """Names without an underscore once the leading ones are stripped; dunder methods are not ours to name."""
    named = [(m.place(node), node.name) for m in modules for node in m.functions if not node.name.endswith("__")]
    short = [(place, name) for place, name in named if "_" not in name.strip("_")]
    return [f"{place} {name}" for place, name in short], 100 * len(short) / max(1, len(named))


def find_vague_bindings(modules: list[Module]) -> tuple[list[str], float]:
    """Names bound by an assignment, a loop, `with`, `except` or as an argument that say nothing of what they hold."""
    bound = [(module.place(node), name) for module in modules for node, name in _bindings(module.tree)]
    vague = [(place, name) for place, name in bound if name.strip("_") in VAGUE]
    return [f"{place} {name}" for place, name in vague], 100 * len(vague) / max(1, len(bound))


def _bindings(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.arg, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node, node.id
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
            yield node, node.arg


def find_large_settings(modules: list[Module]) -> list[str]:
    """Classes of settings with more than 12 fields of their own."""
    rows = []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and module.name == SETTINGS:
                count = sum(isinstance(line, ast.AnnAssign) for line in node.body)
                rows += [f"{module.place(node)} {node.name}: {count} fields"] * (count > 12)
    return rows


# -- glossary


def find_unused_words() -> list[str]:
    """Places of the words in the last table of words.md, in code, pages, templates and documents."""
    pattern = re.compile(rf"(?<![a-z])({'|'.join(read_unused_words())})s?(?![a-z])", re.IGNORECASE)
    rows = []
    for path in _texts():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            rows += [f"{path.relative_to(ROOT)}:{number} {match[0]}" for match in pattern.finditer(line)]
    return rows


def read_unused_words() -> list[str]:
    table = GLOSSARY.read_text("utf-8").rpartition("| not | but |")[2]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    words = [word.strip() for cell in cells for word in re.sub(r"\([^)]*\)", "", cell).split(",")]
    return [re.escape(word).replace(r"\ ", r"[\s_-]") for word in words]


def _texts() -> Iterator[Path]:
    folders = (*(SOURCE / package for package in PACKAGES), ROOT / "docs")
    found = (path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in TEXTS)
    yield from (path for path in (*found, ROOT / "README.md", ROOT / "SECURITY.md") if path != GLOSSARY)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
