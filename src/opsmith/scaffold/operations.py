"""The operations that PyTorch dispatches while a function runs: on which line, of which types, and on what."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from opsmith.problems.dispatch import UncompiledMode
from opsmith.problems.dtypes import NAMES_BY_TORCH

# What makes numbers of places out of nothing.
PLACES = frozenset({"arange", "linspace", "eye", "tril_indices", "triu_indices"})

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Operation:
    """One operation, named as torch's dispatcher names it, without a trailing `_`."""

    name: str
    arguments: tuple[Any, ...] = ()  # the first ones: a dtype for a tensor, a number for itself
    results: tuple[str, ...] = ()  # dtypes
    line: int | None = None  # in the function's file; None: not known
    given: tuple[Shape, ...] = ()  # shapes of the tensors
    made: tuple[Shape, ...] = ()
    is_random: bool = False
    on_places: bool = False  # some tensor was made of places: `arange`, and what is computed from it alone

    @property
    def tensors(self) -> tuple[str, ...]:
        """The dtypes of the tensors among the arguments."""
        return tuple(argument for argument in self.arguments if isinstance(argument, str))

    @property
    def at(self) -> str:
        """Where it is and what it is called: `line 9: arange`."""
        name = "item" if self.name == "_local_scalar_dense" else self.name.lstrip("_")
        return f"line {self.line}: {name}" if self.line is not None else name


def record_operations(call: Callable[[], Any], file: str = "") -> tuple[Operation, ...]:
    """The operations of a call in order; `file`: whose lines count. What the call raises goes through."""
    recorder = _OperationRecorder(file)
    with recorder:
        call()
    return tuple(recorder.operations)


class _OperationRecorder(UncompiledMode):
    def __init__(self, file: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # of torch
        self.operations: list[Operation] = []
        self._file = file
        self._places: dict[int, Any] = {}  # tensors made of places, by identity; kept, so that identities stay theirs

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._add_operation(func, args, result)
        return result

    def _add_operation(self, func: Any, args: Any, result: Any) -> None:
        name = str(func.name()).removeprefix("aten::").partition(".")[0].rstrip("_")
        sources, results = list(_find_tensors(args)), list(_find_tensors(result))
        of_places = [id(tensor) in self._places for tensor in sources]
        if name in PLACES or (of_places and all(of_places)):
            self._places.update((id(tensor), tensor) for tensor in results)
        operation = Operation(
            name,
            tuple(_describe_argument(argument) for argument in args[:3]),
            tuple(map(name_dtype, results)),
            self._find_line(),
            tuple(tuple(tensor.shape) for tensor in sources),
            tuple(tuple(tensor.shape) for tensor in results),
            torch.Tag.nondeterministic_seeded in func.tags,
            any(of_places),
        )
        self.operations.append(operation)

    def _find_line(self) -> int | None:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back  # type: ignore[assignment]
        return None if frame is None else frame.f_lineno


def _find_tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _find_tensors(entry)


def _describe_argument(value: Any) -> Any:
    tensor = next(_find_tensors(value), None)
    return value if tensor is None else name_dtype(tensor)


def name_dtype(tensor: Any) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    return NAMES_BY_TORCH.get(name, name)
