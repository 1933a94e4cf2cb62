"""The ways to apply a fn to streams of given types, with the coercions written out.

A plan is one application with everything but the streams' identity: primitive, common dims, a path of shape primitives
per argument, cost, result, and the features that depend on types alone. Left out on purpose: shape changes that commute
with an elementwise fn (a dim inserted in every argument can be inserted after it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from sys import intern
from typing import NamedTuple

from opsmith_lab.step.sampler.coerce import MAX_WAYS, Option, Path
from opsmith_lab.step.sampler.kinds import ONE, Dims, Fields, StreamKind
from opsmith_lab.step.sampler.task import FnView, Goal, SamplerTask

MAX_PLANS = 6  # per fn and argument types, the cheapest
SLACK = 2.0  # how much more than the cheapest one a plan may cost
FOLD_REPEATED = 1.0  # extra cost of folding over a dim that was inserted
KEY_BYTES, PLAN_BYTES = 400, 500  # of what is remembered for one fn and argument types, and of each of its plans

Ways = Mapping[Dims, tuple[Option, ...]]


@dataclass(eq=False, slots=True)
class ApplicationPlan:
    """One typed application. `paths` are the arguments' coercions in order, the routed index last for an Expert."""

    op: str  # Map, Accum, Scan, Expert or Return
    b: int
    dims: Dims  # common dims of the arguments after coercion
    paths: tuple[Path, ...]
    cost: float
    result: StreamKind | None
    features: tuple[str, ...] = ()
    feeds: int = 0  # a bit per fn that takes the result without a change
    closes: str = ""  # how the result could be returned


class Join(NamedTuple):
    """One way to bring the arguments together; those that come after it cost at least `least`."""

    least: float
    dims: Dims
    options: tuple[Option, ...]

    @property
    def cost(self) -> float:
        return sum(option.cost for option in self.options)


class _Draft(NamedTuple):
    """A plan before it is known to be one of the cheapest."""

    cost: float
    least: float  # what the drafts after it cost at least
    op: str
    b: int
    dims: Dims
    options: tuple[Option, ...]
    result: StreamKind | None


