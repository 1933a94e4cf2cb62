"""How many floating-point operations each of torch's operators stands for: the convention behind every GFLOP/s.

A product of matrices and a convolution count 2 for each multiply-add. An addition, multiplication, division, minimum or
function of one number (exp, tanh, gelu ...) counts 1 for each entry of its result, a reduction 1 for each entry that it
reads, what torch has in one operator as many as it has such steps. Comparisons, selections, conversions, sorts, copies
and whole numbers count 0. An operator that is in no table makes the whole count unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch._ops import OpOverload
from torch.utils.flop_counter import flop_registry

_ARITHMETIC = """
    abs acos add addcdiv addcmul asin atan atan2 ceil clamp clamp_max clamp_min cos cosh div elu erf erfc exp exp2 expm1
    floor fmod gelu hardsigmoid hardswish hardtanh leaky_relu lerp log log10 log1p log2 log_sigmoid_forward maximum
    minimum mish mul neg pow reciprocal relu remainder round rsqrt rsub sigmoid sign silu sin sinh softplus sqrt square
    sub tan tanh trunc
"""
_MOVES = """
    _local_scalar_dense _reshape_alias _to_copy _unsafe_view alias all any arange as_strided bernoulli bitwise_and
    bitwise_not bitwise_or bitwise_xor bucketize cat clone constant_pad_nd copy detach diagonal embedding empty
    empty_like empty_strided eq expand eye fill flip full full_like gather ge gt index index_select isfinite isinf isnan
    item le lift_fresh linspace logical_and logical_not logical_or logical_xor lt masked_fill masked_select nan_to_num
    narrow ne new_empty new_full new_ones new_zeros nonzero ones ones_like permute rand randn repeat repeat_interleave
    resize roll scalar_tensor scatter searchsorted select select_scatter slice slice_scatter sort split split_with_sizes
    squeeze stack t topk transpose tril triu unbind unfold unsqueeze view where zero zeros zeros_like
"""
_REDUCTIONS = """
    1 amax amin argmax argmin cummax cummin cumprod cumsum linalg_vector_norm max mean median min nansum prod sum
    2 aminmax dot mv
    4 logsumexp std std_mean var var_mean
    5 _log_softmax _softmax
    7 native_group_norm native_layer_norm
"""  # steps for each entry that is read: logsumexp takes a maximum, subtracts, takes exp and sums
_SCATTERS = ("index_add", "scatter_add")  # one addition for each entry of the source, their last tensor
_POOLS = ("avg_pool2d", "avg_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices")

_FREE = frozenset(_MOVES.split())
_PER_RESULT = frozenset(_ARITHMETIC.split())
_PER_ENTRY = {name: int(row.split()[0]) for row in _REDUCTIONS.strip().splitlines() for name in row.split()[1:]}


def count_operations(operator: OpOverload[..., Any], arguments: Sequence[Any], result: Any) -> int | None:
    """The floating-point operations of one call; None: the operator is in no table."""
    packet, name = operator.overloadpacket, operator.overloadpacket.__name__.removesuffix("_")
    if packet in flop_registry:
        return int(flop_registry[packet](*arguments, out_val=result))
    if name in _FREE:
        return 0
    count = _find_rule(name)
    if count is None:
        return None
    has_floats = any(tensor.is_floating_point() for tensor in _list_tensors(arguments))
    return count(arguments, result) if has_floats else 0


def _find_rule(name: str) -> Callable[[Sequence[Any], Any], int] | None:
    if name in _PER_RESULT:
        return lambda arguments, result: _list_tensors((result,))[0].numel()
    if name in _PER_ENTRY:
        return lambda arguments, result: _PER_ENTRY[name] * _list_tensors(arguments)[0].numel()
    if name in _SCATTERS:
        return lambda arguments, result: _list_tensors(arguments)[-1].numel()
    if name in _POOLS:
        return _count_pool
    return None


def _count_pool(arguments: Sequence[Any], result: Any) -> int:
    """A step for each entry of the window, at the edges too."""
    tensor, window = arguments[0], arguments[1]
    axes = 3 if tensor.dim() == 5 else 2
    area = math.prod(window) if len(window) > 1 else window[0] ** axes
    return int(area) * _list_tensors((result,))[0].numel()


def _list_tensors(values: Sequence[Any]) -> list[Tensor]:
    """Those in a call's arguments or result, and in its lists and tuples."""
    flat = (entry for value in values for entry in (value if isinstance(value, (tuple, list)) else (value,)))
    return [entry for entry in flat if isinstance(entry, Tensor)]
