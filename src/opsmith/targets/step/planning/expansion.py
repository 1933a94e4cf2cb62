"""Composite calls of PyTorch written out as the operations that they stand for, where no function offered has them.

A definition is a text over its arguments, the last statement of which assigns `result`. What a definition calls may be
written out in turn. Whether it computes the same is checked on data by who asks (`reader`).
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.planning.vocabulary import read_fn_words, strip_arity

Lines = list[str]
Lookup = Callable[[str], Any]  # the value of an expression; None where it has none


@dataclass(frozen=True)
class Words:
    """What the bodies of the functions offered have: names as written, and words of `vocabulary`."""

    names: frozenset[str]
    words: frozenset[str]

    def has_any(self, *words: str) -> bool:
        return not self.words.isdisjoint(words) or not self.names.isdisjoint(words)


def list_fn_words(fns: Sequence[FnSpec]) -> Words:
    """What all functions have together."""
    words, names = set[str](), set[str]()
    for fn in fns:
        words.update(map(strip_arity, read_fn_words(fn).words))
        names.update(read_fn_words(fn).names)
    return Words(frozenset(names), frozenset(words))


def list_functions(text: str) -> dict[str, ast.FunctionDef]:
    """The functions that a text defines, by name."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return {}
    return {statement.name: statement for statement in body if isinstance(statement, ast.FunctionDef)}


@dataclass
class Expander:
    """Writes calls out. `functions`: those that `global` defines, by name."""

    has: Words
    look_up: Lookup
    functions: Mapping[str, ast.FunctionDef] = field(default_factory=dict)

    def expand_call(self, node: ast.expr, values: Collection[str]) -> list[ast.stmt] | None:
        """Statements in place of an operation over atoms; None: it stays. `values`: names that are tensors of the
        reference, whose attributes are methods."""
        lines = self._expand_power(node) if isinstance(node, ast.BinOp) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            lines = self._define("matmul", [ast.unparse(node.left), ast.unparse(node.right)], {})
        if isinstance(node, ast.Call):
            lines = self._expand_function(node, values)
        return None if lines is None else ast.parse("\n".join(lines)).body

    def _expand_power(self, node: ast.BinOp) -> Lines | None:
        if not isinstance(node.op, ast.Pow):
            return None
        exponent = self.look_up(ast.unparse(node.right))
        if not isinstance(exponent, (int, float)) or self.has.has_any("pow"):
            return None
        return self._define("pow", [ast.unparse(node.left), repr(exponent)], {})

    def _expand_function(self, call: ast.Call, values: Collection[str]) -> Lines | None:
        if any(isinstance(argument, ast.Starred) for argument in call.args):
            return None
        arguments = [ast.unparse(argument) for argument in call.args]
        keywords = {keyword.arg or "": ast.unparse(keyword.value) for keyword in call.keywords}
        func = call.func
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in values:
            return self._define(func.attr, [func.value.id, *arguments], keywords)
        if isinstance(func, ast.Name) and func.id in self.functions and func.id not in self.has.names:
            return self._inline_function(self.functions[func.id], arguments, keywords)
        if ast.unparse(func) in self.has.names:
            return None
        function = self.look_up(ast.unparse(func))
        if isinstance(function, nn.Module):
            return self._expand_module(function, ast.unparse(func), arguments)
        return self._define(str(getattr(function, "__name__", "")), arguments, keywords)

    def _define(self, name: str, arguments: list[str], keywords: Mapping[str, str]) -> Lines | None:
        """The definition of a call by its name, if there is one and no function offered has the call as it is."""
        definition = _DEFINITIONS.get(_ALIASES.get(name, name))
        if definition is None or name in self.has.names:
            return None
        try:
            bound = inspect.signature(definition).bind(self, *arguments, **keywords)
            return definition(*bound.args, **bound.kwargs)
        except (TypeError, ValueError):
            return None

    def _inline_function(
        self, function: ast.FunctionDef, arguments: Lines, keywords: Mapping[str, str]
    ) -> Lines | None:
        """The body of a function that only assigns and returns."""
        body = [row for row in function.body if not (isinstance(row, ast.Expr) and isinstance(row.value, ast.Constant))]
        own = function.args
        names = [argument.arg for argument in own.args]
        if not body or own.vararg or own.kwarg or own.kwonlyargs or len(arguments) > len(names):
            return None
        last = body[-1]
        if not isinstance(last, ast.Return) or last.value is None:
            return None
        if not all(isinstance(row, ast.Assign) for row in body[:-1]):
            return None
        defaults = names[len(names) - len(own.defaults) :]
        values = dict(zip(defaults, map(ast.unparse, own.defaults), strict=True))
        values |= dict(zip(names, arguments, strict=False)) | dict(keywords)
        if set(values) != set(names):
            return None
        rows = [f"{name} = {value}" for name, value in values.items() if name != value]
        return [*rows, *map(ast.unparse, body[:-1]), f"result = {ast.unparse(last.value)}"]

    def _expand_module(self, module: nn.Module, name: str, arguments: Lines) -> Lines | None:
        """A module of torch as the function that it calls."""
        if isinstance(module, nn.Sequential):
            rows = [f"step_{place} = {name}[{place}]({{}})" for place in range(len(module))]
            sources = [*arguments[:1], *(f"step_{place}" for place in range(len(module)))]
            filled = [row.format(source) for row, source in zip(rows, sources, strict=False)]
            return [*filled, f"result = {sources[-1]}"] if len(arguments) == 1 and rows else None
        writer = _MODULES.get(type(module).__name__)
        if writer is None or type(module).__module__.partition(".")[0] != "torch" or len(arguments) != 1:
            return None
        function, further = writer(module, name)
        return self._define(function, [*arguments, *further], {})

    # -- what definitions ask

    def count_axes(self, text: str) -> int:
        """The number of axes of a tensor. Raises ValueError for what is none."""
        value = self.look_up(text)
        if not isinstance(value, Tensor):
            raise ValueError(text)
        return value.ndim

    def read_axes(self, x: str, dim: str) -> list[int]:
        """Axes as numbers below 0. Raises ValueError for what is no number, or tuple of them."""
        value, rank = self.look_up(dim), self.count_axes(x)
        axes = list(range(rank)) if value is None else [value] if isinstance(value, int) else list(value)
        if not all(isinstance(axis, int) for axis in axes):
            raise ValueError(dim)
        return [axis - rank if axis >= 0 else axis for axis in axes]

    def is_true(self, text: str) -> bool:
        return bool(self.look_up(text))

    def count_entries(self, x: str, dim: str) -> str:
        """The number of entries along axes, as a text."""
        return " * ".join(f"{x}.shape[{axis}]" for axis in self.read_axes(x, dim)) or "1"


