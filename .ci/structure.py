"""Numbers of the structure of what stands in src/, held by `make check`: layers, economy, names, sizes.

    python .ci/structure.py [--all]      # a row a number; with --all every offender

A number beyond its limit in LIMITS makes the exit code 1. What a folder may import stands in the table of
docs/design/architecture.md and nowhere else; all imports count, those inside functions and `import_module("...")` too,
but not those under TYPE_CHECKING. What a table names (`package.module:name`) counts for cycles alone. Numbers of economy
are ratchets: what a change brings down stays down, and what needs more raises its limit by hand, in the commit that
says why.

tokens: names, operators, numbers and texts, so neither comments nor line breaks; a docstring is
one, and so is an f-string.
helpers: private functions of at most three lines, called once in their module and used nowhere else.
one importer: modules that one other module imports, those that some text names (a table, an entry point) aside.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = "opsmith"
PACKAGES = tuple(sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")))
TEMPLATES = frozenset({"templates", "project"})  # folders of files that are copied, no code of ours
VAGUE = frozenset(
    "found given made known asked told left wanted seen kept done said taken shown judged at it item one other others"
    " part parts whole rest more most".split()
)
GLOSSARY = ROOT / "docs/design/words.md"
TEXTS = (".py", ".md", ".html", ".jinja", ".js", ".yaml")
SETTINGS = f"{PACKAGE}.settings"  # the module of settings objects
LIMITS = {  # number -> (the most that is allowed today, the goal)
    "tokens of the core": (
        788_100,
        640_000,
    ),  # Triton 14,000; TVM's accesses watched and its packages 6,000; feedback of studies
    "tokens in src/": (946_500, 735_000),  # the laboratory: study2 and study3 15,000, schedules 12,000
    "private helpers of <= 3 lines with one call": (327, 200),
    "modules with one importer": (118, 100),
    "imports of ours inside functions, outside cli": (48, 60),
    "functions that a setting passes on its walk": (23, 24),
    "import cycles, all imports": (0, 0),
    "imports that the table does not allow": (0, 0),
    "rooms that may import each other": (0, 0),
    "settings objects of more than 12 fields": (0, 0),
    "words that the glossary does not use": (0, 0),
    "public class names defined twice": (0, 0),
    "functions of more than 60 lines": (0, 0),
    "one-word function names, %": (20, 20),
    "vague bindings, %": (1, 1),
}
BY_NAME = "import_module"  # the call that imports a module by its name
LINE = re.compile(
    rf"{PACKAGE}(\.\w+)+:\w+"
)  # of the core, in a table: `package.module:name`; those of the laboratory are free
WALK = "## The walk of a setting"
COUNTED = frozenset({tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING})
FSTRINGS = getattr(tokenize, "FSTRING_START", None), getattr(tokenize, "FSTRING_END", None)  # from Python 3.12 on


@dataclass(frozen=True)
class Import:
    module: str  # opsmith.targets.step
    line: int
    is_inside: bool = False  # a function
    is_named: bool = False  # as `package.module:name` in a table


@dataclass
class Module:
    name: str  # opsmith.targets.step
    path: Path
    text: str = field(repr=False)
    tree: ast.Module = field(repr=False)
    imports: list[Import] = field(default_factory=list, repr=False)  # of modules of ours

    @property
    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        yield from (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    def place(self, node: ast.stmt | ast.expr | ast.arg | Import) -> str:
        line = node.line if isinstance(node, Import) else node.lineno
        return f"{self.path.relative_to(ROOT)}:{line}"


def main(arguments: list[str]) -> int:
    modules = read_modules()
    numbers, offenders = measure(modules)
    print(f"{len(modules)} modules, {sum(module.text.count(chr(10)) for module in modules):,} lines")
    failed = False
    for name, number in numbers.items():
        most, goal = LIMITS[name]
        failed |= number > most
        print(f"{'NO' if number > most else 'ok':3}{name:48}{number:>11,.6g}   at most {most:,}, goal {goal:,}")
        if number > most or "--all" in arguments:
            few = None if "--all" in arguments else 12
            print(*(f"     {name}: {row}" for row in offenders[name][:few]), sep="\n")
    return 1 if failed else 0


def read_modules() -> list[Module]:
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if not TEMPLATES & set(path.relative_to(SOURCE).parts)]
    texts = {path: path.read_text("utf-8") for path in paths}
    modules = [Module(_module_name(path), path, text, ast.parse(text)) for path, text in texts.items()]
    known = {module.name for module in modules}
    for module in modules:
        module.imports = [each for each in _list_imports(module.tree, known) if each.module != module.name]
    return modules


def _module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _list_imports(node: ast.AST, known: set[str], is_inside: bool = False) -> Iterator[Import]:
    """The imports below a node of what is known; `a.b.c` is module a.b where c is a name in it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        for name in _imported(child):
            module = name if name in known else name.rpartition(".")[0]
            if module in known:
                is_named = isinstance(child, ast.Constant)
                yield Import(
                    module, child.lineno, not is_named and (is_inside or isinstance(child, ast.Call)), is_named
                )
        inside = is_inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _list_imports(child, known, inside)


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(BY_NAME):
        constants = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
        yield from (value for value in constants if isinstance(value, str))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and LINE.fullmatch(node.value):
        yield node.value.partition(":")[0]


