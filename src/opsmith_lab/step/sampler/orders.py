"""Orders of the fns of an expert block, one a place: all of them where they are few, else the natural ones."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from math import perm
from typing import Any

from opsmith_lab.step.sampler.task import FnView
from opsmith_lab.step.sampler.wording import natural_key

MAX_ORDERS = 24
HAND_ON = -1


@lru_cache(maxsize=64)
def list_orders(family: tuple[FnView, ...], places: int, hands_on: bool) -> tuple[tuple[int, ...], ...]:
    """Assignments of fn indices to places; `HAND_ON` is a place without a fn, where the types allow it."""
    members = tuple(fn.index for fn in family)
    orders: dict[tuple[int, ...], None] = {}
    if len(members) >= places:
        orders |= dict.fromkeys(_choose_members(family, places))
    else:
        orders |= dict.fromkeys((member,) * places for member in members)
        if hands_on and places <= 8:
            padded = members + (HAND_ON,) * (places - len(members))
            if perm(places, len(members)) <= MAX_ORDERS:
                orders |= dict.fromkeys(sorted(set(permutations(padded)), reverse=True))
            else:
                orders |= dict.fromkeys((padded, padded[::-1]))
    return tuple(orders)


def _choose_members(family: tuple[FnView, ...], places: int) -> list[tuple[int, ...]]:
    """`places` different members in order."""
    if perm(len(family), places) <= MAX_ORDERS:
        return [tuple(fn.index for fn in chosen) for chosen in permutations(family, places)]
    ranked = natural_orders(family)
    return [order[i : i + places] for order in ranked for i in range(len(order) - places + 1)]


def natural_orders(family: tuple[FnView, ...]) -> list[tuple[int, ...]]:
    """As declared, by name, by body; and the reverse of each."""
    orders: dict[tuple[int, ...], None] = {}
    for order in (family, sorted(family, key=by_name), sorted(family, key=by_body)):
        indices = tuple(fn.index for fn in order)
        orders |= dict.fromkeys((indices, indices[::-1]))
    return list(orders)


def by_name(fn: FnView) -> tuple[Any, ...]:
    return natural_key(fn.name)


def by_body(fn: FnView) -> tuple[Any, ...]:
    return natural_key(fn.body)
