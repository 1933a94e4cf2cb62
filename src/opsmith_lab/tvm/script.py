"""What TVM prints of a schedule as statements of ours: of the words that programs may use, guarded by sizes.

TVM says in annotations how far a nest shall be unrolled and refuses to vectorise at sizes that it does not know; here
both become loops: `T.unroll` and `T.vectorized`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

SCHEDULED = "scheduled"  # the name of the block around what a schedule made
_LEAVE = {"T.sblock_attr", "T.reads", "T.writes"}
_LANES, _WIDEST = 4, 64
_UNROLLING = "pragma_auto_unroll_max_step"


def split_guard(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """The statements behind a function's head without a schedule that was put before them."""
    if len(body) == 1 and isinstance(body[0], ast.If) and body[0].orelse:
        inner = body[0].body[0]
        if isinstance(inner, ast.With) and ast.unparse(inner.items[0]) == f"T.sblock('{SCHEDULED}')":
            return body[0].orelse
    return body


def write_guarded(printed: str, factors: Mapping[str, int], plain: Sequence[ast.stmt]) -> str:
    """The scheduled statements for sizes that the factors divide, else the plain ones."""
    function = next(node for node in ast.parse(printed).body if isinstance(node, ast.FunctionDef))
    sizes = {f"{name}_of": name if factor == 1 else f"{name} // {factor}" for name, factor in factors.items()}
    body = _Statements(sizes).visit_body(function.body, 0)
    condition = " and ".join(f"{name} % {factor} == 0" for name, factor in factors.items() if factor > 1)
    block = ast.parse(f"if {condition}:\n with T.sblock('{SCHEDULED}'):\n  pass\nelse:\n pass").body[0]
    assert isinstance(block, ast.If)
    assert isinstance(block.body[0], ast.With)
    block.body[0].body, block.orelse = body, list(plain)
    return ast.unparse(ast.fix_missing_locations(block))


class _Statements(ast.NodeTransformer):
    """Rewrites names and loops."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = {name: ast.parse(text, mode="eval").body for name, text in names.items()}

    def visit_body(self, body: Sequence[ast.stmt], unrolled: int) -> list[ast.stmt]:
        """`unrolled`: how many statements a nest may become."""
        rows: list[ast.stmt] = []
        for row in body:
            if isinstance(row, ast.For):
                rows += self._rewrite_loop(row, unrolled)
            elif isinstance(row, ast.With):
                row.body = self.visit_body(row.body, unrolled)
                rows.append(row)
            elif not (isinstance(row, ast.Expr) and ast.unparse(row).partition("(")[0] in _LEAVE):
                rows.append(self.visit(row))
        return rows

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._names.get(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return node

    def _rewrite_loop(self, loop: ast.For, unrolled: int) -> list[ast.stmt]:
        """A loop of several variables as one of each; those of one turn vanish."""
        call = loop.iter
        assert isinstance(call, ast.Call)
        for keyword in call.keywords:
            if keyword.arg == "annotations":
                unrolled = ast.literal_eval(keyword.value).get(_UNROLLING, unrolled)
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        pairs = [(ast.unparse(target), extent) for target, extent in zip(targets, call.args, strict=True)]
        nothing = ast.parse("T.int64(0)", mode="eval").body
        self._names |= {name: nothing for name, extent in pairs if _read_number(extent) == 1}
        body = self.visit_body(loop.body, unrolled)
        for name, extent in reversed([pair for pair in pairs if _read_number(pair[1]) != 1]):
            kind = _choose_kind(name, _read_number(extent), body, unrolled)
            text = f"for {name} in {kind}({ast.unparse(self.visit(extent))}):\n pass"
            row = ast.parse(text).body[0]
            assert isinstance(row, ast.For)
            row.body, body = body, [row]
        return body


def _choose_kind(name: str, extent: int | None, body: Sequence[ast.stmt], unrolled: int) -> str:
    if extent is not None and extent <= _WIDEST and extent % _LANES == 0 and _is_spatial(name, body):
        return "T.vectorized"
    if extent is not None and extent * _count_steps(body) <= unrolled:
        return "T.unroll"
    return "range"


def _read_number(extent: ast.expr) -> int | None:
    """A number such as `T.int64(4)`."""
    value = extent.args[0] if isinstance(extent, ast.Call) and len(extent.args) == 1 else extent
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, int) else None


def _is_spatial(name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's turns are entries next to each other: its body is one block, whose last axis adds it."""
    if len(body) != 1 or not isinstance(body[0], ast.With):
        return False
    axes: list[tuple[str, str]] = []
    for row in body[0].body:
        if isinstance(row, ast.Assign) and isinstance(row.value, ast.Call):
            called = ast.unparse(row.value.func)
            if called == "T.axis.remap":
                kinds, values = ast.literal_eval(row.value.args[0]), row.value.args[1]
                assert isinstance(values, ast.List)
                axes += zip(kinds, map(ast.unparse, values.elts), strict=True)
            elif called.startswith("T.axis."):
                axes.append((called.removeprefix("T.axis.")[0].upper(), ast.unparse(row.value.args[1])))
    using = [(kind, text) for kind, text in axes if name in text.replace(" + ", " ").split()]
    return len(using) == 1 and using[0] == [axis for axis in axes if axis[0] == "S"][-1]


def _count_steps(body: Sequence[ast.stmt]) -> int:
    """Statements once all loops are unrolled; more than any limit where that cannot be."""
    total = 0
    for row in body:
        if isinstance(row, ast.For):
            assert isinstance(row.iter, ast.Call)
            kind, extent = ast.unparse(row.iter.func), _read_number(row.iter.args[0])
            steps = _count_steps(row.body)
            total += steps if kind == "T.vectorized" else steps * (extent if kind == "T.unroll" and extent else 1 << 30)
        else:
            total += _count_steps(row.body) if isinstance(row, ast.With) else 1
    return max(1, min(total, 1 << 30))
