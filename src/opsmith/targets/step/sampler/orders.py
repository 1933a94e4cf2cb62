"""Which fn stands at which place of an expert block? All orders where they are few, else the natural ones."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from math import perm
from typing import Any

from opsmith.targets.step.sampler.problem import FnView
from opsmith.targets.step.sampler.wording import natural

MAX_ORDERS = 24
HAND_ON = -1


@lru_cache(maxsize=1024)
def orders(family: tuple[FnView, ...], places: int, hands_on: bool) -> tuple[tuple[int, ...], ...]:
    """Assignments of fn indices to places; `HAND_ON` is a place without a fn, where the types allow it."""
    members = tuple(fn.index for fn in family)
    found: dict[tuple[int, ...], None] = {}
    if len(members) >= places:
        found |= dict.fromkeys(_choices(family, places))
    else:
        found |= dict.fromkeys((member,) * places for member in members)
        if hands_on and places <= 8:
            padded = members + (HAND_ON,) * (places - len(members))
            if perm(places, len(members)) <= MAX_ORDERS:
                found |= dict.fromkeys(sorted(set(permutations(padded)), reverse=True))
            else:
                found |= dict.fromkeys((padded, padded[::-1]))
    return tuple(found)


def _choices(family: tuple[FnView, ...], places: int) -> list[tuple[int, ...]]:
    """`places` different members in order."""
    if perm(len(family), places) <= MAX_ORDERS:
        return [tuple(fn.index for fn in chosen) for chosen in permutations(family, places)]
    ranked = natural_orders(family)
    return [order[i : i + places] for order in ranked for i in range(len(order) - places + 1)]


def natural_orders(family: tuple[FnView, ...]) -> list[tuple[int, ...]]:
    """As declared, by name, by body; and the reverse of each."""
    found: dict[tuple[int, ...], None] = {}
    for order in (family, sorted(family, key=by_name), sorted(family, key=by_body)):
        indices = tuple(fn.index for fn in order)
        found |= dict.fromkeys((indices, indices[::-1]))
    return list(found)


def by_name(fn: FnView) -> tuple[Any, ...]:
    return natural(fn.name)


def by_body(fn: FnView) -> tuple[Any, ...]:
    return natural(fn.body)
