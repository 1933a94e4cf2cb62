"""What the README of a library of C programs says of them: how they are used, what tests prove, whose code runs."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.targets.native.library.texts import write_example
from opsmith.targets.native.task import read_task_problem
from opsmith.targets.programs import Solved

PROOF = """\
Each operator runs on the inputs that its verdict rests on: every stated shape set, several seeds, the hand-made inputs,
in the declared types; also at tiny, odd, prime and larger sizes that no file states, and on inputs that are strided or
lie at odd addresses. Each result is compared with the reference of its task in float64 within the verifier's limits.
`torch.library.opcheck` and `torch.compile` work on the fake kernels. The verdict also guarded the memory around all
arrays; that is not repeated here.
"""
OWNERSHIP = """\
`{name}/csrc` has the programs as they were written; they are compiled when the package is installed, and run in your
process with your rights when you call an operator: no sandbox is around them as there was when they were judged. Task
files contain code of their authors, references and hand-made inputs, which runs in the tests. Read what comes from
people and models that you do not know first.
"""


def describe_usage(name: str, operators: Sequence[Solved]) -> str:
    """What to know of C operators, in Markdown."""
    first = operators[0]
    return f"""\
Installing compiles the programs with gcc, each with the flags of its verdict; `ISA=x86-64-v3 pip install .` states
another instruction set, `CC` another gcc.

{write_example(name, first.name, read_task_problem(first.task.text))}

In graphs it is `torch.ops.{name}.{first.name}`.

An operator takes torch tensors on the CPU: inputs in order or by name, parameters (weights), numbers and sizes that no
shape determines by name. Shapes and types are checked; `OperatorError` says what would fit. What stands in the inputs
is not checked: an index beyond its table makes a program read what is not there; at sizes where the reference itself
fails, results mean nothing. Inputs that are not contiguous are copied; nothing works in place, and results share no
memory with inputs. Fake kernels give shapes to `torch.compile`; nothing is differentiated.

For programs in C: `make`, `{name}/include/{name}.h` and `lib{name}.so`. Pointers there are taken as they are.
"""
