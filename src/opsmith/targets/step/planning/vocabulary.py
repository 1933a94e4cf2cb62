"""Words for operations: what a statement of a reference does, and what the body of a function has, in one vocabulary.

Only PyTorch is known here. `VIEWS` move numbers without changing one; streams do that without functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from opsmith.targets.step.ir.code import list_mentions
from opsmith.targets.step.language.spec import FnSpec

VIEWS = frozenset(
    [
        "reshape",
        "view",
        "unsqueeze",
        "squeeze",
        "expand",
        "expand_as",
        "permute",
        "transpose",
        "T",
        "mT",
        "H",
        "movedim",
        "moveaxis",
        "swapaxes",
        "swapdims",
        "flatten",
        "unflatten",
        "contiguous",
        "clone",
        "detach",
        "to",
        "float",
        "double",
        "half",
        "bfloat16",
        "int",
        "long",
        "bool",
        "type",
        "type_as",
        "repeat",
        "tile",
        "repeat_interleave",
        "broadcast_to",
        "broadcast_tensors",
        "stack",
        "cat",
        "concat",
        "concatenate",
        "hstack",
        "vstack",
        "subscript",
        "narrow",
        "select",
        "index_select",
        "chunk",
        "split",
        "unbind",
        "tensor_split",
        "atleast_1d",
        "atleast_2d",
        "ravel",
        "t",
        "pack",
        "values",
        "indices",
        "alias",
        "zeros",
        "ones",
        "full",
        "zeros_like",
        "ones_like",
        "full_like",
        "empty",
        "empty_like",
        "arange",
        "tensor",
        "as_tensor",
        "size",
        "dim",
        "numel",
        "item",
    ]
)
_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.USub: "neg",
    ast.Not: "not",
    ast.Invert: "not",
    ast.Gt: "gt",
    ast.GtE: "gt",
    ast.Lt: "gt",
    ast.LtE: "gt",
    ast.Eq: "eq",
    ast.NotEq: "eq",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.And: "and",
    ast.Or: "or",
}
_SPELLINGS: Mapping[str, str] = {
    spelling: word
    for word, spellings in {
        "max": "amax maximum cummax fmax clamp_min",
        "min": "amin minimum cummin fmin clamp_max",
        "matmul": "mm bmm mv dot inner vdot baddbmm addmm tensordot einsum linear",
        "mul": "multiply mul_ outer",
        "div": "divide true_divide div_ reciprocal",
        "add": "add_ addcmul",
        "sub": "subtract sub_ rsub",
        "neg": "negative",
        "abs": "absolute",
        "gt": "ge lt le greater greater_equal less less_equal",
        "eq": "ne not_equal",
        "not": "logical_not bitwise_not",
        "and": "logical_and bitwise_and all",
        "or": "logical_or bitwise_or any",
        "xor": "logical_xor bitwise_xor",
        "pow": "float_power",
        "clamp": "clip",
        "clamp_min": "relu6",
        "sum": "nansum",
        "topk": "sort argsort kthvalue",
        "argmax": "argmin",
        "log": "log1p log2 log10",
        "exp": "expm1 exp2",
        "sigmoid": "expit",
        "one_hot": "scatter scatter_ scatter_add index_add",
        "gather": "take take_along_dim embedding",
        "where": "masked_fill masked_fill_",
    }.items()
    for spelling in spellings.split()
}
_POWERS: Mapping[float, str] = {2.0: "square", 0.5: "sqrt", -0.5: "rsqrt", -1.0: "div"}
# a word of a function's body -> further operations of statements that it may be part of ...
_SERVES: Mapping[str, frozenset[str]] = {
    word: frozenset(operations.split())
    for word, operations in {
        "mul": "square pow",
        "square": "pow mul norm",
        "div": "reciprocal",
        "max": "relu clamp",
        "min": "clamp",
        "gt": "where max min argmax topk",
        "where": "max min relu gt argmax",
        "relu": "max clamp",
        "clamp": "max min relu",
        "rsqrt": "sqrt div",
        "one_hot": "eq argmax topk gather",
        "stack": "one_hot",
        "tanh": "gelu",
        "erf": "gelu",
        "sigmoid": "silu",
        "and": "mul",
        "or": "add max",
    }.items()
}
# ... and, where the function folds elements into a state
_FOLDS: Mapping[str, frozenset[str]] = {
    word: frozenset(operations.split())
    for word, operations in {
        "add": "sum cumsum matmul mean logsumexp",
        "mul": "prod cumprod matmul",
        "max": "argmax topk",
        "gt": "argmax topk",
        "or": "sum max",
        "and": "min prod",
    }.items()
}


@dataclass(frozen=True)
class FnWords:
    """What a function of the task can do: a word for each operation of its body, views left out."""

    func_name: str
    words: tuple[str, ...]
    names: frozenset[str]  # of what it calls, as written
    tensors: frozenset[str]  # of the task, that the body reads
    reads: frozenset[str]  # every name in it
    is_stateful: bool

    def can_serve(self, word: str, operation: str) -> bool:
        """Whether a word of this function may be (part of) an operation of a statement."""
        plain = strip_arity(word)
        if word == operation or operation in _SERVES.get(plain, ()):
            return True
        if operation == "matmul" and word in ("mul", "sum"):
            return {"mul", "sum"} <= set(self.words)
        return self.is_stateful and operation in _FOLDS.get(plain, ())

    def shares(self, operations: Collection[str]) -> bool:
        """Whether a word of it may be (part of) one of these operations."""
        return any(self.can_serve(word, operation) for word in self.words for operation in operations)


IsData = Callable[[str], bool]  # whether a name stands for a tensor


def list_words(node: ast.AST, is_data: IsData) -> Iterator[str]:
    """A word for each operation in a syntax tree, views among them."""
    for child in ast.walk(node):
        yield from word_operation(child, is_data)


def word_operation(node: ast.AST, is_data: IsData) -> Iterator[str]:
    """The words of one node, without what is inside it. Arithmetic with a constant has words of its own: `add1`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return
    if isinstance(node, ast.BinOp):
        yield _word_arithmetic(node, is_data)
    elif isinstance(node, (ast.UnaryOp, ast.BoolOp)):
        yield _OPERATORS.get(type(node.op), "")
    elif isinstance(node, ast.Compare):
        yield from (_OPERATORS.get(type(operator), "") for operator in node.ops)
    elif isinstance(node, ast.Call):
        yield _word_call(node)
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "H", "values", "indices"):
        yield node.attr
    elif isinstance(node, ast.IfExp):
        yield "where"
    elif isinstance(node, ast.Subscript):
        yield "subscript"


