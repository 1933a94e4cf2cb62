"""The features of a move in a state: short texts that mean the same in every task.

Features come in groups; each group is a pure function of a small key, so that its weights are summed once and then
looked up. `static` groups of a move never change while the program grows, `dynamic` ones do. `prior_cost` is the part
that is not learned: how much is spent.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from opsmith_lab.step.sampler.orders import HAND_ON, by_body, by_name
from opsmith_lab.step.sampler.records import Move, PartialProgram, StreamOrigin
from opsmith_lab.step.sampler.task import FnView

Group = tuple[Any, ...]  # a function's name and its arguments


def static_groups(state: PartialProgram, move: Move) -> Iterator[Group]:
    """The groups that depend on the move and its arguments' origins alone."""
    if move.fn is None:
        for slot, (args, plan) in enumerate(move.outputs):
            yield ("plan", plan)
            for arg in args:
                yield ("returned", state.streams[arg].origin, min(slot, 1))
        return
    op = move.plan.op
    yield ("plan", move.plan)
    yield ("fn", op, move.fn)
    worker = move.fn
    data = move.args
    if op == "Expert":
        yield ("branch", move.branch, move.family)
        yield ("index", state.streams[move.args[-1]].origin)
        data = move.args[:-1]
    for slot, arg in enumerate(data):
        yield ("argument", state.streams[arg].origin, op, worker, slot, len(data))
    if len(data) > 1:
        yield ("pattern", op, all(a < b for a, b in itertools.pairwise(data)), len(set(data)) < len(data))
        yield ("kin", op, _relate_arguments(state, data[0], data[1]), move.fn.stateful)


def _relate_arguments(state: PartialProgram, first: int, second: int) -> str:
    """How two arguments are related."""
    if first == second:
        return "same"
    first_line, second_line = state.streams[first].line, state.streams[second].line
    if second_line >> first & 1:
        return "second made from first"
    if first_line >> second & 1:
        return "first made from second"
    return "common source" if (first_line | 1 << first) & (second_line | 1 << second) else "apart"


def dynamic_groups(state: PartialProgram, move: Move) -> tuple[Group, ...]:
    """The groups that depend on what else has been made."""
    newest, used, inputs, intermediates, mask = state.newest, state.used, state.input_bits, state.made_bits, move.mask
    if move.fn is None:
        idle = (inputs & ~(used | mask)).bit_count()
        dangling = (intermediates & ~(used | mask)).bit_count()
        dup = mask.bit_count() < sum(len(args) for args, _ in move.outputs)
        return (("stop", min(idle, 2), min(state.unused.bit_count(), 4), min(dangling, 2), mask >> newest & 1, dup),)
    index, op = move.fn.index, move.plan.op
    uses = state.fn_uses[index]
    again = mask & used
    unused = state.unused & ~(1 << index)
    for place in move.branch:
        unused &= ~(1 << place) if place >= 0 else -1
    loose = (intermediates & ~(used | mask)).bit_count()
    first = not uses and not state.unused & (1 << index) - 1
    outlook = ("outlook", move.plan.feeds & unused != 0, unused != 0, first, move.plan.closes, loose > 0)
    growth = (
        "growth",
        op,
        2 if uses > 1 else uses,
        state.unapplied,
        mask >> newest & 1 if intermediates else 2,
        (again & inputs).bit_count(),
        (again & intermediates).bit_count(),
        loose,
    )
    sequence = ("sequence", state.streams[newest].origin, op, move.fn)
    if op == "Expert" or len(move.args) != 2:
        return growth, outlook, sequence
    first_arg, second_arg = move.args
    pair = (
        "pair",
        op,
        2 if first_arg == newest else used >> first_arg & 1,
        2 if second_arg == newest else used >> second_arg & 1,
    )
    return growth, outlook, sequence, pair


def prior_cost(state: PartialProgram, move: Move) -> float:
    """What the move spends: coercions, streams and fns used again, and at the end what was left unused."""
    used, mask = state.used, move.mask
    if move.fn is None:
        cost = sum(plan.cost for _, plan in move.outputs)
        idle = state.input_bits & ~(used | mask)
        dangling = state.made_bits & ~(used | mask)
        return cost + 2.0 * idle.bit_count() + state.unused.bit_count() + dangling.bit_count()
    return move.plan.cost + 0.5 * (mask & used).bit_count() + min(state.fn_uses[move.fn.index], 2)


# -------------------------------------------------------------------- the texts of a group
def feature_texts(group: Group) -> list[str]:
    """The features of one group."""
    return list(_TEXTS[group[0]](*group[1:]))


def _plan_texts(plan: Any) -> Iterator[str]:
    yield from plan.features


def _fn_texts(op: str, fn: FnView) -> Iterator[str]:
    yield f"fn:{op}:{fn.meaning}"
    for word in fn.words:
        yield f"word:{op}:{word}"


