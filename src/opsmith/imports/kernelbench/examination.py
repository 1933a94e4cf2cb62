"""A module run on numbers: whether it is a function of its inputs and weights, which of its state matters, and what its
data looks like. For workers only; sizes are small by then."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from opsmith.imports.kernelbench.sampling import (
    CPU,
    FactoryRecorder,
    Instance,
    Leaf,
    ModuleRefusalError,
    Sizes,
    list_leaves,
    open_module,
)
from opsmith.imports.kernelbench.source import ModuleSource
from opsmith.problems.dtypes import NAMES_BY_TORCH
from opsmith.problems.precision import TORCH_DTYPES, ClashSettling, default_dtype, widen_floats

DTYPES = {TORCH_DTYPES[word]: word for word in NAMES_BY_TORCH.values()}
TOLERANCE = 1e-4  # KernelBench's, absolute and relative
INPUT_PASSES = "an input passes as the output"
NO_EFFECT = 1e-9  # relative to the largest output
MOST_WEIGHTS = 1000
EFFECT_SECONDS = 10.0

Generator = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class TensorFacts:
    """An input, a weight or an output."""

    keys: tuple[int | str, ...]  # where it lies among arguments or outputs; of a weight: its name
    dtype: str
    generator: Generator | None = None  # of an input: what drew it


@dataclass(frozen=True)
class StateFacts:
    """One parameter or buffer."""

    name: str
    dtype: str
    is_parameter: bool
    is_constant: bool  # the same for every seed
    matters: bool


@dataclass(frozen=True)
class Examination:
    """What was found."""

    inputs: Sequence[TensorFacts]
    constants: Sequence[Leaf]  # arguments that are no tensors
    state: Sequence[StateFacts]
    outputs: Sequence[TensorFacts]
    warnings: Sequence[str] = field(default_factory=tuple)


def examine_module(source: ModuleSource, sizes: Sizes) -> Examination:
    """Raises ModuleRefusalError and ModuleFailureError."""
    recorder = FactoryRecorder()
    with recorder:
        first = open_module(source, sizes, CPU, seed=1)
    second = open_module(source, sizes, CPU, seed=2)
    states = (instance.state.items() for instance in (first, second))
    fresh = tuple({name: tensor.detach().clone() for name, tensor in state} for state in states)
    leaves = [leaf for leaf in first.leaves if isinstance(leaf.value, Tensor)]
    computed = [leaf.value for leaf in leaves if recorder.find_generator(leaf.value) is None]
    shared = frozenset[int]().union(*map(recorder.find_origins, computed))  # what is drawn for several inputs
    makers = [None if id(leaf.value) in shared else recorder.find_generator(leaf.value) for leaf in leaves]
    pairs = zip(leaves, makers, strict=True)
    inputs = [TensorFacts(leaf.keys, _name_dtype(leaf.value), maker) for leaf, maker in pairs]
    constants = [leaf for leaf in first.leaves if not isinstance(leaf.value, Tensor)]
    if not inputs:
        raise ModuleRefusalError("it takes no tensor")
    outputs = _describe_outputs(first, second)
    _refuse_randomness(source, first)
    state = list(_describe_state(first, *fresh))
    warnings = [*_warn_of_changes(first), *_warn_of_lazy_answers(first, second), *_warn_of_repetition(first)]
    warnings += _warn_of_equal_inputs(first, second)
    return Examination(inputs, constants, state, outputs, warnings)


def _name_dtype(tensor: Tensor) -> str:
    if tensor.dtype not in DTYPES:
        word = str(tensor.dtype).removeprefix("torch.")
        raise ModuleRefusalError(f"a tensor of {word}; expected one of {', '.join(DTYPES.values())}")
    return DTYPES[tensor.dtype]


def run_copies(instance: Instance, seed: int = 0) -> list[Leaf]:
    """The outputs of one call on copies of the arguments, under a state of torch's generator."""
    arguments = _copy_structure(instance.arguments)
    torch.manual_seed(seed)
    return list_leaves(Instance(instance.namespace, instance.model, arguments).call())


def _copy_structure(value: Any) -> Any:
    return tree_map_only(Tensor, Tensor.clone, value)


def _describe_outputs(first: Instance, second: Instance) -> list[TensorFacts]:
    leaves, redrawn = run_copies(first), run_copies(second)
    for leaf in leaves:
        if not isinstance(leaf.value, Tensor):
            raise ModuleRefusalError(
                f"forward returns {type(leaf.value).__name__}; expected a tensor, or a tuple of them"
            )
    if not leaves:
        raise ModuleRefusalError("forward returns no tensor")
    if [leaf.value.shape for leaf in leaves] != [leaf.value.shape for leaf in redrawn]:
        raise ModuleRefusalError("the output's shape depends on data")
    if any(leaf.value.numel() == 0 for leaf in leaves):
        raise ModuleRefusalError("an output of shape with no entries")
    return [TensorFacts(leaf.keys, _name_dtype(leaf.value)) for leaf in leaves]


