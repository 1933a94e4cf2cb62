"""Loops of a TVMScript function as blocks, which schedules need: each statement becomes a loop nest of its own.

A scalar of a loop becomes an array over that loop's turns, so that nests can be run one after another; a sum or an
extreme that a scalar gathers becomes a reduction that begins at its neutral element. Whatever else a text holds
(conditions, loops that do not begin at 0, scalars that live on from turn to turn) is left as it is: None is answered.
What is wrong all the same, the judge finds.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Loops = tuple[tuple[str, str], ...]  # variable and extent, the outermost first
_NEUTRAL = {"+": "T.{0}(0)", "T.max": 'T.min_value("{0}")', "T.min": 'T.max_value("{0}")'}


class _Unknown(Exception):
    """A text that is no list of independent nests."""


@dataclass(frozen=True)
class _Scalar:
    """What a name stands for: an array over some loops, or an expression."""

    text: str
    loops: Loops
    dtype: str


@dataclass
class _Nests:
    """What has been written so far."""

    dtypes: dict[str, str]  # of arrays, and of numbers that are parameters
    shapes: Mapping[str, list[str]]  # of arrays
    writes: Counter[str]  # assignments to arrays that are still to come
    rows: list[str] = field(default_factory=list)
    buffers: list[str] = field(default_factory=list)
    scalars: dict[str, _Scalar] = field(default_factory=dict)
    gathered: dict[str, _Scalar] = field(default_factory=dict)  # by a loop that has not ended: none may read them

    def add_statements(self, statements: Sequence[ast.stmt], loops: Loops) -> None:
        """Raises _Unknown."""
        for statement in statements:
            if isinstance(statement, ast.For):
                self._add_loop(statement, loops)
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._add_assignment(statement.targets[0], statement.value, loops)
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
                read = ast.parse(ast.unparse(statement.target), mode="eval").body
                self._add_assignment(statement.target, ast.BinOp(read, ast.Add(), statement.value), loops)
            else:
                raise _Unknown

    def _add_loop(self, loop: ast.For, loops: Loops) -> None:
        if any(isinstance(node, ast.With) for node in ast.walk(loop)):
            if loops or self.scalars:
                raise _Unknown
            self.rows += ast.unparse(loop).split("\n")
            return
        call = loop.iter
        if not isinstance(call, ast.Call) or call.keywords:
            raise _Unknown
        name = ast.unparse(call.func)
        if name not in ("range", "T.serial", "T.grid") or (name != "T.grid" and len(call.args) != 1):
            raise _Unknown
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        new = tuple((ast.unparse(each), ast.unparse(extent)) for each, extent in zip(targets, call.args, strict=True))
        self.add_statements(loop.body, loops + new)
        for name, scalar in list(self.gathered.items()):
            if len(scalar.loops) <= len(loops):
                self.scalars[name] = self.gathered.pop(name)
        self.scalars = {name: scalar for name, scalar in self.scalars.items() if len(scalar.loops) <= len(loops)}

    def _add_assignment(self, target: ast.expr, value: ast.expr, loops: Loops) -> None:
        if isinstance(target, ast.Name):
            self._add_scalar(target.id, value, loops)
        elif isinstance(target, ast.Subscript):
            indexed = {node.id for node in ast.walk(target.slice) if isinstance(node, ast.Name)}
            if any(variable not in indexed for variable, _ in loops):
                raise _Unknown  # who writes an entry twice has an order
            self._add_entry(target, value, loops)
        else:
            raise _Unknown

    def _add_entry(self, target: ast.Subscript, value: ast.expr, loops: Loops) -> None:
        """An array that is written whole and again later is another one until then: each has one nest that writes."""
        name, text = ast.unparse(target.value), self._write(value)
        self.writes[name] -= 1
        self.scalars.pop(name, None)
        index = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        is_whole = dict(loops) == dict(zip(map(ast.unparse, index), self.shapes.get(name, ()), strict=False))
        if self.writes[name] and is_whole:
            array = f"{name}_{len(self.buffers)}_of"
            self.buffers.append(
                f'{array} = T.sblock_alloc_buffer(({", ".join(self.shapes[name])},), "{self.dtypes[name]}")'
            )
            self.scalars[name] = _Scalar(array, (), self.dtypes[name])
        self._write_nest(loops, loops, self._write(target), text)

    def _add_scalar(self, name: str, value: ast.expr, loops: Loops) -> None:
        dtype, earlier = self._find_dtype(value), self.scalars.get(name)
        reads = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        if name in reads:
            if earlier is None or earlier.loops == loops or earlier.loops != loops[: len(earlier.loops)]:
                raise _Unknown
            self._add_reduction(name, earlier, value, loops)
        elif earlier is not None and earlier.loops != loops:
            raise _Unknown
        elif not loops or not reads - {"T"}:
            self.scalars[name] = _Scalar(f"({self._write(value)})", loops, dtype)
        else:
            text = self._write(value)
            scalar = self._make_array(name, loops, dtype)
            self._write_nest(loops, loops, scalar.text, text)
            self.scalars[name] = scalar

    def _add_reduction(self, name: str, earlier: _Scalar, value: ast.expr, loops: Loops) -> None:
        """The gathered value from the neutral element, then with what the scalar was before."""
        operator, added = _split_reduction(name, value)
        neutral = _NEUTRAL[operator].format(earlier.dtype)
        gathered = self._make_array(name, earlier.loops, earlier.dtype)
        update = _join(operator, gathered.text, self._write(added))
        self._write_nest(loops, earlier.loops, gathered.text, update, neutral)
        if earlier.text != f"({neutral})":
            whole = self._make_array(name, earlier.loops, earlier.dtype)
            self._write_nest(earlier.loops, earlier.loops, whole.text, _join(operator, earlier.text, gathered.text))
            gathered = whole
        self.gathered[name] = gathered

    def _make_array(self, name: str, loops: Loops, dtype: str) -> _Scalar:
        array = f"{name}_{len(self.buffers)}_of"
        shape = ", ".join(extent for _, extent in loops) or "1"
        self.buffers.append(f'{array} = T.sblock_alloc_buffer(({shape},), "{dtype}")')
        return _Scalar(f"{array}[{', '.join(variable for variable, _ in loops) or '0'}]", loops, dtype)

    def _write_nest(self, loops: Loops, spatial: Loops, target: str, value: str, start: str = "") -> None:
        """One block; its axes take the place of the loops' variables."""
        if not loops:
            raise _Unknown
        variables = [variable for variable, _ in loops]
        kinds = "".join("S" if loop in spatial else "R" for loop in loops)
        axes = {variable: f"{variable}_at" for variable in variables}
        body = [f'{", ".join(axes.values())} = T.axis.remap("{kinds}", [{", ".join(variables)}])']
        if len(variables) == 1:
            kind = "spatial" if kinds == "S" else "reduce"
            body = [f"{axes[variables[0]]} = T.axis.{kind}({loops[0][1]}, {variables[0]})"]
        place = _rename(target, axes)
        if start:
            body += ["with T.init():", f"    {place} = {start}"]
        body.append(f"{place} = {_rename(value, axes)}")
        grid = f"T.grid({', '.join(extent for _, extent in loops)})"
        self.rows += [f"for {', '.join(variables)} in {grid}:", f'    with T.sblock("step_{len(self.rows)}"):']
        self.rows += [f"        {row}" for row in body]

    def _write(self, value: ast.expr) -> str:
        if any(isinstance(node, ast.Name) and node.id in self.gathered for node in ast.walk(value)):
            raise _Unknown
        return _rename(ast.unparse(value), {name: scalar.text for name, scalar in self.scalars.items()})

    def _find_dtype(self, value: ast.expr) -> str:
        """By the first part that tells. Raises _Unknown."""
        if isinstance(value, ast.Call):
            name = ast.unparse(value.func)
            if name in ("T.Cast", "T.cast"):
                texts = [each.value for each in value.args if isinstance(each, ast.Constant)]
                return str(next((text for text in texts if isinstance(text, str)), "float32"))
            if name.removeprefix("T.") in ("float16", "float32", "float64", "int8", "int16", "int32", "int64"):
                return name.removeprefix("T.")
        if isinstance(value, ast.Compare | ast.BoolOp):
            return "bool"
        if isinstance(value, ast.Subscript | ast.Name):
            name = ast.unparse(value.value if isinstance(value, ast.Subscript) else value)
            return self.scalars[name].dtype if name in self.scalars else self.dtypes.get(name, "int64")
        parts = [each for each in ast.iter_child_nodes(value) if isinstance(each, ast.expr)]
        for part in parts[isinstance(value, ast.Call) :]:
            if not isinstance(part, ast.Constant):
                return self._find_dtype(part)
        raise _Unknown