def _word_arithmetic(node: ast.BinOp, is_data: IsData) -> str:
    if isinstance(node.op, ast.Pow):
        return _word_power(node.right)
    if isinstance(node.op, ast.Mult) and ast.dump(node.left) == ast.dump(node.right):
        return "square"
    word = _OPERATORS.get(type(node.op), "")
    sides = [
        any(isinstance(name, ast.Name) and is_data(name.id) for name in ast.walk(side))
        for side in (node.left, node.right)
    ]
    return f"{word}1" if word in ("add", "sub", "mul", "div") and not all(sides) else word


def strip_arity(word: str) -> str:
    """`add1` -> `add`."""
    return word[:-1] if word in ("add1", "sub1", "mul1", "div1") else word


def _word_power(exponent: ast.expr) -> str:
    try:
        return _POWERS.get(float(ast.literal_eval(exponent)), "pow")
    except (ValueError, TypeError, SyntaxError):
        return "pow"


def _name_called(call: ast.Call) -> str:
    """As written, of a method its own name alone."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _word_call(call: ast.Call) -> str:
    name = _name_called(call)
    if name == "pow" and call.args:
        return _word_power(call.args[-1])
    return _SPELLINGS.get(name, name)


@lru_cache(maxsize=1024)
def read_fn_words(fn: FnSpec) -> FnWords:
    """The words of a function's body; a body that does not parse has none."""
    try:
        tree = ast.parse("def apply(state, input):\n" + "\n".join(f" {row}" for row in fn.apply.split("\n")))
    except (SyntaxError, ValueError):
        return FnWords(fn.func_name, (), frozenset(), frozenset(), frozenset(), fn.stateful)
    nodes = list(ast.walk(tree))
    counts = {
        target.id
        for row in nodes
        if isinstance(row, ast.Assign) and _counts(row.value)
        for target in row.targets
        if isinstance(target, ast.Name)
    }
    words = list_words(tree, lambda name: is_tensor_name(name) and name not in counts)
    return FnWords(
        fn.func_name,
        tuple(word for word in words if word and word not in VIEWS),
        frozenset(_name_called(node) for node in nodes if isinstance(node, ast.Call)),
        frozenset(list_mentions(tree)),
        frozenset(node.id for node in nodes if isinstance(node, ast.Name)),
        fn.stateful,
    )


def is_tensor_name(name: str) -> bool:
    """Whether a name of an author's text may stand for a tensor."""
    return not name.endswith("_value") and name not in ("torch", "math", "ctx")


def _counts(value: ast.expr) -> bool:
    """Whether an expression is a number of entries."""
    names = {node.attr for node in ast.walk(value) if isinstance(node, ast.Attribute)}
    return not names.isdisjoint(("shape", "size", "numel")) and isinstance(value, (ast.Subscript, ast.Call))
