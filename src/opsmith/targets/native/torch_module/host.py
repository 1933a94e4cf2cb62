"""The host code around a kernel: `forward` of a module of torch, which checks, allocates and calls.

Sizes come from the shapes of the inputs. A size that no shape determines is looked up among those that the problem
states, together with the others. What the kernel was not verified for (another type, another device, a fixed size
that differs) raises an error that says what would fit. What stands in the inputs is not checked.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opsmith.problems.constraints import follow_constraints, list_following, parse_constraint
from opsmith.problems.dtypes import TORCH_NAMES
from opsmith.problems.problem import ArrayType, InputTensor, Problem, Provenance
from opsmith.problems.size_kinds import list_varying
from opsmith.targets.native.library.sizes import SizePlan, plan_sizes
from opsmith.targets.native.signature import list_dims
from opsmith.targets.native.torch_module.dims import Names, rename_sizes, write_rule, write_shape

_CHECKS = '''
def _opsmith_check(name, tensor, dtype, axes):
    """Raises TypeError and ValueError for what the kernel was not verified for."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: given {type(tensor).__name__}; expected a tensor")
    if tensor.device.type != "DEVICE":
        raise ValueError(f"{name}: given a tensor on {tensor.device}; expected one on PLACE, which the kernel is for")
    if tensor.dtype is not dtype:
        raise TypeError(f"{name}: given {tensor.dtype}; expected {dtype}, which the kernel was verified for")
    if tensor.dim() != axes or 0 in tensor.shape:
        raise ValueError(f"{name}: given shape {tuple(tensor.shape)}; expected {axes} axes, each at least 1")


def _opsmith_compare(name, tensor, shape):
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name}: given shape {tuple(tensor.shape)}; expected {shape}, as the other shapes have it")


def _opsmith_fix(name, size, sizes):
    if size not in sizes:
        raise ValueError(f"size {name}: given {size}; expected {' or '.join(map(str, sizes))}: it cannot vary")


def _opsmith_require(constraint, holds):
    if not holds:
        raise ValueError(f"shapes: given some at which {constraint} does not hold, as it did wherever it was judged")


def _opsmith_choose(sizes, stated):
    """The stated sizes that agree with those of the inputs."""
    for choice in stated:
        if all(choice[name] == size for name, size in sizes.items()):
            return choice
    raise ValueError(f"sizes: given {sizes}; expected stated ones, since no shape determines all others: {stated}")


def _opsmith_divide(top, bottom):
    if top % bottom:
        raise ValueError(f"shapes: given an axis of {top}/{bottom} entries; expected a whole number")
    return top // bottom


def _opsmith_align(tensor):
    """The same numbers as the kernel expects them: contiguous, from an address such as it was judged at."""
    tensor = tensor.detach().contiguous()
    return tensor if tensor.data_ptr() % 64 == 0 else tensor.clone()
