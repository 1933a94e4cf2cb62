"""What Triton's interpreter is taught: memory that is watched, types that numpy lacks, reductions that take no minutes.

Many instances run side by side: the first axis of all data is theirs, of size 1 where a value is the same for all.
Where they part ways (`Parting`), whoever runs them begins again with those that go together. Numbers of bf16 and fp8
are held as fp32, rounded to their type whenever a value is made. All is changed once, for the whole process. No torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton._C.libtriton import ir
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction, ReduceOps, ScanOps, TensorHandle

from opsmith.targets.triton.memory import Memory, TritonFinding

Data = NDArray[Any]
_FP8 = {tl.float8e4nv: (4, 3, 7), tl.float8e5: (5, 2, 15)}  # bits of exponent and mantissa, bias
_NARROW = {tl.bfloat16: np.uint16, tl.float8e4nv: np.uint8, tl.float8e5: np.uint8}  # how memory holds them
_CHANGES: dict[Any, Callable[[Any, Any], Any]] = {
    **{ir.ATOMIC_OP.ADD: np.add, ir.ATOMIC_OP.FADD: np.add, ir.ATOMIC_OP.XCHG: lambda held, value: value},
    **{ir.ATOMIC_OP.MIN: np.minimum, ir.ATOMIC_OP.UMIN: np.minimum},
    **{ir.ATOMIC_OP.MAX: np.maximum, ir.ATOMIC_OP.UMAX: np.maximum},
    **{ir.ATOMIC_OP.AND: np.bitwise_and, ir.ATOMIC_OP.OR: np.bitwise_or, ir.ATOMIC_OP.XOR: np.bitwise_xor},
}


def make_tensor(data: Data, type_: Any) -> Any:
    return tl.tensor(TensorHandle(data, type_), type_)


# -- types that numpy lacks


def find_narrow(type_: Any) -> Any:
    """How memory holds numbers that numpy lacks; None: it has them."""
    return None if type_.scalar.is_ptr() else _NARROW.get(type_.scalar)


def encode_numbers(data: Data, type_: Any) -> Data:
    """The bits of fp32 in bf16 or fp8, rounded to the nearest, ties to even."""
    data = np.ascontiguousarray(data, np.float32)
    if type_ == tl.bfloat16:
        bits = data.view(np.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(data), np.uint16(0x7FC0), rounded)
    table = _list_fp8(type_)
    finite = table[: np.isfinite(table).sum()]
    size = np.minimum(np.abs(data), finite[-1])
    above = np.searchsorted(finite, size).clip(1, len(finite) - 1)
    lower, upper = size - finite[above - 1], finite[above] - size
    is_lower = (lower < upper) | ((lower == upper) & (above % 2 == 1))
    codes = np.where(is_lower, above - 1, above).astype(np.uint8)
    return np.where(np.isnan(data), 0x7F, codes).astype(np.uint8) | (np.signbit(data).astype(np.uint8) << 7)


def decode_numbers(bits: Data, type_: Any) -> Data:
    if type_ == tl.bfloat16:
        wide: Data = (bits.astype(np.uint32) << 16).view(np.float32)
        return wide
    values: Data = _list_fp8(type_)[bits & 0x7F]
    return np.where(bits >> 7, -values, values)


@cache
def _list_fp8(type_: Any) -> Data:
    """What the codes from 0 to 127 mean."""
    exponents, mantissas, bias = _FP8[type_]
    codes = np.arange(128)
    exponent, mantissa = codes >> mantissas, (codes & (1 << mantissas) - 1) / (1 << mantissas)
    values = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    if exponents == 4:
        values[127] = np.nan
    else:
        values[124:] = [np.inf, np.nan, np.nan, np.nan]
    return values.astype(np.float32)


def _name_numpy_type(type_: Any, original: Callable[[Any], Any] = interpreter._get_np_dtype) -> Any:
    return np.dtype(np.float32) if find_narrow(type_) is not None else original(type_)


def _finish_handle(handle: Any) -> None:
    narrow, type_ = find_narrow(handle.dtype), handle.dtype.scalar
    if narrow is not None and handle.data.dtype == narrow:
        handle.data = decode_numbers(handle.data, type_)
    elif narrow is not None and handle.data.dtype.kind == "f":
        handle.data = decode_numbers(encode_numbers(handle.data, type_), type_)


# -- the builder's operations


def _cast(builder: Any, source: Any, type_: Any) -> Any:
    return TensorHandle(source.data.astype(interpreter._get_np_dtype(type_)), type_.scalar)


def _cast_rounded(builder: Any, source: Any, type_: Any, rounding: Any = None) -> Any:
    return _cast(builder, source, type_)


def _reinterpret(builder: Any, source: Any, type_: Any) -> Any:
    """A bitcast."""
    data = np.ascontiguousarray(source.data)
    if find_narrow(source.dtype) is not None:
        data = encode_numbers(data, source.dtype.scalar)
    narrow = find_narrow(type_)
    if narrow is not None:
        return TensorHandle(decode_numbers(data.view(narrow), type_.scalar), type_.scalar)
    return TensorHandle(data.view(interpreter._get_np_dtype(type_)), type_.scalar)


def _multiply(builder: Any, a: Any, b: Any, d: Any, input_precision: Any, most_imprecise: Any) -> Any:
    """A product of matrices and what is added to it."""
    precise = np.float64 if d.data.dtype.kind in "iu" or d.data.dtype == np.float64 else np.float32
    first, second = a.data.astype(precise), b.data.astype(precise)
    is_tf32 = a.dtype.scalar == tl.float32 and input_precision == ir.INPUT_PRECISION.TF32
    if is_tf32 and any((np.ascontiguousarray(each.data).view(np.uint32) & 0x1FFF).any() for each in (a, b)):
        words = "tl.dot rounds fp32 to tf32, which keeps 10 bits of 23"
        raise TritonFinding(words, "products of fp32", 'tl.dot(a, b, acc, input_precision="ieee")')
    if d.data.dtype == np.float16:
        return TensorHandle(np.matmul(a.data, b.data) + d.data, d.dtype.scalar)
    return TensorHandle((np.matmul(first, second) + d.data).astype(d.data.dtype), d.dtype.scalar)


def _absolute(builder: Any, argument: Any) -> Any:
    return TensorHandle(np.abs(argument.data), argument.dtype.scalar)


def _erf(builder: Any, argument: Any) -> Any:
    return TensorHandle(interpreter.np_erf_fp64(argument.data).astype(argument.data.dtype), argument.dtype.scalar)


class _WatchedAccess:
    """Loads, stores and atomics by a memory of ours."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.has_other = False  # the interpreter takes an `other` of 0 for none

    def load(self, pointers: Any, mask: Any, fill: Any, *options: Any) -> Any:
        type_ = pointers.get_element_ty()
        narrow = find_narrow(type_)
        held = np.dtype(narrow) if narrow is not None else interpreter._get_np_dtype(type_)
        if fill is not None:
            values = encode_numbers(fill.data, type_) if narrow is not None else fill.data
        else:
            values = np.zeros(1, held) if self.has_other else None
        data = self.memory.load(pointers.data, mask.data, held, values)
        return TensorHandle(data, type_)

    def store(self, pointers: Any, value: Any, mask: Any, *options: Any) -> None:
        self.memory.store(pointers.data, self._hold(pointers, value), mask.data)

    def change(self, kind: Any, pointers: Any, value: Any, mask: Any, order: Any, scope: Any) -> Any:
        source, operation = self._hold(pointers, value), _CHANGES[kind]
        type_ = pointers.get_element_ty()
        shape = self.memory.spread_shape(pointers.data, mask.data, source)
        lanes = np.broadcast_to(source, shape).reshape(-1)

        def change(held: Any, index: Any) -> Any:
            if find_narrow(type_) is not None:
                return encode_numbers(
                    operation(decode_numbers(held, type_), decode_numbers(lanes[index], type_)), type_
                )
            return operation(held, lanes[index])

        data = self.memory.change(pointers.data, mask.data, source.dtype, change)
        return TensorHandle(data, value.dtype.scalar)

    def exchange(self, pointers: Any, expected: Any, value: Any, order: Any, scope: Any) -> Any:
        shape = self.memory.spread_shape(pointers.data, expected.data, value.data)
        old, new = (np.broadcast_to(each.data, shape).reshape(-1) for each in (expected, value))

        def change(held: Any, index: Any) -> Any:
            return np.where(held == old[index], new[index], held)

        data = self.memory.change(pointers.data, np.ones(shape, bool), value.data.dtype, change)
        return TensorHandle(data, expected.dtype.scalar)

    @staticmethod
    def _hold(pointers: Any, value: Any) -> Data:
        """Values as memory holds them."""
        type_ = pointers.get_element_ty()
        if find_narrow(type_) is not None:
            return encode_numbers(value.data, type_)
        return np.asarray(value.data).astype(interpreter._get_np_dtype(type_), copy=False)