class Planner:
    """Plans of one task, remembered by argument types."""

    def __init__(self, task: SamplerTask) -> None:
        self.task = task
        self._applied: dict[
            tuple[tuple[Fields, Fields, bool], tuple[StreamKind, ...]], tuple[ApplicationPlan, ...]
        ] = {}
        self._routed: dict[tuple[Fields, int, int, tuple[StreamKind, ...]], tuple[ApplicationPlan, ...]] = {}
        self._returned: dict[tuple[int, tuple[StreamKind, ...]], tuple[ApplicationPlan, ...]] = {}
        self._closings: dict[StreamKind, str] = {}
        self._plans = 0

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        keys = len(self._applied) + len(self._routed) + len(self._returned) + len(self._closings)
        return KEY_BYTES * keys + PLAN_BYTES * self._plans

    def plan_applications(self, fn: FnView, kinds: tuple[StreamKind, ...]) -> tuple[ApplicationPlan, ...]:
        """Map, or Accum and Scan, of `fn` over streams of these kinds, zipped in order."""
        key = (fn.signature, kinds)
        plans = self._applied.get(key)
        if plans is None:
            rule = self._draft_folds if fn.stateful else self._draft_maps
            plans = self._applied[key] = self._select_cheapest(rule(fn, kinds))
        return plans

    def plan_routes(
        self, expert: FnView | None, merge: FnView, kinds: tuple[StreamKind, ...], n: int
    ) -> tuple[ApplicationPlan, ...]:
        """Expert blocks: data of `kinds[:-1]` for `expert` (None: handed on), routed by an index of `kinds[-1]`."""
        takes = expert.takes if expert else merge.takes
        key = (takes, merge.index, n, kinds)
        plans = self._routed.get(key)
        if plans is None:
            plans = self._routed[key] = self._select_cheapest(self._draft_blocks(takes, merge, kinds))
        return plans

    def plan_returns(self, goal: int, kinds: tuple[StreamKind, ...]) -> tuple[ApplicationPlan, ...]:
        """Ways to hand out streams of these kinds, zipped in order, as output number `goal`."""
        key = (goal, kinds)
        plans = self._returned.get(key)
        if plans is None:
            plans = self._returned[key] = self._select_cheapest(self._draft_outputs(self.task.goals[goal], kinds))
        return plans

    # ---------------------------------------------------------------- joining the arguments
    def join_arguments(self, fields: Fields, kinds: Sequence[StreamKind]) -> Iterator[Join]:
        """Common dims to which all kinds can be brought, each supplying the next fields."""
        tables, start = [], 0
        for kind in kinds:
            stop = start + len(kind.fields)
            table = self.task.find_table(kind).get(fields[start:stop])
            if table is None:
                return
            tables.append(table)
            start = stop
        if start == len(fields):
            yield from _join_tables(tables)

    # ---------------------------------------------------------------- rules
    def _draft_maps(self, fn: FnView, kinds: tuple[StreamKind, ...]) -> Iterator[_Draft]:
        for way in self.join_arguments(fn.takes, kinds):
            if not _inserted_dims(way.options) or way.dims == (ONE,):
                yield _Draft(way.cost, way.least, "Map", 0, way.dims, way.options, StreamKind(fn.gives, way.dims))

    def _draft_folds(self, fn: FnView, kinds: tuple[StreamKind, ...]) -> Iterator[_Draft]:
        for way in self.join_arguments(fn.takes, kinds):
            inserted, dims = _inserted_dims(way.options), way.dims
            for b in range(1, len(dims)):
                extra = _fold_cost(dims, inserted, b)
                if extra is not None:
                    cost = way.cost + extra
                    yield _Draft(cost, way.least, "Accum", b, dims, way.options, StreamKind(fn.gives, dims[b:]))
                    yield _Draft(cost, way.least, "Scan", b, dims, way.options, StreamKind(fn.gives, dims))

    def _draft_blocks(self, takes: Fields, merge: FnView, kinds: tuple[StreamKind, ...]) -> Iterator[_Draft]:
        indices = self.task.find_table(kinds[-1]).get(kinds[-1].fields, {})
        for way in self.join_arguments(takes, kinds[:-1]):
            dims = way.dims
            for inner in range(len(dims)):
                index = indices.get(dims[inner:], (None,))[0]
                if index is None or _inserted_dims(way.options) & ((1 << inner) - 1 | index.tags << inner):
                    continue
                options = (*way.options, index)
                cost = way.cost + index.cost
                yield _Draft(cost, way.least, "Expert", inner, dims, options, StreamKind(merge.gives, dims))

    def _draft_outputs(self, goal: Goal, kinds: tuple[StreamKind, ...]) -> Iterator[_Draft]:
        ways, start = [], 0
        for kind in kinds:
            ways.append(self.task.find_ways(kind, goal.fields[start : start + len(kind.fields)], goal.dims))
            start += len(kind.fields)
        if start == len(goal.fields) and all(ways):
            for way in _join_tables([{goal.dims: way} for way in ways]):
                yield _Draft(way.cost, way.least, "Return", 0, goal.dims, way.options, None)

    # ---------------------------------------------------------------- plans
    def _select_cheapest(self, drafts: Iterator[_Draft]) -> tuple[ApplicationPlan, ...]:
        """Plans of the cheapest drafts, the cheapest first; what can only be dearer is not looked at."""
        candidates: list[_Draft] = []
        best = inf
        for draft in drafts:
            if draft.least > best + SLACK:
                break
            best = min(best, draft.cost)
            candidates.append(draft)
        ranked = sorted(candidates, key=lambda draft: draft.cost)[:MAX_PLANS]
        return tuple(self._make_plan(draft) for draft in ranked if draft.cost <= best + SLACK)

    def _make_plan(self, draft: _Draft) -> ApplicationPlan:
        paths = tuple(option.path for option in draft.options)
        plan = ApplicationPlan(draft.op, draft.b, draft.dims, paths, draft.cost, draft.result)
        plan.features = tuple(map(intern, shape_features(self.task, plan)))
        self._plans += 1
        if draft.result is not None:
            plan.feeds = self.task.feeds.get(draft.result.fields, 0)
            plan.closes = self._describe_closing(draft.result)
        return plan

    def _describe_closing(self, result: StreamKind) -> str:
        """How a stream of this kind could be an output: at no cost, by shape primitives, only repeated, or not."""
        closing = self._closings.get(result)
        if closing is None:
            ways = [plan for goal in range(len(self.task.goals)) for plan in self.plan_returns(goal, (result,))]
            best = min(ways, key=lambda plan: plan.cost, default=None)
            closing = "no"
            if best is not None:
                repeated = any(step[0] == "Repeat" for step in best.paths[0])
                closing = "repeated" if repeated else "at once" if best.cost == 0 else "reshaped"
            self._closings[result] = closing
        return closing


