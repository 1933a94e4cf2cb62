"""The texts of a task's author: do they parse, and which sizes does `global` set? Nothing here executes them.

Code is kept in normal form: no common indentation, no blank lines around it, one line break at the end.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from opsmith.targets.step.language.spec import DEFAULT_SIZES, TaskSpec

SIZE_SUFFIX = "_value"
MAX_SIZE = 2**31 - 1  # of one axis
MAX_NESTING = 50  # of arithmetic in a size
MAX_CODE = 1 << 16  # characters of one text; its syntax tree takes several hundred bytes for each
MAX_INT = 2**62  # of a number on the way to a size


@dataclass(frozen=True)
class CodeFinding:
    """What is wrong with a text, at line and column of the text itself (from 1)."""

    line: int
    column: int
    given: str
    expected: str
    remedy: str = ""


def code(text: str) -> str:
    """The normal form of a text; "" for one without any content."""
    body = textwrap.dedent(text).strip("\n")
    return body + "\n" if body.strip() else ""


def parse(text: str, wrap: str = "") -> tuple[ast.Module | None, CodeFinding | None]:
    """The syntax tree of a text, of a body below the line `wrap` if given, or what is wrong with it."""
    if len(text) > MAX_CODE:
        return None, CodeFinding(1, 1, f"{len(text)} characters", f"at most {MAX_CODE}", "no data in code")
    body = f"{wrap}\n{textwrap.indent(text, ' ', lambda line: True)}" if wrap else text
    shift = 1 if wrap else 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(body), None
    except SyntaxError as error:
        line = max(1, (error.lineno or 1) - shift)
        rows = text.split("\n")
        given = rows[line - 1].strip()[:80] if line <= len(rows) else ""
        return None, CodeFinding(line, max(1, (error.offset or 1) - shift), repr(given), f"Python code: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return None, CodeFinding(1, 1, "a text that Python cannot parse", f"Python code: {type(error).__name__}")


def check_body(text: str, stateful: bool) -> CodeFinding | None:
    """Whether a fn's body parses and returns."""
    tree, finding = parse(text, f"def apply({'state, ' if stateful else ''}input):")
    if tree is None:
        return finding
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    if len(tree.body) > 1:
        return CodeFinding(1, 1, "lines outside of the body", "one body, indented alike")
    if any(isinstance(node, ast.Return) and node.value is not None for node in _own_nodes(function)):
        return None
    return CodeFinding(1, 1, "a body without a return of values", "return [...], one value per field of output_dtype")


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    queue: list[ast.AST] = list(function.body)
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            queue.extend(ast.iter_child_nodes(node))


def check_value(text: str) -> CodeFinding | None:
    """Whether a text's last statement has a value: an expression, or an assignment to one name."""
    tree, finding = parse(text)
    if tree is None:
        return finding
    remedy = "end with the tensor itself, or with S0 = ..."
    expected = "an expression or an assignment to one name as the last statement"
    if not tree.body:
        return CodeFinding(1, 1, "no statement", expected, remedy)
    last = tree.body[-1]
    if isinstance(last, ast.Expr) or (
        isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.targets[0], ast.Name)
    ):
        return None
    return CodeFinding(last.lineno, last.col_offset + 1, repr(_shown(last)), expected, remedy)


def _shown(node: ast.AST) -> str:
    """The beginning of a node's text."""
    try:
        return ast.unparse(node).split("\n")[0][:80]
    except (RecursionError, ValueError):  # ValueError: a number of more digits than Python writes
        return "a very long expression"


