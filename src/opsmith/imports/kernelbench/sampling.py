"""A module executed at chosen sizes: the shapes of its inputs, weights and outputs, and its work. For workers only.

On torch's `meta` device nothing is computed and nothing is allocated, so that sizes of many gigabytes can be asked for.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten_with_path
from torch.utils.flop_counter import FlopCounterMode

from opsmith.imports.kernelbench.source import MAKE_ARGUMENTS, MAKE_INPUTS, MODEL, ModuleSource
from opsmith.running.preload import load_torch

Sizes = Mapping[str, int]
Axis = tuple[str, int]  # a tensor's label and the number of an axis
META, CPU = "meta", "cpu"


def load_sampler() -> None:
    """What a nursery does before it forks: what torch imports when its meta device is first used, no file pays for."""
    load_torch()
    warnings.simplefilter("ignore")
    with torch.device(META), torch.no_grad():
        image, row = torch.randn(2, 4, 8, 8), torch.randn(2, 8)
        block = nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.GroupNorm(2, 4), nn.GELU())
        block(image), nn.Linear(8, 8)(row).softmax(-1), nn.LayerNorm(8)(row), row @ row.t()


class ModuleRefusalError(Exception):
    """A module that is no problem; `str(error)` says why."""


class ModuleFailureError(Exception):
    """A step of the module failed; `error` says how."""

    def __init__(self, step: str, error: BaseException) -> None:
        text = str(error).strip().split("\n", 1)[0][:200]
        super().__init__(f"{step} fails: {type(error).__name__}{f': {text}' if text else ''}")
        self.error = error

    @property
    def needs_data(self) -> bool:
        """Whether it failed because torch's meta device has no numbers."""
        text = str(self.error)
        return isinstance(self.error, NotImplementedError) or "meta" in text or "data-dependent" in text


@contextlib.contextmanager
def blame_step(step: str) -> Iterator[None]:
    """Turns what foreign code raises, SystemExit too, into a ModuleFailureError."""
    try:
        yield
    except (ModuleRefusalError, ModuleFailureError):
        raise
    except (Exception, SystemExit) as error:
        raise ModuleFailureError(step, error) from error


@dataclass(frozen=True)
class Leaf:
    """One value of a nested structure of lists, tuples and mappings, and the keys that lead to it."""

    keys: tuple[int | str, ...]
    value: Any


@dataclass
class Instance:
    """A module at chosen sizes, with the arguments of one call."""

    namespace: dict[str, Any]
    model: nn.Module
    arguments: Sequence[Any]

    @property
    def leaves(self) -> list[Leaf]:
        return list_leaves(self.arguments)

    @property
    def state(self) -> dict[str, Tensor]:
        """Parameters and buffers, each once, in their order."""
        tied = dict(self.model.named_parameters())
        return {**tied, **{name: buffer for name, buffer in self.model.named_buffers() if name not in tied}}

    def call(self) -> Any:
        with torch.no_grad(), blame_step("forward"):
            return self.model(*self.arguments)


@dataclass(frozen=True)
class Sample:
    """What is known of a module at chosen sizes."""

    shapes: Mapping[str, tuple[int, ...]]  # "input 0", "weight linear.bias", "output 1"
    constants: tuple[str, ...]  # what else is passed to it, as texts
    operations: int
    bytes_moved: int
    parameters: int = 0

    @property
    def form(self) -> tuple[object, ...]:
        """What must not change with sizes."""
        return tuple((label, len(shape)) for label, shape in self.shapes.items()), self.constants

    @property
    def lengths(self) -> dict[Axis, int]:
        return {(label, axis): size for label, shape in self.shapes.items() for axis, size in enumerate(shape)}


def list_leaves(structure: Any) -> list[Leaf]:
    """The values of nested lists, tuples and mappings, in order."""
    flat, _ = tree_flatten_with_path(structure)
    return [Leaf(tuple(map(_read_key, path)), value) for path, value in flat]


def _read_key(key: Any) -> int | str:
    index = getattr(key, "idx", None)
    return index if isinstance(index, int) else str(getattr(key, "key", key))


def open_module(source: ModuleSource, sizes: Sizes, device: str, seed: int = 0) -> Instance:
    """The module with these sizes in place of its own."""
    namespace: dict[str, Any] = {"__name__": "imported_module"}
    with blame_step("its code"):
        exec(compile(source.place_sizes(sizes), "<module>", "exec"), namespace)
    torch.manual_seed(seed)
    with torch.device(device):
        with blame_step(MAKE_INPUTS):
            arguments = namespace[MAKE_INPUTS]()
        torch.manual_seed(seed)
        with blame_step(f"making {MODEL}"), torch.no_grad():
            model = make_model(namespace)
    if not isinstance(arguments, list | tuple):
        arguments = [arguments]
    return Instance(namespace, model, list(arguments))


def make_model(namespace: Mapping[str, Any]) -> nn.Module:
    make_arguments = namespace.get(MAKE_ARGUMENTS)
    arguments = make_arguments() if make_arguments is not None else []
    model = namespace[MODEL](*arguments)
    if not isinstance(model, nn.Module):
        raise ModuleRefusalError(f"{MODEL} is no torch.nn.Module")
    return model


def sample_module(source: ModuleSource, sizes: Sizes, device: str) -> Sample:
    """Raises ModuleFailureError and ModuleRefusalError."""
    instance = open_module(source, sizes, device)
    counter = FlopCounterMode(display=False)
    with torch.device(device), counter:
        outputs = instance.call()
    tensors = {f"input {number}": leaf.value for number, leaf in enumerate(instance.leaves)}
    constants = tuple(repr(value) for value in tensors.values() if not isinstance(value, Tensor))
    tensors |= {f"weight {name}": tensor for name, tensor in instance.state.items()}
    tensors |= {f"output {number}": leaf.value for number, leaf in enumerate(list_leaves(outputs))}
    arrays = {label: tensor for label, tensor in tensors.items() if isinstance(tensor, Tensor)}
    shapes = {label: tuple(tensor.shape) for label, tensor in arrays.items()}
    moved = sum(math.prod(tensor.shape) * tensor.element_size() for tensor in arrays.values())
    return Sample(shapes, constants, counter.get_total_flops(), moved, len([*instance.model.parameters()]))


class FactoryRecorder(TorchFunctionMode):
    """Remembers which of torch's random generators made a tensor, and which of them a computed one depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: dict[int, tuple[Tensor, str, tuple[Any, ...]]] = {}
        self._origins: dict[int, tuple[Tensor, frozenset[int]]] = {}

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        word = {torch.randn: "normal", torch.rand: "uniform", torch.randint: "randint"}.get(function)
        if word is not None and isinstance(result, Tensor):
            self.drawn[id(result)] = (result, word, tuple(args))  # the tensor too: its number stays its own
        elif isinstance(result, Tensor) and id(result) not in self.drawn:
            tensors = [leaf.value for leaf in list_leaves([args, kwargs]) if isinstance(leaf.value, Tensor)]
            self._origins[id(result)] = (result, frozenset().union(*map(self.find_origins, tensors)))
        return result

    def find_origins(self, tensor: Tensor) -> frozenset[int]:
        """The numbers (`id`) of the drawn tensors that it is computed from."""
        if id(tensor) in self.drawn:
            return frozenset([id(tensor)])
        return self._origins[id(tensor)][1] if id(tensor) in self._origins else frozenset()

    def find_generator(self, tensor: Tensor) -> tuple[str, tuple[Any, ...]] | None:
        """What made this very tensor; None: it was computed."""
        entry = self.drawn.get(id(tensor))
        return None if entry is None else entry[1:]
