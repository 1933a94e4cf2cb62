"""The Python of a task file that is STeP's own: bodies of functions, and the sizes that `global` sets.

Nothing here executes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from opsmith.problems.files.sections import MAX_SIZE
from opsmith.problems.files.texts import CodeFinding, abbreviate_node, parse_code
from opsmith.problems.problem import DEFAULT_SIZES
from opsmith.targets.step.language.spec import TaskSpec

SIZE_SUFFIX = "_value"
MAX_NESTING = 50  # of arithmetic in a size
MAX_INT = 2**62  # of a number on the way to a size


def check_body(text: str, stateful: bool) -> CodeFinding | None:
    """Whether a fn's body parses and returns."""
    tree, finding = parse_code(text, f"def apply({'state, ' if stateful else ''}input):")
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


def list_mentions(node: ast.AST) -> Iterator[str]:
    """The names X of every input_data['X']."""
    for child in ast.walk(node):
        if not isinstance(child, ast.Subscript) or not isinstance(child.slice, ast.Constant):
            continue
        is_tensor = isinstance(child.value, ast.Name) and child.value.id == "input_data"
        if is_tensor and isinstance(child.slice.value, str):
            yield child.slice.value


@dataclass
class Sizes:
    """The sizes that `global` sets, found without running it: `X_value = ...` and `ctx[X] = ...` at top level.

    `fixed` sizes win over assignments, and sizes computed from them follow.
    """

    fixed: Mapping[str, int] = field(default_factory=dict)
    by_symbol: dict[str, int] = field(init=False)
    problems: dict[str, CodeFinding] = field(default_factory=dict)  # by symbol: a size that was set but is not known

    def __post_init__(self) -> None:
        self.by_symbol = {**DEFAULT_SIZES, **self.fixed}
        self._names: dict[str, int] = {f"{symbol}{SIZE_SUFFIX}": size for symbol, size in self.by_symbol.items()}

    def read_global(self, tree: ast.Module) -> Sizes:
        for statement in tree.body:
            target, value = _split_assignment(statement)
            if target is None or value is None:
                self._forget_names(statement)
            elif isinstance(target, ast.Name):
                self._assign_size(target, target.id, value)
            elif (symbol := _ctx_symbol(target)) is not None:
                self._assign_size(target, symbol + SIZE_SUFFIX, value)
            else:
                self._forget_names(statement)
        return self

    def _assign_size(self, target: ast.expr, name: str, value: ast.expr) -> None:
        number = self._fold_expression(value)
        symbol = name.removesuffix(SIZE_SUFFIX)
        is_size = name.endswith(SIZE_SUFFIX) and bool(symbol)
        if is_size and symbol in self.fixed:
            return
        if is_size and (number is None or not 1 <= number <= MAX_SIZE):
            self._report_unknown(symbol, target, abbreviate_node(value))
        elif (
            is_size
            and number is not None
            and isinstance(target, ast.Subscript)
            and self.by_symbol.get(symbol, number) != number
        ):
            self._report_unknown(symbol, target, f"ctx[{symbol}] = {number} beside {name} = {self.by_symbol[symbol]}")
        elif number is not None:
            self._names[name] = number
            if is_size:
                self.by_symbol[symbol] = number
                self.problems.pop(symbol, None)
        else:
            self._names.pop(name, None)

    def _report_unknown(self, symbol: str, target: ast.expr, given: str) -> None:
        self._names.pop(symbol + SIZE_SUFFIX, None)
        expected = f"a whole number from 1 to {MAX_SIZE}, or * / // + - of sizes above"
        remedy = f"write {symbol}{SIZE_SUFFIX} = a number"
        self.problems.setdefault(symbol, CodeFinding(target.lineno, target.col_offset + 1, given, expected, remedy))

    def _forget_names(self, statement: ast.stmt) -> None:
        """Names that a statement of another kind may set are not known any more."""
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        excerpt = abbreviate_node(statement) if any(node.id.endswith(SIZE_SUFFIX) for node in names) else ""
        for node in names:
            self._names.pop(node.id, None)
            if node.id.endswith(SIZE_SUFFIX) and node.id != SIZE_SUFFIX:
                self._report_unknown(node.id.removesuffix(SIZE_SUFFIX), node, excerpt)

    def _fold_expression(self, node: ast.expr, depth: int = 0) -> int | None:
        """The value of integer arithmetic over known names; None for anything else."""
        if depth <= MAX_NESTING and isinstance(node, ast.BinOp):
            first, second = self._fold_expression(node.left, depth + 1), self._fold_expression(node.right, depth + 1)
            return None if first is None or second is None else _apply_operator(node.op, first, second)
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int and node.value < MAX_INT else None
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        symbol = _ctx_symbol(node)
        return None if symbol is None else self._names.get(symbol + SIZE_SUFFIX)


def _apply_operator(operator: ast.operator, first: int, second: int) -> int | None:
    if isinstance(operator, ast.Add | ast.Sub | ast.Mult):
        value = {ast.Add: first + second, ast.Sub: first - second, ast.Mult: first * second}[type(operator)]
        return value if abs(value) < MAX_INT else None
    if second == 0 or (isinstance(operator, ast.Div) and first % second):
        return None
    if isinstance(operator, ast.FloorDiv | ast.Div):
        return first // second
    return first % second if isinstance(operator, ast.Mod) else None


def _split_assignment(statement: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
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
    tree, _ = parse_code(spec.global_code)
    return Sizes(overrides).read_global(tree or ast.Module([], [])).by_symbol