def _join_tables(tables: Sequence[Ways]) -> Iterator[Join]:
    """The dims that all tables have, in the order of the smallest one, the cheapest first."""
    if not all(tables):
        return
    smallest = min(tables, key=len)
    larger_cost = sum(map(_least_cost, tables)) - _least_cost(smallest)
    for dims, ways in smallest.items():
        options = [table.get(dims) for table in tables]
        if all(options):
            for chosen in product(*(way[:MAX_WAYS] for way in options if way)):
                yield Join(ways[0].cost + larger_cost, dims, chosen)


def _least_cost(table: Ways) -> float:
    """What the cheapest way in a table costs: it comes first."""
    return next(iter(table.values()))[0].cost


def _inserted_dims(options: Sequence[Option]) -> int:
    """The dims that no argument has data along."""
    mask = -1
    for option in options:
        mask &= option.tags
    return mask


def _fold_cost(dims: Dims, inserted: int, b: int) -> float | None:
    """What folding over inserted dims costs more; None where the insertion would commute with the fold."""
    if not inserted:
        return 0.0
    last = len(dims) - 1
    if inserted >> last & 1 and dims[last] == ONE and b == last:
        inserted &= ~(1 << last)
    if inserted >> b:
        return None
    ones = any(inserted >> place & 1 and dims[place] == ONE for place in range(b))
    return None if ones else FOLD_REPEATED * bool(inserted)


# -------------------------------------------------------------------- features of types
def shape_features(task: SamplerTask, plan: ApplicationPlan) -> Iterator[str]:
    """What can be said of a plan without looking at which fn or stream it is."""
    yield f"op:{plan.op}"
    yield f"cost:{plan.op}:{min(round(plan.cost), 4)}"
    names = [step[0] for path in plan.paths for step in path]
    for name in ("Promote", "Repeat", "Flatten", "Reshape"):
        if name in names:
            yield f"{name}:{plan.op}:{min(names.count(name), 2)}"
    if len(plan.paths) == 2:
        for slot, path in enumerate(plan.paths):
            if any(step[0] == "Repeat" for step in path):
                yield f"Repeat:{plan.op}@{slot}"
    if plan.op in ("Accum", "Scan"):
        yield f"b:{plan.op}:{min(plan.b, 3)}:{plan.b == len(plan.dims) - 1}"
    if plan.result is None:
        return
    yield from _goal_features(task, plan, plan.result)


def _goal_features(task: SamplerTask, plan: ApplicationPlan, result: StreamKind) -> Iterator[str]:
    """How near the result is to some output."""
    same_type = any(goal.fields == result.fields for goal in task.goals)
    same_dims = any(goal.dims == result.dims for goal in task.goals)
    exact = any((goal.fields, goal.dims) == (result.fields, result.dims) for goal in task.goals)
    yield f"goal:{plan.op}:{'exact' if exact else f'{same_type}{same_dims}'}"
    axes = result.fields[0][1] + result.dims
    near = min((_compare_axes(goal, axes) for goal in task.goals), key=sum)
    yield f"lacks:{min(near[0], 2)}"
    yield f"extra:{min(near[1], 2)}"
    yield f"axes:{any(goal.axes == axes for goal in task.goals)}"
    if plan.op == "Accum":
        goal_axes = {axis for goal in task.goals for axis in goal.axes}
        folded = [axis in goal_axes for axis in plan.dims[: plan.b] if axis != ONE]
        yield f"folded:{'none' if not any(folded) else 'all' if all(folded) else 'some'}"


def _compare_axes(goal: Goal, axes: Dims) -> tuple[int, int]:
    """(axes of the goal that are missing, axes it does not have), 1s apart."""
    missing = [axis for axis in goal.axes if axis != ONE]
    extra = 0
    for axis in axes:
        if axis in missing:
            missing.remove(axis)
        elif axis != ONE:
            extra += 1
    return len(missing), extra
