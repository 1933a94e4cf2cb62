"""What does the function give at these sizes? It is run on drawn data, and must give tensors whose shapes depend on
nothing but the sizes.
"""

from __future__ import annotations

import io
import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from opsmith.errors import UsageError
from opsmith.problems.dtypes import STREAM_DTYPES, TORCH_NAMES
from opsmith.scaffold.arguments import Arguments, TensorArgument
from opsmith.scaffold.functions import Function
from opsmith.scaffold.operations import Operation, name_dtype, record_operations

MOST_ELEMENTS = 1 << 24  # of one tensor of the example
LARGEST = 3  # of whole numbers whose range nobody said


class CallError(UsageError):
    """The function raised, or its result is none that a task can want."""


@dataclass(frozen=True)
class Result:
    """What one call gave."""

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    values: tuple[Any, ...]  # the tensors
    single: bool  # one tensor, not a tuple of one


class Probe:
    """The user's function with the arguments that were chosen for it."""

    def __init__(self, function: Function, arguments: Arguments) -> None:
        self.function, self.arguments = function, arguments
        self.generators: dict[str, str] = {}  # of floats: torch.randn unless that gives NaN

    def __call__(self, shapes: Sequence[Sequence[int]], seed: int = 0) -> Result:
        """The result on tensors of these shapes. Raises CallError."""
        for argument, shape in zip(self.arguments.tensors, shapes, strict=True):
            if math.prod(shape) > MOST_ELEMENTS:
                size = f"{argument.name}: given shape {tuple(shape)}, {math.prod(shape):,} elements"
                raise CallError(f"{size}; expected an example of at most {MOST_ELEMENTS:,}; try: smaller sizes")
        with be_quiet(seed):
            return self.call_on(self.draw_tensors(shapes))

    def draw_tensors(self, shapes: Sequence[Sequence[int]]) -> list[Tensor]:
        """Data like a task file's, from torch's generator as it stands."""
        return [
            _draw_tensor(argument, shape, self.generators.get(argument.name, "torch.randn"))
            for argument, shape in zip(self.arguments.tensors, shapes, strict=True)
        ]

    def refuse_what_varies(self, shapes: Sequence[Sequence[int]]) -> None:
        """Raises CallError when a shape depends on data, or a second call on the same data gives other values."""
        results = [self(shapes, seed) for seed in range(4)]
        for result in results[1:]:
            if result.shapes != results[0].shapes:
                sizes = f"{results[0].shapes[0]} and {result.shapes[0]}" if len(result.shapes) == 1 else "other shapes"
                raise CallError(
                    f"{self.function.label()}: other data gives other shapes ({sizes}); expected shapes that depend on "
                    "sizes only; try: return all elements with a mask"
                )
        with be_quiet(0):
            tensors = self.draw_tensors(shapes)
            torch.manual_seed(1)
            first, again = self.call_on([x.clone() for x in tensors]), self.call_on([x.clone() for x in tensors])
        if not all(map(_are_equal, first.values, again.values)):
            random = next((operation for operation in self.record_operations_of(shapes) if operation.is_random), None)
            label = self.function.label(random.line if random else None) + (f", {random.name}" if random else "")
            raise CallError(
                f"{label}: a second call on the same data gives other values; expected a function of its arguments; "
                "try: make random numbers an argument"
            )

    def call_on(self, tensors: Sequence[Tensor]) -> Result:
        """The result on these tensors. Raises CallError."""
        returned = self._call_function(tensors)
        values = (returned,) if isinstance(returned, torch.Tensor) else returned
        if not isinstance(values, tuple | list) or not values or not all(isinstance(x, torch.Tensor) for x in values):
            inside = (
                f" of {', '.join(sorted({type(x).__name__ for x in values}))}"
                if isinstance(values, list | tuple)
                else ""
            )
            raise CallError(
                f"{self.function.label()}: returned a {type(returned).__name__}{inside}; expected a tensor, or a tuple "
                "of tensors; try: return the tensors themselves"
            )
        dtypes = tuple(name_dtype(value) for value in values)
        for dtype, value in zip(dtypes, values, strict=True):
            if dtype not in STREAM_DTYPES:
                raise CallError(
                    f"{self.function.label()}: returned {value.dtype}; expected one of {', '.join(STREAM_DTYPES)}; "
                    "try: convert the result, such as .float(), or return its real and imaginary parts"
                )
            if value.numel() == 0:
                raise CallError(
                    f"{self.function.label()}: returned a tensor of shape {tuple(value.shape)}; expected elements; "
                    "try: larger sizes in --shape"
                )
        return Result(tuple(tuple(x.shape) for x in values), dtypes, tuple(values), isinstance(returned, torch.Tensor))

    def record_operations_of(self, shapes: Sequence[Sequence[int]]) -> tuple[Operation, ...]:
        """What PyTorch dispatches meanwhile, without the drawing of the data. Raises CallError."""
        with be_quiet(0):
            tensors = self.draw_tensors(shapes)
            return record_operations(lambda: self._call_function(tensors), self.function.file)

    def _suggest_remedy(self) -> str:
        unsaid = [argument for argument in self.arguments.tensors if argument.is_whole and argument.low is None]
        if not unsaid:
            return "other shapes or types, or --value for numbers"
        axes = ",".join(map(str, unsaid[0].axes))
        return f"--shape {unsaid[0].name}={axes}:{unsaid[0].dtype}:0:1, which says from where to where it goes"

    def _call_function(self, tensors: Sequence[Tensor]) -> Any:
        named = dict(zip((argument.name for argument in self.arguments.tensors), tensors, strict=True))
        positional, keywords = call_form(self.function, self.arguments)
        values = {**named, **self.arguments.values}
        try:
            return self.function.call(
                *(values[name] for name in positional), **{name: values[name] for name in keywords}
            )
        except (Exception, SystemExit) as error:
            shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in named.items())
            message = str(error).strip().partition("\n")[0]
            label = self.function.label(_line_of(error, self.function.file))
            raise CallError(
                f"{label}: raised {type(error).__name__}: {message}; given {shapes}; expected arguments that it takes; "
                f"try: {self._suggest_remedy()}"
            ) from error