def _refuse_randomness(source: ModuleSource, instance: Instance) -> None:
    once, again = (_list_tensors(run_copies(instance, seed)) for seed in (3, 4))
    if all(_are_equal(x, y) for x, y in zip(once, again, strict=True)):
        return
    if any("Dropout" in type(module).__name__ for module in instance.model.modules()) or "dropout" in source.text:
        raise ModuleRefusalError("random: its dropout is active (KernelBench never calls eval)")
    raise ModuleRefusalError("random: forward gives other values for the same inputs")


def _list_tensors(leaves: Sequence[Leaf]) -> list[Tensor]:
    return [leaf.value for leaf in leaves if isinstance(leaf.value, Tensor)]


def _are_equal(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and torch.equal(first.nan_to_num(), second.nan_to_num())


# -- state


def _describe_state(
    first: Instance, fresh: Mapping[str, Tensor], redrawn: Mapping[str, Tensor]
) -> Iterator[StateFacts]:
    parameters = dict(first.model.named_parameters())
    constants = {name for name in fresh if name in redrawn and _are_equal(fresh[name], redrawn[name])}
    effects = _find_effects(first, constants)
    for name, tensor in fresh.items():
        is_constant = name in constants
        if name in parameters or tensor.dtype in DTYPES:
            yield StateFacts(name, _name_dtype(tensor), name in parameters, is_constant, effects.get(name, True))


def _find_effects(instance: Instance, constants: Set[str]) -> dict[str, bool]:
    """Whether the outputs change with each float of the state, asked in float64: rounding is no effect. `constants`,
    such as zeros that hide what they are multiplied with, are moved first. Those of large modules for which there is no
    time are left out."""
    with default_dtype(torch.float64), ClashSettling(), torch.no_grad():
        model = copy.deepcopy(instance.model).double()
        instance = Instance(instance.namespace, model, tree_map_only(Tensor, widen_floats, instance.arguments))
        generator = torch.Generator().manual_seed(6)
        floats = {name: tensor for name, tensor in instance.state.items() if tensor.is_floating_point()}
        for name in constants & floats.keys():
            floats[name].add_(0.1 * torch.randn(floats[name].shape, generator=generator))
        plain = _list_tensors(run_copies(instance))
        end = time.process_time() + EFFECT_SECONDS
        return {name: _has_effect(instance, name, plain) for name in floats if time.process_time() < end}


def _has_effect(instance: Instance, name: str, plain: Sequence[Tensor]) -> bool:
    tensor = instance.state[name]
    own = tensor.detach().clone()
    with torch.no_grad():
        generator = torch.Generator().manual_seed(5)
        tensor.add_(0.25 * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype) * (1 + own.abs()))
        moved = _list_tensors(run_copies(instance))
        tensor.copy_(own)
    return any(_differs(x, y) for x, y in zip(plain, moved, strict=True))


def _differs(first: Tensor, second: Tensor) -> bool:
    if not first.is_floating_point():
        return not torch.equal(first, second)
    scale = float(first.nan_to_num().abs().max()) + 1e-30
    change = float((first - second).nan_to_num().abs().max())
    return change > NO_EFFECT * scale


# -- warnings


def _warn_of_changes(instance: Instance) -> Iterator[str]:
    arguments = _copy_structure(instance.arguments)
    before = _list_tensors(list_leaves(_copy_structure(arguments)))
    Instance(instance.namespace, instance.model, arguments).call()
    after = _list_tensors(list_leaves(arguments))
    if not all(_are_equal(x, y) for x, y in zip(before, after, strict=True)):
        yield "it changes its inputs in place: the reference works on copies"


def _warn_of_lazy_answers(first: Instance, second: Instance) -> Iterator[str]:
    """Answers without work that KernelBench's tolerance lets pass."""
    outputs, redrawn = (_list_tensors(run_copies(instance)) for instance in (first, second))
    inputs = _list_tensors(first.leaves)
    answers: list[tuple[str, Sequence[Tensor]]] = [
        ("zeros pass", [torch.zeros_like(output) for output in outputs]),
        ("ones pass", [torch.ones_like(output) for output in outputs]),
        ("the same output passes for different inputs", redrawn),
        *((INPUT_PASSES, [tensor]) for tensor in inputs if [tensor.shape] == [output.shape for output in outputs]),
    ]
    for words, answer in answers:
        if all(
            torch.allclose(x.double(), y.double(), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
            for x, y in zip(answer, outputs, strict=True)
        ):
            yield f"degenerate: {words}"


def _warn_of_equal_inputs(first: Instance, second: Instance) -> Iterator[str]:
    pairs = zip(_list_tensors(first.leaves), _list_tensors(second.leaves), strict=True)
    equal = [number for number, (tensor, redrawn) in enumerate(pairs, 1) if _are_equal(tensor, redrawn)]
    if equal:
        yield f"degenerate: input {equal[0]} is the same for every seed"


def _warn_of_repetition(instance: Instance) -> Iterator[str]:
    outputs = _list_tensors(run_copies(instance))
    if any(_are_equal(x, y) for number, x in enumerate(outputs) for y in outputs[:number]):
        yield "two of its outputs are the same"
