"""How may a fn be applied to streams of these types, with the coercions written out?

A plan is one application with everything but the streams' identity: primitive, common dims, a path of shape primitives
per argument, cost, result, and the features that depend on types alone. Left out on purpose: shape changes that commute
with an elementwise fn (a dim inserted in every argument can be inserted after it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from opsmith.targets.step.sampler.coerce import Option
from opsmith.targets.step.sampler.kinds import ONE, Dims, Fields, Kind, Step
from opsmith.targets.step.sampler.problem import FnView, Goal, Problem

MAX_PLANS = 6  # per fn and argument types, the cheapest
SLACK = 2.0  # how much more than the cheapest one a plan may cost
FOLD_REPEATED = 1.0  # extra cost of folding over a dim that was inserted


@dataclass(eq=False, slots=True)
class Plan:
    """One typed application. `paths` are the arguments' coercions in order, the routed index last for an Expert."""

    op: str  # Map, Accum, Scan, Expert or Return
    b: int
    dims: Dims  # common dims of the arguments after coercion
    paths: tuple[tuple[Step, ...], ...]
    cost: float
    result: Kind | None
    features: tuple[str, ...] = ()
    feeds: int = 0  # a bit per fn that takes the result without a change
    closes: str = ""  # how the result could be returned
    score: dict[int, float] = field(default_factory=dict)  # by policy number


