"""Namespaces: which names does author's code see, and which size has each symbol?

`torch`, `ctx` (symbol -> size), every symbol, every `X_value`, and whatever `global` defines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from opsmith.targets.step.execution.authored import fault, fresh_namespace, run_statements
from opsmith.targets.step.language.dims import symbol
from opsmith.targets.step.language.spec import DEFAULT_SIZES, TaskSpec


class Context(dict[Any, int]):
    """`ctx`: symbol -> size; a symbol may be given as its Dim or its name."""

    def __getitem__(self, key: Any) -> int:
        return super().__getitem__(symbol(key) if isinstance(key, str) else key)

    def __setitem__(self, key: Any, value: int) -> None:
        super().__setitem__(symbol(key) if isinstance(key, str) else key, value)


def namespace_of(spec: TaskSpec, overrides: Mapping[str, int]) -> tuple[dict[str, int], dict[str, Any]]:
    """Run `global`: the final sizes, and what author's code sees, except for `input_data`. Raises TaskFault.

    `overrides` win over everything that `global` assigns, after each of its statements.
    """
    sizes = {**DEFAULT_SIZES, **spec.sizes, **overrides}
    symbols = {*sizes, *spec.symbols}
    ctx = Context({symbol(name): size for name, size in sizes.items()})
    names = {"torch": torch, "ctx": ctx, **{name: symbol(name) for name in symbols}}
    names |= {f"{name}_value": size for name, size in sizes.items()}
    namespace = dict(fresh_namespace(names))

    def pin() -> None:
        namespace.update({f"{name}_value": size for name, size in overrides.items()})
        ctx.update({symbol(name): size for name, size in overrides.items()})

    with torch.no_grad():
        run_statements(spec.global_code, "global", namespace, pin)
    final = {name: _final_size(name, sizes, ctx, namespace) for name in sorted(symbols)}
    namespace |= {f"{name}_value": size for name, size in final.items()}
    ctx.update({symbol(name): size for name, size in final.items()})
    return final, namespace


def _final_size(name: str, sizes: Mapping[str, int], ctx: Mapping[Any, int], namespace: Mapping[str, Any]) -> int:
    """What `global` left in ctx or in X_value, whichever it changed."""
    before = sizes.get(name)
    for size in (ctx.get(symbol(name)), namespace.get(f"{name}_value")):
        if size is None or size == before:
            continue
        if type(size) is not int or size < 1:
            raise fault("TASK", "global", f"{name} = {size!r}", "a size of at least 1")
        return size
    if before is None:
        remedy = f"{name}_value = 3 and ctx[{name}] = {name}_value in `global`"
        raise fault("TASK", f"symbol {name}", "no size", "a size for every symbol", remedy)
    return before
