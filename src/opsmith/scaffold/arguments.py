"""What is a function called with? Tensors' shapes and types, and fixed values: from options, a file or annotations.

    x=4,8   x=N,D   x=N,8:int64   idx=N:int64:0:9        sizes or dims' names, outermost first; type; least and largest

A size is an example of a dim; a name of one capital letter is the dim itself. 1 stays 1. Values may name dims where a
problem file is drafted: `normalized_shape=[D]`.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy
import torch

from opsmith.errors import UsageError
from opsmith.problems.dtypes import NAMES_BY_TORCH
from opsmith.scaffold.functions import Function

TYPES = tuple(NAMES_BY_TORCH.values())
AXIS = re.compile(r"[A-Z]|[1-9]\d{0,6}")
FORM = "NAME=SIZES[:TYPE[:LEAST:LARGEST]], such as x=4,8 or x=N,D or idx=N:int64:0:9"


class DimText(str):
    """A Python expression that names dims, such as `[D]`."""

    __slots__ = ()
    __repr__ = str.__str__


@dataclass(frozen=True)
class TensorArgument:
    """A tensor of the function's: its axes are example sizes or names of dims, outermost first."""

    name: str
    axes: tuple[int | str, ...]
    dtype: str = "fp32"
    low: int | None = None  # of whole numbers; None: not said
    high: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.dtype.startswith(("int", "uint"))


@dataclass(frozen=True)
class Arguments:
    """All tensors in the order of the function's parameters, and the values that stay as they are. A value with a dim
    in it is a DimText."""

    tensors: tuple[TensorArgument, ...]
    values: Mapping[str, Any]


def read_arguments(
    function: Function, shapes: Sequence[str], values: Sequence[str], example: Path | None, takes_dims: bool = False
) -> Arguments:
    """What the options say, over an example file, over annotations. Raises UsageError for what is missing or wrong."""
    stated = dict(_read_value(text, takes_dims) for text in values)
    tensors = {tensor.name: tensor for tensor in _read_annotations(function)}
    for name, value in _read_examples(example).items() if example is not None else ():
        if isinstance(value, TensorArgument):
            tensors[name] = value
        else:
            stated.setdefault(name, value)
    tensors |= {tensor.name: tensor for tensor in map(parse_shape, shapes)}
    return _order_arguments(function, tensors, stated)


def parse_shape(text: str) -> TensorArgument:
    """One `--shape`. Raises UsageError.

    >>> parse_shape("idx=N,8:int64:0:9")
    TensorArgument(name='idx', axes=('N', 8), dtype='int64', low=0, high=9)
    """
    name, equals, spec = text.partition("=")
    sizes, *bounds = spec.split(":")
    if not equals or not name.strip().isidentifier() or len(bounds) not in {0, 1, 3}:
        raise UsageError(f"--shape {text}: expected {FORM}")
    dtype = NAMES_BY_TORCH.get(bounds[0], bounds[0]) if bounds else "fp32"
    if dtype not in TYPES:
        raise UsageError(f"--shape {text}: given type {bounds[0]!r}; expected one of {', '.join(TYPES)}")
    argument = TensorArgument(name.strip(), _read_axes(sizes, f"--shape {text}"), dtype)
    if len(bounds) == 3:
        return _set_bounds(argument, bounds[1], bounds[2], text)
    return argument


def _read_axes(text: str, where: str) -> tuple[int | str, ...]:
    words = [word.strip() for word in text.split(",")]
    if words == [""]:
        raise UsageError(f"{where}: given no sizes; expected {FORM}; try: --value for a number, 1 for one element")
    for word in words:
        if not AXIS.fullmatch(word):
            raise UsageError(f"{where}: given {word!r}; expected a size of at least 1, or a capital letter")
    return tuple(int(word) if word.isdigit() else word for word in words)


def _set_bounds(argument: TensorArgument, low: str, high: str, text: str) -> TensorArgument:
    if not argument.is_whole or not re.fullmatch(r"-?\d+", low) or not re.fullmatch(r"-?\d+", high):
        raise UsageError(f"--shape {text}: expected whole numbers LEAST:LARGEST after int32 or int64")
    if int(low) > int(high):
        raise UsageError(f"--shape {text}: given {low} to {high}; expected the least first")
    return replace(argument, low=int(low), high=int(high))


