"""Vendoring: modules of ours with all that they import, as they stand inside another package.

Imports for type checkers are left out; the texts are ours but for the name of the package.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files

ROOT = "opsmith"
_IMPORT = re.compile(rf"\b(from|import) {ROOT}((?:\.\w+)*)(?=\s)")


def vendor_modules(package: str, roots: Iterable[str], beside: str = "", known: Iterable[str] = ()) -> dict[str, str]:
    """Path below the package -> text of every module that these need of ours, imports rewritten to `package`.

    beside: another package, which has all that `known` need: it is imported from there.
    """
    elsewhere = close_imports(known)
    texts = {name: text for name, text in close_imports(roots).items() if name not in elsewhere}
    files_by_path = {f"{name.removeprefix(f'{ROOT}.').replace('.', '/')}.py": text for name, text in texts.items()}
    for folder in sorted({parent for name in texts for parent in _list_parents(name)}):
        files_by_path[f"{folder.removeprefix(ROOT).lstrip('.').replace('.', '/')}/__init__.py".lstrip("/")] = (
            _write_front(folder)
        )

    def place_import(match: re.Match[str]) -> str:
        return f"{match[1]} {beside if f'{ROOT}{match[2]}' in elsewhere else package}{match[2]}"

    return {path: _IMPORT.sub(place_import, text) for path, text in sorted(files_by_path.items())}


def imports_of(text: str) -> Iterator[str]:
    """Every module that a text imports when it runs; of `from a import b` also `a.b`, which may be one."""
    pending: list[ast.AST] = [ast.parse(text)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        for_checkers = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        pending += [] if for_checkers else ast.iter_child_nodes(node)


def close_imports(roots: Iterable[str]) -> dict[str, str]:
    """All modules of ours that these import when they run, with their texts. A package's own file is none of them:
    `_write_front` stands for it."""
    texts: dict[str, str] = {}
    pending = list(roots)
    while pending:
        name = pending.pop()
        text = None if name in texts else _read_module(name)
        if text is not None:
            texts[name] = text
            pending += [module for module in imports_of(text) if module.startswith(f"{ROOT}.")]
    return dict(sorted(texts.items()))


def _read_module(module: str) -> str | None:
    """The text of a module that is a file of its own."""
    file = files(ROOT).joinpath(*module.split(".")[1:-1], f"{module.rpartition('.')[2]}.py")
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _list_parents(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def _write_front(folder: str) -> str:
    """The `__init__.py` of a package that imports nothing: ours if it is one, else a line of its own."""
    text = files(ROOT).joinpath(*folder.split(".")[1:], "__init__.py").read_text(encoding="utf-8")
    if folder != ROOT and not any(imports_of(text)):
        return text
    return f'"""Part of the runtime: modules of {folder}, as they are there."""\n'
