"""Tasks whose author's code does harm, as far as it is let."""

import json
import textwrap
from dataclasses import replace
from typing import Any

import pytest
import yaml

from opsmith.records import Task
from opsmith.running.sandbox import Sandbox, missing
from opsmith.targets import get_target

SMALL = Sandbox(memory=512 << 20)  # what these tests need, so that one that takes all memory is quick
RIGHT = "return step.Map(fn=fn_double).apply(E0)"
WRONG = "return step.Map(fn=fn_same).apply(E0)"
needs_isolation = pytest.mark.skipif(bool(missing()), reason=f"this system isolates nothing: {missing()}")


def step_task(task_id: str = "hostile_0", /, *, body: str = "", expected: str = "", **keys: str) -> Task:
    """Doubling, with the author's `body` in front of the fn's own, or `expected` in front of the wanted values."""
    fn = {"input_dtype": "fp32", "output_dtype": "fp32"}
    data: dict[str, Any] = {
        "test_name": task_id,
        "inputs": [{"name": "E0", "dtype": "fp32", "dims": ["M", "N"], "data_gen": "torch.randn"}],
        "fns": [
            {"name": "Double", "func_name": "fn_double", "apply": f"{body}\nreturn [2 * input[0]]\n", **fn},
            {"name": "Same", "func_name": "fn_same", "apply": "return [input[0]]\n", **fn},
        ],
        "outputs": [
            {"name": "S0", "dtype": "fp32", "dims": ["M", "N"], "data_transform": [f"{expected}\n2 * input_data['E0']"]}
        ],
    }
    text = yaml.safe_dump({**data, **keys}, sort_keys=False)
    return get_target("step").read_task(text, task_id)


def saying(code: str) -> Task:
    """A task whose `global` runs `code`, which defines `found`, and fails with that as its message."""
    lines = f"{textwrap.dedent(code).strip()}\nraise ValueError('found ' + repr(found))\n"
    return step_task("saying_0", **{"global": lines})


def tiny_python(want: int = 918_273_645, x: int = 7) -> Task:
    """A task of the language whose candidates are executed: from x to a number that does not follow from it."""
    text = json.dumps({"inputs": {"x": [x, x]}, "want": [want, want]})
    return replace(get_target("tiny_target:TINY_PYTHON").read_task(text, "python_0"), target="tiny_target:TINY_PYTHON")