@dataclass
class Sizes:
    """The sizes that `global` sets, found without running it: `X_value = ...` and `ctx[X] = ...` at top level.

    `fixed` sizes win over assignments, and sizes computed from them follow.
    """

    fixed: Mapping[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(init=False)
    problems: dict[str, CodeFinding] = field(default_factory=dict)  # by symbol: a size that was set but is not known

    def __post_init__(self) -> None:
        self.found = {**DEFAULT_SIZES, **self.fixed}
        self._names: dict[str, int] = {f"{symbol}{SIZE_SUFFIX}": size for symbol, size in self.found.items()}

    def read(self, tree: ast.Module) -> Sizes:
        for statement in tree.body:
            target, value = _assignment(statement)
            if target is None or value is None:
                self._forget(statement)
            elif isinstance(target, ast.Name):
                self._assign(target, target.id, value)
            elif (symbol := _ctx_symbol(target)) is not None:
                self._assign(target, symbol + SIZE_SUFFIX, value)
            else:
                self._forget(statement)
        return self

    def _assign(self, target: ast.expr, name: str, value: ast.expr) -> None:
        number = self._fold(value)
        symbol = name.removesuffix(SIZE_SUFFIX)
        is_size = name.endswith(SIZE_SUFFIX) and bool(symbol)
        if is_size and symbol in self.fixed:
            return
        if is_size and (number is None or not 1 <= number <= MAX_SIZE):
            self._unknown(symbol, target, _shown(value))
        elif is_size and number is not None and isinstance(target, ast.Subscript) and self._differs(symbol, number):
            self._unknown(symbol, target, f"ctx[{symbol}] = {number} beside {name} = {self.found[symbol]}")
        elif number is not None:
            self._names[name] = number
            if is_size:
                self.found[symbol] = number
                self.problems.pop(symbol, None)
        else:
            self._names.pop(name, None)

    def _differs(self, symbol: str, number: int) -> bool:
        return self.found.get(symbol, number) != number

    def _unknown(self, symbol: str, target: ast.expr, given: str) -> None:
        self._names.pop(symbol + SIZE_SUFFIX, None)
        expected = f"a whole number from 1 to {MAX_SIZE}, or * / // + - of sizes above"
        remedy = f"write {symbol}{SIZE_SUFFIX} = a number"
        self.problems.setdefault(symbol, CodeFinding(target.lineno, target.col_offset + 1, given, expected, remedy))

    def _forget(self, statement: ast.stmt) -> None:
        """Names that a statement of another kind may set are not known any more."""
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        shown = _shown(statement) if any(node.id.endswith(SIZE_SUFFIX) for node in names) else ""
        for node in names:
            self._names.pop(node.id, None)
            if node.id.endswith(SIZE_SUFFIX) and node.id != SIZE_SUFFIX:
                self._unknown(node.id.removesuffix(SIZE_SUFFIX), node, shown)

    def _fold(self, node: ast.expr, depth: int = 0) -> int | None:
        """The value of integer arithmetic over known names; None for anything else."""
        if depth <= MAX_NESTING and isinstance(node, ast.BinOp):
            left, right = self._fold(node.left, depth + 1), self._fold(node.right, depth + 1)
            return None if left is None or right is None else _arithmetic(node.op, left, right)
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int and node.value < MAX_INT else None
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        symbol = _ctx_symbol(node)
        return None if symbol is None else self._names.get(symbol + SIZE_SUFFIX)


def _arithmetic(operator: ast.operator, left: int, right: int) -> int | None:
    if isinstance(operator, ast.Add | ast.Sub | ast.Mult):
        value = {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}[type(operator)]
        return value if abs(value) < MAX_INT else None
    if right == 0 or (isinstance(operator, ast.Div) and left % right):
        return None
    if isinstance(operator, ast.FloorDiv | ast.Div):
        return left // right
    return left % right if isinstance(operator, ast.Mod) else None


def _assignment(statement: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return statement.targets[0], statement.value
    if isinstance(statement, ast.AnnAssign):
        return statement.target, statement.value
    return None, None


def _ctx_symbol(node: ast.expr) -> str | None:
    """The X of `ctx[X]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "ctx":
        return node.slice.id if isinstance(node.slice, ast.Name) else None
    return None


def sizes_with(spec: TaskSpec, overrides: Mapping[str, int]) -> dict[str, int]:
    """All sizes of a task with some overridden; sizes that `global` computes from overridden ones follow them.

    >>> sizes_with(TaskSpec((), (), global_code="E_value = 3\\nF_value = 2 * E_value\\n"), {"E": 5})["F"]
    10
    """
    tree, _ = parse(spec.global_code)
    return Sizes(overrides).read(tree or ast.Module([], [])).found
