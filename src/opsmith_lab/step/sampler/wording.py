"""What a fn says about itself: words of its names, and a summary of its body. Nothing is executed.

Both are only vocabulary: which words matter, and how, is learned from the programs of a prompt.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import Any

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_PLUMBING = frozenset({"input", "state", "input_data", "torch", "to", "dtype", "shape", "fn"})


@lru_cache(maxsize=4096)
def split_words(*names: str) -> tuple[str, ...]:
    """The different words of identifiers in lower case, numbers as `#`.

    >>> split_words("fn_divbyD", "DivByD")
    ('divby', 'd', 'div', 'by')
    """
    words: dict[str, None] = {}
    for name in names:
        for word in _WORD.findall(name):
            words["#" if word.isdigit() else word.lower()] = None
    words.pop("fn", None)
    return tuple(words)


@lru_cache(maxsize=4096)
def list_operations(body: str) -> frozenset[str]:
    """What a body computes with: operators and called names; `+=` forms and plumbing left out.

    >>> sorted(list_operations("return [torch.sqrt(input[0]) / D_value]"))
    ['div', 'sqrt']
    """
    tree = _parse_body(body)
    names = {_operator_name(node) for node in ast.walk(tree)} if tree else set()
    return frozenset(names - {""})


@lru_cache(maxsize=4096)
def summarise_body(body: str) -> str:
    """One short text per meaning of a body: operations, number of inputs read, state, sizes, constants, parameters.

    >>> summarise_body("return [input[0] * input[0]]"), summarise_body("return [input[0] * input[1]]")
    ('i1 mul square', 'i2 mul')
    """
    tree = _parse_body(body)
    if tree is None:
        return "unreadable"
    texts = set(list_operations(body))
    if any(_is_square(node) for node in ast.walk(tree)):
        texts.add("square")
    reads = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    texts.add(f"i{sum(read.startswith('input[') and read.count('[') == 1 for read in reads)}")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    texts |= {"state"} & names
    texts |= {"weights" for name in names if name == "input_data"}
    texts |= {"size" for name in names if name.endswith("_value")}
    if any(isinstance(node, ast.Constant) and isinstance(node.value, float) for node in ast.walk(tree)):
        texts.add("constant")
    return " ".join(sorted(texts))


@lru_cache(maxsize=4096)
def list_picked(body: str) -> tuple[int, ...]:
    """The inputs that a body merely hands on, in order; empty when it computes anything.

    >>> list_picked("return [input[1], input[2]]"), list_picked("return [-input[0]]")
    ((1, 2), ())
    """
    tree = _parse_body(body)
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Return):
        return ()
    value = tree.body[0].value
    elements = value.elts if isinstance(value, (ast.List, ast.Tuple)) else []
    matches = [re.fullmatch(r"input\[(\d+)\]", ast.unparse(element)) for element in elements]
    return tuple(int(match[1]) for match in matches if match) if elements and all(matches) else ()


@lru_cache(maxsize=4096)
def natural_key(text: str) -> tuple[Any, ...]:
    """A sort key that orders numbers by value: expert2 before expert10."""
    return tuple((int(digits), "") if digits.isdigit() else (-1, digits) for digits in re.split(r"(\d+)", text))


@lru_cache(maxsize=64)
def _parse_body(body: str) -> Any:
    try:
        return ast.parse(body)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _operator_name(node: ast.AST) -> str:
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        return type(node.op).__name__.lower().replace("mult", "mul")
    if isinstance(node, ast.UnaryOp):
        return type(node.op).__name__.lower()
    if isinstance(node, ast.Compare):
        return "compare"
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return "" if name in _PLUMBING else str(name)
    return ""


def _is_square(node: ast.AST) -> bool:
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(node.op, ast.Pow):
        return isinstance(node.right, ast.Constant) and node.right.value == 2
    return isinstance(node.op, ast.Mult) and ast.unparse(node.left) == ast.unparse(node.right)
