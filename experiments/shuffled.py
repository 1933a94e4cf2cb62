"""python experiments/shuffled.py FOLDER [SEED]: the 26 tasks with meaningless function names in another order.

For the question whether a model lives on names and declaration order. Functions keep what they compute; the tasks' own
implementations are left out. Run on the folder with: opsmith run experiments/main.toml --tasks FOLDER
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

from opsmith.suites import load_tasks
from opsmith.targets.step import spec_of
from opsmith.targets.step.ir import write_spec
from opsmith.targets.step.language.spec import TaskSpec


def shuffled(spec: TaskSpec, rng: random.Random) -> TaskSpec:
    """The spec with its functions renamed and in another order."""
    names = [f"fn_{number:04x}" for number in rng.sample(range(16**4), len(spec.fns))]
    fns = [replace(fn, name=f"F{name[3:]}", func_name=name) for fn, name in zip(spec.fns, names, strict=True)]
    return replace(spec, fns=tuple(rng.sample(fns, len(fns))))


def main(folder: str, seed: str = "0") -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for task in load_tasks(("step26",)):
        spec = shuffled(spec_of(task.text), random.Random(f"{seed} {task.id}"))
        (Path(folder) / f"{task.id}.yaml").write_text(write_spec(spec), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
