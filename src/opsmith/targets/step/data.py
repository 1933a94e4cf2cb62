"""Data: which tensors does a task run on, and which values does it expect?

`draw` makes the input data of one seed at one set of sizes, in the declared precision; `widen` raises the same numbers
to float64; `expected_values` runs the data_transforms on clones. The process's own random state and default dtype are
left as they were. Data is drawn in this order, with torch's CPU generator seeded once: `global`, inputs, parameters.

    torch.rand, torch.randn   drawn in fp32, then cast            torch.ones, torch.zeros   constant
    binary                    bernoulli(1/2), cast                randint                   min to max inclusive
    none (Multihot)           per row: k = randint(min, max + 1), ones at randperm(length)[:k]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from opsmith.records import content_hash
from opsmith.targets import TaskFault
from opsmith.targets.step.authored import Transform, compile_transform, fault, fresh_namespace, run_statements
from opsmith.targets.step.dims import DimError, symbol
from opsmith.targets.step.fns import BatchedFn, FnTable, Plans
from opsmith.targets.step.precision import default_dtype, default_of, own_randomness, torch_dtype, widened
from opsmith.targets.step.spec import DEFAULT_SIZES, OutputSpec, TaskSpec, TensorSpec
from opsmith.targets.step.types import fields_of, tensor_shape

MARGIN = 1e-3  # the least distance of a discrete decision from its boundary
ATTEMPTS = 200  # draws before a margin is given up
JITTERED = frozenset({"torch.rand", "torch.randn"})  # generators of continuous data

Values = tuple[tuple[Tensor, ...], ...]  # per output, per field


@dataclass(frozen=True)
class Bindings:
    """Everything a run needs besides the program: sizes, tensors and functions."""

    sizes: Mapping[str, int]  # symbol -> size
    input_data: Mapping[str, Tensor]  # inputs and parameters by name; never written
    namespace: dict[str, Any]  # what author's code sees
    wide: bool  # all floats are float64
    fns: Mapping[str, BatchedFn]  # func_name -> BatchedFn, prepared on first use
    random_global: bool = False  # `global` drew numbers: the two precisions hold different ones


def draw(spec: TaskSpec, overrides: Mapping[str, int], seed: int, plans: Plans | None = None) -> Bindings:
    """The data of one seed in the declared precision. Raises TaskFault.

    `overrides` are sizes that win over the task's own, also over those that `global` assigns.
    """
    with own_randomness(seed), default_dtype(default_of(False)):
        before = torch.default_generator.get_state()
        sizes, names = _names(spec, overrides)
        random_global = not torch.equal(before, torch.default_generator.get_state())
        tensors = {entry.name: _tensor(entry, sizes) for entry in (*spec.inputs, *spec.parameters)}
    return _bindings(spec, sizes, names, tensors, False, {} if plans is None else plans, random_global)


def widen(spec: TaskSpec, drawn: Bindings, seed: int, plans: Plans | None = None) -> Bindings:
    """The same numbers with every float raised to float64; `global` runs again under that default dtype."""
    tensors = {name: widened(tensor) for name, tensor in drawn.input_data.items()}
    return _rebound(spec, drawn, seed, tensors, {} if plans is None else plans)


def jittered(spec: TaskSpec, drawn: Bindings, seed: int) -> Bindings:
    """`widen` with every continuous number moved by one rounding error of its declared type, up or down."""
    continuous = {entry.name for entry in (*spec.inputs, *spec.parameters) if entry.data_gen in JITTERED}
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, tensor in drawn.input_data.items():
        tensors[name] = widened(tensor)
        if name in continuous:
            signs = torch.randint(0, 2, tensor.shape, generator=generator).double() * 2 - 1
            tensors[name] = tensors[name] * (1 + torch.finfo(tensor.dtype).eps * signs)
    return _rebound(spec, drawn, seed, tensors, {})


def expected_values(spec: TaskSpec, bindings: Bindings) -> Values:
    """The reference's tensors per output and field, before any program runs. Raises TaskFault (TASK)."""
    return _run_reference(spec, bindings, _reference_namespace(bindings))


def narrow_margin(spec: TaskSpec, bindings: Bindings) -> str | None:
    """The first margin text with a distance below MARGIN, or None. Raises TaskFault."""
    if not spec.margins:
        return None
    namespace = _reference_namespace(bindings)
    _run_reference(spec, bindings, namespace)
    for at, text in enumerate(spec.margins):
        with default_dtype(default_of(bindings.wide)), torch.no_grad():
            distances = compile_transform(text, f"margins[{at}]").run(namespace)
        if not _wide_enough(distances):
            return text
    return None