# -- shapes: the first axis is the instances


def _make_range(builder: Any, type_: Any, start: int, stop: int) -> Any:
    return TensorHandle(np.arange(start, stop, dtype=np.int32)[None], tl.int32)


def _splat(builder: Any, type_: Any, argument: Any) -> Any:
    data = argument.data
    spread = data.reshape(len(data), *[1] * len(type_.shape))
    return TensorHandle(np.broadcast_to(spread, (len(data), *type_.shape)), argument.dtype.scalar)


def _unsplat(builder: Any, argument: Any) -> Any:
    return TensorHandle(argument.data.reshape(len(argument.data), -1)[:, 0], argument.dtype.scalar)


def _broadcast(builder: Any, argument: Any, shape: Sequence[int]) -> Any:
    return TensorHandle(np.broadcast_to(argument.data, (len(argument.data), *shape)), argument.dtype.scalar)


def _reshape(builder: Any, argument: Any, shape: Sequence[int], is_reordered: bool) -> Any:
    return TensorHandle(argument.data.reshape(len(argument.data), *shape), argument.dtype.scalar)


def _expand(builder: Any, argument: Any, axis: int) -> Any:
    return TensorHandle(np.expand_dims(argument.data, axis + 1), argument.dtype.scalar)


def _transpose(builder: Any, argument: Any, order: Sequence[int]) -> Any:
    return TensorHandle(np.transpose(argument.data, (0, *(axis + 1 for axis in order))), argument.dtype.scalar)


