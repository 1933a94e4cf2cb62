"""Translation: a judged program as a function in plain torch, tried on every draw that its verdict rests on.

What is found out by running code of the task's author, in a worker, is a plan: plain data, from which anybody writes
the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from opsmith.errors import UsageError
from opsmith.targets.native.library.sizes import plan_sizes
from opsmith.targets.step.execution.trials import make_trials
from opsmith.targets.step.language.check import Program, check_program
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.library.module import SizedGraph, write_function
from opsmith.targets.step.library.proof import compare_draw
from opsmith.targets.step.library.statements import FnForm, NoStatementsError
from opsmith.targets.trial import list_runnable

_LACK = "there is no function in plain torch"


def plan_translation(spec: TaskSpec, source: str, name: str) -> dict[str, Any]:
    """What `write_translation` needs of a program that passed. Raises UsageError where there is no text that gives what
    the reference gives. It runs code of the task's author: in worker processes only."""
    first = make_trials(spec).data.sets[0].draws[0]
    if first.declared.random_global:
        raise UsageError(f"{_LACK}: `global` of its task draws random numbers; expected the same ones in every call")
    graphs = [graph for _, graph in _list_graphs(spec, source)]
    used = sorted({node.fn.func_name for graph in graphs for node in graph.needed if node.fn is not None})
    symbols = sorted({symbol for graph in graphs for symbol in graph.reads})
    sizes = [{symbol: own[symbol] for symbol in symbols} for own, _ in _list_graphs(spec, source)]
    forms = {}
    for fn in (first.bound_wide.fns[func_name] for func_name in used):
        entries = None if fn.reduction is None else [[join.__name__, *rest] for join, *rest in fn.reduction.entries]
        forms[fn.name] = {"is_direct": fn.is_direct, "reduction": entries}
    plan = {"fns": forms, "sizes": [dict(pairs) for pairs in dict.fromkeys(tuple(own.items()) for own in sizes)]}
    text = write_translation(spec, source, name, plan)
    names: dict[str, Any] = {"__name__": name}
    exec(compile(text, f"<{name}>", "exec"), names)
    difference = next(find_differences(spec, names[name]), None)
    if difference is not None:
        raise UsageError(f"{_LACK}: what was written is not equal: {difference}")
    return plan


def write_translation(spec: TaskSpec, source: str, name: str, plan: Mapping[str, Any]) -> str:
    """The text of the module, see `module.write_function`; nothing is run. Raises UsageError."""
    forms = {
        func_name: FnForm(bool(form["is_direct"]), _read_reduction(form["reduction"]))
        for func_name, form in plan["fns"].items()
    }
    graphs = []
    for sizes in plan["sizes"]:
        graph = check_program(spec, source, {**spec.sizes, **sizes}).graph
        graphs += [SizedGraph(sizes, graph)] if graph is not None else []
    try:
        return write_function(spec, source, name, graphs, forms)
    except NoStatementsError as lack:
        raise UsageError(f"{_LACK}: {lack}") from lack


def _read_reduction(entries: Any) -> tuple[tuple[str, int, float], ...] | None:
    if entries is None:
        return None
    return tuple((str(join), int(place), float(start)) for join, place, start in entries)


def _list_graphs(spec: TaskSpec, source: str) -> Iterator[tuple[Mapping[str, int], Any]]:
    """The program's graph at every size that its verdict rests on."""
    program = Program(spec, source, check_program(spec, source))
    for trial in list_runnable(make_trials(spec)):
        graph = program.report_at(trial.data.sizes).graph
        if graph is not None:
            yield trial.data.sizes, graph


def find_differences(spec: TaskSpec, function: Callable[..., Any]) -> Iterator[str]:
    """What a function gives otherwise than the reference, on all inputs of a verdict."""
    free = plan_sizes(spec.problem).free
    for trial in list_runnable(make_trials(spec)):
        for draw in trial.data.draws:
            yield from compare_draw(spec.problem, function, free, draw, trial.data.is_wide)