# -- definitions; `e` is the expander, further arguments are texts


def _pow(e: Expander, x: str, exponent: str) -> Lines | None:
    power = e.look_up(exponent)
    if power == 2 and not e.has.has_any("square") and e.has.has_any("mul"):
        return [f"result = {x} * {x}"]
    if power == 0.5 and e.has.has_any("sqrt"):
        return [f"result = torch.sqrt({x})"]
    if power == -0.5 and e.has.has_any("rsqrt", "sqrt"):
        return [f"result = torch.rsqrt({x})"]
    if power == -1 and e.has.has_any("div", "reciprocal"):
        return [f"result = 1.0 / {x}"]
    if isinstance(power, int) and 2 < power < 6 and e.has.has_any("mul"):
        return [f"power = {x} * {x}", *[f"power = power * {x}"] * (power - 2), "result = power"]
    return None


def _square(e: Expander, x: str) -> Lines | None:
    return [f"result = {x} * {x}"] if e.has.has_any("mul") and not e.has.has_any("square", "pow") else None


def _rsqrt(e: Expander, x: str) -> Lines | None:
    return [f"root = torch.sqrt({x})", "result = 1.0 / root"] if e.has.has_any("sqrt") else None


def _mean(e: Expander, x: str, dim: str = "None", keepdim: str = "False", *, dtype: str = "None") -> Lines | None:
    if dtype != "None" or not e.has.has_any("add", "sum"):
        return None
    axes = tuple(e.read_axes(x, dim))
    return [f"total = {x}.sum({axes}, keepdim={keepdim})", f"result = total / ({e.count_entries(x, dim)})"]


def _var(
    e: Expander, x: str, dim: str = "None", unbiased: str = "", keepdim: str = "False", *, correction: str = ""
) -> Lines:
    less = correction or ("0" if unbiased and not e.is_true(unbiased) else "1")
    axes = tuple(e.read_axes(x, dim))
    rows = _centre_squares(x, axes)
    if not e.look_up(less):
        return [*rows, f"result = square.mean({axes}, keepdim={keepdim})"]
    count = f"({e.count_entries(x, dim)} - {less})"
    return [*rows, f"total = square.sum({axes}, keepdim={keepdim})", f"result = total / {count}"]


