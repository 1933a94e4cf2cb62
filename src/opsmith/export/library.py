"""A run's operators as a Python package that needs no Opsmith: code, tests, manifest, README.

Every operator is judged by today's verifier before it goes in; one that is not right stays out, and the manifest says
why. Equal runs give equal bytes.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

from opsmith.errors import UsageError
from opsmith.export import folder as folders
from opsmith.export.choice import ProgramChoice
from opsmith.export.exported import ExportedFiles
from opsmith.export.forms import advise_forms
from opsmith.export.front_files import FRONTS, NEAREST, describe_front, write_front_file
from opsmith.export.manifest import build_manifest, name_problem_file, with_files
from opsmith.export.pages import render_page
from opsmith.export.solved import SolvedOperator, missing_of, name_author, not_passed, operators_of, translate_operators
from opsmith.judging.pool import Pool
from opsmith.records import KNOWN, Task
from opsmith.store import Store
from opsmith.store.rows import RunInfo
from opsmith.suites.library import FILE, FORMAT
from opsmith.targets import get_target
from opsmith.targets.protocols import Packaged

_RESERVED = frozenset({"opsmith", "torch", "numpy", "pytest", "setuptools", "pip", "test", "tests"})
_RESERVED |= {"aten", "prim", "prims"}  # where torch keeps its own operators


@dataclass(frozen=True)
class ExportedLibrary(ExportedFiles):
    """A package that was written."""

    name: str
    operators: Sequence[SolvedOperator]

    def describe_written(self) -> dict[str, Any]:
        return {"name": self.name, "operators": [operator.name for operator in self.operators]}


def export_library(
    store: Store,
    run: str,
    folder: Path,
    name: str | None,
    pool: Pool,
    choices: Mapping[str, ProgramChoice] = MappingProxyType({}),
) -> ExportedLibrary:
    """Write the package; `name` is what it is imported as, by default that of the folder.

    choices: by task, programs in place of the ones that the run kept.

    Raises UsageError where the folder holds something else, the name is none, or no operator is right.
    """
    name = package_name(folder) if name is None else _check_name(name)
    folders.check_free(folder, FILE, FORMAT)
    info = store.summarise_run(store.find_run(run)).info
    target = get_target(store.target_name(info.id))
    if not isinstance(target, Packaged):
        what = f"run {info.id}: there is no library of programs of the target {target.name}"
        raise UsageError(f"{what}; try: {advise_forms(target)}")
    solved = translate_operators(pool, operators_of(store, info.id, pool, choices))
    refused = not_passed(solved)
    operators = [operator for operator in solved if operator not in refused]
    if not operators:
        raise UsageError(
            f"run {info.id}: no operator passes today's verifier; the first:\n{refused[0].verdict.message}"
        )
    missing = missing_of(store, info.id, solved)
    files = _library_files(name, info, target, operators, refused, missing)
    with folders.hold_folder(folder, None):
        folders.check_free(folder, FILE, FORMAT)
        folders.write_folder(folder, partial(folders.write_texts, files=files))
    return ExportedLibrary(folder, refused, {}, missing, name, operators)


def write_library(
    name: str, info: RunInfo, operators: Sequence[SolvedOperator], objective: str, pool: Pool
) -> Mapping[str, str | bytes]:
    """The files of a library of these operators, which may come of several runs. info: of the first one's. Raises
    UsageError for one that cannot be packaged."""
    operators = translate_operators(pool, operators)
    for operator in not_passed(operators):
        raise UsageError(f"library {name}: {operator.name}: {operator.verdict.message}")
    target = get_target(operators[0].task.target)
    if not isinstance(target, Packaged):
        raise UsageError(f"library {name}: there is no library of programs of the target {target.name}")
    return _library_files(name, info, target, operators, (), (), objective)


def package_name(folder: Path) -> str:
    """What a package in this folder is called. Raises UsageError where the folder's name gives none."""
    return _check_name(re.sub(r"[-. ]", "_", folder.resolve().name).lower())


def _check_name(name: str) -> str:
    is_name = re.fullmatch(r"[a-z][a-z0-9_]{0,59}", name) is not None and not keyword.iskeyword(name)
    if is_name and name not in _RESERVED and name not in sys.stdlib_module_names:
        return name
    expected = "a name for a Python package, of small letters, digits and _, which is not taken"
    raise UsageError(f"library {name!r}: expected {expected}; try: --name my_operators")


def _library_files(
    name: str,
    info: RunInfo,
    target: Packaged,
    operators: Sequence[SolvedOperator],
    refused: Sequence[SolvedOperator],
    missing: Sequence[Task],
    objective: str = "",
) -> Mapping[str, str | bytes]:
    solved = [operator.as_solved for operator in operators]
    facts = {
        "name": name,
        "run": info,
        "runs": sorted(
            {each.origin.run for each in operators if not each.origin.run.startswith(KNOWN)} if objective else ()
        ),
        "authors": {operator.name: name_author(operator.origin) for operator in operators},
        "operators": operators,
        "refused": refused,
        "missing": missing,
        "requirements": list(target.requirements),
        "usage": target.describe_usage(name, solved),
        "builds": sorted({operator.verdict.build for operator in operators} - {""}),
        "proof": target.describe_proof(name),
        "ownership": target.describe_ownership(name),
        "opsmith": metadata.version("opsmith"),
        "target": info.target,
        "fronts": [describe_front(operator) for operator in operators if operator.choice is not None],
        "nearest": NEAREST,
    }
    files: dict[str, str | bytes] = {**target.write_package(name, solved)}
    files |= {name_problem_file(operator.name): operator.task.text for operator in operators}
    files |= {
        "README.md": render_page("README.md.jinja", facts),
        "pyproject.toml": render_page("pyproject.toml.jinja", facts),
    }
    if facts["fronts"]:
        files[FRONTS] = write_front_file(operators)
    files["LICENSE"] = read_licence()
    manifest = build_manifest(name, info, operators, refused, missing, files)
    return {**files, FILE: with_files(manifest | ({"objective": objective} if objective else {}), files)}


def read_licence() -> str:
    """The licence of the runtime that goes with the operators. The first of several records of one package may lack it:
    a folder `*.egg-info`, which an editable installation leaves in `src`, has no texts of licences."""
    texts = (entry.read_text("licenses/LICENSE") for entry in metadata.distributions(name="opsmith"))
    text = next(filter(None, texts), None)
    if text is None:
        raise UsageError(
            "opsmith: its licence is not beside it; expected an installed package; try: pip install opsmith"
        )
    return text