def measure(modules: list[Module]) -> tuple[dict[str, float], dict[str, list[str]]]:
    """The numbers by the names of LIMITS, and what stands behind each."""
    offenders = {
        "private helpers of <= 3 lines with one call": find_small_helpers(modules),
        "modules with one importer": find_lone_modules(modules),
        "imports of ours inside functions, outside cli": find_inner_imports(modules),
        "functions that a setting passes on its walk": read_walk(modules),
        "import cycles, all imports": find_cycles(modules),
        "imports that the table does not allow": find_forbidden_imports(modules),
        "rooms that may import each other": find_mutual_rooms(),
        "public class names defined twice": find_repeated_classes(modules),
        "functions of more than 60 lines": find_long_functions(modules),
        "settings objects of more than 12 fields": find_large_settings(modules),
        "words that the glossary does not use": find_unused_words(),
    }
    numbers: dict[str, float] = {name: len(rows) for name, rows in offenders.items()}
    by_room = count_tokens(modules)
    numbers["tokens in src/"] = by_room.total()
    numbers["tokens of the core"] = sum(count for room, count in by_room.items() if room.partition(".")[0] == PACKAGE)
    rows = [f"{room}: {count:,}" for room, count in by_room.most_common()]
    offenders |= {"tokens in src/": rows, "tokens of the core": rows}
    for name, (rows, share) in {
        "one-word function names, %": find_one_word_functions(modules),
        "vague bindings, %": find_vague_bindings(modules),
    }.items():
        offenders[name], numbers[name] = rows, share
    return {name: numbers[name] for name in LIMITS}, offenders


# -- economy


def count_tokens(modules: list[Module]) -> Counter[str]:
    """By room (the first two names), the tokens of its modules."""
    by_room: Counter[str] = Counter()
    for module in modules:
        depth = 0
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
            starts, ends = (token.type == each for each in FSTRINGS)
            by_room[".".join(module.name.split(".")[:2])] += depth == 0 and (starts or token.type in COUNTED)
            depth += starts - ends
    return by_room


def find_small_helpers(modules: list[Module]) -> list[str]:
    rows = []
    for module in modules:
        nodes = list(ast.walk(module.tree))
        uses = Counter(_last_name(node) for node in nodes)
        calls = Counter(_last_name(node.func) for node in nodes if isinstance(node, ast.Call))
        for node in module.functions:
            is_private = node.name.startswith("_") and not node.name.startswith("__") and not node.decorator_list
            if is_private and _body_length(node) <= 3 and uses[node.name] == calls[node.name] == 1:
                rows.append(f"{module.place(node)} {node.name}")
    return rows


