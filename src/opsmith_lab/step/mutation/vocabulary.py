"""The applications that could stand in a program of a task: every primitive with every argument of a neighbourhood.

Whole numbers run from 0 to 3; dims are the task's symbols, their halves and products of two, and 1, 2 and 3; functions
are all that the task offers, right or wrong for the place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

from opsmith.targets.step.language.spec import TaskSpec
from opsmith_lab.step.mutation.straight import Arguments

Application = tuple[str, Arguments]  # primitive and its arguments

SHAPES = ("Promote", "Flatten", "Reshape", "Repeat", "Bufferize", "Streamify")
UNARY = ("Map", "Accum", "Scan", *SHAPES, "Copy", "Identity")
PAIRS = ("Zip", "RepeatRef", "Partition")
INTS = tuple(map(str, range(4)))
LISTS = ("[0]", "[1]", "[2]", "[3]", "[0, 1]", "[1, 2]", "[2, 3]", "[1, 2, 3]")
COUNTS = ("1", "2", "3", "4")


def list_applications(spec: TaskSpec, products: bool = True) -> list[Application]:
    """Every primitive with every argument; without `products`, dims are single symbols and numbers."""
    return list(_iterate_applications(spec, list_dims(spec) if products else [*sorted(spec.problem.symbols), "1", "2"]))


def _iterate_applications(spec: TaskSpec, sizes: Sequence[str]) -> Iterator[Application]:
    for fn in (fn.func_name for fn in spec.fns):
        yield from (("Map", (("fn", fn),)), ("Merge", (("fn", fn),)))
        yield from ((op, (("fn", fn), ("b", b))) for op in ("Accum", "Scan") for b in INTS)
    yield from (("Promote", (("b", b),)) for b in INTS)
    yield from (("Flatten", (("L", entries),)) for entries in LISTS)
    yield from (("Reshape", (("S", S), ("L", entries))) for S in sizes for entries in LISTS)
    yield from (("Repeat", (("n", n),)) for n in sizes)
    yield from (("Bufferize", (("a", a),)) for a in INTS)
    yield from (("Partition", (("N", N),)) for N in COUNTS)
    yield from ((op, ()) for op in ("Zip", "RepeatRef", "Streamify", "Copy", "Identity"))


def list_dims(spec: TaskSpec) -> list[str]:
    """The sizes to repeat or split by."""
    symbols = sorted(spec.problem.symbols)
    products = [f"{first} * {second}" for first, second in combinations_with_replacement(symbols, 2)]
    return [*symbols, *products, *(f"{name} / 2" for name in symbols), "1", "2", "3"]