def _concatenate(builder: Any, first: Any, second: Any) -> Any:
    return TensorHandle(np.concatenate(_level(first.data, second.data), 1), first.dtype.scalar)


def _join(builder: Any, first: Any, second: Any) -> Any:
    return TensorHandle(np.stack(_level(first.data, second.data), -1), first.dtype.scalar)


def _gather(builder: Any, source: Any, indices: Any, axis: int) -> Any:
    data, places = _level(source.data, indices.data)
    return TensorHandle(np.take_along_axis(data, places, axis + 1), source.dtype.scalar)


def _level(*data: Data) -> list[Data]:
    """As many instances of each."""
    count = max(map(len, data))
    return [np.broadcast_to(each, (count, *each.shape[1:])) for each in data]


# -- control flow


class Parting(Exception):
    """Instances go different ways; `values`: of each."""

    def __init__(self, values: Data) -> None:
        super().__init__("instances part ways")
        self.values = values


def _decide(tensor: Any) -> Any:
    """The one number that a scalar is for all instances."""
    values = tensor.handle.data.reshape(-1)
    if (values != values[0]).any():
        raise Parting(values)
    return values[0].item()


def _is_true(tensor: Any) -> bool:
    return True if tensor.type.is_block() else bool(_decide(tensor))


def _turn(tensor: Any) -> Any:
    """x.T"""
    shape = list(tensor.type.shape)
    data = np.swapaxes(tensor.handle.data, -1, -2)
    return make_tensor(data, tl.block_type(tensor.dtype, [*shape[:-2], shape[-1], shape[-2]]))


# -- reductions and scans


def _find_axis(operation: Any, source: Any) -> int:
    return int(operation.axis) % max(1, len(source.type.shape)) + 1


def _combine(function: Any, first: Sequence[Data], second: Sequence[Data], types: Sequence[Any]) -> list[Data]:
    """A combining function on many pairs at once."""
    rows = [
        make_tensor(data, tl.block_type(type_, list(data.shape[1:])))
        for side in (first, second)
        for data, type_ in zip(side, types, strict=True)
    ]
    result = function.fn(*rows)
    return [each.handle.data for each in (result if isinstance(result, tuple) else (result,))]


def _finish_reduction(operation: Any, data: Data, source: Any) -> Any:
    """`data`: with an axis of size 1 in place of that which was reduced."""
    shape = source.type.shape
    if operation.axis is None:
        axes = [1] * len(shape) if operation.keep_dims else []
    else:
        axes = [size for axis, size in enumerate(shape, 1) if axis != _find_axis(operation, source)]
        if operation.keep_dims:
            axes.insert(_find_axis(operation, source) - 1, 1)
    data = data.astype(interpreter._get_np_dtype(source.dtype)).reshape(len(data), *axes)
    return make_tensor(data, tl.block_type(source.dtype, axes) if axes else source.dtype)


def _open_reduction(operation: Any, inputs: Any) -> tuple[list[Data], int]:
    data = [each.handle.data for each in inputs]
    if operation.axis is None:
        return [each.reshape(len(each), -1) for each in data], 1
    return data, _find_axis(operation, inputs[0])


def _reduce(operation: Any, inputs: Any) -> Any:
    """In a tree of neighbours, as a GPU may."""
    data, axis = _open_reduction(operation, inputs)
    while data[0].shape[axis] > 1:
        first, second = ([each[(slice(None),) * axis + (slice(start, None, 2),)] for each in data] for start in (0, 1))
        data = _combine(operation.combine_fn, first, second, [each.dtype for each in inputs])
    return [_finish_reduction(operation, each, source) for each, source in zip(data, inputs, strict=True)]