def draw_with_margins(
    spec: TaskSpec, overrides: Mapping[str, int], seed_text: str, plans: Plans | None = None
) -> tuple[Bindings, Bindings]:
    """The first draw whose discrete decisions keep their margins in both precisions: (declared, wide).

    The seed of an attempt is a hash of `seed_text` and the attempt's number. Raises TaskFault after ATTEMPTS draws.
    """
    plans = {} if plans is None else plans
    missed: str | None = None
    for attempt in range(ATTEMPTS):
        seed = seed_of(seed_text, attempt)
        drawn = draw(spec, overrides, seed, plans)
        wide = widen(spec, drawn, seed, plans)
        missed = narrow_margin(spec, wide) or narrow_margin(spec, drawn)
        if missed is None:
            return drawn, wide
    sizes = ", ".join(f"{name} = {size}" for name, size in sorted(drawn.sizes.items()) if name in spec.symbols)
    given = f"a distance below {MARGIN} in all of {ATTEMPTS} draws at {sizes}"
    raise fault(
        "TASK", "margins", given, "data that decides clearly", "widen the data or loosen this margin", str(missed)
    )


def seed_of(text: str, attempt: int = 0) -> int:
    """A seed for torch's generators, the same on every machine."""
    return int(content_hash("step data", text, str(attempt))[:15], 16)


# -- names


class _Context(dict[Any, int]):
    """`ctx`: symbol -> size; a symbol may be given as its Dim or its name."""

    def __getitem__(self, key: Any) -> int:
        return super().__getitem__(symbol(key) if isinstance(key, str) else key)

    def __setitem__(self, key: Any, value: int) -> None:
        super().__setitem__(symbol(key) if isinstance(key, str) else key, value)


def _names(spec: TaskSpec, overrides: Mapping[str, int]) -> tuple[dict[str, int], dict[str, Any]]:
    """Run `global`: the final sizes and the namespace, without input_data."""
    sizes = {**DEFAULT_SIZES, **spec.sizes, **overrides}
    symbols = {*sizes, *spec.symbols}
    ctx = _Context({symbol(name): size for name, size in sizes.items()})
    names = {"torch": torch, "ctx": ctx, **{name: symbol(name) for name in symbols}}
    names |= {f"{name}_value": size for name, size in sizes.items()}
    namespace = dict(fresh_namespace(names))

    def pin() -> None:
        namespace.update({f"{name}_value": size for name, size in overrides.items()})
        ctx.update({symbol(name): size for name, size in overrides.items()})

    with torch.no_grad():
        run_statements(spec.global_code, "global", namespace, pin)
    final = {name: _final_size(name, sizes, ctx, namespace) for name in sorted(symbols)}
    namespace |= {f"{name}_value": size for name, size in final.items()}
    ctx.update({symbol(name): size for name, size in final.items()})
    return final, namespace


def _final_size(name: str, sizes: Mapping[str, int], ctx: Mapping[Any, int], namespace: Mapping[str, Any]) -> int:
    """What `global` left in ctx or in X_value, whichever it changed."""
    before = sizes.get(name)
    for size in (ctx.get(symbol(name)), namespace.get(f"{name}_value")):
        if size is None or size == before:
            continue
        if type(size) is not int or size < 1:
            raise fault("TASK", "global", f"{name} = {size!r}", "a size of at least 1")
        return size
    if before is None:
        remedy = f"{name}_value = 3 and ctx[{name}] = {name}_value in `global`"
        raise fault("TASK", f"symbol {name}", "no size", "a size for every symbol", remedy)
    return before


def _rebound(spec: TaskSpec, drawn: Bindings, seed: int, tensors: dict[str, Tensor], plans: Plans) -> Bindings:
    """Wide bindings at the sizes of `drawn`, on these tensors."""
    with own_randomness(seed), default_dtype(default_of(True)):
        _, names = _names(spec, drawn.sizes)
    return _bindings(spec, drawn.sizes, names, tensors, True, plans, drawn.random_global)


def _bindings(
    spec: TaskSpec,
    sizes: Mapping[str, int],
    names: dict[str, Any],
    tensors: dict[str, Tensor],
    wide: bool,
    plans: Plans,
    random_global: bool,
) -> Bindings:
    names["input_data"] = MappingProxyType(tensors)
    return Bindings(sizes, tensors, names, wide, FnTable(spec, sizes, names, wide, plans), random_global)


# -- tensors


def _tensor(entry: TensorSpec, sizes: Mapping[str, int]) -> Tensor:
    field = fields_of(entry.dtype)[0]
    try:
        shape = tensor_shape(field, entry.dims, sizes)
    except DimError as error:
        raise fault("TASK", entry.name, str(error), "a whole size for every dim") from None
    if entry.data_gen is None:
        return _multihot(entry, shape).to(torch_dtype(field))
    if entry.data_gen not in _GENERATORS:
        raise fault("TASK", f"{entry.name}, data_gen", entry.data_gen, f"one of {', '.join(_GENERATORS)}")
    return _GENERATORS[entry.data_gen](entry, shape).to(torch_dtype(field))


