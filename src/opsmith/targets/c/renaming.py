"""A C program with other names for all that nobody outside sees: what reads programs must not live on their words."""

from __future__ import annotations

import random
from itertools import count

from opsmith.targets.c.canonical import list_inner_names
from opsmith.targets.native.tokens import join_splices

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LENGTH = 5


def rename_variables(source: str, seed: int) -> str:
    """Names that are drawn by the seed, another one for each; the source as it is where it has macros that
    are more than constants, or is no program. Raises UsageError where there is no parser."""
    text = join_splices(source)
    places = list_inner_names(source)
    names = _draw_names(sorted(set(places.values())), text, seed)
    pieces, last = [], 0
    data = text.encode()
    for place, name in sorted(places.items()):
        pieces += [data[last:place], names[name].encode()]
        last = place + len(name.encode())
    return b"".join([*pieces, data[last:]]).decode()


def _draw_names(old_names: list[str], text: str, seed: int) -> dict[str, str]:
    rng, names, taken = random.Random(f"names {seed}"), dict[str, str](), set[str]()
    for old_name in old_names:
        for _ in count():
            name = "".join(rng.choices(_LETTERS, k=_LENGTH)) + "_"
            if name not in taken and name not in text:
                break
        taken.add(name)
        names[old_name] = name
    return names