def _sum(operation: Any, source: Any) -> Any:
    if source.dtype.scalar == tl.float16 or find_narrow(source.dtype) is not None:
        operation.combine_fn = SimpleNamespace(fn=lambda a, b: a + b)
        return _reduce(operation, (source,))[0]
    (data,), axis = _open_reduction(operation, (source,))
    return _finish_reduction(operation, np.sum(data, axis=axis, keepdims=True), source)


def _find_extreme(operation: Any, source: Any, val_reduce_op: Any, idx_reduce_op: Any = None) -> Any:
    source = source[0] if isinstance(source, tuple) else source
    (data,), axis = _open_reduction(operation, (source,))
    value = _finish_reduction(operation, val_reduce_op(data, axis=axis, keepdims=True), source)
    if idx_reduce_op is None:
        return value
    place = _finish_reduction(operation, idx_reduce_op(data, axis=axis, keepdims=True), source)
    return value, make_tensor(place.handle.data.astype(np.int32), place.type.with_element_ty(tl.int32))


def _scan(operation: Any, inputs: Any) -> Any:
    """By doubling steps."""
    axis, step = _find_axis(operation, inputs[0]), 1
    data, types = [each.handle.data for each in inputs], [each.dtype for each in inputs]
    data = [np.flip(each, axis) for each in data] if operation.reverse else data
    length = data[0].shape[axis]
    places = np.arange(length).reshape(-1, *[1] * (data[0].ndim - axis - 1))
    while step < length:
        result = _combine(operation.combine_fn, [np.roll(each, step, axis) for each in data], data, types)
        data = [np.where(places < step, old, new) for old, new in zip(data, result, strict=True)]
        step *= 2
    data = [np.flip(each, axis) for each in data] if operation.reverse else data
    return tuple(make_tensor(each, source.type) for each, source in zip(data, inputs, strict=True))


# -- all of it


_BUILDER = {
    **{"cast_impl": _cast, "create_fp_to_fp": _cast_rounded, "create_bitcast": _reinterpret},
    **{"create_int_to_ptr": _reinterpret, "create_ptr_to_int": _reinterpret, "create_dot": _multiply},
    **{"create_fabs": _absolute, "create_erf": _erf, "create_make_range": _make_range, "create_splat": _splat},
    **{"create_unsplat": _unsplat, "create_broadcast": _broadcast, "create_reshape": _reshape},
    **{"create_expand_dims": _expand, "create_trans": _transpose, "create_cat": _concatenate},
    **{"create_join": _join, "create_gather": _gather},
}


def prepare_interpreter(memory: Memory) -> None:
    """Change the interpreter, and make it ready: a confined process can read nothing of its files."""
    np.seterr(all="ignore")
    access, builder = _WatchedAccess(memory), interpreter.InterpreterBuilder
    interpreter._get_np_dtype = _name_numpy_type
    TensorHandle.__post_init__ = _finish_handle
    for name, function in _BUILDER.items():
        setattr(builder, name, function)
    builder.create_masked_load, builder.create_masked_store = access.load, access.store
    builder.create_atomic_rmw, builder.create_atomic_cas = access.change, access.exchange
    builder.create_get_program_id = lambda _, axis: TensorHandle(memory.find_positions(axis), tl.int32)
    ReduceOps.min_max, ReduceOps.sum, ReduceOps.generic_reduce = _find_extreme, _sum, _reduce
    ScanOps.apply_impl = _scan
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(sanitize_overflow=False)
    _note_other(access)
    InterpretedFunction.__call__ = lambda function, *values, **named: function.rewrite()(*values, **named)
    languages = {"tl": tl, "core": tl.core}
    exec("def probe(): pass", languages)
    interpreter._patch_lang(languages["probe"])
    tensor = tl.core.tensor
    tensor.__index__ = tensor.__int__ = _decide
    tensor.__bool__, tensor.T = _is_true, property(_turn)
    for module in (tl, tl.standard, tl.random):
        for function in vars(module).values():
            if isinstance(function, InterpretedFunction):
                function.rewrite()


def _note_other(access: _WatchedAccess, load: Callable[..., Any] = TritonSemantic.load) -> None:
    def load_noting(semantic: Any, pointer: Any, mask: Any, fill: Any, *options: Any) -> Any:
        access.has_other = fill is not None
        return load(semantic, pointer, mask, fill, *options)

    TritonSemantic.load = load_noting
