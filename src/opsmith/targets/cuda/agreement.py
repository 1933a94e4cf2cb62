"""Whether a program's plan and its kernels agree, as far as their text says it: findings of PARSE at the plan's line.

Types with names of the program's own, macros and templates are left to the compilers, which see what they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.problems.dtypes import TYPES
from opsmith.records import printable
from opsmith.targets.cuda.syntax import KernelHead, KernelParameter
from opsmith.targets.gpu.agreement import Problem
from opsmith.targets.gpu.plan import INPUT, NUMBER, WHOLE, BoundArgument, BoundLaunch

_KNOWN = frozenset(word for row in TYPES.values() for word in row.cuda)
_WHOLE = frozenset(
    {"int", "unsigned", "unsigned int", "size_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "long", "unsigned long"}
    | {"long long", "unsigned long long", "short", "ptrdiff_t"}
)
_FLOATING = frozenset({"float", "double"})


def check_launch(launch: BoundLaunch, head: KernelHead) -> Iterator[Problem]:
    if len(launch.arguments) != len(head.parameters):
        names = ", ".join(parameter.name or parameter.type for parameter in head.parameters)
        expected = f"{len(head.parameters)}, as {head.name} on line {head.line} has them: ({printable(names)})"
        remedy = "give each parameter of the kernel one argument, in their order"
        yield "args", f"{len(launch.arguments)} arguments", expected, remedy
        return
    for argument, parameter in zip(launch.arguments, head.parameters, strict=True):
        problem = _find_problem(argument, parameter) if parameter.is_plain else None
        if problem is not None:
            yield "args", f"{argument.name} ({argument.described}) for `{parameter}`", *problem


def _find_problem(argument: BoundArgument, parameter: KernelParameter) -> tuple[str, str] | None:
    """What is expected instead, and what to try; None: they agree, or only a compiler can tell."""
    if argument.kind == NUMBER:
        return _find_problem_of_number(argument, parameter)
    allowed = TYPES[argument.type].cuda if argument.type in TYPES else _KNOWN
    if not parameter.is_pointer:
        if parameter.type in _WHOLE | _FLOATING:
            return "a pointer to its entries", "arguments stand in the order of the kernel's parameters"
        return None
    if parameter.type in (_KNOWN | _WHOLE).difference(allowed):
        best = TYPES[argument.type].cuda[0]
        return f"a pointer to {best}", f"declare it as {'const ' if argument.kind == INPUT else ''}{best} *"
    if argument.kind == INPUT and not parameter.is_const:
        return "const: inputs may only be read", f"declare it as const {parameter.type} *"
    return None


def _find_problem_of_number(argument: BoundArgument, parameter: KernelParameter) -> tuple[str, str] | None:
    if parameter.is_pointer:
        return "an array for a pointer", "arguments stand in the order of the kernel's parameters"
    if argument.type == WHOLE and parameter.type in _FLOATING:
        return "a whole number: int or int64_t", "convert it within the kernel"
    if argument.type != WHOLE and parameter.type in _WHOLE:
        return "float or double", "declare it as float"
    return None
