"""The primitives' type rules: the type of a primitive's result.

One pure function per primitive: stream types and arguments in, stream types out, `OpError` where the rule is broken.
The meaning in data stands beside each rule in words and is executed by `run`. Dims are listed innermost first; rank is
`len(dims) - 1`. Nothing here knows programs, lines or names: `check` adds those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import mul

from opsmith.problems.dims import Dim, DimError, make_literal, make_symbol
from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.language.types import (
    Buffer,
    DType,
    Field,
    Multihot,
    Scalar,
    StreamType,
    dims_text,
    element_dims,
    fields_of,
    tuple_of,
)

KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "Map": ("fn",),
    "Zip": (),
    "Accum": ("fn", "b"),
    "Scan": ("fn", "b"),
    "Promote": ("b",),
    "Flatten": ("L",),
    "Reshape": ("S", "L"),
    "Repeat": ("n",),
    "RepeatRef": (),
    "Bufferize": ("a",),
    "Streamify": (),
    "Copy": (),
    "Identity": (),
    "Partition": ("N",),
    "Merge": ("fn",),
}
MAX_FIELDS = 64  # of a tuple
MAX_AXES = 32  # of the tensor behind a field: stream and element dims
ALIASES = {"RepeatLast": "Repeat"}


class OpError(ValueError):
    """A broken type rule. `operand`: position of the stream at fault; `dims`: two lists that should be equal."""

    def __init__(
        self,
        given: str,
        expected: str,
        remedy: str = "",
        *,
        operand: int | None = None,
        dims: tuple[Sequence[Dim], Sequence[Dim]] | None = None,
    ) -> None:
        super().__init__(f"given {given}; expected {expected}; try: {remedy}")
        self.given, self.expected, self.remedy = given, expected, remedy
        self.operand, self.dims = operand, dims


def infer_zip(x: StreamType, y: StreamType) -> StreamType:
    """Pair two streams element by element; tuples are flattened, never nested.

    Shapes  St<T1, d>, St<T2, d>  ->  St<fields(T1) ++ fields(T2), d>; data: x's tensors, then y's
    Errors  OpError unless the dims are equal
    >>> from opsmith.targets.step.language.types import parse_stream as s
    >>> print(infer_zip(s("fp32 [M, N]"), s("Buffer(fp32, [D]) [M, N]")))
    [fp32, Buffer(fp32, [D])] [M, N]
    """
    _require_dims(x, y, 1)
    return _build_type((*fields_of(x.dtype), *fields_of(y.dtype)), x.dims)


def _require_dims(first: StreamType, second: StreamType, operand: int) -> None:
    if first.dims != second.dims:
        raise OpError(
            f"dims {dims_text(second.dims)}",
            f"dims {dims_text(first.dims)}, as the first stream",
            "Repeat or RepeatRef the shorter one, or Bufferize the extra dim",
            operand=operand,
            dims=(second.dims, first.dims),
        )


def _build_type(fields: Sequence[Field], dims: tuple[Dim, ...]) -> StreamType:
    """The type of a result. Raises OpError where it is larger than any tensor or tuple of them."""
    if len(fields) > MAX_FIELDS:
        raise OpError(f"a tuple of {len(fields)} fields", f"at most {MAX_FIELDS}", "select fields with a Map")
    axes = len(dims) + max([len(element_dims(field)) for field in fields])
    if axes > MAX_AXES:
        raise OpError(f"a result of {axes} stream and element dims", f"at most {MAX_AXES}", "Flatten dims into one")
    return StreamType(tuple_of(fields), dims)


def infer_map(fn: FnSpec, streams: Sequence[StreamType]) -> StreamType:
    """Apply a stateless fn to every element; several streams are zipped first, left to right.

    Shapes  f: A -> B, St<A, d>  ->  St<B, d>
    Errors  OpError when f has an init, when the zipped type is not A, or when dims differ
    """
    if fn.stateful:
        raise OpError(
            f"{fn.func_name}, a stateful fn (it has init)",
            "a fn without init",
            f"step.Accum(fn={fn.func_name}, b=1) reduces with it",
        )
    for operand, stream in enumerate(streams):
        _require_dims(streams[0], stream, operand)
    zipped = _build_type([field for stream in streams for field in fields_of(stream.dtype)], streams[0].dims)
    _require_input(fn, zipped.dtype)
    return StreamType(fn.output_dtype, zipped.dims)


def _require_input(fn: FnSpec, dtype: DType) -> None:
    if dtype == fn.input_dtype:
        return
    expected_fields, fields = fields_of(fn.input_dtype), fields_of(dtype)
    if len(fields) < len(expected_fields):
        remedy = "zip the missing field first: step.Zip().apply((X, Y)), or Map on a tuple of streams"
    elif len(fields) > len(expected_fields):
        remedy = f"select the fields with a fn that returns {fn.input_dtype}, or do not zip"
    else:
        remedy = "Bufferize or Streamify to change between a Buffer and its elements; fields and dims are ordered"
    raise OpError(str(dtype), f"{fn.input_dtype}, the input of {fn.func_name}", remedy)


def _require_stateful(fn: FnSpec) -> None:
    if not fn.stateful:
        raise OpError(f"{fn.func_name}, a fn without init", "a stateful fn", f"step.Map(fn={fn.func_name})")


def _check_reduction(op: str, fn: FnSpec, x: StreamType, b: int) -> None:
    _require_stateful(fn)
    if not 1 <= b <= x.rank:
        remedy = (
            f"step.Promote(b={b}) first, then {op}(b={b})" if b == x.rank + 1 else "the outermost dim has no stop token"
        )
        raise OpError(f"b = {b}, dims {dims_text(x.dims)} (rank {x.rank})", "1 <= b <= rank", remedy)
    _require_input(fn, x.dtype)


def infer_accum(x: StreamType, fn: FnSpec, b: int) -> StreamType:
    """Reduce the `b` inner dims: state = init, then state = f(state, element) in stream order; emit the last state.

    Shapes  f: A -> B with init, St<A, d>, 1 <= b <= rank  ->  St<B, d[b:]>; zero elements give init
    Errors  OpError; the outermost dim can be reduced only after Promote
    """
    _check_reduction("Accum", fn, x, b)
    return StreamType(fn.output_dtype, x.dims[b:])


def infer_scan(x: StreamType, fn: FnSpec, b: int) -> StreamType:
    """As Accum, but emit the state after every element; it restarts for the next index of d[b:].

    Shapes  f: A -> B with init, St<A, d>, 1 <= b <= rank  ->  St<B, d>
    """
    _check_reduction("Scan", fn, x, b)
    return StreamType(fn.output_dtype, x.dims)


def infer_promote(x: StreamType, b: int) -> StreamType:
    """Insert a dim of the literal size 1 at position b; data: unsqueeze(rank + 1 - b).

    Shapes  St<T, d>, 0 <= b <= rank + 1  ->  St<T, d[:b] ++ [1] ++ d[b:]>
    >>> from opsmith.targets.step.language.types import parse_stream as s
    >>> print(infer_promote(s("fp32 [M, N]"), b=2))
    fp32 [M, N, 1]
    """
    if not 0 <= b <= x.rank + 1:
        raise OpError(
            f"b = {b}, dims {dims_text(x.dims)}",
            f"0 <= b <= {x.rank + 1}",
            f"b={x.rank + 1} adds the outermost dim, b=0 the innermost",
        )
    return _build_type(fields_of(x.dtype), (*x.dims[:b], make_literal(1), *x.dims[b:]))


def infer_flatten(x: StreamType, L: Sequence[int]) -> StreamType:
    """Merge every dim named in L into its inner neighbour, so that dims i-1 .. j become one.

    Shapes  L = [i, i+1, ..., j], 1 <= i <= j <= rank  ->  St<T, d[:i-1] ++ [d[i-1] * ... * d[j]] ++ d[j+1:]>
    Errors  OpError for gaps, repeats, descending order, entries out of range or an empty list
    >>> from opsmith.targets.step.language.types import parse_stream as s
    >>> print(infer_flatten(s("fp32 [M, N, K]"), L=[2]))
    fp32 [M, K*N]
    """
    entries = list(L)
    if not entries:
        raise OpError("an empty list", "the consecutive dims to merge into their inner neighbours", "L=[1]")
    first, last = entries[0], entries[-1]
    if last - first != len(entries) - 1 or entries != list(range(first, last + 1)):
        remedy = "consecutive ascending entries, or two Flattens, the outer one first"
        raise OpError(f"L = {entries}", "consecutive dims in ascending order", remedy)
    if first < 1 or last > x.rank:
        raise OpError(
            f"L = {entries}, dims {dims_text(x.dims)}",
            f"entries from 1 to {x.rank}",
            "entry k merges dim k into dim k-1",
        )
    merged = reduce(mul, x.dims[first - 1 : last + 1])
    return StreamType(x.dtype, (*x.dims[: first - 1], merged, *x.dims[last + 1 :]))


def infer_reshape(x: StreamType, S: Dim, L: Sequence[int], sizes: Mapping[str, int]) -> StreamType:
    """Split every dim i in L into [S, d[i]/S], S inner; the rank grows by len(L).

    Shapes  St<T, d>, 0 <= i <= rank  ->  each d[i] becomes S, d[i]/S
    Errors  OpError for repeated or out-of-range entries, dynamic dims, or a size that S does not divide
    >>> from opsmith.targets.step.language.types import parse_stream as s
    >>> print(infer_reshape(s("fp32 [D, N]"), make_literal(2), [0], {"D": 16}))
    fp32 [2, D/2, N]
    """
    entries = sorted(L)
    if not entries or len(set(entries)) != len(entries):
        raise OpError(f"L = {list(L)}", "a list of different dims, not empty", "L=[0]")
    if entries[0] < 0 or entries[-1] > x.rank:
        raise OpError(
            f"L = {list(L)}, dims {dims_text(x.dims)}", f"entries from 0 to {x.rank}", "dim 0 is the innermost"
        )
    dims: list[Dim] = []
    for position, dim in enumerate(x.dims):
        dims += _split_dim(dim, S, sizes) if position in entries else [dim]
    return _build_type(fields_of(x.dtype), tuple(dims))


def _split_dim(dim: Dim, size: Dim, sizes: Mapping[str, int]) -> list[Dim]:
    if dim.is_dynamic or size.is_dynamic:
        raise OpError(f"{dim}, a size known only at run time", "a static dim", "Reshape before Partition")
    length, divisor = _require_whole(dim, sizes), _require_whole(size, sizes)
    if length % divisor:
        raise OpError(
            f"{dim} = {length}", f"a multiple of {divisor}", f"Reshape another dim, or choose S dividing {dim}"
        )
    return [size, dim / size]


def _require_whole(dim: Dim, sizes: Mapping[str, int]) -> int:
    try:
        return dim.value(sizes)
    except DimError as error:
        raise OpError(str(error), "a dim with a whole value") from None


def infer_repeat(x: StreamType, n: Dim) -> StreamType:
    """Repeat each element n times, as a new innermost dim.

    Shapes  St<T, d>, n a static dim  ->  St<T, [n] ++ d>
    """
    if n.is_dynamic:
        raise OpError(f"{n}, a size known only at run time", "a static dim", "RepeatRef with a stream of that size")
    return _build_type(fields_of(x.dtype), (n, *x.dims))


def infer_repeat_ref(x: StreamType, ref: StreamType) -> StreamType:
    """Repeat each element as often as the reference has elements there; the reference's values are not read.

    Shapes  St<T, d>, St<any, q> with q[1:] == d  ->  St<T, q>; the reference is consumed
    """
    if ref.dims[1:] != x.dims:
        raise OpError(
            f"data {dims_text(x.dims)}, reference {dims_text(ref.dims)}",
            f"a reference of dims [?, {', '.join(map(str, x.dims))}]: one extra INNERMOST dim, then the data's dims",
            "swap the two streams, or bring the extra dim innermost",
            operand=1,
            dims=(ref.dims[1:], x.dims),
        )
    return _build_type(fields_of(x.dtype), ref.dims)


def infer_bufferize(x: StreamType, a: int) -> StreamType:
    """Gather the `a` innermost dims into one Buffer per element; the data is unchanged.

    Shapes  St<T, d>, 1 <= a <= rank  ->  St<Buffer(T, d[:a]), d[a:]>; a Buffer grows: Buffer(E, s ++ d[:a])
    >>> from opsmith.targets.step.language.types import parse_stream as s
    >>> print(infer_bufferize(s("Buffer(fp32, [D]) [M, N]"), a=1))
    Buffer(fp32, [D, M]) [N]
    """
    if not 1 <= a <= x.rank:
        remedy = f"step.Promote(b={a}) first: one dim must remain" if a == x.rank + 1 else "one dim must remain"
        raise OpError(f"a = {a}, dims {dims_text(x.dims)} (rank {x.rank})", "1 <= a <= rank", remedy)
    inner = x.dims[:a]
    fields: list[Scalar | Multihot | Buffer] = []
    for field in fields_of(x.dtype):
        fields.append(Buffer(field.elem, field.dims + inner) if isinstance(field, Buffer) else Buffer(field, inner))
    return StreamType(tuple_of(fields), x.dims[a:])


def infer_streamify(x: StreamType) -> StreamType:
    """Stream the elements of every Buffer: all buffer dims become inner stream dims; the data is unchanged.

    Shapes  St<Buffer(E, s), d>  ->  St<E, s ++ d>; a tuple only if all its fields are Buffers with equal dims
    """
    fields = fields_of(x.dtype)
    buffers = [field for field in fields if isinstance(field, Buffer)]
    if len(fields) == 1 and not buffers:
        raise OpError(str(x.dtype), "a Buffer", "the stream is already unbuffered; remove this line")
    if len(buffers) != len(fields) or len({buffer.dims for buffer in buffers}) != 1:
        raise OpError(str(x.dtype), "Buffers of equal dims in every field", "select one field with a Map first")
    return StreamType(tuple_of([buffer.elem for buffer in buffers]), buffers[0].dims + x.dims)


def infer_copy(x: StreamType) -> tuple[StreamType, StreamType]:
    """Two streams out of one; k uses of a stream need k-1 Copies."""
    return x, x


def infer_identity(x: StreamType) -> StreamType:
    """The same stream under a new identity."""
    return x


def infer_partition(
    x: StreamType, index: StreamType, n: int, length: int | None, number: int
) -> tuple[StreamType, ...]:
    """Route every item of x to the streams whose entry in the multihot index is 1.

    Shapes  x: St<T, c ++ e>, index: St<Multihot(s, n), e>  ->  n streams St<T, c ++ [?p.i]>, p = `number`
    Units   `length` is the index length's value, None where it has none
    Errors  OpError unless the index is a Multihot of length n whose dims are the outer dims of x
    """
    if not isinstance(index.dtype, Multihot):
        raise OpError(str(index.dtype), "a Multihot index", "make one with a fn that returns a Multihot", operand=1)
    outer = len(index.dims)
    if len(x.dims) < outer or x.dims[len(x.dims) - outer :] != index.dims:
        raise OpError(
            f"data {dims_text(x.dims)}, index {dims_text(index.dims)}",
            f"data of dims [..., {', '.join(map(str, index.dims))}]",
            "the data's outer dims must be the index's dims",
            operand=0,
            dims=(x.dims[max(0, len(x.dims) - outer) :], index.dims),
        )
    if length != n:
        raise OpError(
            f"N = {n}, an index of length {index.dtype.length} = {length}",
            f"N = {length}",
            f"N={index.dtype.length}_value",
        )
    inner = x.dims[: len(x.dims) - outer]
    return tuple(StreamType(x.dtype, (*inner, make_symbol(f"?{number}.{i}"))) for i in range(n))


def infer_merge(fn: FnSpec, streams: Sequence[StreamType], index: StreamType) -> StreamType:
    """Reduce the items of each position: state = init, then f(state, item) for the selected experts, ascending.

    Shapes  f: A -> B with init, Xi: St<A, c ++ [?p.i]>, index: St<Multihot(s, n), e>  ->  St<B, c ++ e>
    Errors  OpError unless the streams are those of one Partition, all of them, in its order (`merged_partition`)
    """
    _require_stateful(fn)
    for position, stream in enumerate(streams):
        if stream.dtype != streams[0].dtype or stream.dims[:-1] != streams[0].dims[:-1]:
            raise OpError(
                str(stream), f"{streams[0]} up to the routed dim, as the first", "one type for all", operand=position
            )
    _require_input(fn, streams[0].dtype)
    return StreamType(fn.output_dtype, streams[0].dims[:-1] + index.dims)


def merged_partition(streams: Sequence[StreamType]) -> int:
    """The number of the Partition whose streams these are, in order. Raises OpError."""
    routes = [_parse_route(stream, position) for position, stream in enumerate(streams)]
    numbers = {number for number, _ in routes}
    if len(numbers) != 1:
        raise OpError("streams of different Partitions", "the streams of one Partition", "Merge each Partition apart")
    experts = tuple(expert for _, expert in routes)
    if experts != tuple(range(len(experts))):
        ascending = tuple(sorted(experts))
        raise OpError(
            f"the streams of experts {experts}", f"{ascending}, the order of Partition", "keep the list's order"
        )
    return numbers.pop()


def _parse_route(stream: StreamType, position: int) -> tuple[int, int]:
    """(partition, expert) of a stream whose outermost dim is `?p.i`."""
    outer = stream.dims[-1]
    name = outer.powers[0][0] if len(outer.powers) == 1 and outer == make_symbol(outer.powers[0][0]) else ""
    if not name.startswith("?"):
        raise OpError(
            f"outermost dim {outer}",
            "the routed dim that Partition made",
            "Merge the streams before Flatten or Promote touches their outermost dim",
            operand=position,
        )
    number, expert = name[1:].split(".")
    return int(number), int(expert)