def _centre_squares(x: str, axes: object) -> Lines:
    return [f"mean = {x}.mean({axes}, keepdim=True)", f"centered = {x} - mean", "square = centered * centered"]


def _std(
    e: Expander, x: str, dim: str = "None", unbiased: str = "", keepdim: str = "False", *, correction: str = ""
) -> Lines:
    rows = _var(e, x, dim, unbiased, keepdim, correction=correction)
    return [*rows[:-1], rows[-1].replace("result =", "variance ="), "result = torch.sqrt(variance)"]


def _norm(e: Expander, x: str, p: str = "2", dim: str = "None", keepdim: str = "False") -> Lines | None:
    power = e.look_up(p)
    axes = tuple(e.read_axes(x, dim))
    if power in (2, "fro", None) and e.has.has_any("sqrt"):
        return [f"square = {x} * {x}", f"total = square.sum({axes}, keepdim={keepdim})", "result = torch.sqrt(total)"]
    if power == 1 and e.has.has_any("abs"):
        return [f"size = {x}.abs()", f"result = size.sum({axes}, keepdim={keepdim})"]
    return None


def _vector_norm(e: Expander, x: str, ord: str = "2", dim: str = "None", keepdim: str = "False") -> Lines | None:
    return _norm(e, x, ord, dim, keepdim)


def _normalize(e: Expander, x: str, p: str = "2.0", dim: str = "1", eps: str = "1e-12") -> Lines | None:
    rows = _norm(e, x, p, dim, "True")
    if rows is None:
        return None
    limit = ["bounded = length.clamp_min(" + eps + ")"] if e.has.has_any("max", "clamp") else ["bounded = length"]
    return [*rows[:-1], rows[-1].replace("result =", "length ="), *limit, f"result = {x} / bounded"]


def _divide_by_root(e: Expander, x: str, variance: str, eps: str) -> Lines:
    """x over the root of a variance, by the function that is there for it."""
    rows = [f"shifted = {variance} + {eps}"]
    if e.has.has_any("rsqrt") or not e.has.has_any("sqrt", "div"):
        return [*rows, "scale = torch.rsqrt(shifted)", f"normed = {x} * scale"]
    return [*rows, "deviation = torch.sqrt(shifted)", f"normed = {x} / deviation"]


def _scale_and_shift(weight: str, bias: str) -> Lines:
    rows = [] if weight == "None" else [f"normed = normed * {weight}"]
    return [*rows, *([] if bias == "None" else [f"normed = normed + {bias}"]), "result = normed"]


def _layer_norm(
    e: Expander, x: str, normalized_shape: str, weight: str = "None", bias: str = "None", eps: str = "1e-05"
) -> Lines:
    axes = _last_axes(e, normalized_shape)
    rows = [*_centre_squares(x, axes), f"variance = square.mean({axes}, keepdim=True)"]
    return [*rows, *_divide_by_root(e, "centered", "variance", eps), *_scale_and_shift(weight, bias)]


def _rms_norm(e: Expander, x: str, normalized_shape: str, weight: str = "None", eps: str = "None") -> Lines:
    axes = _last_axes(e, normalized_shape)
    epsilon = f"torch.finfo({x}.dtype).eps" if e.look_up(eps) is None else eps
    rows = [f"square = {x} * {x}", f"power = square.mean({axes}, keepdim=True)"]
    return [*rows, *_divide_by_root(e, x, "power", epsilon), *_scale_and_shift(weight, "None")]


def _last_axes(e: Expander, shape: str) -> tuple[int, ...]:
    value = e.look_up(shape)
    count = 1 if isinstance(value, int) else len(value)
    return tuple(range(-count, 0))


def _group_norm(
    e: Expander, x: str, num_groups: str, weight: str = "None", bias: str = "None", eps: str = "1e-05"
) -> Lines:
    inner = ", 1" * (e.count_axes(x) - 2)
    rows = [
        f"grouped = {x}.reshape({x}.shape[0], {num_groups}, -1)",
        *_centre_squares("grouped", -1),
        "variance = square.mean(-1, keepdim=True)",
        *_divide_by_root(e, "centered", "variance", eps),
        f"normed = normed.reshape({x}.shape)",
    ]
    scale, shift = (text if text == "None" else f"{text}.reshape(-1{inner})" for text in (weight, bias))
    return [*rows, *_scale_and_shift(scale, shift)]