class Planner:
    """Plans of one problem, remembered by argument types."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._applied: dict[tuple[int, tuple[Kind, ...]], tuple[Plan, ...]] = {}
        self._routed: dict[tuple[Fields, int, int, tuple[Kind, ...]], tuple[Plan, ...]] = {}
        self._returned: dict[tuple[int, tuple[Kind, ...]], tuple[Plan, ...]] = {}
        self._closings: dict[Kind, str] = {}

    def applications(self, fn: FnView, kinds: tuple[Kind, ...]) -> tuple[Plan, ...]:
        """Map, or Accum and Scan, of `fn` over streams of these kinds, zipped in order."""
        key = (fn.index, kinds)
        found = self._applied.get(key)
        if found is None:
            rule = self._folds if fn.stateful else self._maps
            found = self._applied[key] = _cheapest(rule(fn, kinds))
        return found

    def routes(self, expert: FnView | None, merge: FnView, kinds: tuple[Kind, ...], n: int) -> tuple[Plan, ...]:
        """Expert blocks: data of `kinds[:-1]` for `expert` (None: handed on), routed by an index of `kinds[-1]`."""
        takes = expert.takes if expert else merge.takes
        key = (takes, merge.index, n, kinds)
        found = self._routed.get(key)
        if found is None:
            found = self._routed[key] = _cheapest(self._blocks(takes, merge, kinds))
        return found

    def returns(self, goal: int, kinds: tuple[Kind, ...]) -> tuple[Plan, ...]:
        """Ways to hand out streams of these kinds, zipped in order, as output number `goal`."""
        key = (goal, kinds)
        found = self._returned.get(key)
        if found is None:
            wanted = self.problem.goals[goal]
            plans = [
                self._plan("Return", 0, dims, options, None)
                for dims, options in self.join(wanted.fields, kinds)
                if dims == wanted.dims
            ]
            found = self._returned[key] = _cheapest(plans)
        return found

    # ---------------------------------------------------------------- joining the arguments
    def join(self, fields: Fields, kinds: Sequence[Kind]) -> Iterator[tuple[Dims, tuple[Option, ...]]]:
        """Common dims to which all kinds can be brought, each supplying the next fields."""
        found, start = [], 0
        for kind in kinds:
            stop = start + len(kind.fields)
            table = self.problem.table(kind).get(fields[start:stop])
            if table is None:
                return
            found.append(table)
            start = stop
        if start != len(fields):
            return
        smallest = min(found, key=len)
        for dims in smallest:
            ways = [table.get(dims) for table in found]
            if all(ways):
                for options in product(*(way[:2] for way in ways if way)):
                    yield dims, options

    # ---------------------------------------------------------------- rules
    def _maps(self, fn: FnView, kinds: tuple[Kind, ...]) -> Iterator[Plan]:
        for dims, options in self.join(fn.takes, kinds):
            if not _inserted(options) or dims == (ONE,):
                yield self._plan("Map", 0, dims, options, self.problem.kinds.make(fn.gives, dims))

    def _folds(self, fn: FnView, kinds: tuple[Kind, ...]) -> Iterator[Plan]:
        for dims, options in self.join(fn.takes, kinds):
            inserted = _inserted(options)
            for b in range(1, len(dims)):
                extra = _fold_cost(dims, inserted, b)
                if extra is not None:
                    result = self.problem.kinds.make(fn.gives, dims[b:])
                    yield self._plan("Accum", b, dims, options, result, extra)
                    result = self.problem.kinds.make(fn.gives, dims)
                    yield self._plan("Scan", b, dims, options, result, extra)

    def _blocks(self, takes: Fields, merge: FnView, kinds: tuple[Kind, ...]) -> Iterator[Plan]:
        indices = self.problem.table(kinds[-1]).get(kinds[-1].fields, {})
        for dims, options in self.join(takes, kinds[:-1]):
            for inner in range(len(dims)):
                index = indices.get(dims[inner:], (None,))[0]
                if index is None or _inserted(options) & ((1 << inner) - 1 | index.tags << inner):
                    continue
                result = self.problem.kinds.make(merge.gives, dims)
                yield self._plan("Expert", inner, dims, (*options, index), result)

    def _plan(
        self, op: str, b: int, dims: Dims, options: tuple[Option, ...], result: Kind | None, extra: float = 0.0
    ) -> Plan:
        cost = sum(option.cost for option in options) + extra
        plan = Plan(op, b, dims, tuple(option.path for option in options), cost, result)
        plan.features = tuple(shape_features(self.problem, plan))
        if result is not None:
            plan.feeds = self.problem.feeds.get(result.fields, 0)
            plan.closes = self._closes(result)
        return plan

    def _closes(self, result: Kind) -> str:
        """How a stream of this kind could be an output: at no cost, by shape primitives, only repeated, or not."""
        found = self._closings.get(result)
        if found is None:
            ways = [plan for goal in range(len(self.problem.goals)) for plan in self.returns(goal, (result,))]
            best = min(ways, key=lambda plan: plan.cost, default=None)
            found = "no"
            if best is not None:
                repeated = any(step[0] == "Repeat" for step in best.paths[0])
                found = "repeated" if repeated else "at once" if best.cost == 0 else "reshaped"
            self._closings[result] = found
        return found


def _inserted(options: Sequence[Option]) -> int:
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


def _cheapest(plans: Sequence[Plan] | Iterator[Plan]) -> tuple[Plan, ...]:
    ranked = sorted(plans, key=lambda plan: plan.cost)
    return tuple(plan for plan in ranked[:MAX_PLANS] if plan.cost <= ranked[0].cost + SLACK)


# -------------------------------------------------------------------- features of types
def shape_features(problem: Problem, plan: Plan) -> Iterator[str]:
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
    yield from _goal_features(problem, plan, plan.result)


def _goal_features(problem: Problem, plan: Plan, result: Kind) -> Iterator[str]:
    """How near the result is to some output."""
    same_type = any(goal.fields == result.fields for goal in problem.goals)
    same_dims = any(goal.dims == result.dims for goal in problem.goals)
    exact = any((goal.fields, goal.dims) == (result.fields, result.dims) for goal in problem.goals)
    yield f"goal:{plan.op}:{'exact' if exact else f'{same_type}{same_dims}'}"
    axes = result.fields[0][1] + result.dims
    near = min((_distance(goal, axes) for goal in problem.goals), key=sum)
    yield f"lacks:{min(near[0], 2)}"
    yield f"extra:{min(near[1], 2)}"
    yield f"axes:{any(goal.axes == axes for goal in problem.goals)}"
    if plan.op == "Accum":
        kept = {axis for goal in problem.goals for axis in goal.axes}
        folded = [axis in kept for axis in plan.dims[: plan.b] if axis != ONE]
        yield f"folded:{'none' if not any(folded) else 'all' if all(folded) else 'some'}"


def _distance(goal: Goal, axes: Dims) -> tuple[int, int]:
    """(axes of the goal that are missing, axes it does not have), 1s apart."""
    wanted = [axis for axis in goal.axes if axis != ONE]
    extra = 0
    for axis in axes:
        if axis in wanted:
            wanted.remove(axis)
        elif axis != ONE:
            extra += 1
    return len(wanted), extra
