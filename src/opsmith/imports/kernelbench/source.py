"""A KernelBench file as text: whether it may be executed in a worker, which of its integers are sizes, and its code
with these left to a problem's dims. Nothing is executed here."""

from __future__ import annotations

import ast
import copy
import keyword
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from opsmith.imports.foreign_code import CodeRefusalError, check_foreign_tree, parse_foreign_code
from opsmith.problems.files.entries import RESERVED

MODEL, MAKE_INPUTS, MAKE_ARGUMENTS = "Model", "get_inputs", "get_init_inputs"
_LARGEST = 2**31 - 1
_GENERATORS = ("torch.rand", "torch.randn")
LEAST_LITERAL = 16  # smaller ones are rather channels of an image, or the side of a window


@dataclass(frozen=True)
class SizeConstant:
    """An integer of the top level, as written or as a product of literals: the default of a dim."""

    name: str  # the variable; of a tuple's element, with its number
    value: int
    place: tuple[int, int]  # line and column of its expression


_GPU_DEVICE = re.compile(r"""(\bdevice\s*=\s*|\btorch\.device\(\s*|\.to\(\s*)(["'])cuda(?::\d+)?\2""")
_DEVICE = "torch.get_default_device()"  # the processor, or meta where sizes are tried
_GPU_METHOD = re.compile(r"\.cuda\(\s*\d*\s*\)")


@dataclass(frozen=True)
class ModuleSource:
    """A file that may be executed in a confined worker."""

    text: str
    tree: ast.Module
    is_moved: bool = False  # from a GPU, which the file asks for, to the processor

    @cached_property
    def constants(self) -> tuple[SizeConstant, ...]:
        """In the order of the file; the last assignment of a name counts."""
        constants = {constant.name: constant for constant in _list_constants(self.tree)}
        return tuple(constants.values())

    @cached_property
    def forward_names(self) -> list[str]:
        """The arguments of the model's `forward`, without `self`."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == MODEL:
                for statement in node.body:
                    if isinstance(statement, ast.FunctionDef) and statement.name == "forward":
                        return [argument.arg for argument in (*statement.args.posonlyargs, *statement.args.args)[1:]]
        return []

    def place_sizes(self, sizes: Mapping[str, int]) -> ast.Module:
        """The tree with other values of these constants."""
        places = {constant.place: ast.Constant(sizes[constant.name]) for constant in self._choose(sizes)}
        return _replace_places(self.tree, places)

    def write_setup(self, dims: Mapping[str, str], fixed: Mapping[str, int], dropped: Sequence[str] = ()) -> str:
        """The code that data and reference of a problem share: the file's, with these constants left to dims, those
        of `fixed` at other values, and without some of its functions."""
        places: dict[tuple[int, int], ast.expr] = {}
        places |= {constant.place: ast.Name(dims[constant.name]) for constant in self._choose(dims)}
        changed = [constant for constant in self._choose(fixed) if fixed[constant.name] != constant.value]
        places |= {constant.place: ast.Constant(fixed[constant.name]) for constant in changed}
        tree = _replace_places(self.tree, places)
        rows = self.text.splitlines()
        pairs = [pair for pair in zip(self.tree.body, tree.body, strict=True) if _name_of(pair[0]) not in dropped]
        return _join_pieces([(old, _write_statement(old, new, rows)) for old, new in pairs])

    def _choose(self, names: Container[str]) -> list[SizeConstant]:
        return [constant for constant in self.constants if constant.name in names]


def read_module(text: str) -> ModuleSource:
    """A file's text, with tensors that it puts on a GPU where all others are. Raises CodeRefusalError."""
    original = text
    text = _GPU_METHOD.sub(f".to({_DEVICE})", _GPU_DEVICE.sub(rf"\1{_DEVICE}", text))
    tree = parse_foreign_code(text)
    tree.body = [statement for statement in tree.body if not _is_main_block(statement)]
    check_foreign_tree(tree, may_compute=True)
    _check_names(tree)
    return ModuleSource(text, tree, text != original)


def _check_names(tree: ast.Module) -> None:
    """Raises CodeRefusalError where there is no model, or nothing that makes its inputs."""
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if MODEL not in classes:
        raise CodeRefusalError(f"no class {MODEL}")
    if MAKE_INPUTS not in functions:
        raise CodeRefusalError(f"no function {MAKE_INPUTS}")


def _is_main_block(statement: ast.stmt) -> bool:
    """`if __name__ == "__main__":`, which is left out: it does not belong to the problem."""
    return isinstance(statement, ast.If) and ast.unparse(statement.test) in (
        "__name__ == '__main__'",
        "'__main__' == __name__",
    )


# -- constants


