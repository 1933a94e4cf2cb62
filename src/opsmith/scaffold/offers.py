"""Which functions might a task offer, and what can none of them express? A guess from what PyTorch dispatches.

It is a start for the author, who knows what the hardware has: everything is commented out in the draft.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from opsmith.problems.dtypes import TORCH_NAMES
from opsmith.scaffold.operations import PLACES, Operation

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


def suggest_offers(operations: Sequence[Operation]) -> tuple[Offer, ...]:
    """Functions for the operations, of the types that they had, each once; none for those not in the table."""
    offers: dict[tuple[str, str, str, str], Offer] = {}
    for operation in operations:
        entry = read_table()["ops"].get(operation.name)
        for name in entry["fns"] if entry and operation.tensors and operation.results else ():
            offer = _make_offer(name, operation, entry)
            offers.setdefault((name, offer.apply, offer.input_dtype, offer.output_dtype), offer)
    return tuple(_named_apart(offers.values()))


def _make_offer(name: str, operation: Operation, entry: Mapping[str, Any]) -> Offer:
    """The function `name` of the table for an operation; a number among its arguments stands in the body."""
    form = read_table()["fns"][name]
    count, arguments = form.get("inputs", 1), operation.arguments[:: -1 if entry.get("turned") else 1]
    own = [operation.tensors[0]] * count if len(entry["fns"]) > 1 else [*arguments, *[None] * count]
    operands: list[Any] = own[:count]
    body = _with_numbers(form["apply"], operands, operation)
    dtypes = [dtype for dtype in operands if isinstance(dtype, str)]
    why = operation.name + (f": {entry['note']}" if "note" in entry else "")
    init = f"[{_bound_start(form['init'], operation.results[0])}]" if "init" in form else ""
    inputs = dtypes[0] if len(dtypes) == 1 else f"[{', '.join(dtypes)}]"
    func_name = f"fn_{name}" + ("_number" if len(dtypes) < len(operands) else "")
    return Offer(name.capitalize(), func_name, body, inputs, operation.results[0], init, why)


def _with_numbers(body: str, operands: Sequence[Any], operation: Operation) -> str:
    """The body with numbers in place of the inputs that are none, and the others counted anew."""
    tensors = [index for index, argument in enumerate(operands) if isinstance(argument, str)]
    texts = [
        f"input[{tensors.index(index)}]" if index in tensors else _write_literal(operands[index])
        for index in range(len(operands))
    ]
    filled = re.sub(r"input\[(\d)\]", lambda match: texts[int(match[1])], body)
    number = next((argument for argument in operation.arguments[::-1] if not isinstance(argument, str)), 0)
    dtype = TORCH_NAMES.get(operation.results[0], operation.results[0])
    return filled.replace("DTYPE", f"torch.{dtype}").replace("NUMBER", _write_literal(number))


def _write_literal(value: Any) -> str:
    return f"float('{value}')" if isinstance(value, float) and not math.isfinite(value) else repr(value)


def _named_apart(offers: Iterable[Offer]) -> Iterator[Offer]:
    """The offers under names of their own: the second `fn_mul` is `fn_mul_2`."""
    counts: dict[str, int] = {}
    for offer in offers:
        count = counts[offer.func_name] = counts.get(offer.func_name, 0) + 1
        again = {"name": f"{offer.name}{count}", "func_name": f"{offer.func_name}_{count}"}
        yield replace(offer, **(again if count > 1 else {}))


def _bound_start(init: float, dtype: str) -> float | int:
    """What an infinite start is for whole numbers: their least or largest."""
    low, high = RANGES.get(dtype, (init, init))
    return {-math.inf: low, math.inf: high}.get(init, init)


def list_limits(operations: Sequence[Operation]) -> list[str]:
    """What no function of one element and no primitive expresses: the line, why, and what to do."""
    notes: list[str] = []
    for kind in read_table()["limits"].values():
        if where := _places_of([operation for operation in operations if _is_met(kind, operation)]):
            notes.append(f"{where}: {kind['why'].format(after=_after_places(operations))}; try: {kind['remedy']}")
    if where := _places_of([operation for operation in operations if _is_unknown(operation)]):
        notes.append(f"{where}: no function is suggested for it; try: one of your own, on one element or a Buffer")
    return notes


def _places_of(operations: Sequence[Operation]) -> str:
    """Where each operation is met first."""
    first: dict[str, str] = {}
    for operation in operations:
        first.setdefault(operation.name, operation.at)
    return "; ".join(first.values())


def _is_met(kind: Mapping[str, Any], operation: Operation) -> bool:
    """Whether a limit holds; a cut that takes all, such as `x[:, None]` makes, is none."""
    return operation.name in kind["ops"] and not (operation.name == "slice" and operation.given == operation.made)


def _after_places(operations: Sequence[Operation]) -> str:
    """The operations that need places: `, which gt and masked_fill need`."""
    shapes = set(read_table()["silent"])
    names = dict.fromkeys(
        each.name for each in operations if each.on_places and each.name not in shapes | PLACES and each.tensors
    )
    return f", which {', '.join(names)} need" if names else ""


def _is_unknown(operation: Operation) -> bool:
    names = {
        *read_table()["ops"],
        *read_table()["silent"],
        *(op for kind in read_table()["limits"].values() for op in kind["ops"]),
    }
    return operation.name not in names and not operation.is_random


@cache
def read_table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = yaml.safe_load(files("opsmith.scaffold").joinpath("offers.yaml").read_text("utf-8"))
    return table