'''.strip("\n")


@dataclass(frozen=True)
class HostPlace:
    """Where a kernel runs, and what it is called with."""

    device: str  # a type of torch's devices
    words: str
    has_pointers: bool  # it takes addresses instead of tensors


CPU = HostPlace("cpu", "the CPU", True)


def write_checks(place: HostPlace) -> str:
    """Functions that the method calls."""
    return _CHECKS.replace("DEVICE", place.device).replace("PLACE", place.words)


def write_forward(problem: Problem, place: HostPlace, *extra: str) -> str:
    """The method, indented; it calls `_opsmith_call` with inputs, outputs, sizes, scalars, and `extra` arguments."""
    names = choose_names(problem)
    lines = [
        f"def forward(self{''.join(f', {argument}' for argument in _list_arguments(problem, names))}):",
        *(f"    {line}" for line in _list_statements(problem, names, place, extra)),
    ]
    return "".join(f"    {line}\n" for line in lines)


def choose_names(problem: Problem) -> dict[str, str]:
    """What inputs, outputs, dims and scalars are called in Python: their names, with `_` behind where they clash."""
    used = {"self", "torch", "nn"}
    names: dict[str, str] = {}
    tensors = [*(tensor.name for tensor in problem.tensors), *_list_outputs(problem)]
    symbols = [*list_dims(problem), *sorted(problem.symbols)]
    for name in (*tensors, *symbols, *problem.scalars):
        if name not in names:
            names[name] = _choose_name(name, used)
            used.add(names[name])
    return names


def _choose_name(name: str, used: set[str]) -> str:
    chosen = re.sub(r"\W", "_", name, flags=re.ASCII)
    chosen = f"x{chosen}" if re.match(r"[\d_]", chosen) else chosen
    while chosen in used or keyword.iskeyword(chosen):
        chosen += "_"
    return chosen


def _list_outputs(problem: Problem) -> dict[str, ArrayType]:
    """Each tensor of the outputs by a name of its own."""
    return {
        name: type_ for output in problem.outputs for name, type_ in zip(output.tensor_names, output.types, strict=True)
    }


def _list_arguments(problem: Problem, names: Names) -> Iterator[str]:
    """Those of the module that it stands for; else all inputs, then the numbers with their defaults."""
    if problem.source is not None:
        yield from (names[name] for name in problem.source.arguments)
        return
    yield from (names[tensor.name] for tensor in problem.tensors)
    yield from (f"{names[name]}={value!r}" for name, value in problem.scalars.items())


def _list_statements(problem: Problem, names: Names, place: HostPlace, extra: Sequence[str]) -> Iterator[str]:
    yield from _list_bindings(problem, names, problem.source)
    for tensor in problem.tensors:
        dtype, axes = TORCH_NAMES[tensor.type.dtype], len(tensor.type.shape)
        yield f"_opsmith_check({tensor.name!r}, {names[tensor.name]}, torch.{dtype}, {axes})"
    yield from _list_sizes(problem, names)
    for tensor in problem.tensors:
        shape = write_shape(tensor.type.shape, names)
        yield f"_opsmith_compare({tensor.name!r}, {names[tensor.name]}, {shape})"
    outputs = _list_outputs(problem)
    for name, type_ in outputs.items():
        options = f"dtype=torch.{TORCH_NAMES[type_.dtype]}{_write_device(problem, names, place)}"
        yield f"{names[name]} = torch.empty({write_shape(type_.shape, names)}, {options})"
    for tensor in problem.tensors:
        yield f"{names[tensor.name]} = _opsmith_align({names[tensor.name]})"
    yield f"_opsmith_call({', '.join([*_list_call(problem, names, list(outputs), place), *extra])})"
    yield f"return {_write_results(problem, names)}"


def _write_device(problem: Problem, names: Names, place: HostPlace) -> str:
    """The device of the outputs, where it is not the CPU."""
    if place is CPU:
        return ""
    return f", device={names[problem.tensors[0].name]}.device" if problem.tensors else f", device={place.device!r}"


def _list_bindings(problem: Problem, names: Names, source: Provenance | None) -> Iterator[str]:
    """Weights, and numbers that are no arguments."""
    if source is None:
        return
    for name, key in source.weights.items():
        yield f"{names[name]} = {_write_lookup(key)}"
    for name, value in problem.scalars.items():
        if name not in source.arguments:
            yield f"{names[name]} = {value!r}"


def _write_lookup(key: str) -> str:
    """A weight by its key among the module's states: `self.net[0].weight`, in a form that any name has; of several keys
    their numbers one after the other."""
    if " " in key:
        return f"torch.cat([{', '.join(f'{_write_lookup(own)}.reshape(-1)' for own in key.split())}])"
    text = "self"
    for step in key.split("."):
        is_name = step.isidentifier() and not keyword.iskeyword(step)
        text = f"{text}.{step}" if is_name else f"getattr({text}, {step!r})"
    return text


def _list_sizes(problem: Problem, names: Names) -> Iterator[str]:
    """Every size, from the shapes, from a constraint that it follows by, or from what the problem states."""
    plan, stated = plan_sizes(problem), _list_stated(problem)
    simple = [rule for rule in plan.rules if not rule.dim.symbols & {*plan.free}]
    yield from (f"{names[rule.symbol]} = {write_rule(rule, names)}" for rule in simple)
    solved = [rule.symbol for rule in simple]
    following = _list_following(problem, plan)
    chosen = [name for name in plan.free if name not in following]
    yield from _choose_free(chosen, solved, stated, names)
    yield from (f"{names[name]} = {text}" for name, text in following.items())
    yield from (f"{names[rule.symbol]} = {write_rule(rule, names)}" for rule in plan.rules if rule not in simple)
    yield from _check_sizes(problem, stated, names)


def _list_following(problem: Problem, plan: SizePlan) -> dict[str, str]:
    """The sizes that no shape determines and that follow from others, each with its expression."""
    names = choose_names(problem)
    following = list_following(problem.constraints)
    return {name: rename_sizes(tree, names) for name, tree in following.items() if name in plan.free}


def _choose_free(
    free: Sequence[str], solved: Sequence[str], stated: Sequence[Mapping[str, int]], names: Names
) -> Iterator[str]:
    """Sizes that no shape determines, by those that are known."""
    if free:
        mapping = ", ".join(f"{name!r}: {names[name]}" for name in solved)
        choices = [{name: sizes[name] for name in (*solved, *free)} for sizes in stated]
        distinct = [choice for number, choice in enumerate(choices) if choice not in choices[:number]]
        yield f"chosen = _opsmith_choose({{{mapping}}}, {distinct!r})"
        yield from (f"{names[name]} = chosen[{name!r}]" for name in free)


def _check_sizes(problem: Problem, stated: Sequence[Mapping[str, int]], names: Names) -> Iterator[str]:
    """What the sizes keep, and those that cannot vary."""
    for text in problem.constraints:
        yield f"_opsmith_require({text!r}, {rename_sizes(parse_constraint(text), names)})"
    for name in sorted({*problem.symbols, *list_dims(problem)} - {*list_varying(problem)}):
        sizes = tuple(dict.fromkeys(sizes[name] for sizes in stated))
        yield f"_opsmith_fix({name!r}, {names[name]}, {sizes!r})"


def _list_stated(problem: Problem) -> list[dict[str, int]]:
    """All shape sets that the problem states, the source's own first."""
    own = problem.source.sizes if problem.source is not None else {}
    sets = [own, {}, *problem.bench.values(), *problem.shapes.values()]
    stated = ({name: size for name, size in sizes.items() if name in problem.sizes} for sizes in sets)
    chosen = ({**problem.base_sizes, **sizes} for sizes in stated)
    return [follow_constraints(problem.constraints, sizes) or sizes for sizes in chosen]


def _list_call(problem: Problem, names: Names, outputs: Sequence[str], place: HostPlace) -> Iterator[str]:
    """In the order of the signature."""
    tensors: Sequence[InputTensor] = problem.tensors
    form = "{}.data_ptr()" if place.has_pointers else "{}"
    yield from (form.format(names[name]) for name in (*(tensor.name for tensor in tensors), *outputs))
    yield from (names[name] for name in list_dims(problem))
    yield from (names[name] for name in problem.scalars)


def _write_results(problem: Problem, names: Names) -> str:
    """One tensor as itself, several as a tuple; an output of several tensors is a tuple in it."""
    groups: list[str] = []
    for output in problem.outputs:
        fields = [names[name] for name in output.tensor_names]
        groups.append(f"({', '.join(fields)})" if len(fields) > 1 else fields[0])
    return groups[0] if len(groups) == 1 else f"({', '.join(groups)})"