def _full_label(origin: StreamOrigin) -> str:
    return "Input" if origin.fn is None else f"{origin.op}/{origin.fn.meaning}"


def _short_label(origin: StreamOrigin) -> str:
    return "Input" if origin.fn is None else origin.op


def _argument_texts(origin: StreamOrigin, op: str, fn: FnView, slot: int, count: int) -> Iterator[str]:
    place = f"{slot}/{count}"
    yield f"arg:{_short_label(origin)}>{op}@{place}"
    yield f"arg:{_full_label(origin)}>{op}/{fn.meaning}@{place}"
    yield f"arg:{_short_label(origin)}>{op}/{fn.meaning}@{place}"
    if origin.fn is None:
        yield f"arg:Input{min(origin.index, 2)}@{place}"
        yield from (f"argword:Input>{word}@{place}" for word in fn.words[:4])
        return
    if origin.fn is fn:
        yield f"arg:self>{op}"
    yield f"arg:order:{(origin.fn.index < fn.index)}"
    yield f"arg:next:{origin.fn.index + 1 == fn.index}"
    for before in origin.fn.words[:4]:
        for word in fn.words[:4]:
            yield f"argword:{before}>{word}@{place}"


def _return_texts(origin: StreamOrigin, slot: int) -> Iterator[str]:
    yield f"return:{_short_label(origin)}@{slot}"
    yield f"return:{_full_label(origin)}"
    if origin.fn is not None:
        yield from (f"returnword:{word}" for word in origin.fn.words[:4])


def _index_texts(origin: StreamOrigin) -> Iterator[str]:
    yield f"index:{_short_label(origin)}"


def _branch_texts(branch: tuple[int, ...], family: tuple[FnView, ...]) -> Iterator[str]:
    members = {fn.index: fn for fn in family}
    fns = [members[place] for place in branch if place != HAND_ON]
    yield f"branch:handed on:{min(branch.count(HAND_ON), 2)}"
    yield f"branch:again:{len(set(fns)) < len(fns)}"
    yield f"branch:left out:{min(len(family) - len(set(fns)), 2)}"
    yield f"branch:declared:{fns == sorted(fns, key=lambda fn: fn.index)}"
    yield f"branch:name:{fns == sorted(fns, key=by_name)}"
    yield f"branch:body:{fns == sorted(fns, key=by_body)}"


def _pattern_texts(op: str, ascending: bool, same: bool) -> Iterator[str]:
    yield f"pattern:{op}:{'same' if same else ascending}"


def _kin_texts(op: str, kin: str, stateful: bool) -> Iterator[str]:
    yield f"kin:{op}:{kin}"


def _pair_texts(op: str, first: int, second: int) -> Iterator[str]:
    yield f"pair:{op}:{first}{second}"


def _stop_texts(idle: int, unused: int, dangling: int, newest: int, dup: bool) -> Iterator[str]:
    yield "stop"
    yield f"stop:idle:{idle}"
    yield f"stop:unused:{unused}"
    yield f"stop:dangling:{dangling}"
    yield f"stop:newest:{newest}"
    yield f"stop:dup:{dup}"
    yield f"stop:all:{idle == 0 and unused == 0 and dangling == 0}"


def _growth_texts(
    op: str, used: int, unapplied: int, fresh: int, again_in: int, again_made: int, loose: int
) -> Iterator[str]:
    again_in, again_made, loose = min(again_in, 2), min(again_made, 2), min(loose, 3)
    yield f"used:{used}:{min(unapplied, 1)}"
    yield f"left:{unapplied}"
    yield f"fresh:{fresh}"
    yield f"again:{again_in}:{again_made}"
    yield f"again:{again_in}:{again_made}:fresh:{fresh}"
    yield f"loose:{loose}"
    yield f"used:{op}:{used}:fresh:{fresh}"


def _outlook_texts(feeds: bool, unused: bool, first: bool, closes: str, loose: bool) -> Iterator[str]:
    yield f"feeds:{feeds if unused else 'none left'}"
    yield f"first:{first}"
    yield f"closes:{closes}:{unused}"
    yield f"closes:{closes}:{unused}:{loose}"


def _sequence_texts(last: StreamOrigin, op: str, fn: FnView) -> Iterator[str]:
    if last.fn is None:
        return
    yield f"then:{_short_label(last)}>{op}"
    yield f"then:{_full_label(last)}>{op}/{fn.meaning}"


_TEXTS: dict[str, Any] = {
    "plan": _plan_texts,
    "fn": _fn_texts,
    "argument": _argument_texts,
    "returned": _return_texts,
    "index": _index_texts,
    "branch": _branch_texts,
    "pattern": _pattern_texts,
    "kin": _kin_texts,
    "pair": _pair_texts,
    "stop": _stop_texts,
    "growth": _growth_texts,
    "outlook": _outlook_texts,
    "sequence": _sequence_texts,
}