def _last_name(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _body_length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first to the last, the docstring left out."""
    body = node.body[ast.get_docstring(node) is not None :]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 1


def find_lone_modules(modules: list[Module]) -> list[str]:
    importers = defaultdict(set)
    for module in modules:
        for each in module.imports:
            importers[each.module].add(module.name)
    nodes = (node for module in modules for node in ast.walk(module.tree))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    named = {text.partition(":")[0] for text in texts}
    return [
        f"{module.name}: only {name}"
        for module in modules
        if module.path.name != "__init__.py" and not {module.name, module.name.rpartition(".")[2]} & named
        for name in sorted(importers[module.name])[: len(importers[module.name]) == 1]
    ]


def find_inner_imports(modules: list[Module]) -> list[str]:
    """A row a line: imports inside functions of ours, and calls that import what only the run knows."""
    rows = []
    for module in modules:
        if ".cli" in module.name:
            continue
        lines = {module.place(each): each.module for each in module.imports if each.is_inside}
        calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
        by_name = [node for node in calls if ast.unparse(node.func).endswith(BY_NAME)]
        rows += [
            f"{place} {name}" for place, name in ({module.place(node): BY_NAME for node in by_name} | lines).items()
        ]
    return rows


def read_walk(modules: list[Module]) -> list[str]:
    """What the list of architecture.md names: the functions between a run's settings and its first request."""
    text = (ROOT / "docs/design/architecture.md").read_text("utf-8")
    _, _, after = text.partition(WALK)
    names = re.findall(r"`([\w./]+)`", after.partition("\n## ")[0])
    defined = {f"{module.name}.{node.name}" for module in modules for node in module.functions}
    for name in names:
        if f"{PACKAGE}.{name.replace('/', '.')}" not in defined:
            raise SystemExit(f"docs/design/architecture.md: {WALK[3:]}: no function {name}; try: ROOM/MODULE.FUNCTION")
    return names


# -- layers


def find_cycles(modules: list[Module]) -> list[str]:
    """Strongly connected components of more than one module, by Tarjan's algorithm."""
    edges = {module.name: sorted({each.module for each in module.imports}) for module in modules}
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


def find_forbidden_imports(modules: list[Module]) -> list[str]:
    """Imports from a place of ours that the table in architecture.md does not name."""
    allowed = read_import_table()
    rooms = sorted(allowed, key=len, reverse=True)
    rows = []
    for module in modules:
        if module.name in PACKAGES:  # what `import opsmith` offers
            continue
        room = _room(module.name, rooms)
        if room is None:
            rows.append(f"{module.name}: no row of the table in architecture.md")
            continue
        for each in module.imports:
            target = _room(each.module, rooms)
            if target not in (room, None) and not each.is_named and not _is_allowed(room, target, allowed[room]):
                rows.append(f"{module.place(each)} imports {target}")
    return rows


def _is_allowed(room: str, target: str, rights: set[str]) -> bool:
    """`all` are the rooms of the own package, and those of the core."""
    return target in rights or ("all" in rights and target.partition(".")[0] in (PACKAGE, room.partition(".")[0]))


def find_mutual_rooms() -> list[str]:
    allowed = read_import_table()
    return [
        f"{room} <-> {right}"
        for room in allowed
        for right in allowed[room]
        if room < right and room in allowed.get(right, ())
    ]


def read_import_table() -> dict[str, set[str]]:
    """Room -> what it may import, from the rows of the table whose first cells are names in backticks."""
    text = (ROOT / "docs/design/architecture.md").read_text("utf-8").partition(WALK)[0]
    table: dict[str, set[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            rights = set(re.findall(r"[a-z_][\w./]*", re.sub(r"\([^)]*\)", "", cells[2])))
            for name in re.findall(r"`([^`]+)`", cells[0]):
                table[_dotted(name)] = {right if right == "all" else _dotted(right) for right in rights}
    return table


def _dotted(name: str) -> str:
    dotted = name.strip("/").removesuffix(".py").replace("/", ".")
    return dotted if dotted.partition(".")[0] in PACKAGES else f"{PACKAGE}.{dotted}"


def _room(module: str, rooms: list[str]) -> str | None:
    return next((room for room in rooms if module == room or module.startswith(f"{room}.")), None)


# -- names and sizes


def find_repeated_classes(modules: list[Module]) -> list[str]:
    places = defaultdict(list)
    for module in modules:
        for node in ast.walk(module.tree):
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
