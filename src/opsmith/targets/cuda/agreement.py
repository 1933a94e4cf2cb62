"""Whether a program's plan and its kernels agree, as far as their text says it: findings of PARSE at the plan's line.

Types with names of the program's own, macros and templates are left to the compilers, which see what they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from opsmith.problems.dtypes import TYPES
from opsmith.records import Diagnostic, printable
from opsmith.targets.cuda.syntax import KernelHead, KernelParameter
from opsmith.targets.gpu.plan import INPUT, NUMBER, WHOLE, BoundArgument, BoundLaunch, BoundPlan

KIND = "PARSE"
MOST = 5

_KNOWN = frozenset(word for row in TYPES.values() for word in row.cuda)
_WHOLE = frozenset(
    {"int", "unsigned", "unsigned int", "size_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "long", "unsigned long"}
    | {"long long", "unsigned long long", "short", "ptrdiff_t"}
)
_FLOATING = frozenset({"float", "double"})


def list_disagreements(plan: BoundPlan, heads: Sequence[KernelHead], source: str) -> tuple[Diagnostic, ...]:
    """The first findings, each with the text of its line; none: nothing is seen to be wrong."""
    lines = source.split("\n")
    by_name = {head.name: head for head in heads}
    findings = (
        finding
        for launch in plan.launches
        if launch.kernel in by_name
        for finding in _check_launch(launch, by_name[launch.kernel], lines)
    )
    return tuple(islice(findings, MOST))


def list_ambiguous(heads: Sequence[KernelHead]) -> Iterator[Diagnostic]:
    """Kernels that a launch cannot name: two of one name, and templates."""
    lines: dict[str, int] = {}
    for head in heads:
        if head.name in lines:
            actual = f"a second kernel {head.name}; the first is on line {lines[head.name]}"
            yield Diagnostic(KIND, f"kernel {head.name}", actual, "one kernel of a name", "rename one", head.line)
        if head.is_template:
            actual, expected = f"the template {head.name}", "a kernel without template arguments"
            remedy = "write a kernel that calls a __device__ template with its arguments"
            yield Diagnostic(KIND, f"kernel {head.name}", actual, expected, remedy, head.line)
        lines.setdefault(head.name, head.line)


def _check_launch(launch: BoundLaunch, head: KernelHead, lines: Sequence[str]) -> Iterator[Diagnostic]:
    text = printable(lines[launch.line - 1].strip()[:300])
    where = f"launch {launch.kernel}, args"
    if len(launch.arguments) != len(head.parameters):
        names = ", ".join(parameter.name or parameter.type for parameter in head.parameters)
        actual = f"{len(launch.arguments)} arguments"
        expected = f"{len(head.parameters)}, as {head.name} on line {head.line} has them: ({printable(names)})"
        remedy = "give each parameter of the kernel one argument, in their order"
        yield Diagnostic(KIND, where, actual, expected, remedy, launch.line, None, text)
        return
    for argument, parameter in zip(launch.arguments, head.parameters, strict=True):
        problem = _find_problem(argument, parameter) if parameter.is_plain else None
        if problem is not None:
            actual = f"{argument.name} ({_describe_argument(argument)}) for `{_write_parameter(parameter)}`"
            yield Diagnostic(KIND, where, printable(actual), *problem, launch.line, None, text)


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


def _describe_argument(argument: BoundArgument) -> str:
    if argument.kind == NUMBER:
        return "a whole number" if argument.type == WHOLE else "a number"
    return f"{argument.kind}, {argument.type}"


def _write_parameter(parameter: KernelParameter) -> str:
    const, star = "const " if parameter.is_const else "", " *" if parameter.is_pointer else " "
    return f"{const}{parameter.type}{star}{parameter.name}".strip()
