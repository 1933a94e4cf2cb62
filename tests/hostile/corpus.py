"""What do attackers send? The entries of `corpus/*.yaml`, read into records.

Every entry has a `name` (what it tries) and either `text` (under the file's own key) or `build`, a Python expression
that makes a text too long to be written down.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from opsmith.records import Stage, Task
from opsmith.suites import load_tasks
from opsmith.targets.step.language.program import MAX_TEXT

FOLDER = Path(__file__).parent / "corpus"
TASK = "powers_0"  # of entries that name none


@dataclass(frozen=True)
class Attack:
    """One hostile text and how it must be met."""

    name: str
    text: str
    task: str = TASK
    stages: tuple[Stage, ...] = ()  # one of which must refuse it; none: it must be met otherwise
    word: str = ""  # that the answer must contain
    passes: bool = False  # the program in it is right, and the attack beside it is without effect

    @property
    def parses(self) -> bool:
        """Whether Python takes it for a program; what is larger than a program may be is not tried."""
        if len(self.text) > MAX_TEXT:
            return False
        try:
            ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        return True


@cache
def task_of(name: str) -> Task:
    """A bundled task; its workers serve all bundled tasks, on systems without isolation too."""
    return load_tasks([name])[0]


def attacks(file: str, key: str) -> list[Attack]:
    """The entries of a file whose texts stand under `key`."""
    entries = yaml.safe_load((FOLDER / file).read_text(encoding="utf-8"))
    return [_attack(entry, key) for entry in entries]


def _attack(entry: dict[str, Any], key: str) -> Attack:
    stated = entry.get("stage", [])
    stages = tuple(Stage(name) for name in ([stated] if isinstance(stated, str) else stated))
    text = str(entry[key]) if key in entry else eval(entry["build"], dict(_NAMES))
    name, task, word = entry["name"], entry.get("task", TASK), str(entry["word"])
    return Attack(name, text, task, stages, word, entry.get("passes", False))


def junk(text: str, task: str = TASK) -> str:
    """The task's own program, with lines before it that work on X, a copy of the first input."""
    return f"E0, X = step.Copy().apply(E0)\n{text}\n{task_of(task).impl}"


def oracle(task: str, before: str, result: str, after: str = "") -> str:
    """gemm_2's own program between other lines; W is twice its result E6, and `result` what is returned."""
    lines = (task_of(task).impl or "").replace("return E6", "").strip().splitlines()
    spoiled = "E6, W = step.Copy().apply(E6)\nW = step.Accum(fn=fn_add, b=1).apply(step.Repeat(n=2).apply(W))\n"
    own = "\n".join(line.strip() for line in lines)
    return f"{before}{own}\n{spoiled}{after}return {result}"


def params(found: list[Attack]) -> list[Any]:
    """Parameters for pytest."""
    return [pytest.param(attack, id=attack.name.replace(" ", "-")) for attack in found]


ORACLE = task_of(TASK).impl or ""
_TASK_FILE = """\
inputs:
  - {name: E0, dtype: fp32, dims: [M, N], data_gen: torch.rand}
outputs:
  - {name: S0, dtype: fp32, dims: [N], data_transform: ["input_data['E0'].sum(1)"]}
"""
_HEADER = '{"replay": 1, "model": "m", "is_language_model": true}\n'
_NAMES = {"junk": junk, "oracle": oracle, "ORACLE": ORACLE, "FILE": _TASK_FILE, "HEADER": _HEADER}
