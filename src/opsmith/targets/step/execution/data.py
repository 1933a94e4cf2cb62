"""Data: which tensors does a task run on, and which values does it expect?

`draw` makes the input data of one seed at one set of sizes, in the declared precision; `widen` raises the same numbers
to float64; `expected_values` runs the data_transforms on clones. The process's own random state and default dtype are
left as they were. Data is drawn in this order, with torch's CPU generator seeded once: `global`, inputs, parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from opsmith.records import content_hash
from opsmith.targets.step.execution.authored import Transform, compile_transform, fault
from opsmith.targets.step.execution.fns import BatchedFn, FnTable, Plans
from opsmith.targets.step.execution.generators import make_tensor
from opsmith.targets.step.execution.namespace import namespace_of
from opsmith.targets.step.execution.precision import default_dtype, default_of, own_randomness, torch_dtype, widened
from opsmith.targets.step.language.dims import DimError
from opsmith.targets.step.language.spec import OutputSpec, TaskSpec
from opsmith.targets.step.language.types import fields_of, tensor_shape
from opsmith.targets.trial import TaskFault

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
        sizes, names, random_global = _names(spec, overrides)
        tensors = {entry.name: make_tensor(entry, sizes) for entry in (*spec.inputs, *spec.parameters)}
    return _bindings(spec, sizes, names, tensors, False, {} if plans is None else plans, random_global)


def draws_numbers(spec: TaskSpec) -> bool:
    """Whether `global` draws random numbers. Raises TaskFault when they are not those of torch's seeded generator."""
    if not spec.global_code:
        return False
    runs = []
    for _ in range(2):
        with own_randomness(0), default_dtype(default_of(False)):
            runs.append(_names(spec, {}))
    (_, first, has_drawn), (_, second, _) = runs
    other = [name for name, value in first.items() if not _is_same(value, second.get(name))]
    if other:
        given = f"another {other[0]} when it runs again"
        raise fault("TASK", "global", given, "the same names and numbers", "draw with torch, which is seeded")
    return has_drawn


def _is_same(value: Any, other: Any) -> bool:
    """Whether a number or a tensor is what it was; of anything else nothing is known."""
    if isinstance(value, Tensor):
        return isinstance(other, Tensor) and torch.equal(value.nan_to_num(), other.nan_to_num())
    return not isinstance(value, (bool, int, float)) or repr(value) == repr(other)  # which NaN equals


def _names(spec: TaskSpec, overrides: Mapping[str, int]) -> tuple[dict[str, int], dict[str, Any], bool]:
    """The sizes, what author's code sees, and whether `global` drew numbers."""
    before = torch.default_generator.get_state()
    sizes, names = namespace_of(spec, overrides)
    return sizes, names, not torch.equal(before, torch.default_generator.get_state())


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


def reference_values(spec: TaskSpec, bindings: Bindings) -> list[Any]:
    """What the data_transforms give, as it is: for measuring them. They see the draw's own tensors."""
    namespace = {**bindings.namespace, "input_data": bindings.input_data}
    with default_dtype(default_of(bindings.wide)), torch.no_grad():
        return [
            compile_transform(text, _label(output, at)).run(namespace)
            for output in spec.outputs
            for at, text in enumerate(output.data_transform)
        ]


def narrow_margin(spec: TaskSpec, bindings: Bindings) -> str | None:
    """The first margin text with a distance below MARGIN, or None. Raises TaskFault."""
    if not spec.margins:
        return None
    namespace = _reference_namespace(bindings)
    _run_reference(spec, bindings, namespace)
    for at, text in enumerate(spec.margins):
        with default_dtype(default_of(bindings.wide)), torch.no_grad():
            distances = compile_transform(text, f"margins[{at}]").run(namespace)
        if not isinstance(distances, (bool, int, float, Tensor)):
            raise fault("TASK", f"margins[{at}]", type(distances).__name__, "a tensor of distances", text=text)
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


def draw_case(
    spec: TaskSpec, overrides: Mapping[str, int], at: int, plans: Plans | None = None
) -> tuple[Bindings, Bindings]:
    """Hand-made input number `at`: a draw at these sizes, changed by its text: (declared, wide). Raises TaskFault."""
    plans = {} if plans is None else plans
    label, seed_text, text = f"cases[{at}]", f"case {at}", spec.cases[at].text
    drawn, _ = draw_with_margins(spec, overrides, seed_text, plans)
    namespace = _reference_namespace(drawn)
    with default_dtype(default_of(False)), torch.no_grad():
        holds = compile_transform(text, label).run(namespace)
    tensors = namespace["input_data"]
    changed = {name for name, tensor in drawn.input_data.items() if not _is_like(tensors.get(name), tensor)}
    if changed or tensors.keys() != drawn.input_data.keys():
        raise fault("TASK", label, f"other shapes or dtypes of {sorted(changed)}", "the tensors of the draw, changed")
    if not _is_true(holds):
        raise fault("TASK", label, "data without the property", "a last expression that is true", text=text)
    made = _bindings(spec, drawn.sizes, dict(drawn.namespace), tensors, False, plans, drawn.random_global)
    return made, widen(spec, made, seed_of(seed_text), plans)


def _is_true(holds: Any) -> bool:
    """Whether a property holds everywhere; a text that ends in no number or bool states none."""
    return isinstance(holds, (bool, int, float, Tensor)) and bool(torch.as_tensor(holds).all())


def _is_like(tensor: Any, other: Tensor) -> bool:
    return isinstance(tensor, Tensor) and tensor.shape == other.shape and tensor.dtype == other.dtype


def seed_of(text: str, attempt: int = 0) -> int:
    """A seed for torch's generators, the same on every machine."""
    return int(content_hash("step data", text, str(attempt))[:15], 16)


def _rebound(spec: TaskSpec, drawn: Bindings, seed: int, tensors: dict[str, Tensor], plans: Plans) -> Bindings:
    """Wide bindings at the sizes of `drawn`, on these tensors."""
    with own_randomness(seed), default_dtype(default_of(True)):
        _, names = namespace_of(spec, drawn.sizes)
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
    if not isinstance(value, Tensor) or value.layout is not torch.strided:
        given = f"a tensor of layout {value.layout}" if isinstance(value, Tensor) else type(value).__name__
        raise _wrong(output, at, given, f"a tensor of shape {shape}")
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
    tensor = torch.as_tensor(distances)
    return tensor.numel() == 0 or bool((tensor >= MARGIN).all())
