"""What libraries say of their operators, whatever runs them."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.problems.dtypes import TORCH_NAMES
from opsmith.problems.problem import Problem
from opsmith.targets.native.library.module import OperatorEntry
from opsmith.targets.native.task import read_task_problem
from opsmith.targets.programs import Solved

PROOF = """\
Each operator runs on the inputs that its verdict rests on: every stated shape set, several seeds, the hand-made inputs,
in the declared types; also at tiny, odd, prime and larger sizes that no file states, and on inputs that are strided.
Each result is compared with the reference of its task in float64 within the verifier's limits. `torch.library.opcheck`
and `torch.compile` work on the fake kernels. What a verdict checks of memory beside is not repeated. Where the device
that the programs need is not here, the tests are skipped, and say so.
"""
OWNERSHIP = """\
`{name}/programs` has the programs as they were written. {runner} with your rights: no sandbox is around them as there
was when they were judged. Task files contain code of their authors, references and hand-made inputs, which runs in the
tests. Read what comes from people and models that you do not know first.
"""
DRIVER_RUNS = "The driver of your machine runs them"


def list_entries(operators: Sequence[Solved]) -> list[OperatorEntry]:
    """What modules of the operators are written from."""
    return [
        OperatorEntry(
            solved.name, solved.task.id, read_task_problem(solved.task.text), solved.facts, secret=solved.secret
        )
        for solved in operators
    ]


def write_example(package: str, operator: str, problem: Problem) -> str:
    """A call at the problem's own sizes, in Markdown: it runs as it stands."""
    lines = ["import torch", f"from {package} import {operator}", ""]
    for tensor in problem.tensors:
        shape, dtype = tensor.type.shape_at(problem.base_sizes), f"torch.{TORCH_NAMES[tensor.type.dtype]}"
        made = f"torch.rand({shape}).to({dtype})" if tensor.type.is_floating else f"torch.zeros({shape}, dtype={dtype})"
        lines.append(f"{tensor.name} = {made}")
    named = (f"{tensor.name}={tensor.name}" for tensor in problem.parameters)
    inputs = ", ".join([*(tensor.name for tensor in problem.inputs), *named])
    lines += [f"print({operator}({inputs}))", f"help({operator})    # shapes, types, what it computes, whence it comes"]
    return "\n".join(["```python", *lines, "```"])


def describe_usage(name: str, operators: Sequence[Solved], needs: str) -> str:
    """How operators are called, in Markdown. `needs`: what the machine must have, in a sentence or more."""
    first = operators[0]
    return f"""\
{needs}

{write_example(name, first.name, read_task_problem(first.task.text))}

In graphs it is `torch.ops.{name}.{first.name}`.

An operator takes torch tensors: inputs in order or by name, parameters (weights), numbers and sizes that no shape
determines by name. Shapes and types are checked; `OperatorError` says what would fit, and what went wrong where a
program could not be run. What stands in the inputs is not checked. Inputs that are not contiguous are copied; results
share no memory with inputs; nothing is differentiated.
"""
