"""What the inputs of an imported definition hold, as `data` of a problem file.

Floats are normal, and uniform where normal ones break the reference. Of whole numbers a definition says nothing: one
whose last entry a constraint calls an axis is a row of *pointers*, which begin at 0, never fall and end there; of any
other the largest range is sought in which the reference runs, so that indices stay inside their tables.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from opsmith.imports.flashinfer.formats import Definition

NORMAL, UNIFORM = "normal", "uniform(0, 1)"
# all of types that seldom hold indices
SMALL_NUMBERS = {"int8": "randint(-128, 128)", "uint8": "randint(0, 256)", "int16": "randint(-32768, 32768)"}
NUMBER_RANGE = 100  # of whole numbers that are no indices
PROBE = 100_000  # no index of any imported tensor is as large


@dataclass(frozen=True)
class NumberRange:
    """Whole numbers from 0 up to a bound, which is excluded: how they are drawn, and how the range is tried."""

    bound: str  # an expression of dims

    @property
    def data(self) -> str:
        return f"randint(0, {self.bound})"

    def write_probe(self, shape: Sequence[str]) -> str:
        """Only the largest of them."""
        return f"torch.full(({', '.join(shape)},), {self.bound} - 1)" if shape else f"torch.tensor({self.bound} - 1)"


def find_pointers(definition: Definition) -> dict[str, str]:
    """Inputs of pointers, each with the axis that its last entry states.

    A constraint says it: `num_kv_indices == kv_indptr[-1].item()`.
    """
    pairs = (read_pointer(text) for text in definition.constraints or ())
    return {name: axis for name, axis in filter(None, pairs) if name in definition.inputs and axis in definition.axes}


def read_pointer(text: str) -> tuple[str, str] | None:
    """The input and the axis of a constraint of this form."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
        return None
    for axis, value in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        entry = _strip_conversion(value)
        is_entry = isinstance(entry, ast.Subscript) and ast.unparse(entry.slice) == "-1"
        if is_entry and isinstance(axis, ast.Name) and isinstance(entry, ast.Subscript):
            return ast.unparse(entry.value), axis.id
    return None


def _strip_conversion(node: ast.expr) -> ast.expr:
    """The value in `value.item()` and `int(value)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        return node.func.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int" and node.args:
        return node.args[0]
    return node


def write_pointers(length: str, total: str, is_even: bool = False) -> str:
    """0, numbers in order, and the total: as many as the axis is long, which is at least 2; evenly spread if so asked,
    for references that no other rows suit."""
    if is_even:
        return f"torch.arange({length}) * {total} // ({length} - 1)"
    inner = f"torch.randint(0, {total} + 1, ({length} - 2,)).sort().values"
    return f"torch.cat((torch.tensor([0]), {inner}, torch.tensor([{total}])))"


def list_ranges(sizes: Mapping[str, int], constants: Sequence[int]) -> Iterator[NumberRange]:
    """Ranges to be tried, the largest first: one that no index could have, every dim, every constant."""
    yield NumberRange(str(PROBE))
    bounds = {**sizes, **{str(number): number for number in constants}}
    for bound in sorted(bounds, key=lambda bound: (-bounds[bound], bound)):
        if bounds[bound] > 1:
            yield NumberRange(bound)


def choose_range(ranges: Iterator[NumberRange], runs: Callable[[NumberRange], bool]) -> NumberRange | None:
    """The first in which the reference runs; one without bound stands for numbers that are no indices."""
    chosen = next((number_range for number_range in ranges if runs(number_range)), None)
    if chosen is not None and chosen.bound == str(PROBE):
        return NumberRange(str(NUMBER_RANGE))
    return chosen