def _list_constants(tree: ast.Module) -> Iterator[SizeConstant]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            yield from _list_assigned(statement.targets[0], statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield from _list_assigned(statement.target, statement.value)
    literals = sorted(_list_literals(tree), key=lambda node: (node.lineno, node.col_offset))
    for number, node in enumerate(literals, 1):
        yield from _read_constant(f"size_{number}", node)


def _list_literals(tree: ast.Module) -> Iterator[ast.Constant]:
    """Integers that `get_inputs` gives to torch's generators as they stand, and `get_init_inputs` returns."""
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name in (MAKE_INPUTS, MAKE_ARGUMENTS):
            for node in ast.walk(function):
                values: list[ast.expr] = []
                if isinstance(node, ast.Call) and ast.unparse(node.func) in _GENERATORS:
                    values = [entry for value in node.args for entry in _list_elements(value)]
                elif isinstance(node, ast.Return) and function.name == MAKE_ARGUMENTS and node.value is not None:
                    values = _list_elements(node.value)
                for value in values:
                    if isinstance(value, ast.Constant) and type(value.value) is int and value.value >= LEAST_LITERAL:
                        yield value


def _list_elements(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List) else [node]


def _list_assigned(target: ast.expr, value: ast.expr) -> Iterator[SizeConstant]:
    if isinstance(target, ast.Name):
        if isinstance(value, ast.Tuple | ast.List):
            for number, element in enumerate(value.elts):
                yield from _read_constant(f"{target.id}_{number}", element)
        else:
            yield from _read_constant(target.id, value)
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for name, element in zip(target.elts, value.elts, strict=True):
            yield from _list_assigned(name, element)


def _read_constant(name: str, node: ast.expr) -> Iterator[SizeConstant]:
    value = _fold_literals(node)
    if value is not None and 1 <= value <= _LARGEST and name not in RESERVED and not keyword.iskeyword(name):
        yield SizeConstant(name, value, (node.lineno, node.col_offset))


def _fold_literals(node: ast.expr) -> int | None:
    """The value of integer literals and their sums, products and powers; None: it is something else."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.BinOp(left=left, op=operation, right=right):
            first, second = _fold_literals(left), _fold_literals(right)
            if first is None or second is None:
                return None
            return _combine_numbers(operation, first, second)
    return None


def _combine_numbers(operation: ast.operator, first: int, second: int) -> int | None:
    match operation:
        case ast.Mult():
            return first * second
        case ast.Add():
            return first + second
        case ast.Sub():
            return first - second
        case ast.FloorDiv() if second:
            return first // second
        case ast.Pow() if 0 <= second <= 31 and abs(first) <= 1024:
            return int(first**second)
    return None


# -- rewriting


class _Replacer(ast.NodeTransformer):
    """Replaces expressions by their place."""

    def __init__(self, places: Mapping[tuple[int, int], ast.expr]) -> None:
        self._places = places

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and (node.lineno, node.col_offset) in self._places:
            is_number = isinstance(node, ast.Constant | ast.BinOp)
            if is_number:
                return ast.copy_location(self._places[node.lineno, node.col_offset], node)
        return super().generic_visit(node)


def _replace_places(tree: ast.Module, places: Mapping[tuple[int, int], ast.expr]) -> ast.Module:
    replacer = _Replacer(places)
    body = [replacer.visit(copy.deepcopy(node)) if _holds_sizes(node, places) else node for node in tree.body]
    return ast.fix_missing_locations(ast.Module(body, []))


def _holds_sizes(node: ast.stmt, places: Container[tuple[int, int]]) -> bool:
    """Whether a statement of the top level is an assignment, or a function with a size among its literals."""
    if isinstance(node, ast.FunctionDef) and node.name in (MAKE_INPUTS, MAKE_ARGUMENTS):
        numbers = (inner for inner in ast.walk(node) if isinstance(inner, ast.Constant))
        return any((number.lineno, number.col_offset) in places for number in numbers)
    return _is_assignment(node)


def _is_assignment(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign | ast.AnnAssign)


def _name_of(node: ast.stmt) -> str:
    return node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else ""


def _join_pieces(pieces: Sequence[tuple[ast.stmt, str]]) -> str:
    """Short statements on lines of their own, functions and classes with a line between."""
    text = ""
    for node, piece in pieces:
        if piece:
            gap = "\n" if text and (_name_of(node) or text.endswith("\n\n")) and not text.endswith("\n\n") else ""
            text += f"{gap}{piece}\n" + ("\n" if _name_of(node) else "")
    return text.rstrip("\n") + "\n" if text else ""


def _write_statement(old: ast.stmt, new: ast.stmt, rows: Sequence[str]) -> str:
    """A statement in the author's own words unless it was changed; "" for `n = n` and the file's docstring."""
    if isinstance(old, ast.Expr):
        return ""
    if _is_assignment(old):
        text = ast.unparse(new)
        target, _, value = text.partition(" = ")
        is_same = target.strip("()") == value.strip("()") or target.partition(":")[0] == value
        return "" if is_same else text
    if new is not old:
        return ast.unparse(new)
    decorators = [node.lineno for node in getattr(old, "decorator_list", [])]
    return "\n".join(rows[min([old.lineno, *decorators]) - 1 : old.end_lineno])
