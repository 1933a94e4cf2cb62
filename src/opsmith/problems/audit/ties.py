"""Ties: whether equal numbers decide an output while no trial has any, so that a `>=` for `>` would pass.

The reference runs again with what equal numbers decide turned: `>` is `>=`, the last of equal ones counts in place of
the first, a number on a boundary lies behind it, halves are rounded away from 0. Where every trial takes the result for
right, hand-made inputs are looked for that do not: they are the case to add.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from opsmith.problems.audit.findings import Finding, State
from opsmith.problems.audit.material import Material, SingleTrial
from opsmith.problems.faults import TaskFault
from opsmith.problems.files.writing import write_cases
from opsmith.problems.native import NativeData
from opsmith.problems.problem import CaseSpec, Problem
from opsmith.problems.reference import compute_expected
from opsmith.records import Level, Scrutiny

_COMPARED = {"gt": torch.ge, "greater": torch.ge, "ge": torch.gt, "greater_equal": torch.gt}
_COMPARED |= {"lt": torch.le, "less": torch.le, "le": torch.lt, "less_equal": torch.lt}
_ARGUMENTS = {
    "sort": ("dim", "descending"), "argsort": ("dim", "descending"), "topk": ("k", "dim", "largest")
}  # fmt: skip
_ORDERED = frozenset({"argmax", "argmin", "max", "min", *_ARGUMENTS})
FIRST = "first"  # not turned: the first of equal numbers, whatever torch takes
_KINDS = {  # of a turned decision -> what a wrong program does
    "comparison": "`>=` for `>`, or `<=` for `<`",
    "order": "the last of equal numbers for the first",
    "boundary": "a number on a boundary counted on its other side",
    "rounding": "halves rounded away from 0, not to even",
}
_MOST_NUMBERS = 3  # thresholds that inputs are set to


class _Turned(TorchFunctionMode):
    """Calls of torch with one kind of decision turned; `has_met`: whether there was one. `numbers`: what inputs were
    compared with."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.has_met, self.numbers = kind, False, dict[float, None]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, getattr(func, "__name__", "").strip("_")
        kind = "comparison" if name in _COMPARED else "order" if name in _ORDERED else ""
        own_kind = "order" if self.kind == FIRST else self.kind
        kind = {"bucketize": "boundary", "searchsorted": "boundary", "round": "rounding"}.get(name, kind)
        if kind != own_kind or not isinstance(args[0] if args else None, Tensor):
            return func(*args, **kwargs)
        if kind == "order":
            return self._turn_order(func, name, args, kwargs)
        self.has_met = True
        if kind == "comparison":
            self.numbers |= {float(value): None for value in args if isinstance(value, int | float)}
            return _COMPARED[name](*args)
        if kind == "boundary":
            is_right = kwargs.pop("side", None) == "right" or kwargs.pop("right", False)
            return func(*args, **kwargs, right=not is_right)
        return func(*args, **kwargs) if kwargs else args[0].sign() * (args[0].abs() + 0.5).floor()

    def _turn_order(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """The last of equal numbers, or under FIRST the first: in the input turned round, or as it is."""
        named = dict(zip(_ARGUMENTS.get(name, ("dim",)), args[1:], strict=False)) | kwargs
        dim = named.get("dim", -1 if name in _ARGUMENTS else None)
        if isinstance(dim, Tensor) or (dim is None and name in ("max", "min")):
            return func(*args, **kwargs)  # of two tensors, or a number: no place
        self.has_met = True
        own = args[0].reshape(-1) if dim is None or not args[0].dim() else args[0]
        axis = -1 if dim is None else dim
        source = own if self.kind == FIRST else own.flip(axis)
        if name in _ARGUMENTS:
            is_falling = named.get("largest", True) if name == "topk" else named.get("descending", False)
            values, places = source.sort(dim=axis, descending=is_falling, stable=True)
            size = named.get("k", own.shape[axis])
            values, places = values.narrow(axis, 0, size), places.narrow(axis, 0, size)
        else:
            values, places = None, func(source, *args[1:], **kwargs)
            values, places = (None, places) if isinstance(places, Tensor) else places
        places = places if self.kind == FIRST else own.shape[axis] - 1 - places
        return places if values is None or name == "argsort" else torch.return_types.sort((values, places))


def note_ties(material: Material[Any]) -> Iterator[Finding]:
    """A note for each kind of decision that may be taken wrongly where numbers are equal, with the case to add."""
    for kind, mistake in _KINDS.items():
        turned = _run_turned(material.trials[0], kind)
        if turned is None or _is_refused(_list_trials(material), kind):
            continue
        text = next(filter(lambda text: _decides(material.problem, text, kind), _list_cases(material, kind)), None)
        if text is not None:
            problem = material.problem
            rows = write_cases([CaseSpec(text)])[1 if problem.cases else 0 :]
            if kind == "order" and not problem.ties and _decides(problem, text, FIRST):
                rows += ["# and in the reference sort(stable=True) in place of what takes any of equal ones, with"]
            rows += ["ties: of equal ones the first"] if kind == "order" and not problem.ties else []
            remedy = f"add{' to `cases`' if problem.cases else ''}:\n" + "\n".join(rows)
            reason = "passes: no draw has equal numbers where they decide an output"
            yield Finding("answers", State.NOTE, mistake, reason, remedy)


def _list_trials(material: Material[Any]) -> Iterator[SingleTrial[Any]]:
    yield from material.trials
    if isinstance(material.data, NativeData):
        groups = material.data.draw_shaped(Scrutiny("audit", Level.FULL))
        yield from (SingleTrial([draw], False) for group in groups for draw in group)


def _run_turned(trial: SingleTrial[Any], kind: str) -> tuple[list[list[Tensor]], _Turned] | None:
    """The reference in float64 with that kind of decision turned; None: it makes none, or fails so."""
    with _Turned(kind) as mode:
        try:
            values = compute_expected(trial.draw.problem, trial.draw.wide)
        except TaskFault:
            return None
    rows = zip(values, trial.own_limits, strict=True)
    answer = [[value.to(limit.dtype) for value, limit in zip(*row, strict=True)] for row in rows]
    return (answer, mode) if mode.has_met else None


def _is_refused(trials: Iterable[SingleTrial[Any]], kind: str) -> bool:
    """Whether a program that decides so is refused on some of them."""
    for trial in trials:
        turned = _run_turned(trial, kind)
        if turned is not None and not trial.accepts_answer(turned[0]):
            return True
    return False


def _decides(problem: Problem, text: str, kind: str) -> bool:
    """Whether a case refuses it."""
    try:
        data = NativeData(replace(problem, cases=(CaseSpec(text),)))
        return _is_refused([SingleTrial([data.make_draw("case", {}, 0, is_case=True)], False)], kind)
    except TaskFault:
        return False


def _list_cases(material: Material[Any], kind: str) -> Iterator[str]:
    """Inputs with equal numbers: whole and half ones, thresholds, those of another input."""
    names = [entry.name for entry in material.problem.tensors if entry.type.is_floating]
    head = "# equal numbers decide here\n"
    for chosen in [*([name] for name in names), *([names] if len(names) > 1 else [])]:
        rows = "".join(f"input_data[{name!r}].mul_(2).round_().div_(2)\n" for name in chosen)
        last = " and ".join(f"(2 * input_data[{name!r}] % 1 == 0).all()" for name in chosen)
        yield f"{head}{rows}{last}\n"
    turned = _run_turned(material.trials[0], kind)
    for number in list(turned[1].numbers if turned is not None else ())[:_MOST_NUMBERS]:
        for name in names:
            rows = f"x = input_data[{name!r}].view(-1)\nx[::2] = {number!r}\n"
            yield f"{head}{rows}(x[::2] == {number!r}).all()\n"
    for name, other in permutations(names, 2):
        rows = f"x, y = input_data[{name!r}].view(-1), input_data[{other!r}].view(-1)\nn = min(x.numel(), y.numel())\n"
        yield f"{head}{rows}x[:n] = y[:n]\n(x[:n] == y[:n]).all()\n"
