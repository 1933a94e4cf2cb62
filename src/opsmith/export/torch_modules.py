"""A run's right programs as files of KernelBench's kind: `NAME.py` with `ModelNew`, `reference/NAME.py` with `Model`.

Every program is judged by today's verifier before it goes in. `harness.py` beside them compares each pair as
KernelBench does, with torch alone. Equal runs give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata, resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from opsmith.errors import UsageError
from opsmith.export import folder as folders
from opsmith.export.choice import ProgramChoice
from opsmith.export.exported import ExportedFiles
from opsmith.export.forms import advise_forms
from opsmith.export.manifest import content_digest
from opsmith.export.pages import render_page
from opsmith.export.solved import SolvedOperator, missing_of, not_passed, operators_of
from opsmith.judging.pool import Pool
from opsmith.store import Store
from opsmith.store.rows import RunInfo
from opsmith.targets import get_target
from opsmith.targets.programs import TorchModule
from opsmith.targets.protocols import Modular

FILE = "kernelbench.json"
FORMAT = "opsmith kernelbench"
VERSION = 1
HARNESS = "harness.py"


@dataclass(frozen=True)
class ExportedModules(ExportedFiles):
    """Files that were written."""

    modules: Mapping[str, SolvedOperator]  # by the name of the file
    device: str  # where they run: cpu or cuda

    def describe_written(self) -> dict[str, Any]:
        return {"modules": {name: operator.task.id for name, operator in self.modules.items()}}


def export_torch_modules(
    store: Store,
    run: str,
    folder: Path,
    pool: Pool,
    choices: Mapping[str, ProgramChoice] = MappingProxyType({}),
) -> ExportedModules:
    """Write the files; `choices` as of `operators_of`.

    Raises UsageError where the folder holds something else, or no program can be written so.
    """
    folders.check_free(folder, FILE, FORMAT)
    info = store.summarise_run(store.find_run(run)).info
    target = get_target(store.target_name(info.id))
    if not isinstance(target, Modular):
        what = f"run {info.id}: programs of the target {info.target} have no form as a module of torch"
        raise UsageError(f"{what}; try: {advise_forms(target)}")
    solved = operators_of(store, info.id, pool, choices)
    refused = not_passed(solved)
    written, without_form = _write_modules(target, [operator for operator in solved if operator not in refused])
    if not written:
        reasons = [*without_form.values(), *(operator.verdict.message for operator in refused)]
        raise UsageError(f"run {info.id}: no program can be written as a module; the first:\n{reasons[0]}")
    modules = {module.name: operator for module, operator in written}
    missing, device = missing_of(store, info.id, solved), written[0][0].device
    exported = ExportedModules(folder, refused, without_form, missing, modules, device)
    files = _list_files(exported, [module for module, _ in written], info)
    folders.write_folder(folder, partial(folders.write_texts, files=files))
    return exported


def _write_modules(
    target: Modular, operators: Sequence[SolvedOperator]
) -> tuple[list[tuple[TorchModule, SolvedOperator]], dict[str, str]]:
    """The modules, each with a name of its own, and what has no such form."""
    written: dict[str, tuple[TorchModule, SolvedOperator]] = {}
    without_form: dict[str, str] = {}
    for operator in operators:
        try:
            module = target.write_torch_module(operator.as_solved)
        except UsageError as error:
            without_form[operator.task.id] = str(error)
            continue
        name = module.name if module.name not in written and module.name != "harness" else operator.name
        written[name] = (replace(module, name=name), operator)
    return list(written.values()), without_form


def _list_files(exported: ExportedModules, modules: Sequence[TorchModule], info: RunInfo) -> dict[str, str]:
    files = {f"{module.name}.py": module.text for module in modules}
    files |= {f"reference/{module.name}.py": module.reference for module in modules}
    files[HARNESS] = resources.files("opsmith.export").joinpath("torch_harness.py").read_text("utf-8")
    files["README.md"] = render_page("kernelbench.md.jinja", {"run": info, "exported": exported, "module": modules[0]})
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "opsmith": metadata.version("opsmith"),
        "run": info.id,
        "model": info.model,
        "modules": {name: _describe_module(operator) for name, operator in exported.modules.items()},
        "without_form": dict(exported.without_form),
        "files": {path: content_digest(text.encode()) for path, text in sorted(files.items())},
    }
    return {**files, FILE: json.dumps(manifest, indent=1) + "\n"}


def _describe_module(operator: SolvedOperator) -> dict[str, Any]:
    verdict = operator.verdict
    return {
        "task": operator.task.id,
        "task_digest": operator.task.digest,
        "verifier": verdict.verifier,
        "trials": verdict.trials,
        "build": verdict.build,
    }
