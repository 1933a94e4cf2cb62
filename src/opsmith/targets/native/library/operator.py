"""An operator: a program that is right, registered with `torch.library` as `torch.ops.PACKAGE.NAME`.

The inputs' shapes give the sizes; everything is checked before the program sees a pointer. CPU tensors of the declared
types only; nothing is differentiated; the results share no memory with the inputs, which are never written. Inputs that
are strided, or lie where no program was tried, are copied. A fake kernel gives shapes and types to `torch.compile`.

What stands in the inputs is not checked: an index beyond its table makes the program read what is not there. Nor is
whether the reference works at the sizes: where it fails, results mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from opsmith.problems.dims import Dim, DimError
from opsmith.problems.precision import dtype_of
from opsmith.problems.problem import ArrayType, Problem
from opsmith.problems.size_kinds import list_varying
from opsmith.targets.native.library.schema import write_schema
from opsmith.targets.native.library.sizes import SizePlan, plan_sizes
from opsmith.targets.native.signature import list_dims
from opsmith.targets.operator_error import OperatorError

ALIGNMENT = 64  # bytes: where arrays begin when a program is judged
MOST_CHECKED = 512  # calls whose shapes and numbers are known to fit

Number = int | float


@dataclass(frozen=True)
class ProgramCall:
    """One call of a program: contiguous tensors, results to be written, and the numbers beside them."""

    name: str  # of the operator
    problem: Problem
    tensors: Sequence[Tensor]  # inputs, then parameters
    results: Sequence[Tensor]  # whatever stands in them
    dims: Sequence[int]  # the sizes that the program is told, in the order of `list_dims`
    scalars: Sequence[Number]
    threads: int  # that it may use


class Programs(Protocol):
    """The programs of one package, however they are run: a shared object, a driver, commands."""

    package: str
    devices: Sequence[str]  # where torch's tensors may lie, as torch calls them: cpu, cuda

    def explain_lack(self) -> str:
        """Which device is not here that the programs need, in words; "": none."""

    def run_program(self, call: ProgramCall) -> None:
        """Fill the results. Raises OperatorError where the program cannot be run here."""


Results = Tensor | tuple[Tensor | tuple[Tensor, ...], ...]


@dataclass(frozen=True)
class CheckedCall:
    """What the arguments of a call say, where they fit."""

    device: torch.device  # of all its tensors
    scalars: Sequence[Number]
    sizes: Mapping[str, int]
    shapes: Sequence[tuple[int, ...]]  # of the results


class NativeOperator:
    """The program of one problem. Making one registers it, which can be done once for each name of a package.

    threads: how many the program may use, 1 unless it was judged with more.
    """

    def __init__(self, library: Programs, name: str, problem: Problem, threads: int = 1) -> None:
        self.library, self.name, self.problem, self.threads = library, name, problem, threads
        self.plan: SizePlan = plan_sizes(problem)
        self.types: list[ArrayType] = [type_ for output in problem.outputs for type_ in output.types]
        self._dtypes = [dtype_of(type_.dtype) for type_ in self.types]
        self._checked: dict[tuple[object, ...], CheckedCall] = {}
        definition = torch.library.custom_op(
            f"{library.package}::{name}",
            self._run_program,
            mutates_args=(),
            device_types=tuple(library.devices) if problem.tensors else None,
            schema=write_schema(problem, self.plan),
        )
        definition.register_fake(self._make_fakes)
        self.operation = getattr(getattr(torch.ops, library.package), name).default

    def __call__(self, tensors: Sequence[Tensor], numbers: Sequence[Number]) -> Results:
        """The outputs, in the problem's order; a single one as itself, one of several tensors as a tuple.

        tensors: all inputs, then all parameters; numbers: the scalars, then the sizes that no shape determines.
        Raises OperatorError.
        """
        results = self.operation(*tensors, *numbers)
        return self._group_results([results] if isinstance(results, Tensor) else list(results))

    def _group_results(self, tensors: list[Tensor]) -> Results:
        groups: list[Tensor | tuple[Tensor, ...]] = []
        for output in self.problem.outputs:
            fields, tensors = tensors[: len(output.types)], tensors[len(output.types) :]
            groups.append(fields[0] if len(fields) == 1 else tuple(fields))
        return groups[0] if len(groups) == 1 else tuple(groups)

    # -- what torch calls

    def _run_program(self, *arguments: Any) -> Tensor | tuple[Tensor, ...]:
        count = len(self.problem.tensors)
        form = (*((tensor.dtype, tensor.shape, tensor.device) for tensor in arguments[:count]), *arguments[count:])
        call = self._checked.get(form)
        if call is None:
            call = self._check_call(arguments)
            if len(self._checked) >= MOST_CHECKED:
                self._checked.clear()
            self._checked[form] = call
        tensors = [_align_tensor(tensor) for tensor in arguments[:count]]
        results = self._make_results(call)
        dims = [call.sizes[name] for name in self._dims]
        self.library.run_program(
            ProgramCall(self.name, self.problem, tensors, results, dims, call.scalars, self.threads)
        )
        return results[0] if len(results) == 1 else tuple(results)

    def _make_fakes(self, *arguments: Any) -> Tensor | tuple[Tensor, ...]:
        fakes = self._make_results(self._check_call(arguments))
        return fakes[0] if len(fakes) == 1 else tuple(fakes)

    def _make_results(self, call: CheckedCall) -> list[Tensor]:
        pairs = zip(self._dtypes, call.shapes, strict=True)
        return [torch.empty(shape, dtype=dtype, device=call.device) for dtype, shape in pairs]

    @cached_property
    def fixed(self) -> list[str]:
        """The symbols whose size is always the same: code of the problem's author may rely on it."""
        return sorted(self.problem.symbols.intersection(self.problem.base_sizes) - {*list_varying(self.problem)})

    @cached_property
    def _dims(self) -> list[str]:
        return list_dims(self.problem)

    # -- checks; sizes may be symbolic

    def _check_call(self, arguments: Sequence[Any]) -> CheckedCall:
        """Raises OperatorError for arguments that do not fit. torch leaves out last ones that have their defaults."""
        count, scalars = len(self.problem.tensors), len(self.problem.scalars)
        defaults = [*self.problem.scalars.values(), *(self.problem.base_sizes[name] for name in self.plan.free)]
        tensors, numbers = arguments[:count], [*arguments[count:], *defaults[len(arguments) - count :]]
        specs = list(zip(self.problem.tensors, tensors, strict=True))
        for spec, tensor in specs:
            self._check_form(spec.name, spec.type, tensor)
        free = dict(zip(self.plan.free, numbers[scalars:], strict=True))
        sizes = self._solve_sizes({spec.name: tensor for spec, tensor in specs}, free)
        self._check_sizes(sizes)
        for spec, tensor in specs:
            self._check_shape(spec.name, spec.type, tensor, sizes)
        devices = list(dict.fromkeys(tensor.device for tensor in tensors)) or [torch.device("cpu")]
        if len(devices) > 1:
            raise OperatorError(f"{self.name}: given tensors on {', '.join(map(str, devices))}; expected one device")
        shapes = [self._find_shape(type_, sizes) for type_ in self.types]
        return CheckedCall(devices[0], numbers[:scalars], sizes, shapes)

    def _check_form(self, name: str, type_: ArrayType, tensor: Tensor) -> None:
        dtype = dtype_of(type_.dtype)
        if tensor.dtype is not dtype:
            raise OperatorError(f"{self.name}: {name}: given {tensor.dtype}; expected {dtype}")
        if tensor.ndim != len(type_.shape) or any(length < 1 for length in tensor.shape):
            axes = f"{len(type_.shape)} ax{'is' if len(type_.shape) == 1 else 'es'}"
            expected = f"{axes}, {_write_shape(type_.shape)}, each at least 1"
            raise OperatorError(f"{self.name}: {name}: given shape {tuple(tensor.shape)}; expected {expected}")

    def _solve_sizes(self, tensors: Mapping[str, Tensor], free: Mapping[str, int]) -> dict[str, int]:
        sizes = dict(free)
        for rule in self.plan.rules:
            length = tensors[rule.tensor].shape[rule.axis]
            size = rule.solve(length, sizes)
            if size is None:
                at = _write_sizes({name: sizes[name] for name in sorted(rule.dim.symbols) if name in sizes})
                what = f"given {length} entries of axis {rule.axis}; expected {rule.dim} of them"
                raise OperatorError(f"{self.name}: {rule.tensor}: {what}, with a whole number {rule.symbol}{at}")
            sizes[rule.symbol] = size
        return sizes

    def _check_sizes(self, sizes: Mapping[str, int]) -> None:
        for name in self.plan.free:
            if sizes[name] < 1:
                raise OperatorError(f"{self.name}: {name}: given {sizes[name]}; expected a size of at least 1")
        for name in self.fixed:
            if sizes[name] != self.problem.base_sizes[name]:
                expected = f"{self.problem.base_sizes[name]}, the only size that it was judged at"
                raise OperatorError(f"{self.name}: {name}: given {sizes[name]}; expected {expected}")

    def _find_shape(self, type_: ArrayType, sizes: Mapping[str, int]) -> tuple[int, ...]:
        try:
            return type_.shape_at(sizes)
        except DimError as error:
            raise OperatorError(f"{self.name}: given sizes at which {error}; expected whole axes") from None

    def _check_shape(self, name: str, type_: ArrayType, tensor: Tensor, sizes: Mapping[str, int]) -> None:
        expected = self._find_shape(type_, sizes)
        if any(length != size for length, size in zip(tensor.shape, expected, strict=True)):
            shape = f"{_write_shape(type_.shape)} = {expected}"
            origins = "".join(self._describe_origins({symbol for dim in type_.shape for symbol in dim.symbols}, sizes))
            raise OperatorError(f"{self.name}: {name}: given shape {tuple(tensor.shape)}; expected {shape}{origins}")

    def _describe_origins(self, symbols: set[str], sizes: Mapping[str, int]) -> Iterator[str]:
        """Where sizes come from: `, with K = 4 (axis 1 of a)`."""
        places = {rule.symbol: f"axis {rule.axis} of {rule.tensor}" for rule in self.plan.rules}
        for number, symbol in enumerate(sorted(symbols)):
            place = places.get(symbol, "as it was given")
            yield f"{', ' if number else ', with '}{symbol} = {sizes[symbol]} ({place})"


def _align_tensor(tensor: Tensor) -> Tensor:
    """The same numbers as a program expects them: contiguous, from an address as it was judged at."""
    contiguous = tensor.contiguous()
    return contiguous if contiguous.data_ptr() % ALIGNMENT == 0 else contiguous.clone()


def _write_shape(shape: Sequence[Dim]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _write_sizes(sizes: Mapping[str, int]) -> str:
    return f", at {', '.join(f'{name} = {size}' for name, size in sizes.items())}" if sizes else ""