def write_blocks(head: Sequence[ast.stmt], body: Sequence[ast.stmt], numbers: Mapping[str, str]) -> str | None:
    """The statements of a function behind its head as nests of blocks; None: they are no such nests.

    `head`: its `T.match_buffer` lines; `numbers`: types of parameters that are numbers, by name.
    """
    arrays = dict(_read_arrays(head))
    targets = [each for row in body for node in ast.walk(row) if isinstance(node, ast.Assign) for each in node.targets]
    writes = Counter(ast.unparse(each.value) for each in targets if isinstance(each, ast.Subscript))
    dtypes = {name: dtype for name, (_, dtype) in arrays.items()}
    nests = _Nests({**numbers, **dtypes}, {name: shape for name, (shape, _) in arrays.items()}, writes)
    try:
        nests.add_statements(body, ())
    except _Unknown:
        return None
    return "\n".join([*nests.buffers, *nests.rows])


def _read_arrays(head: Sequence[ast.stmt]) -> Iterator[tuple[str, tuple[list[str], str]]]:
    """Names, shapes and types."""
    for row in head:
        if isinstance(row, ast.Assign) and isinstance(row.value, ast.Call) and isinstance(row.value.args[1], ast.Tuple):
            shape = [ast.unparse(each) for each in row.value.args[1].elts]
            yield ast.unparse(row.targets[0]), (shape, str(ast.literal_eval(row.value.args[2])))


def _split_reduction(name: str, value: ast.expr) -> tuple[str, ast.expr]:
    """The operator of `name = name + added` or of an extreme, and the added. Raises _Unknown."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        operator, pair = "+", [value.left, value.right]
    elif isinstance(value, ast.Call) and ast.unparse(value.func) in _NEUTRAL and len(value.args) == 2:
        operator, pair = ast.unparse(value.func), value.args
    else:
        raise _Unknown
    added = [each for each in pair if ast.unparse(each) != name]
    if len(added) != 1 or any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(added[0])):
        raise _Unknown
    return operator, added[0]


def _join(operator: str, left: str, right: str) -> str:
    return f"{left} + ({right})" if operator == "+" else f"{operator}({left}, {right})"


class _Renamer(ast.NodeTransformer):
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(self._texts[node.id], mode="eval").body if node.id in self._texts else node


def _rename(text: str, texts: Mapping[str, str]) -> str:
    return ast.unparse(_Renamer(texts).visit(ast.parse(text, mode="eval")))
