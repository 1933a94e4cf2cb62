"""Originals: what a foreign module or definition itself makes of data that an imported problem drew.

The problem's sizes are put into the module's text in place of its own constants; the module then is made and called as
its users do it. Only for the fixtures, which are ours: this process executes them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.bindings import Bindings
from opsmith.problems.problem import Problem, Provenance


def run_original(problem: Problem, bindings: Bindings, stated: Mapping[str, int]) -> list[Tensor]:
    """The outputs of the source on the data of one draw, in the declared precision. stated: sizes of a module's text
    beside those of the draw."""
    assert problem.source is not None
    with torch.no_grad():
        if problem.source.format == "kernelbench":
            return list(_flatten(_run_module(problem.source, problem, bindings, {**stated, **bindings.sizes})))
        return list(_flatten(_run_definition(problem.source, problem, bindings)))


def _run_module(source: Provenance, problem: Problem, bindings: Bindings, sizes: Mapping[str, int]) -> Any:
    names: dict[str, Any] = {"__name__": "original"}
    text = source.text.replace('"cuda"', '"cpu"')  # a module may ask for a device that is not here
    exec(compile(replace_sizes(text, sizes), source.file, "exec"), names)
    module = names["Model"](*names["get_init_inputs"]())
    state = module.state_dict()
    state.update({key: bindings.input_data[name] for name, key in source.weights.items()})
    module.load_state_dict(state)
    return module(*_fill_tensors(names["get_inputs"](), _list_arguments(source, problem, bindings)))


def _fill_tensors(structure: Any, values: Iterator[Any]) -> Any:
    """What `get_inputs` gives, with these values in place of its own."""
    if isinstance(structure, (list, tuple)):
        return type(structure)(_fill_tensors(part, values) for part in structure)
    return next(values) if isinstance(structure, Tensor) else structure


def _run_definition(source: Provenance, problem: Problem, bindings: Bindings) -> Any:
    names: dict[str, Any] = {}
    exec(json.loads(source.text)["reference"], names)
    return names["run"](*_list_arguments(source, problem, bindings))


def _list_arguments(source: Provenance, problem: Problem, bindings: Bindings) -> Iterator[Any]:
    for name in source.arguments:
        yield bindings.input_data[name].clone() if name in bindings.input_data else problem.scalars[name]


def _flatten(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    else:
        for part in value:
            yield from _flatten(part)


def replace_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """The text with these sizes in place of the module's own constants.

    >>> print(replace_sizes("n, shape = 8, (3, 4)", {"n": 2, "shape_1": 5}))
    n, shape = (2, (3, 5))
    """
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                node.value = _replace_value(target, node.value, sizes)
    return ast.unparse(tree)


def _replace_value(target: ast.expr, value: ast.expr, sizes: Mapping[str, int]) -> ast.expr:
    match target, value:
        case ast.Name(id=name), _ if name in sizes:
            return ast.Constant(sizes[name])
        case ast.Name(id=name), ast.Tuple(elts=parts) | ast.List(elts=parts):
            value.elts = [_replace_part(f"{name}_{place}", part, sizes) for place, part in enumerate(parts)]
        case ast.Tuple(elts=targets), ast.Tuple(elts=values):
            value.elts = [_replace_value(one, part, sizes) for one, part in zip(targets, values, strict=True)]
    return value


def _replace_part(name: str, part: ast.expr, sizes: Mapping[str, int]) -> ast.expr:
    return ast.Constant(sizes[name]) if name in sizes else part
