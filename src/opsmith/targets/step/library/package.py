"""All code of a library: a module for each operator, the runtime, and the tests."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.targets.programs import Solved
from opsmith.targets.step.ir import read_spec
from opsmith.targets.step.library.module import module_text, operator_variable
from opsmith.targets.vendoring import vendor_modules

VENDORED = ("opsmith.targets.step.library.operator", "opsmith.targets.step.library.proof")  # torch is all they need
PROOF = """\
Each operator runs on all inputs that its verdict rests on: every shape set, several seeds, the hand-made inputs, in
float64 and in the declared precision, and is compared with the reference of its task within the verifier's limits.
"""
OWNERSHIP = """\
Task files contain code of their authors: functions and references. It is part of these modules, and runs with your
rights when you call or test an operator. Read the files of authors whom you do not know first. The programs themselves
are data: they are parsed and interpreted, never executed.
"""

_TESTS = '''
"""Every operator on every input that its verdict rests on: all shape sets, seeds, hand-made inputs and precisions.

Expected values come from the PyTorch reference of the operator's task; limits are those of the verifier.
"""

import pytest
import torch

from {runtime}.targets.operator_error import OperatorError
from {runtime}.targets.step.library.proof import failures, trial_names
{imports}

torch.set_num_threads(1)  # the tensors are small: several threads would wait for each other

OPERATORS = {{
{rows}
}}
TRIALS = [
    pytest.param(name, at, id=f"{{name}}-{{trial}}")
    for name, (operator, _) in OPERATORS.items()
    for at, trial in enumerate(trial_names(operator))
]


@pytest.mark.parametrize(("name", "trial"), TRIALS)
def test_the_reference_agrees(name, trial):
    operator, function = OPERATORS[name]
    found = failures(operator, function, trial)
    assert not found, "\\n".join(found)


@pytest.mark.parametrize("name", OPERATORS)
def test_what_does_not_fit_is_refused(name):
    operator, function = OPERATORS[name]
    with pytest.raises(OperatorError, match="expected a torch tensor"):
        function(*(0 for _ in operator.task.inputs), **{{entry.name: 0 for entry in operator.task.parameters}})
'''.lstrip("\n")


def write_package(name: str, operators: Sequence[Solved]) -> dict[str, str]:
    """Path -> text, see `Packaged`."""
    runtime = f"{name}._runtime"
    tasks = {solved.name: read_spec(solved.task.text) for solved in operators}
    files = {f"{name}/_runtime/{path}": text for path, text in vendor_modules(runtime, VENDORED).items()}
    files[f"{name}/__init__.py"] = _write_front(name, operators)
    files[f"{name}/operators/__init__.py"] = '"""One module for each operator."""\n'
    files |= {f"{name}/operators/{o.name}.py": module_text(o, tasks[o.name], runtime) for o in operators}
    variables = {o.name: operator_variable(tasks[o.name]) for o in operators}
    imports = [f"from {name}.operators import {o} as _{o}" for o in variables]
    rows = [f'    "{o}": (_{o}.{variable}, _{o}.{o}),' for o, variable in variables.items()]
    files["tests/test_operators.py"] = _TESTS.format(runtime=runtime, imports="\n".join(imports), rows="\n".join(rows))
    return files


def _write_front(name: str, operators: Sequence[Solved]) -> str:
    imports = [f"from {name}.operators.{o.name} import {o.name}" for o in operators]
    names = [f'    "{o}",' for o in ("OperatorError", *(o.name for o in operators))]
    error = f"from {name}._runtime.targets.operator_error import OperatorError"
    head = f'"""{name}: operators on torch tensors, each tested against its reference. Made by `opsmith export`."""\n'
    return "\n".join([head, error, *imports, "", "__all__ = [", *names, "]", ""])


def describe_usage(name: str, operators: Sequence[Solved]) -> str:
    """What to know of STeP operators, in Markdown."""
    first = operators[0]
    inputs = ", ".join(entry.name for entry in read_spec(first.task.text).inputs)
    return f"""\
```python
from {name} import {first.name}

help({first.name})    # shapes, types, what it computes, where it comes from
{first.name}({inputs})
```

An operator takes torch tensors: inputs in order or by name, parameters (weights) by name, outermost axis first. Shapes
and types are checked; `OperatorError` says what would fit. Sizes follow from the shapes; a size that no shape
determines is an argument, with the task's own size as default. Floats are of the declared types, or all float64.

Each program is written in STeP, a language of streams for dataflow accelerators. Here its functional simulator
computes the values: on the CPU, without gradients, not for several threads at once. It says what a program computes,
not how fast an accelerator is.
"""


class StepLibrary:
    """Programs as a package, for a target's `Packaged`."""

    write_package = staticmethod(write_package)
    describe_usage = staticmethod(describe_usage)
    proof, ownership = PROOF, OWNERSHIP