def _softmax(e: Expander, x: str, dim: str, _stacklevel: str = "3", dtype: str = "None") -> Lines | None:
    if dtype != "None" or not e.has.has_any("exp"):
        return None
    rows, _ = _sum_exponentials(e, x, dim)
    return [*rows, "result = exponential / total"]


def _sum_exponentials(e: Expander, x: str, dim: str) -> tuple[Lines, str]:
    """`exponential` and its `total`, and the name of x less its highest, where functions can take that off."""
    is_shifted = e.has.has_any("max") and e.has.has_any("sub")
    rows = [f"highest = {x}.amax({dim}, keepdim=True)", f"shifted = {x} - highest"] if is_shifted else []
    source = "shifted" if is_shifted else x
    return [*rows, f"exponential = torch.exp({source})", f"total = exponential.sum({dim}, keepdim=True)"], source


def _softmin(e: Expander, x: str, dim: str) -> Lines:
    return [f"opposite = -{x}", f"result = torch.softmax(opposite, {dim})"]


def _log_softmax(e: Expander, x: str, dim: str, _stacklevel: str = "3", dtype: str = "None") -> Lines | None:
    if dtype != "None" or not e.has.has_any("exp", "log"):
        return None
    rows, shifted = _sum_exponentials(e, x, dim)
    return [*rows, "logarithm = torch.log(total)", f"result = {shifted} - logarithm"]


def _logsumexp(e: Expander, x: str, dim: str, keepdim: str = "False") -> Lines | None:
    if not e.has.has_any("exp"):
        return None
    rows, shifted = _sum_exponentials(e, x, dim)
    rows += ["logarithm = torch.log(total)"]
    whole = "logarithm + highest" if shifted != x else "logarithm"
    return [*rows, f"kept = {whole}", "result = kept" if e.is_true(keepdim) else f"result = kept.squeeze({dim})"]


def _sigmoid(e: Expander, x: str) -> Lines | None:
    if not e.has.has_any("exp"):
        return None
    return [f"opposite = -{x}", "exponential = torch.exp(opposite)", "total = 1 + exponential", "result = 1 / total"]


def _silu(e: Expander, x: str, inplace: str = "False") -> Lines:
    return [f"gate = torch.sigmoid({x})", f"result = {x} * gate"]


def _gelu(e: Expander, x: str, approximate: str = "'none'") -> Lines | None:
    if e.look_up(approximate) == "tanh":
        inner = f"{math.sqrt(2 / math.pi)!r} * ({x} + 0.044715 * {x} * {x} * {x})"
        return [f"inner = {inner}", "curve = torch.tanh(inner)", f"result = 0.5 * {x} * (1 + curve)"]
    if not e.has.has_any("erf"):
        return None
    return [f"inner = {x} / {math.sqrt(2)!r}", "curve = torch.erf(inner)", f"result = 0.5 * {x} * (1 + curve)"]


def _softplus(e: Expander, x: str) -> Lines | None:
    if not e.has.has_any("exp", "log"):
        return None
    return [f"exponential = torch.exp({x})", "total = 1 + exponential", "result = torch.log(total)"]


def _leaky_relu(e: Expander, x: str, negative_slope: str = "0.01", inplace: str = "False") -> Lines | None:
    if not e.has.has_any("where"):
        return None
    return [f"mask = {x} > 0", f"lower = {x} * {negative_slope}", f"result = torch.where(mask, {x}, lower)"]


def _elu(e: Expander, x: str, alpha: str = "1.0", inplace: str = "False") -> Lines | None:
    if not e.has.has_any("exp"):
        return None
    rows = [f"mask = {x} > 0", f"exponential = torch.exp({x})", f"lower = {alpha} * (exponential - 1)"]
    return [*rows, f"result = torch.where(mask, {x}, lower)"]


def _tanh(e: Expander, x: str) -> Lines | None:
    if not e.has.has_any("sigmoid"):
        return None
    return [f"double = 2 * {x}", "gate = torch.sigmoid(double)", "result = 2 * gate - 1"]


def _glu(e: Expander, x: str, dim: str = "-1") -> Lines:
    return [f"first, second = {x}.chunk(2, {dim})", "gate = torch.sigmoid(second)", "result = first * gate"]


def _linear(e: Expander, x: str, weight: str, bias: str = "None") -> Lines:
    rows = [f"projection = {x} @ {weight}.T"]
    return [*rows, "result = projection" if bias == "None" else f"result = projection + {bias}"]