def _line_of(error: BaseException, file: str) -> int | None:
    """The innermost line of a file that an exception came through."""
    lines = [step.lineno for step in traceback.extract_tb(error.__traceback__) if step.filename == file]
    return lines[-1] if lines else None


def call_form(function: Function, arguments: Arguments) -> tuple[list[str], list[str]]:
    """Which arguments are given by place, in order, and which by name."""
    names = [*(tensor.name for tensor in arguments.tensors), *arguments.values]
    if function.parameters is None:
        tensors = [tensor.name for tensor in arguments.tensors]
        return tensors, list(arguments.values)
    positional: list[str] = []
    for name, parameter in function.parameters.items():
        if name not in names or parameter.kind not in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}:
            break
        if name in arguments.values and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            break  # values read better by name
        positional.append(name)
    return positional, [name for name in names if name not in positional]


def data_generator(argument: TensorArgument, floats: str = "torch.randn") -> str:
    """The task file's `data_gen` for this argument."""
    return "binary" if argument.dtype == "bool" else "randint" if argument.is_whole else floats


def find_bounds(argument: TensorArgument) -> tuple[int, int]:
    """From where to where whole numbers are drawn."""
    return (0 if argument.low is None else argument.low, LARGEST if argument.high is None else argument.high)


def has_nan(result: Result) -> bool:
    return any(value.is_floating_point() and bool(value.isnan().any()) for value in result.values)


def _draw_tensor(argument: TensorArgument, shape: Sequence[int], floats: str) -> Tensor:
    dtype = torch_type(argument.dtype)
    if argument.dtype == "bool":
        return torch.bernoulli(torch.full(tuple(shape), 0.5)).to(dtype)
    if argument.is_whole:
        low, high = find_bounds(argument)
        return torch.randint(low, high + 1, tuple(shape)).to(dtype)
    generator: Callable[..., Tensor] = torch.rand if floats == "torch.rand" else torch.randn
    return generator(tuple(shape)).to(dtype)


def torch_type(dtype: str) -> Any:
    return getattr(torch, TORCH_NAMES.get(dtype, dtype))


def _are_equal(first: Tensor, second: Tensor) -> bool:
    return torch.equal(first, second) or (
        first.is_floating_point() and torch.equal(first.nan_to_num(), second.nan_to_num())
    )


@contextmanager
def be_quiet(seed: int) -> Iterator[None]:
    """Without gradients and the function's own printing, and with torch's random state as it was afterwards."""
    with torch.random.fork_rng(devices=[]), torch.no_grad(), redirect_stdout(io.StringIO()):
        torch.manual_seed(seed)
        yield
