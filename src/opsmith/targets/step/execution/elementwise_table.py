"""The torch functions, methods and modules that work on each element by itself, and the form in which they are called.

The forms: unary (one tensor), binary (tensors and numbers), pairwise (two tensors; with a number these reduce), where,
clamp, and two that join along the first axis: stack and cat.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
CASTS = ("float", "double", "half", "bfloat16", "int", "long", "bool")


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


FUNCTIONS = _list_functions()
METHODS = (
    {name: "unary" for name in _UNARY if hasattr(Tensor, name)}
    | {name: "binary" for name in _BINARY if hasattr(Tensor, name)}
    | dict.fromkeys(_PAIRWISE, "pairwise")
    | {"clamp": "clamp", "clip": "clamp"}
)
MODULE_TYPES = tuple(getattr(torch.nn, name) for name in _MODULES)
