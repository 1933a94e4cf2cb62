"""A definition's `run` as the reference of a problem file.

The text stays as it is but for the float types that it names: they become torch's default type, which is float64 where
expected values are computed. So do casts to floats of one byte whose result is only returned; one that is computed with
is a part of what is computed, and stays. A function behind it has the problem's arguments, and gives its outputs in
order.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from opsmith.imports.flashinfer.formats import Definition
from opsmith.imports.flashinfer.names import ChosenNames
from opsmith.imports.foreign_code import CodeRefusalError, check_foreign_code

ENTRY = "run"
DEFAULT_TYPE = "torch.get_default_dtype()"

_FLOAT_TYPES = frozenset({"float32", "float", "float16", "half", "bfloat16"})
_CASTS = frozenset({"float", "half", "bfloat16"})
_NARROW = frozenset({"float16", "bfloat16"})


def list_code_names(definition: Definition) -> list[str]:
    """What the reference defines at its top level. Raises CodeRefusalError."""
    tree = check_foreign_code(definition.reference)
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def write_reference(definition: Definition, names: ChosenNames, freed: Collection[int] = ()) -> str:
    """The text of the problem's reference, which asserts nothing of the sizes `freed`. Raises CodeRefusalError where
    there is no such `run`."""
    tree = check_foreign_code(definition.reference)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == ENTRY]
    if not functions:
        raise CodeRefusalError(f"no function {ENTRY} at top level")
    code = _replace_places(definition.reference, [*_list_types(tree), *_list_asserts(tree, freed)]).strip("\n")
    aliases = (alias for node in tree.body if isinstance(node, ast.Import) for alias in node.names)
    has_torch = any(alias.name == "torch" and alias.asname is None for alias in aliases)
    head = "" if has_torch else "import torch\n\n"
    arguments = ", ".join(names.tensors[name] for name in definition.inputs)
    call = _write_call(definition, names, functions[-1])
    returned = _write_return(definition, names, functions[-1])
    return f"{head}{code}\n\n\ndef {names.problem}({arguments}):\n    result = {call}\n    return {returned}\n"


def _write_call(definition: Definition, names: ChosenNames, function: ast.FunctionDef) -> str:
    """By name where the function has the definition's names, else in the definition's order."""
    formal = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    keywords = [argument.arg for argument in function.args.kwonlyargs]
    words = {name: names.tensors[name] for name in definition.inputs}
    if formal == list(words) and not keywords:
        return f"{ENTRY}({', '.join(words.values())})"
    if {*formal, *keywords} == words.keys() and not function.args.posonlyargs:
        return f"{ENTRY}({', '.join(f'{name}={word}' for name, word in words.items())})"
    if len(formal) != len(words) or keywords:
        raise CodeRefusalError(f"{ENTRY}({', '.join([*formal, *keywords])}): expected {', '.join(words)}")
    return f"{ENTRY}({', '.join(words.values())})"


def _write_return(definition: Definition, names: ChosenNames, function: ast.FunctionDef) -> str:
    """The outputs in order, each in the type of an input that is declared as it is: as narrow as the data."""
    returns = (node for node in ast.walk(function) if isinstance(node, ast.Return))
    is_mapping = any(isinstance(node.value, ast.Dict) for node in returns)
    words = []
    for number, (name, spec) in enumerate(definition.outputs.items()):
        word = f"result[{name!r}]" if is_mapping else f"result[{number}]" if len(definition.outputs) > 1 else "result"
        word = f"torch.as_tensor({word})" if spec.shape is None else word
        like = next((key for key, own in definition.inputs.items() if own.dtype == spec.dtype and own.shape), "")
        words.append(f"{word}.to({names.tensors[like]}.dtype)" if spec.dtype in _NARROW and like else word)
    return ", ".join(words)


def _replace_places(text: str, places: Iterable[tuple[ast.expr | ast.stmt, str]]) -> str:
    """The text with these words in place of nodes that stand on one line."""
    lines = text.split("\n")
    for node, word in sorted(places, key=lambda pair: (-pair[0].lineno, -pair[0].col_offset)):
        if node.lineno != node.end_lineno or node.end_col_offset is None:
            continue
        line = lines[node.lineno - 1].encode()
        lines[node.lineno - 1] = (line[: node.col_offset] + word.encode() + line[node.end_col_offset :]).decode()
    return "\n".join(lines)


def _list_asserts(tree: ast.Module, sizes: Collection[int]) -> Iterator[tuple[ast.stmt, str]]:
    """Assertions that something is one of these numbers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare) and len(node.test.ops) == 1:
            value = node.test.comparators[0]
            is_number = isinstance(value, ast.Constant) and type(value.value) is int and value.value in sizes
            if is_number and isinstance(node.test.ops[0], ast.Eq):
                yield node, "pass"


def _list_types(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """The places of types, and of methods that cast, with what stands there instead."""
    casts: Mapping[int, ast.Attribute] = {
        id(node.func): node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
            if node.attr in _FLOAT_TYPES and id(node) not in casts:
                yield node, DEFAULT_TYPE
        elif isinstance(node, ast.Call) and id(node.func) in casts:
            func = casts[id(node.func)]
            if func.attr in _CASTS:
                yield _CastCall(node, func), f"to({DEFAULT_TYPE})"
    yield from ((node, DEFAULT_TYPE) for node in list_byte_casts(tree, is_last=True))


def list_byte_casts(tree: ast.Module, is_last: bool) -> Iterator[ast.expr]:
    """The types of casts to floats of one byte whose result is only returned, or all others."""
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    reads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]

    def is_returned(node: ast.AST) -> bool:
        parent = parents[id(node)]
        if isinstance(parent, ast.Assign) and all(isinstance(target, ast.Name) for target in parent.targets):
            names = {target.id for target in parent.targets if isinstance(target, ast.Name)}
            later = (read for read in reads if read.id in names and read.lineno > parent.lineno)
            return all(map(is_returned, later))
        return isinstance(parent, ast.Return) or (isinstance(parent, ast.Tuple | ast.Dict) and is_returned(parent))

    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            words = [*node.args, *(word.value for word in node.keywords)]
            types = [word for word in words if ast.unparse(word).startswith("torch.float8_")]
            yield from (word for word in types if is_returned(node) is is_last)


class _CastCall(ast.expr):
    """The place of `float()` behind its object and the dot."""

    def __init__(self, call: ast.Call, func: ast.Attribute) -> None:
        super().__init__()
        self.lineno = func.end_lineno or call.lineno
        self.col_offset = (func.end_col_offset or 0) - len(func.attr)
        self.end_lineno, self.end_col_offset = call.end_lineno, call.end_col_offset
