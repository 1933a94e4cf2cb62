"""Which functions might a task offer? A guess from the operations that PyTorch dispatches while the function runs.

It is a start for the author, who knows what the hardware has: everything is commented out in the draft.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

NARROW = frozenset({"int32", "bool"})  # of which PyTorch makes int64 when it sums or multiplies them up
# Where a largest or smallest whole number may start; of int64, as far as the numbers of a task file are exact.
RANGES = {"bool": (0, 1), "int32": (-(2**31), 2**31 - 1), "int64": (-(2**53), 2**53)}


@dataclass(frozen=True)
class Offer:
    """A function that could be offered, as a task file has it."""

    name: str
    func_name: str
    apply: str
    input_dtype: str
    output_dtype: str
    init: str = ""  # "": stateless
    why: str = ""  # the operation, and how the function serves it


def dispatched(call: Callable[[], Any]) -> tuple[str, ...]:
    """The names of the operations that a call makes, each once, in order."""
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415

    names: dict[str, None] = {}

    class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names[str(func.name()).removeprefix("aten::").partition(".")[0].rstrip("_")] = None
            return func(*args, **(kwargs or {}))

    with Recorder():  # type: ignore[no-untyped-call]
        call()
    return tuple(names)


def suggest(operations: Sequence[str], dtype: str) -> tuple[Offer, ...]:
    """Functions for the operations, each once; none for those that are not in the table."""
    found: dict[str, Offer] = {}
    for operation in operations:
        entry = table()["ops"].get(operation, {})
        note = f": {entry['note']}" if "note" in entry else ""
        result = "int64" if "widens" in entry and dtype in NARROW else dtype
        for name in entry.get("fns", ()):
            found.setdefault(name, _offer(name, dtype, result, f"{operation}{note}"))
    return tuple(found.values())


def _offer(name: str, dtype: str, result: str, why: str) -> Offer:
    entry = table()["fns"][name]
    inputs = f"[{dtype}, {dtype}]" if entry.get("inputs") == 2 else dtype
    init = f"[{_least(entry['init'], dtype)}]" if "init" in entry else ""
    return Offer(name.capitalize(), f"fn_{name}", entry["apply"], inputs, result, init, why)


def _least(init: float, dtype: str) -> float | int:
    """What an infinite start is for whole numbers: their least or largest."""
    low, high = RANGES.get(dtype, (init, init))
    return {-math.inf: low, math.inf: high}.get(init, init)


@cache
def table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = yaml.safe_load(files("opsmith.scaffold").joinpath("offers.yaml").read_text("utf-8"))
    return table