def _randint(entry: TensorSpec, shape: Sequence[int]) -> Tensor:
    low, high = _bounds(entry)
    return torch.randint(low, high + 1, tuple(shape))


def _multihot(entry: TensorSpec, shape: Sequence[int]) -> Tensor:
    """Rows of `min` to `max` ones, drawn row by row."""
    low, high = _bounds(entry)
    length = shape[-1]
    if not 0 <= low <= high <= length:
        raise fault("TASK", entry.name, f"min {low}, max {high}", f"0 <= min <= max <= {length}, the Multihot's length")
    rows = torch.zeros((torch.Size(shape[:-1]).numel(), length))
    for row in rows:
        count = int(torch.randint(low, high + 1, (1,)))
        row[torch.randperm(length)[:count]] = 1
    return rows.reshape(tuple(shape))


def _bounds(entry: TensorSpec) -> tuple[int, int]:
    if entry.min is None or entry.max is None or entry.min > entry.max:
        raise fault("TASK", entry.name, f"min {entry.min}, max {entry.max}", "integers min <= max")
    return entry.min, entry.max


_GENERATORS: Mapping[str, Callable[[TensorSpec, Sequence[int]], Tensor]] = {
    "torch.rand": lambda entry, shape: torch.rand(tuple(shape), dtype=torch.float32),
    "torch.randn": lambda entry, shape: torch.randn(tuple(shape), dtype=torch.float32),
    "torch.ones": lambda entry, shape: torch.ones(tuple(shape)),
    "torch.zeros": lambda entry, shape: torch.zeros(tuple(shape)),
    "binary": lambda entry, shape: torch.bernoulli(0.5 * torch.ones(tuple(shape))),
    "randint": _randint,
}


# -- reference


def _reference_namespace(bindings: Bindings) -> dict[str, Any]:
    """Names for data_transforms: as for fns, but with clones of input_data."""
    return {**bindings.namespace, "input_data": {name: tensor.clone() for name, tensor in bindings.input_data.items()}}


def _run_reference(spec: TaskSpec, bindings: Bindings, namespace: dict[str, Any]) -> Values:
    with default_dtype(default_of(bindings.wide)), torch.no_grad():
        return tuple(_output(output, bindings, namespace) for output in spec.outputs)


def _output(output: OutputSpec, bindings: Bindings, namespace: dict[str, Any]) -> tuple[Tensor, ...]:
    texts, fields = output.data_transform, fields_of(output.dtype)
    if len(texts) != len(fields):
        where = f"outputs, {output.name}, data_transform"
        raise fault("TASK", where, f"{len(texts)} texts", f"{len(fields)}, one per field of {output.dtype}")
    compiled = [compile_transform(text, _label(output, at)) for at, text in enumerate(texts)]
    return tuple(_field(output, at, transform, bindings, namespace) for at, transform in enumerate(compiled))


def _label(output: OutputSpec, at: int) -> str:
    return f"outputs, {output.name}, data_transform[{at}]"


def _field(output: OutputSpec, at: int, transform: Transform, bindings: Bindings, namespace: dict[str, Any]) -> Tensor:
    """The value of one data_transform, checked against the declared layout and dtype."""
    value = transform.run(namespace)
    field = fields_of(output.dtype)[at]
    try:
        shape = tensor_shape(field, output.dims, bindings.sizes)
    except DimError as error:
        raise fault("TASK", f"outputs, {output.name}", str(error), "a whole size for every dim") from None
    if not isinstance(value, Tensor):
        raise _wrong(output, at, type(value).__name__, f"a tensor of shape {shape}")
    if tuple(value.shape) != shape:
        raise _wrong(output, at, f"a tensor of shape {tuple(value.shape)}", f"shape {shape} for {field} {output.dims}")
    dtype, declared = torch_dtype(field, bindings.wide), torch_dtype(field)
    if value.dtype not in (dtype, declared):
        raise _wrong(output, at, str(value.dtype), f"{dtype} for {field}")
    if bool(torch.isnan(value).any()):
        raise _wrong(output, at, "NaN in the reference", "numbers")
    return value.detach().clone(memory_format=torch.contiguous_format)


def _wrong(output: OutputSpec, at: int, given: str, expected: str) -> TaskFault:
    return fault("TASK", _label(output, at), given, expected)


def _wide_enough(distances: Any) -> bool:
    """Whether every distance reaches MARGIN; no distance at all is fine, NaN is not."""
    tensor = distances if isinstance(distances, Tensor) else torch.tensor(distances)
    return tensor.numel() == 0 or bool((tensor >= MARGIN).all())
