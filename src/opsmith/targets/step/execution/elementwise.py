"""Elementwise bodies: a proof that a fn's body means the same on a whole batch at once, without vmap.

The proof is a walk over the syntax tree that knows the rank of every value. A body is proven when it is straight-line
code of elementwise torch functions, arithmetic and comparisons, indexing and slicing of the first axis, stack and cat
along the first axis. Called with every tensor in *batch-last* form (element axes, then the batch axis), each of these
does to every element what it does to one: broadcasting aligns axes from the right, so that a scalar of shape [B] meets
a Buffer of shape [D, B] as () meets [D]. A proven body writes nothing in place, draws no random numbers and reads no
data to decide where it goes on. `forms` says how a batch is handed in.

What is not proven is not wrong: it runs under vmap or in a loop (see `fns`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

# -- the torch functions, methods and modules that work on each element by itself, by the form in which they are
# called: unary (one tensor), binary (tensors and numbers), pairwise (two tensors; with a number these reduce), where,
# clamp, and two that join along the first axis: stack and cat


def _split_words(text: str) -> list[str]:
    return text.split()


_UNARY = _split_words(
    """abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square neg sign sgn sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh sigmoid erf erfc floor ceil round trunc frac relu logical_not isnan isinf isfinite
    zeros_like ones_like absolute negative positive bitwise_not"""
)
_BINARY = _split_words(
    """maximum minimum fmax fmin add sub subtract mul multiply div divide true_divide floor_divide pow fmod
    remainder atan2 hypot lt le gt ge eq ne less less_equal greater greater_equal not_equal logical_and logical_or
    logical_xor bitwise_and bitwise_or bitwise_xor heaviside copysign"""
)
_PAIRWISE = ("max", "min")  # elementwise with two tensors only: with a number they reduce
_FUNCTIONAL = _split_words(
    """gelu silu relu sigmoid tanh softplus elu selu celu leaky_relu relu6 hardtanh hardsigmoid hardswish mish
    logsigmoid softsign tanhshrink"""
)
_MODULES = _split_words(
    """GELU SiLU ReLU Sigmoid Tanh Softplus ELU SELU CELU LeakyReLU ReLU6 Hardtanh Hardsigmoid Hardswish Mish
    LogSigmoid Softsign Tanhshrink Identity"""
)
_CASTS = ("float", "double", "half", "bfloat16", "int", "long", "bool")


def _list_functions() -> dict[Any, str]:
    """Known functions by identity, with the form of their arguments."""
    table: dict[Any, str] = {getattr(torch.nn.functional, name): "unary" for name in _FUNCTIONAL}
    table |= {getattr(torch, name): "unary" for name in _UNARY} | {getattr(torch, name): "binary" for name in _BINARY}
    table |= {getattr(torch, name): "pairwise" for name in _PAIRWISE}
    return table | {
        torch.where: "where",
        torch.clamp: "clamp",
        torch.clip: "clamp",
        torch.stack: "stack",
        torch.cat: "cat",
        torch.concat: "cat",
    }


_FUNCTIONS = _list_functions()
_METHODS = (
    {name: "unary" for name in _UNARY if hasattr(Tensor, name)}
    | {name: "binary" for name in _BINARY if hasattr(Tensor, name)}
    | dict.fromkeys(_PAIRWISE, "pairwise")
    | {"clamp": "clamp", "clip": "clamp"}
)
_MODULE_TYPES = tuple(getattr(torch.nn, name) for name in _MODULES)

# -- the proof

NUMBER = -1  # the rank of a Python number, so that max() gives the rank of a result

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


class _NotProvenError(Exception):
    """The body left the proven subset; why does not matter."""


@dataclass(frozen=True)
class Proof:
    """What a proven body needs: `structural` bodies look at the axes, so that the batch axis must be the last one."""

    structural: bool
    reads_input_data: bool


def prove_elementwise(
    tree: ast.FunctionDef,
    namespace: Mapping[str, Any],
    state_ranks: Sequence[int],
    input_ranks: Sequence[int],
    output_ranks: Sequence[int],
) -> Proof | None:
    """A proof that the body is elementwise, or None. Ranks are those of one element, per field."""
    walker = _RankWalker(namespace, {"state": state_ranks, "input": input_ranks})
    try:
        results = walker.rank_results(tree.body)
    except (_NotProvenError, RecursionError):
        return None
    fits = len(results) == len(output_ranks) and all(
        rank == declared or (rank == NUMBER and declared == 0)
        for rank, declared in zip(results, output_ranks, strict=True)
    )
    return Proof(walker.structural, walker.reads_input_data) if fits else None


@dataclass
class _RankWalker:
    namespace: Mapping[str, Any]
    fields: Mapping[str, Sequence[int]]  # ranks of `state` and `input`
    ranks: dict[str, int] = field(default_factory=dict)  # of local names, in order of assignment
    structural: bool = False
    reads_input_data: bool = False

    def rank_results(self, statements: Sequence[ast.stmt]) -> list[int]:
        *before, last = statements
        for statement in before:
            self._read_statement(statement)
        if not (isinstance(last, ast.Return) and isinstance(last.value, (ast.List, ast.Tuple))):
            raise _NotProvenError
        return [self._rank_expression(entry) for entry in last.value.elts]

    def _read_statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            raise _NotProvenError
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Name):
            self._assign_rank(target, self._rank_expression(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            ranks = self._rank_several(value)
            if len(ranks) != len(target.elts):
                raise _NotProvenError
            for name, rank in zip(target.elts, ranks, strict=True):
                self._assign_rank(name, rank)
        else:
            raise _NotProvenError

    def _rank_several(self, value: ast.expr) -> Sequence[int]:
        if isinstance(value, ast.Name) and value.id in self.fields:
            return self.fields[value.id]
        if isinstance(value, (ast.Tuple, ast.List)):
            return [self._rank_expression(entry) for entry in value.elts]
        raise _NotProvenError

    def _assign_rank(self, target: ast.expr, rank: int) -> None:
        if not isinstance(target, ast.Name) or target.id in self.fields or target.id in self.namespace:
            raise _NotProvenError  # also a local that hides a global: not worth a scope analysis
        self.ranks[target.id] = rank

    def _rank_expression(self, node: ast.expr) -> int:  # noqa: PLR0911 - one return per form of expression
        """The rank of an expression's value per element, or NUMBER."""
        match node:
            case ast.Constant(value=value) if type(value) in (int, float):
                return NUMBER
            case ast.Name(id=name):
                return self._rank_name(name)
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
                return max(self._rank_expression(left), self._rank_expression(right))
            case ast.UnaryOp(op=op, operand=operand) if isinstance(op, (ast.USub, ast.UAdd)):
                return self._rank_expression(operand)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self._rank_tensor(operand)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, _COMPARISONS):
                return self._at_least_tensor(max(self._rank_expression(left), self._rank_expression(right)))
            case ast.Subscript(value=value, slice=index):
                return self._rank_subscript(value, index)
            case ast.Call():
                return self._rank_call(node)
        raise _NotProvenError

    def _rank_name(self, name: str) -> int:
        if name in self.ranks:
            return self.ranks[name]
        if type(self.namespace.get(name)) in (int, float):
            return NUMBER
        raise _NotProvenError

    def _rank_tensor(self, node: ast.expr) -> int:
        return self._at_least_tensor(self._rank_expression(node))

    @staticmethod
    def _at_least_tensor(rank: int) -> int:
        if rank == NUMBER:
            raise _NotProvenError
        return rank

    def _rank_subscript(self, value: ast.expr, index: ast.expr) -> int:
        match value, index:
            case ast.Name(id=name), _ if name in self.fields:
                return self._rank_field(self.fields[name], index)
            case ast.Name(id="input_data"), ast.Constant(value=str(name)):
                return self._rank_parameter(name)
            case ast.Attribute(value=owner, attr="shape"), _:
                self._rank_field(
                    [0] * self._rank_tensor(owner), index
                )  # only checks that the axis exists, counted from the left
                if isinstance(index, ast.Constant):
                    self.structural = True
                    return NUMBER
                raise _NotProvenError
        rank = self._rank_tensor(value)
        if rank == 0:
            raise _NotProvenError
        self.structural = True
        if isinstance(index, ast.Slice):
            bounds = [
                self._rank_expression(bound) for bound in (index.lower, index.upper, index.step) if bound is not None
            ]
            if any(bound != NUMBER for bound in bounds):
                raise _NotProvenError
            return rank
        if self._rank_expression(index) != NUMBER:
            raise _NotProvenError
        return rank - 1

    @staticmethod
    def _rank_field(ranks: Sequence[int], index: ast.expr) -> int:
        """`input[0]`, `state[-1]`: the rank of the field that a constant names."""
        try:
            number = ast.literal_eval(index)
        except ValueError:
            raise _NotProvenError from None
        if type(number) is not int or not -len(ranks) <= number < len(ranks):
            raise _NotProvenError
        return ranks[number]

    def _rank_parameter(self, name: str) -> int:
        tensors = self.namespace.get("input_data", {})
        if "input_data" in self.ranks or name not in tensors:
            raise _NotProvenError
        self.structural = self.reads_input_data = True
        rank: int = tensors[name].dim()
        return rank

    def _rank_call(self, node: ast.Call) -> int:
        function = self._resolve_name(node.func)
        if function is not None:
            form = "unary" if isinstance(function, _MODULE_TYPES) else self._find_form(function)
            if getattr(function, "inplace", False):
                raise _NotProvenError
            return self._rank_form(form, node.args, node.keywords)
        if isinstance(node.func, ast.Attribute):
            return self._rank_method(node.func.attr, [node.func.value, *node.args], node.keywords)
        raise _NotProvenError

    @staticmethod
    def _find_form(function: Any) -> str:
        try:
            return _FUNCTIONS[function]
        except (KeyError, TypeError):
            raise _NotProvenError from None

    def _resolve_name(self, node: ast.expr) -> Any:
        """The object that a global or dotted name stands for; None: it is a local or an expression."""
        match node:
            case ast.Name(id=name) if name not in self.ranks and name not in self.fields:
                return self.namespace.get(name)
            case ast.Attribute(value=owner, attr=name):
                value = self._resolve_name(owner)
                return None if value is None or isinstance(value, Tensor) else getattr(value, name, None)
        return None

    def _rank_method(self, name: str, args: list[ast.expr], keywords: list[ast.keyword]) -> int:
        rank = self._rank_tensor(args[0])
        if name in _CASTS and len(args) == 1 and not keywords:
            return rank
        if name == "to" and len(args) == 2 and not keywords:
            return self._rank_cast(rank, args[1])
        if name in _METHODS:
            return self._rank_form(_METHODS[name], args, keywords)
        raise _NotProvenError

    def _rank_cast(self, rank: int, dtype: ast.expr) -> int:
        if isinstance(dtype, ast.Attribute) and isinstance(self._resolve_name(dtype), torch.dtype):
            return rank
        if isinstance(dtype, ast.Attribute) and dtype.attr == "dtype":
            self._rank_tensor(dtype.value)
            return rank
        raise _NotProvenError

    def _rank_form(self, form: str, args: list[ast.expr], keywords: list[ast.keyword]) -> int:
        return _FORMS[form](self, args, {keyword.arg: keyword.value for keyword in keywords})

    def _rank_unary(self, args: list[ast.expr], keywords: Mapping[str | None, ast.expr]) -> int:
        constant = all(isinstance(value, ast.Constant) for value in keywords.values())
        if len(args) != 1 or not set(keywords) <= {"approximate"} or not constant:
            raise _NotProvenError
        return self._rank_tensor(args[0])

    def _rank_binary(self, args: list[ast.expr], keywords: Mapping[str | None, ast.expr]) -> int:
        if len(args) != 2 or keywords:
            raise _NotProvenError
        return self._at_least_tensor(max(self._rank_expression(arg) for arg in args))

    def _rank_pairwise(self, args: list[ast.expr], keywords: Mapping[str | None, ast.expr]) -> int:
        if len(args) != 2 or keywords:
            raise _NotProvenError
        return max(self._rank_tensor(arg) for arg in args)

    def _rank_where(self, args: list[ast.expr], keywords: Mapping[str | None, ast.expr]) -> int:
        if len(args) != 3 or keywords:
            raise _NotProvenError
        return max(self._rank_tensor(args[0]), *(self._rank_expression(arg) for arg in args[1:]))

    def _rank_clamp(self, args: list[ast.expr], keywords: Mapping[str | None, ast.expr]) -> int:
        if not 1 <= len(args) <= 3 or not set(keywords) <= {"min", "max"}:
            raise _NotProvenError
        bounds = [self._rank_expression(bound) for bound in (*args[1:], *keywords.values())]
        return max(self._rank_tensor(args[0]), *bounds)

    def _rank_join(self, args: list[ast.expr], keywords: Mapping[str | None, ast.expr]) -> int:
        """The common rank of the tensors that stack or cat joins along the first axis."""
        axes = [*args[1:], *(value for key, value in keywords.items() if key == "dim")]
        at_front = all(isinstance(axis, ast.Constant) and axis.value == 0 for axis in axes)
        if not args or not isinstance(args[0], (ast.List, ast.Tuple)) or not at_front or not set(keywords) <= {"dim"}:
            raise _NotProvenError
        ranks = {self._rank_tensor(tensor) for tensor in args[0].elts}
        if len(ranks) != 1:
            raise _NotProvenError
        self.structural = True
        return ranks.pop()

    def _rank_stack(self, args: list[ast.expr], keywords: Mapping[str | None, ast.expr]) -> int:
        return self._rank_join(args, keywords) + 1

    def _rank_cat(self, args: list[ast.expr], keywords: Mapping[str | None, ast.expr]) -> int:
        rank = self._rank_join(args, keywords)
        if rank == 0:
            raise _NotProvenError
        return rank


_Form = Callable[[_RankWalker, list[ast.expr], Mapping[str | None, ast.expr]], int]
_FORMS: Mapping[str, _Form] = {
    "unary": _RankWalker._rank_unary,
    "binary": _RankWalker._rank_binary,
    "pairwise": _RankWalker._rank_pairwise,
    "where": _RankWalker._rank_where,
    "clamp": _RankWalker._rank_clamp,
    "stack": _RankWalker._rank_stack,
    "cat": _RankWalker._rank_cat,
}
