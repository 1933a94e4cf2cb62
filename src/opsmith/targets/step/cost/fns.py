"""The cost of one call of a fn: its body runs once on one element, under a counter of torch's operators.

The body is author's code: in worker processes only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.dispatch import UncompiledMode
from opsmith.problems.precision import default_dtype, default_of
from opsmith.targets.step.cost.model import TILE, FnCost
from opsmith.targets.step.execution.bodies import compile_body
from opsmith.targets.step.execution.bound import BoundDraw
from opsmith.targets.step.execution.precision import torch_dtype
from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.language.types import Field, Multihot, element_shape, fields_of

_PER_ELEMENT = {"sigmoid": 4, "silu": 5, "gelu": 8}
_SOFTMAX = frozenset({"_softmax", "_log_softmax"})
_REDUCTIONS = frozenset(
    {"sum", "mean", "max", "min", "amax", "amin", "argmax", "argmin", "aminmax", "prod", "any", "all", "var", "std"}
    | {"logsumexp", "linalg_vector_norm", "cumsum", "cumprod", "cummax", "cummin"}
)
_SORTS = frozenset({"sort", "topk"})
_MOVES = frozenset({"clone", "masked_fill"})  # pointwise to torch, but no arithmetic


def measure_fn(fn: FnSpec, bindings: BoundDraw, element: list[Tensor] | None = None) -> FnCost:
    """Run a fn's body on one element (made up if none is given) and count. Raises TaskFault."""
    input = (
        element if element is not None else [_invent_element(field, bindings) for field in fields_of(fn.input_dtype)]
    )
    state = None
    if fn.init is not None:
        pairs = zip(fields_of(fn.output_dtype), fn.init, strict=True)
        state = [
            torch.full(element_shape(field, bindings.sizes), value, dtype=torch_dtype(field)) for field, value in pairs
        ]
    body = compile_body(fn.apply, fn.func_name)
    counter = OpCounter()
    try:
        with torch.no_grad(), default_dtype(default_of(False)), counter:
            body.bind_names(bindings.namespace)(state, input)
    except Exception as error:
        raise body.blame_author(error) from error
    return FnCost(counter.flops, counter.matmul_bytes)


def _invent_element(field: Field, bindings: BoundDraw) -> Tensor:
    shape = element_shape(field, bindings.sizes)
    if isinstance(field, Multihot):
        return torch.nn.functional.one_hot(torch.tensor(0), shape[-1]).to(torch_dtype(field))
    return torch.rand(shape, generator=torch.Generator().manual_seed(0)).to(torch_dtype(field))


@dataclass
class _Product:
    """A matrix product of (m, k) and (k, n), `batch` times."""

    m: int
    k: int
    n: int
    batch: int
    second: Tensor

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.m * self.k * self.n

    @property
    def bytes(self) -> int:
        """A tile of 16 rows of the first operand, and the whole second one."""
        return (TILE * self.k + self.second.numel()) * self.second.element_size()


class OpCounter(UncompiledMode):
    """Counts FLOPs and the bytes of matrix products while it is entered.

    Matrix products 2mkn; pointwise operations 1 per output element, sigmoid 4, silu 5, gelu 8; softmax 5 and reductions
    1 per input element; sorting n ceil(log2 n) per row; views, indexing, cat, casts and constants nothing.

    >>> with OpCounter() as counter:
    ...     _ = torch.sigmoid(torch.zeros(16) @ torch.zeros(16, 3))
    >>> counter.flops, counter.matmul_bytes
    (108, 1216)
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = self.matmul_bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._count_call(func, args, kwargs or {}, result)
        return result

    def _count_call(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        name = func._schema.name.removeprefix("aten::").rstrip("_") or func._schema.name
        product = _find_product(name, args)
        if product is not None:
            self.flops += product.flops + (result.numel() if name in _ADDED else 0)
            self.matmul_bytes += product.bytes
        else:
            self.flops += _count_elementary(func, name, args, kwargs, result)


def _count_elementary(func: Any, name: str, args: Any, kwargs: Any, result: Any) -> int:
    """FLOPs of anything but a matrix product."""
    size = args[0].numel() if args and isinstance(args[0], Tensor) else 0
    output_size = result.numel() if isinstance(result, Tensor) else 0
    if name in _PER_ELEMENT:
        return _PER_ELEMENT[name] * output_size
    if name in _SOFTMAX:
        return 5 * size
    if name in _REDUCTIONS:
        return size
    if name in _SORTS:
        return _count_sorting(func, args, kwargs)
    return output_size if torch.Tag.pointwise in func.tags and name not in _MOVES else 0


def _count_sorting(func: Any, args: Any, kwargs: Any) -> int:
    names = [argument.name for argument in func._schema.arguments]
    arguments = {**dict(zip(names, args, strict=False)), **kwargs}
    tensor = arguments["self"]
    if not tensor.dim() or not tensor.numel():
        return 0
    length = int(tensor.shape[arguments.get("dim", -1)])
    return int(tensor.numel()) * math.ceil(math.log2(length))


def _matrix_product(first: Tensor, second: Tensor) -> _Product:
    return _Product(first.shape[0], first.shape[1], second.shape[1], 1, second)


def _batched_product(first: Tensor, second: Tensor) -> _Product:
    return _Product(first.shape[1], first.shape[2], second.shape[2], first.shape[0], second)


_PRODUCTS: Mapping[str, Callable[[Tensor, Tensor], _Product]] = {
    "mm": _matrix_product,
    "bmm": _batched_product,
    "mv": lambda first, second: _Product(first.shape[0], first.shape[1], 1, 1, second),
    "dot": lambda first, second: _Product(1, first.shape[0], 1, 1, second),
    "vdot": lambda first, second: _Product(1, first.shape[0], 1, 1, second),
}
_ADDED = {"addmm": "mm", "addmv": "mv", "baddbmm": "bmm"}  # a product and a sum


def _find_product(name: str, args: Any) -> _Product | None:
    """The matrix product that an operator computes, if it does."""
    if name in _ADDED:
        return _PRODUCTS[_ADDED[name]](args[1], args[2])
    return _PRODUCTS[name](args[0], args[1]) if name in _PRODUCTS else None
