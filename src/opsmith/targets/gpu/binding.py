"""Binds a launch plan to a problem: what each name of it stands for. What it names wrongly are findings of PARSE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from itertools import islice

from opsmith.problems.problem import Problem
from opsmith.records import Diagnostic
from opsmith.targets.gpu.expressions import parse_canonical
from opsmith.targets.gpu.plan import (
    FLOATING,
    INPUT,
    NUMBER,
    OUTPUT,
    WHOLE,
    WORKSPACE,
    BoundArgument,
    BoundLaunch,
    BoundPlan,
    Launch,
    LaunchPlan,
    Workspace,
)
from opsmith.targets.gpu.reading import KIND, MOST
from opsmith.targets.native.signature import list_dims, make_signature


def bind_plan(plan: LaunchPlan, problem: Problem) -> BoundPlan | tuple[Diagnostic, ...]:
    """The plan for the arguments of a problem, or the first findings."""
    arguments = list_arguments(problem)
    findings = tuple(islice(_list_findings(plan, arguments), MOST))
    if findings:
        return findings
    spaces = (BoundArgument(space.name, WORKSPACE, i, space.dtype) for i, space in enumerate(plan.workspaces))
    by_name = {argument.name: argument for argument in (*arguments, *spaces)}
    return BoundPlan(
        tuple(argument.type for argument in arguments if argument.kind == INPUT),
        tuple(argument.type for argument in arguments if argument.kind == OUTPUT),
        tuple((argument.name, argument.type) for argument in arguments if argument.kind == NUMBER),
        plan.workspaces,
        tuple(_bind_launch(launch, by_name) for launch in plan.launches),
    )


def list_arguments(problem: Problem) -> tuple[BoundArgument, ...]:
    """What a plan can name but its workspaces, by the names that the task shows, in the order of its lists."""
    outputs = [type_.dtype for output in problem.outputs for type_ in output.types]
    numbers = [WHOLE] * len(list_dims(problem))
    numbers += [WHOLE if isinstance(value, int) else FLOATING for value in problem.scalars.values()]
    types = [
        *((INPUT, place, tensor.type.dtype) for place, tensor in enumerate(problem.tensors)),
        *((OUTPUT, place, dtype) for place, dtype in enumerate(outputs)),
        *((NUMBER, place, type_) for place, type_ in enumerate(numbers)),
    ]
    names = (argument.name for argument in make_signature(problem).arguments)
    return tuple(BoundArgument(name, *type_) for name, type_ in zip(names, types, strict=True))


def find_missing_kernels(plan: LaunchPlan, kernels: Collection[str]) -> tuple[Diagnostic, ...]:
    """The launches of what is no kernel. `kernels`: the names of those that the program defines."""
    return tuple(
        _refuse_name(launch.line, f"launch {launch.kernel}", launch.kernel, "no such kernel", sorted(kernels))
        for launch in plan.launches
        if launch.kernel not in kernels
    )


def _bind_launch(launch: Launch, by_name: dict[str, BoundArgument]) -> BoundLaunch:
    arguments = tuple(by_name[name] for name in launch.args)
    return BoundLaunch(launch.kernel, launch.grid, launch.block, launch.shared, arguments, launch.line, launch.meta)


def _list_findings(plan: LaunchPlan, arguments: Iterable[BoundArgument]) -> Iterator[Diagnostic]:
    own = {argument.name: argument for argument in arguments}
    dims = [name for name, argument in own.items() if argument.kind == NUMBER and argument.type == WHOLE]
    yield from _check_workspaces(plan.workspaces, own, dims)
    names = [*own, *(space.name for space in plan.workspaces)]
    for launch in plan.launches:
        where = f"launch {launch.kernel}"
        meta = [name for name, _ in launch.meta]
        for name in meta:
            if name in names:
                actual, remedy = f"{name}, the name of an argument", f"call it {name}_META"
                yield Diagnostic(KIND, f"{where}, meta", actual, "a name of its own", remedy, launch.line)
        for _, text in launch.meta:
            yield from _check_expression(launch.line, f"{where}, meta", text, dims, names)
        for text in launch.expressions:
            yield from _check_expression(launch.line, where, text, [*dims, *meta], names)
        for name in dict.fromkeys(launch.args):
            if name not in names:
                yield _refuse_name(launch.line, f"{where}, args", name, "no such argument", names)
        yield from _check_repeated(launch, own, plan)
    yield from _check_outputs(plan, own)


def _check_workspaces(
    spaces: Iterable[Workspace], own: dict[str, BoundArgument], dims: list[str]
) -> Iterator[Diagnostic]:
    lines: dict[str, int] = {}
    for space in spaces:
        where = f"workspace {space.name}"
        if space.name in own:
            actual = f"the name of the {own[space.name].kind} {space.name}"
            yield Diagnostic(KIND, where, actual, "a name of its own", f"call it {space.name}_tmp", space.line)
        if space.name in lines:
            actual = f"{space.name} once more; it is on line {lines[space.name]}"
            yield Diagnostic(KIND, where, actual, "a name of its own", "leave out one of the lines", space.line)
        lines.setdefault(space.name, space.line)
        for text in space.shape:
            yield from _check_expression(space.line, where, text, dims, [*own, *lines])


def _check_expression(
    line: int, where: str, text: str, dims: list[str], names: Collection[str]
) -> Iterator[Diagnostic]:
    for name in dict.fromkeys(parse_canonical(text).names):
        if name in dims:
            continue
        if name in names:
            expected = f"whole numbers: {', '.join(dims) or 'digits'}"
            yield Diagnostic(KIND, where, f"{name} in `{text}`", expected, "sizes follow from dims alone", line)
        else:
            yield _refuse_name(line, where, name, f"no such dim, in `{text}`", dims)


def _refuse_name(line: int, where: str, name: str, problem: str, names: Collection[str]) -> Diagnostic:
    near = get_close_matches(name, names, 1, 0.6) or [name_ for name_ in names if name_.lower() == name.lower()]
    remedy = f"write {near[0]}" if near else ""
    expected = f"one of {', '.join(names)}" if names else "none: there are none"
    return Diagnostic(KIND, where, f"{name}: {problem}", expected, remedy, line)


def _check_repeated(launch: Launch, own: dict[str, BoundArgument], plan: LaunchPlan) -> Iterator[Diagnostic]:
    """An array under two parameters of a kernel: what a kernel may not do with it is not the same in all languages."""
    spaces = {space.name for space in plan.workspaces}
    for name, count in Counter(launch.args).items():
        is_array = name in spaces or (name in own and own[name].is_array)
        if count > 1 and is_array:
            where = f"launch {launch.kernel}, args"
            yield Diagnostic(
                KIND, where, f"the array {name} twice", "each array once", "use one parameter", launch.line
            )


def _check_outputs(plan: LaunchPlan, own: dict[str, BoundArgument]) -> Iterator[Diagnostic]:
    used = {name for launch in plan.launches for name in launch.args}
    for argument in own.values():
        if argument.kind == OUTPUT and argument.name not in used:
            line = plan.launches[-1].line
            actual = f"no launch with {argument.name} in its args"
            expected = "every output written by a kernel"
            remedy = f"add {argument.name} to the args of the kernel that writes it"
            yield Diagnostic(KIND, f"output {argument.name}", actual, expected, remedy, line)