def _addmm(e: Expander, start: str, x: str, y: str) -> Lines:
    return [f"projection = {x} @ {y}", f"result = {start} + projection"]


def _matmul(e: Expander, x: str, y: str) -> Lines | None:
    """Products and sums, where functions know nothing else."""
    if e.has.has_any("matmul", "mm", "bmm", "linear", "einsum") or not (
        e.has.has_any("mul") and e.has.has_any("add", "sum")
    ):
        return None
    left, right = e.count_axes(x), e.count_axes(y)
    if right == 1:
        return [f"product = {x} * {y}", "result = product.sum(-1)"]
    if left == 1 or right == 2:
        return [f"product = {x}.unsqueeze(-1) * {y}", "result = product.sum(-2)"]
    return [f"product = {x}.unsqueeze(-1) * {y}.unsqueeze(-3)", "result = product.sum(-2)"]


def _einsum(e: Expander, equation: str, *operands: str) -> Lines | None:
    """Two operands: products, summed over what the result lacks."""
    formula = e.look_up(equation)
    if not isinstance(formula, str) or len(operands) != 2 or "->" not in formula or "." in formula:
        return None
    if e.has.has_any("matmul", "mm", "bmm", "linear", "einsum") or not e.has.has_any("mul"):
        return None
    sides, _, result = formula.replace(" ", "").partition("->")
    summed = "".join(dict.fromkeys(letter for letter in sides if letter.isalpha() and letter not in result))
    order = result + summed
    if any(len(set(side)) < len(side) for side in (*sides.split(","), result)):
        return None
    first, second = (_align(text, side, order) for text, side in zip(operands, sides.split(","), strict=True))
    axes = tuple(range(-len(summed), 0))
    rows = [f"product = {first} * {second}"]
    return [*rows, f"result = product.sum({axes})" if summed else "result = product"]


def _align(text: str, side: str, order: str) -> str:
    """An operand with its axes in this order, and an axis of 1 for each that it lacks."""
    own = [letter for letter in order if letter in side]
    places = [side.index(letter) for letter in own]
    turned = text if places == sorted(places) else f"{text}.permute({', '.join(map(str, places))})"
    if len(own) == len(order):
        return turned
    return f"{turned}[{', '.join(':' if letter in side else 'None' for letter in order)}]"


def _attention(
    e: Expander,
    query: str,
    key: str,
    value: str,
    attn_mask: str = "None",
    *further: str,
    scale: str = "None",
    **more: str,
) -> Lines | None:
    if any(e.is_true(text) for text in (*further, *more.values())):  # dropout, is_causal
        return None
    factor = f"{query}.shape[-1] ** -0.5" if e.look_up(scale) is None else scale
    rows = [f"swapped = {key}.transpose(-2, -1)", f"score = {query} @ swapped"]
    if e.has.has_any("div") and not e.has.has_any("mul") and e.look_up(scale) is None:
        rows += [f"score = score / {query}.shape[-1] ** 0.5"]
    else:
        rows += [f"factor = {factor}", "score = score * factor"]
    mask = e.look_up(attn_mask)
    if isinstance(mask, Tensor):
        is_bool = not mask.is_floating_point()
        rows += [f"score = score.masked_fill(~{attn_mask}, -torch.inf)" if is_bool else f"score = score + {attn_mask}"]
    return [*rows, "weights = torch.softmax(score, -1)", f"result = weights @ {value}"]


def _mse_loss(e: Expander, x: str, y: str, *, reduction: str = "'mean'") -> Lines | None:
    return _reduce_loss(e, [f"difference = {x} - {y}", "loss = difference * difference"], reduction)


def _l1_loss(e: Expander, x: str, y: str, *, reduction: str = "'mean'") -> Lines | None:
    return _reduce_loss(e, [f"difference = {x} - {y}", "loss = difference.abs()"], reduction)


def _reduce_loss(e: Expander, rows: Lines, reduction: str) -> Lines | None:
    ending = {"mean": "loss.mean()", "sum": "loss.sum()", "none": "loss"}.get(str(e.look_up(reduction)))
    return None if ending is None else [*rows, f"result = {ending}"]


