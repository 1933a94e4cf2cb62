"""All code of a library: a module for each operator, and tests with what they need of the verifier."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from opsmith.targets.literals import write_docstring, write_literal
from opsmith.targets.native.library.module import OperatorEntry, describe_operator, write_record
from opsmith.targets.native.library.sizes import plan_sizes
from opsmith.targets.native.library.texts import write_example
from opsmith.targets.programs import Solved
from opsmith.targets.step.ir import read_spec
from opsmith.targets.step.library import proof
from opsmith.targets.step.library.module import DOCSTRING
from opsmith.targets.step.library.translation import write_translation
from opsmith.targets.vendoring import vendor_modules

VENDORED = (proof.__name__,)  # torch is all that it needs
PROOF = """\
Each operator runs on all inputs that its verdict rests on: every shape set, several seeds, the hand-made inputs, in
float64 and in the declared precision, and is compared with the reference of its task within the verifier's limits.
"""
OWNERSHIP = """\
Task files contain code of their authors: functions, references and hand-made inputs. It is part of these modules and
tests, and runs with your rights when you call or test an operator. Read what authors wrote whom you do not know first.
The statements of each operator were written by Opsmith from a program in STeP, which is data and is never executed.
"""

_HEAD = """\
The operator {name} in plain torch, written out from a program in STeP that was judged. Made by `opsmith export`.

Functions `fn_...` are those of the task's author, for one element. Streams are called as in the program:

{program}
"""
_TESTS = '''
"""Every operator on every input that its verdict rests on: all shape sets, seeds, hand-made inputs and precisions.

Expected values come from the PyTorch reference of the operator's task; limits are those of the verifier.
"""

import pytest
import torch

import {name}
from {runtime}.problems.dims import parse_dim
from {runtime}.problems.problem import ArrayType, CaseSpec, InputTensor, OutputTensors, Problem
from {runtime}.targets.step.library import proof

torch.set_num_threads(1)  # the tensors are small: several threads would wait for each other

PROBLEMS = {problems}
FREE = {free}  # sizes that no shape determines
TRIALS = [
    pytest.param(function, trial, id=f"{{function}}-{{trial.name}}")
    for function, problem in PROBLEMS.items()
    for trial in proof.plan_trials(problem)
]


@pytest.mark.parametrize(("function", "trial"), TRIALS)
def test_the_reference_agrees(function, trial):
    failures = proof.find_failures(PROBLEMS[function], getattr({name}, function), FREE[function], trial)
    assert not failures, "\\n".join(failures)


@pytest.mark.parametrize("function", PROBLEMS)
def test_what_does_not_fit_is_refused(function):
    with pytest.raises({name}.OperatorError, match="expected a torch tensor"):
        getattr({name}, function)(**{{entry.name: 0 for entry in PROBLEMS[function].tensors}})
'''.lstrip("\n")


def write_package(name: str, operators: Sequence[Solved]) -> dict[str, str]:
    """Path -> text, see `Packaged`. Raises UsageError for an operator whose `translation` says nothing."""
    runtime = f"{name}_proof"
    files = {f"tests/{runtime}/{path}": text for path, text in vendor_modules(runtime, VENDORED).items()}
    files[f"{name}/__init__.py"] = _write_front(name, operators)
    files[f"{name}/operators/__init__.py"] = '"""One module for each operator; torch is all that they need."""\n'
    files |= {f"{name}/operators/{solved.name}.py": write_module(solved) for solved in operators}
    problems = {solved.name: read_spec(solved.task.text).problem for solved in operators}
    texts = {
        "problems": write_record(problems, 0),
        "free": repr({key: list(plan_sizes(problem).free) for key, problem in problems.items()}),
    }
    files["tests/test_operators.py"] = _TESTS.format(name=name, runtime=runtime, **texts)
    return files


def write_module(solved: Solved) -> str:
    """The module of one operator."""
    spec = read_spec(solved.task.text)
    text = write_translation(spec, solved.source, solved.name, solved.translation)
    entry = OperatorEntry(solved.name, solved.task.id, spec.problem, solved.facts)
    head = _HEAD.format(name=solved.name, program=textwrap.indent(solved.source.strip("\n"), "    "))
    return f"{write_literal(head, 0)}\n\n" + text.replace(DOCSTRING, write_docstring(describe_operator(entry)), 1)


def _write_front(name: str, operators: Sequence[Solved]) -> str:
    imports = [f"from {name}.operators.{solved.name} import {solved.name}" for solved in operators]
    names = [f'    "{exported}",' for exported in ("OperatorError", *(solved.name for solved in operators))]
    head = f'"""{name}: operators on torch tensors, each tested against its reference. Made by `opsmith export`."""\n'
    error = "\nOperatorError = ValueError  # what operators say of arguments that do not fit\n"
    return "\n".join([head, *imports, error, "__all__ = [", *names, "]", ""])


def describe_usage(name: str, operators: Sequence[Solved]) -> str:
    """What to know of STeP operators, in Markdown."""
    first = operators[0]
    return f"""\
{write_example(name, first.name, read_spec(first.task.text).problem)}

An operator takes torch tensors: inputs in order or by name, parameters (weights) by name, outermost axis first. Shapes
and types are checked; `OperatorError` says what would fit. Sizes follow from the shapes; a size that no shape
determines is an argument, with the task's own size as default. Floats are of the declared types, or all float64 (then
set torch's default type to it, too). Where a program is another one at each size, the operator takes the sizes at which
it was judged, and says so.

Each program is written in STeP, a language of streams for dataflow accelerators. `{name}/operators` has its statements
in plain torch, which need nothing else. They say what a program computes, not how fast an accelerator is.
"""


class StepLibrary:
    """Programs as a package, for a target's `Packaged`."""

    write_package = staticmethod(write_package)
    describe_usage = staticmethod(describe_usage)
    proof, ownership = PROOF, OWNERSHIP