def _read_value(text: str, takes_dims: bool) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    try:
        if equals and name.strip().isidentifier():
            tree = ast.parse(value.strip(), mode="eval")
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            if takes_dims and names and all(map(AXIS.fullmatch, names)):
                ast.literal_eval(re.sub(r"\b[A-Z]\b", "1", value.strip()))
                return name.strip(), DimText(value.strip())
            return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        pass
    raise UsageError(f"--value {text}: expected NAME=VALUE with a Python literal, such as dim=-1 or mode='mean'")


def _read_annotations(function: Function) -> Iterable[TensorArgument]:
    """Tensors whose parameter is annotated with axes: `x: "N, D"`, `x: "N:int64"` or `x: Annotated[Tensor, "N, D"]`."""
    for name, parameter in (function.parameters or {}).items():
        annotation = parameter.annotation
        texts = [annotation, *get_args(annotation)]
        for text in (text.strip("'\" ") for text in texts if isinstance(text, str)):
            if re.fullmatch(rf"({AXIS.pattern})(\s*,\s*({AXIS.pattern}))*(:[\w:-]+)?", text):
                yield parse_shape(f"{name}={text}")


def _read_examples(file: Path) -> Mapping[str, Any]:
    """What an example file holds by name: `torch.save({"x": x}, FILE)`, or `numpy.savez(FILE, x=x)`."""
    try:
        if file.suffix == ".npz":
            with numpy.load(file, allow_pickle=False) as arrays:
                values = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
        else:
            values = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch, pickle, zip and numpy each have their own
        raise UsageError(f"{file}: cannot be read ({type(error).__name__}); expected {_EXAMPLE}") from error
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise UsageError(f"{file}: given a {type(values).__name__}; expected {_EXAMPLE}")
    return {
        name: _describe_tensor(name, value) if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
    }


_EXAMPLE = "the function's arguments by name: torch.save({'x': x}, 'example.pt') or numpy.savez('example.npz', x=x)"


def _describe_tensor(name: str, tensor: Any) -> TensorArgument:
    dtype = str(tensor.dtype).removeprefix("torch.")
    argument = TensorArgument(name, tuple(tensor.shape), NAMES_BY_TORCH.get(dtype, dtype))
    if argument.dtype not in TYPES:
        raise UsageError(f"{name}: given a tensor of {dtype}; expected one of {', '.join(TYPES)}")
    if tensor.dim() == 0 or tensor.numel() == 0:
        shape = f"shape {tuple(tensor.shape)}"
        raise UsageError(f"{name}: given a tensor of {shape}; expected at least one axis, and sizes of at least 1")
    if not argument.is_whole:
        return argument
    return replace(argument, low=int(tensor.min()), high=int(tensor.max()))


def _order_arguments(function: Function, tensors: Mapping[str, TensorArgument], values: Mapping[str, Any]) -> Arguments:
    """Everything in the order of the parameters; each that has no default must be given, and no other may be."""
    if both := sorted({*tensors} & {*values}):
        raise UsageError(f"{both[0]}: given a shape and a value; expected one of them")
    if function.parameters is None:
        if not tensors:
            raise UsageError(f"{function.name}: given no shapes; expected --shape {FORM}")
        return Arguments(tuple(tensors.values()), values)
    parameters = {**(function.made_with or {}), **function.parameters}
    kinds = {name: parameter.kind for name, parameter in parameters.items()}
    anything = inspect.Parameter.VAR_KEYWORD in kinds.values()
    if (unknown := [name for name in (*tensors, *values) if name not in kinds]) and not anything:
        raise UsageError(f"{function.name}: it has no parameter {unknown[0]}; its parameters: {', '.join(kinds)}")
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    missing = [
        name
        for name, parameter in parameters.items()
        if name not in {**tensors, **values} and parameter.default is parameter.empty and parameter.kind not in variable
    ]
    if missing or not tensors:
        missing_names = missing or [name for name in kinds if name not in values]
        options = " ".join(f"--shape {name}=4,8" for name in missing_names)
        raise UsageError(
            f"{function.name}: given no shape of {', '.join(missing_names) or 'any tensor'}; "
            f"expected one for each tensor; try: {options} (or --value {(missing_names or ['x'])[0]}=0.5 for a number)"
        )
    order = [name for name in function.parameters if name in tensors] + [name for name in tensors if name not in kinds]
    return Arguments(tuple(tensors[name] for name in order), values)
