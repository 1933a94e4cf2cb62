"""What stands around the host code in a file with `ModelNew`: its docstring, and the code of the module's own file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsmith.problems.problem import Problem
from opsmith.records import printable
from opsmith.targets.native.torch_module.counterpart import write_counterpart
from opsmith.targets.native.torch_module.foreign import ForeignCode, read_foreign
from opsmith.targets.programs import Solved

_OWN = ForeignCode("", "", "class ModelNew(nn.Module):")  # of a problem that comes from no module


@dataclass(frozen=True)
class ModuleFrame:
    """The module that a kernel stands for."""

    name: str  # of its files
    code: ForeignCode
    reference: str  # the file with `Model`

    def write_file(self, head: str, host: Sequence[str], forward: str) -> str:
        """The file with `ModelNew`, which has that method. `host`: what builds and calls the kernel."""
        new = f"\n{self.code.module}\n{'' if self.code is _OWN else chr(10)}{forward}"
        sections = [head, self.code.futures, *host, self.code.top, new]
        return "\n".join(section for section in sections if section)


def make_frame(problem: Problem, task_id: str) -> ModuleFrame:
    """The module that the problem was imported from, or else one that computes its reference. Raises UsageError."""
    source = problem.source
    if source is None or source.format != "kernelbench":
        return ModuleFrame(_choose_name(task_id), _OWN, write_counterpart(problem, task_id))
    name = source.file.rpartition("/")[2].removesuffix(".py")
    return ModuleFrame(_choose_name(name), read_foreign(source.text, name), source.text)


def _choose_name(name: str) -> str:
    return re.sub(r"[^\w-]", "_", name)


def write_constants(constants: Mapping[str, str]) -> str:
    """Texts of values by their names in the file."""
    return "\n" + "".join(f"OPSMITH_{name} = {value}\n" for name, value in constants.items())


def write_head(solved: Solved, problem: Problem, language: str, notes: Sequence[str]) -> str:
    """The docstring: what it is, where kernel and module come from, and `notes`, lines on how it runs."""
    lines = [f"{solved.task.id}: `ModelNew` around a kernel in {language}. Made by `opsmith export --kernelbench`.", ""]
    lines += [*_describe_origin(problem), *(f"{name}: {fact}" for name, fact in solved.facts.items()), "", *notes]
    text = "\n".join(map(printable, lines)) + "\n"
    is_plain = "\\" not in text and '"""' not in text
    return f'"""{text}"""\n' if is_plain else f"{text!r}\n"


def _describe_origin(problem: Problem) -> list[str]:
    source = problem.source
    if source is None:
        return []
    words = [f"from: {source.file}, sha256 {source.sha256}, licence: {source.licence} (holds of the module's own code)"]
    beyond = {name: size for name, size in source.sizes.items() if size != problem.base_sizes.get(name)}
    if beyond:
        listed = ", ".join(f"{name} = {size}" for name, size in beyond.items())
        words.append(f"sizes: judged at smaller ones than the file's own ({listed}), and at some that nobody states")
    return words
