"""Another contract for a border: the same values in another stream type, and all functions on both sides of it.

It runs code of the task's author: in workers only.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from opsmith.splits import Border, PlanNode, Split
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.types import Tuple, array_shape, scalar_of
from opsmith.targets.step.planning.children import parse_border
from opsmith.targets.step.planning.forms import BorderForm, list_forms, rank_form
from opsmith.targets.step.planning.observation import ValueType
from opsmith.targets.step.planning.vocabulary import VIEWS, is_tensor_name, list_words


def list_alternatives(spec: TaskSpec, split: Split, node: PlanNode) -> list[Split]:
    """The split with other stream types for what a node gives, those that functions fit best first; last, with all
    functions offered to it."""
    changed = []
    for border in node.gives:
        if border.name not in split.outputs:
            changed += [
                _change_border(split, node, border, form) for form in _list_other_forms(spec, split, node, border)
            ]
    offered = _offer_all(split, {node.name})
    return changed + ([offered] if offered != split else [])


def _list_other_forms(spec: TaskSpec, split: Split, node: PlanNode, border: Border) -> list[BorderForm]:
    dtype, dims = parse_border(border)
    if isinstance(dtype, Tuple):
        return []
    value = ValueType(scalar_of(dtype).name, array_shape(dtype, dims))
    takers = [neighbour for neighbour in split.nodes if border.name in neighbour.takes]
    made_by, taken_by = _list_operations([node]), _list_operations(takers)
    forms = [form for form in list_forms(value, (), spec.fns) if form.key != (dtype, dims)]
    return sorted(forms, key=lambda form: -rank_form(form, made_by, taken_by, spec.fns))


def _list_operations(nodes: Sequence[PlanNode]) -> list[str]:
    words = (word for node in nodes for word in list_words(ast.parse(node.code), is_tensor_name))
    return [word for word in words if word not in VIEWS]


def _change_border(split: Split, node: PlanNode, border: Border, form: BorderForm) -> Split:
    """The split with a border in another form, which its maker leaves by and its takers enter by."""
    new = Border(border.name, str(form.dtype), tuple(map(str, form.dims)))
    nodes = []
    for neighbour in split.nodes:
        if neighbour.name == node.name:
            gives = tuple(new if own.name == border.name else own for own in neighbour.gives)
            code = neighbour.code.rstrip("\n") + "\n"
            if form.leave != "{}":
                code += f"{border.name} = {form.leave.replace('{}', border.name)}\n"
            nodes.append(replace(neighbour, gives=gives, code=code))
        else:
            nodes.append(replace(neighbour, code=_enter_border(neighbour, border.name, form)))
    takers = {neighbour.name for neighbour in split.nodes if border.name in neighbour.takes}
    return _offer_all(replace(split, nodes=tuple(nodes)), {node.name, *takers})


def _enter_border(node: PlanNode, name: str, form: BorderForm) -> str:
    if name not in node.takes or form.enter == "{}":
        return node.code
    tree = _Enterer(name, form.enter).visit(ast.parse(node.code))
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class _Enterer(ast.NodeTransformer):
    def __init__(self, name: str, enter: str) -> None:
        self._text = f"input_data[{name!r}]"
        self._value = ast.parse(enter.replace("{}", self._text), mode="eval").body

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if ast.unparse(node) == self._text:
            return self._value
        return self.generic_visit(node)


def _offer_all(split: Split, names: set[str]) -> Split:
    return replace(split, nodes=tuple(replace(node, fns=()) if node.name in names else node for node in split.nodes))