def _cross_entropy(e: Expander, x: str, target: str, *, reduction: str = "'mean'") -> Lines | None:
    labels = e.look_up(target)
    if e.count_axes(x) != 2 or not isinstance(labels, Tensor):
        return None
    rows = [f"logs = torch.log_softmax({x}, -1)"]
    if labels.is_floating_point():
        rows += [f"product = logs * {target}", "loss = -product.sum(-1)"]
    else:
        rows += [f"chosen = logs.gather(1, {target}.unsqueeze(1))", "loss = -chosen.squeeze(1)"]
    return _reduce_loss(e, rows, reduction)


def _cosine_similarity(e: Expander, x: str, y: str, dim: str = "1", eps: str = "1e-8") -> Lines:
    rows = [f"product = {x} * {y}", f"dot = product.sum({dim})"]
    for name, text in (("first", x), ("second", y)):
        rows += [f"square = {text} * {text}", f"total = square.sum({dim})", f"{name} = torch.sqrt(total)"]
    return [*rows, "lengths = first * second", "result = dot / lengths"]


def _clamp_bounds(e: Expander, x: str, min: str = "None", max: str = "None") -> Lines | None:
    if e.has.has_any("clamp", "clip"):
        return None
    rows = [] if min == "None" else [f"bounded = {x}.clamp_min({min})"]
    own = x if min == "None" else "bounded"
    return (
        [*rows, f"result = {own}" if max == "None" else f"result = {own}.clamp_max({max})"]
        if rows and max != "None"
        else None
    )


_DEFINITIONS: Mapping[str, Callable[..., Lines | None]] = {
    "pow": _pow,
    "square": _square,
    "rsqrt": _rsqrt,
    "mean": _mean,
    "var": _var,
    "std": _std,
    "norm": _norm,
    "vector_norm": _vector_norm,
    "normalize": _normalize,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "softmax": _softmax,
    "softmin": _softmin,
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "sigmoid": _sigmoid,
    "silu": _silu,
    "gelu": _gelu,
    "softplus": _softplus,
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "tanh": _tanh,
    "glu": _glu,
    "linear": _linear,
    "addmm": _addmm,
    "matmul": _matmul,
    "einsum": _einsum,
    "scaled_dot_product_attention": _attention,
    "mse_loss": _mse_loss,
    "l1_loss": _l1_loss,
    "cross_entropy": _cross_entropy,
    "cosine_similarity": _cosine_similarity,
    "clamp": _clamp_bounds,
}
_ALIASES: Mapping[str, str] = {
    "mm": "matmul",
    "bmm": "matmul",
    "mv": "matmul",
    "dot": "matmul",
    "inner": "matmul",
    "clip": "clamp",
}


def _write_optional(tensor: object, name: str) -> str:
    return "None" if tensor is None else name


_MODULES: Mapping[str, Callable[[Any, str], tuple[str, Lines]]] = {
    "LayerNorm": lambda m, name: (
        "layer_norm",
        [repr(tuple(m.normalized_shape)), *_write_affine(m, name), repr(m.eps)],
    ),
    "RMSNorm": lambda m, name: (
        "rms_norm",
        [repr(tuple(m.normalized_shape)), _write_optional(m.weight, f"{name}.weight"), repr(m.eps)],
    ),
    "GroupNorm": lambda m, name: ("group_norm", [repr(m.num_groups), *_write_affine(m, name), repr(m.eps)]),
    "Linear": lambda m, name: ("linear", _write_affine(m, name)),
    "Softmax": lambda m, name: ("softmax", [repr(m.dim)]),
    "LogSoftmax": lambda m, name: ("log_softmax", [repr(m.dim)]),
    "SiLU": lambda m, name: ("silu", []),
    "GELU": lambda m, name: ("gelu", [repr(m.approximate)]),
    "Sigmoid": lambda m, name: ("sigmoid", []),
    "Softplus": lambda m, name: ("softplus", []),
    "LeakyReLU": lambda m, name: ("leaky_relu", [repr(m.negative_slope)]),
    "ELU": lambda m, name: ("elu", [repr(m.alpha)]),
    "Tanh": lambda m, name: ("tanh", []),
    "GLU": lambda m, name: ("glu", [repr(m.dim)]),
}


def _write_affine(module: Any, name: str) -> Lines:
    """Weight and bias as texts, None where they change nothing."""
    weight, bias = module.weight, module.bias
    is_plain = isinstance(weight, Tensor) and weight.ndim == 1 and bool((weight == 1).all())
    is_centred = not isinstance(bias, Tensor) or not bool(bias.any())
    return ["None" if is_plain else _write_optional(weight, f"{name}.weight"), "None" if is_centred else f"{name}.bias"]
