"""A C program with other names for all that nobody outside sees: what reads programs must not live on their words."""

from __future__ import annotations

import random
from itertools import count

from opsmith.targets.c.canonical import list_new_names
from opsmith.targets.c.tokens import join_splices

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LENGTH = 5


def rename_variables(source: str, seed: int) -> str:
    """Names that are drawn by the seed, one for each name in each scope; the source as it is where it has macros that
    are more than constants, or is no program. Raises UsageError where there is no parser."""
    text = join_splices(source)
    places = list_new_names(source)
    names = _draw_names(sorted({new_name for _, new_name in places.values()}), text, seed)
    pieces, last = [], 0
    data = text.encode()
    for place, (name, new_name) in sorted(places.items()):
        pieces += [data[last:place], names[new_name].encode()]
        last = place + len(name.encode())
    return b"".join([*pieces, data[last:]]).decode()


def _draw_names(slots: list[str], text: str, seed: int) -> dict[str, str]:
    rng, names, taken = random.Random(f"names {seed}"), dict[str, str](), set[str]()
    for slot in slots:
        for _ in count():
            name = "".join(rng.choices(_LETTERS, k=_LENGTH)) + "_"
            if name not in taken and name not in text:
                break
        taken.add(name)
        names[slot] = name
    return names
