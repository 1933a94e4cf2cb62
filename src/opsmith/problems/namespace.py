"""Namespaces: the names that authors' code sees, and the size of each symbol.

`torch`, `ctx` (symbol -> size), every symbol, every `X_value`, and whatever `global` defines. In a problem with a
`reference` a symbol is its size, and there are its scalars.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from opsmith.problems.authored import make_namespace, run_statements
from opsmith.problems.dims import make_symbol
from opsmith.problems.faults import make_fault
from opsmith.problems.problem import Problem


class SizeTable(dict[Any, int]):
    """`ctx`: symbol -> size; a symbol may be given as its Dim or its name."""

    def __getitem__(self, key: Any) -> int:
        return super().__getitem__(make_symbol(key) if isinstance(key, str) else key)

    def __setitem__(self, key: Any, value: int) -> None:
        super().__setitem__(make_symbol(key) if isinstance(key, str) else key, value)


def run_global(problem: Problem, overrides: Mapping[str, int]) -> tuple[dict[str, int], dict[str, Any]]:
    """The final sizes, and what authors' code sees, except for `input_data`. Raises TaskFault.

    `overrides` win over everything that `global` assigns, after each of its statements.
    """
    sizes = {**problem.base_sizes, **overrides}
    symbols = {*sizes, *problem.symbols}
    ctx = SizeTable({make_symbol(name): size for name, size in sizes.items()})
    names = {"torch": torch, "ctx": ctx, **{name: make_symbol(name) for name in symbols}}
    names |= {f"{name}_value": size for name, size in sizes.items()}
    if problem.reference:
        names |= {**sizes, **problem.scalars}
    namespace = make_namespace(names)

    def pin_overrides() -> None:
        _set_sizes(namespace, ctx, overrides)

    with torch.no_grad():
        run_statements(problem.global_code, "global", namespace, pin_overrides)
    final = {name: _read_size(name, sizes, ctx, namespace) for name in sorted(symbols)}
    _set_sizes(namespace, ctx, final)
    if problem.reference:
        namespace |= {**final, **problem.scalars}
    return final, namespace


def _set_sizes(namespace: dict[str, Any], ctx: SizeTable, sizes: Mapping[str, int]) -> None:
    namespace.update({f"{name}_value": size for name, size in sizes.items()})
    ctx.update({make_symbol(name): size for name, size in sizes.items()})


def _read_size(name: str, sizes: Mapping[str, int], ctx: Mapping[Any, int], namespace: Mapping[str, Any]) -> int:
    """What `global` left in ctx or in X_value, whichever it changed."""
    before = sizes.get(name)
    for size in (ctx.get(make_symbol(name)), namespace.get(f"{name}_value")):
        if size is None or size == before:
            continue
        if type(size) is not int or size < 1:
            raise make_fault("TASK", "global", f"{name} = {size!r}", "a size of at least 1")
        return size
    if before is None:
        remedy = f"{name}_value = 3 and ctx[{name}] = {name}_value in `global`"
        raise make_fault("TASK", f"symbol {name}", "no size", "a size for every symbol", remedy)
    return before
