"""A reference as three-address statements: one call or operator each, every value with a name of its own.

Nothing is executed here. A compound statement, and whatever else is no plain expression, stays one block that assigns
its targets; statements that change a tensor in place are one block with the statement that made it.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from opsmith.targets.step.ir.code import list_mentions
from opsmith.targets.step.language.spec import OutputSpec, TaskSpec
from opsmith.targets.step.planning.vocabulary import (
    VIEWS,
    IsData,
    list_words,
    strip_arity,
    word_operation,
)

_NOUNS: Mapping[str, str] = {
    "add": "total",
    "sub": "difference",
    "mul": "product",
    "div": "quotient",
    "matmul": "projection",
    "sum": "total",
    "square": "square",
    "sqrt": "root",
    "rsqrt": "scale",
    "exp": "exponential",
    "log": "logarithm",
    "mean": "mean",
    "var": "variance",
    "max": "highest",
    "min": "lowest",
    "neg": "negative",
    "gt": "mask",
    "eq": "mask",
    "where": "choice",
    "softmax": "weights",
    "sigmoid": "gate",
    "cumsum": "running",
    "topk": "top",
    "argmax": "place",
    "one_hot": "hot",
}
_CHANGING = ("append", "extend", "insert", "update")  # beside methods of torch that end in _


@dataclass(frozen=True)
class ReferenceStatement:
    """One statement. Names are unique in the reference, those of the task's tensors among them."""

    tree: tuple[ast.stmt, ...] = field(compare=False)
    targets: tuple[str, ...]
    reads: frozenset[str]  # names of values and of the task's tensors

    def list_operations(self, is_data: IsData) -> tuple[str, ...]:
        """A word for each, without views."""
        words = [word for statement in self.tree for word in _list_own_words(statement, is_data)]
        return tuple(word for word in words if word and word not in VIEWS)

    @property
    def text(self) -> str:
        return "\n".join(ast.unparse(statement) for statement in self.tree)


@dataclass(frozen=True)
class Reference:
    """The statements of a task's reference. An output's value has the output's name; one of several fields is a
    tuple."""

    statements: tuple[ReferenceStatement, ...]
    outputs: tuple[str, ...]


class UnreadableError(Exception):
    """A reference that cannot be read as statements; the text says why."""


class LiveNames(Protocol):
    """The statements so far, executed."""

    def run_statement(self, tree: Sequence[ast.stmt]) -> None:
        """Raises UnreadableError where it fails."""

    def equal_values(self, first: ast.expr, second: ast.expr) -> bool: ...


Expand = Callable[[ast.expr, Collection[str]], list[ast.stmt] | None]


def read_reference(
    spec: TaskSpec, expand: Expand | None = None, live: LiveNames | None = None, *, lower: bool = True
) -> Reference:
    """The statements of a task's `data_transform`s, which share one namespace. Raises UnreadableError.

    `expand`: for an operation, statements that compute the same, the last of which assigns `result`; None: it stays.
    What is expanded so is compared in `live`. Without `lower`, statements stay as the author wrote them.
    """
    return _Reader(spec, expand, live, lower).read_outputs(spec.outputs)


class _Reader:
    def __init__(self, spec: TaskSpec, expand: Expand | None, live: LiveNames | None, lower: bool) -> None:
        self._tensors = {tensor.name for tensor in (*spec.inputs, *spec.parameters)}
        symbols = {*spec.sizes, *spec.problem.symbols}
        self._used = {*self._tensors, *spec.fn_table, *symbols, *(f"{symbol}_value" for symbol in symbols)}
        self._used |= {output.name for output in spec.outputs} | {
            "torch",
            "ctx",
            "input_data",
            "input",
            "state",
            "step",
        }
        self._used.update(list_names(_parse_text(spec.global_code)))
        self._expand, self._live, self._lower = expand, live, lower
        self._values: dict[str, str] = {name: name for name in self._tensors}  # a name of the text -> the value
        self._locals: dict[str, str] = {}
        self._outputs: set[str] = set()
        self._renamed: dict[str, str] = {}
        self._tuples: dict[str, list[ast.expr]] = {}  # by value: the atoms of a tuple
        self._depth = 0
        self.statements: list[ReferenceStatement] = []

    def read_outputs(self, outputs: Sequence[OutputSpec]) -> Reference:
        rows: list[tuple[ast.stmt, tuple[int, int] | None]] = []
        for number, output in enumerate(outputs):
            for place, text in enumerate(output.data_transform):
                body = _parse_text(text).body
                if not body:
                    raise UnreadableError(f"outputs, {output.name}: no statement")
                rows += [(statement, None) for statement in body[:-1]]
                last = body[-1]
                if isinstance(last, ast.Expr):
                    last = ast.Assign([ast.Name("_result", ast.Store())], last.value, lineno=1)
                rows.append((last, (number, place)))
        results: dict[tuple[int, int], str] = {}
        for block, marks in _join_changes(rows):
            self._read_block(block)
            for mark, name in marks:
                results[mark] = self._locals[name]
        for number, output in enumerate(outputs):
            names = [results[number, place] for place in range(len(output.data_transform))]
            self._name_output(output.name, names)
        return Reference(tuple(self.statements), tuple(output.name for output in outputs))

    def _name_output(self, output: str, names: Sequence[str]) -> None:
        """Give the value of an output the output's name; several fields are one tuple."""
        if len(names) == 1 and names[0] not in self._tensors and names[0] not in self._renamed:
            self.statements = [_rename_value(statement, names[0], output) for statement in self.statements]
            self._values |= {output: output}
            self._locals = {key: output if value == names[0] else value for key, value in self._locals.items()}
            self._renamed[names[0]] = output
        else:
            own: list[ast.expr] = [ast.Name(self._renamed.get(name, name), ast.Load()) for name in names]
            value = own[0] if len(own) == 1 else ast.Tuple(own, ast.Load())
            self._values |= {name: name for name in self._renamed.values()}
            self._append([ast.Assign([ast.Name(output, ast.Store())], value, lineno=1)], (output,), is_last=True)
        self._outputs.add(output)

    def _read_block(self, block: Sequence[ast.stmt]) -> None:
        first = block[0]
        if len(block) == 1 and isinstance(first, ast.Assign) and len(first.targets) == 1 and self._lower:
            self._read_assignment(first.targets[0], first.value)
        elif len(block) == 1 and isinstance(first, ast.AnnAssign) and first.value is not None and self._lower:
            self._read_assignment(first.target, first.value)
        else:
            self._keep_block(block)

    def _read_assignment(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            hint = "" if target.id.startswith("_result") else target.id
            self._locals[target.id] = self._name_value(value, hint)
            return
        if (
            isinstance(target, (ast.Tuple, ast.List))
            and isinstance(value, (ast.Tuple, ast.List))
            and len(target.elts) == len(value.elts)
            and all(isinstance(name, ast.Name) for name in target.elts)
        ):
            names = [getattr(name, "id", "") for name in target.elts]
            atoms = [self._name_value(element, name) for name, element in zip(names, value.elts, strict=True)]
            self._locals |= dict(zip(names, atoms, strict=True))
            return
        self._keep_block([ast.Assign([target], self._lower_parts(value), lineno=1)])

    def _name_value(self, expression: ast.expr, hint: str) -> str:
        atom = self._lower_expression(expression, hint)
        if isinstance(atom, ast.Name) and atom.id in (*self._tensors, *self._values.values()):
            return atom.id
        return self._add_statement(atom, hint)

    # -- expressions

    def _lower_expression(self, node: ast.expr, hint: str = "") -> ast.expr:
        """An expression with every operation inside it made a statement: a name, or what reads no value."""
        self._depth += 1
        if self._depth > 80:
            raise UnreadableError("a reference that nests too deep")
        try:
            return self._lower_node(node, hint)
        finally:
            self._depth -= 1

    def _lower_node(self, node: ast.expr, hint: str) -> ast.expr:
        if _find_tensor(node) in self._tensors or isinstance(node, ast.Name):
            return self._resolve(node)
        if not self._reads_values(node):
            return node
        if (element := self._find_element(node)) is not None:
            return element
        if isinstance(node, (ast.Tuple, ast.List, ast.Starred, ast.Slice)):
            return self._lower_parts(node)
        if not isinstance(node, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Attribute)):
            return ast.Name(self._add_statement(self._resolve(node), hint), ast.Load())
        lowered = self._lower_parts(node)
        expanded = self._expand_call(lowered, hint)
        return expanded or ast.Name(self._add_statement(lowered, hint or _find_noun(lowered)), ast.Load())

    def _find_element(self, node: ast.expr) -> ast.expr | None:
        """An element of a tuple that the reference has written out."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            return None
        atoms = self._tuples.get(self._locals.get(node.value.id, ""), [])
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return atoms[place] if isinstance(place, int) and 0 <= place < len(atoms) else None

    def _lower_parts(self, node: ast.expr) -> ast.expr:
        """The node over atoms."""
        if any(isinstance(child, (ast.Lambda, ast.comprehension, ast.NamedExpr)) for child in ast.walk(node)):
            return self._resolve(node)
        if isinstance(node, ast.Call):
            return self._lower_call(node)
        fields: dict[str, Any] = {}
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                fields[name] = [
                    self._lower_expression(entry) if isinstance(entry, ast.expr) else entry for entry in value
                ]
            else:
                fields[name] = self._lower_expression(value) if isinstance(value, ast.expr) else value
        return type(node)(**fields)

    def _lower_call(self, node: ast.Call) -> ast.expr:
        func = node.func
        if isinstance(func, ast.Attribute) and self._reads_values(func.value):
            func = ast.Attribute(self._lower_expression(func.value), func.attr, ast.Load())
        elif self._reads_values(func):
            func = self._resolve(func)
        arguments = [self._lower_expression(argument) for argument in node.args]
        keywords = [ast.keyword(keyword.arg, self._lower_expression(keyword.value)) for keyword in node.keywords]
        return ast.Call(func, arguments, keywords)

    def _expand_call(self, call: ast.expr, hint: str) -> ast.expr | None:
        """The statements of a composite call in its place."""
        if self._expand is None or self._live is None:
            return None
        body = self._expand(call, {*self._values.values()})
        if body is None:
            return None
        outer, count, values = dict(self._locals), len(self.statements), dict(self._values)
        try:
            atom = self._read_expansion(body, hint)
            if self._live.equal_values(call, atom):
                return atom
        except UnreadableError:
            pass
        finally:
            self._locals = outer
        self._values = values
        del self.statements[count:]
        return None

    def _read_expansion(self, body: Sequence[ast.stmt], hint: str) -> ast.expr:
        self._locals = {name: name for name in (*self._values.values(), *self._tensors)}
        for statement in body[:-1]:
            assert isinstance(statement, ast.Assign)
            self._read_assignment(statement.targets[0], statement.value)
        last = body[-1]
        assert isinstance(last, ast.Assign)
        return self._lower_expression(last.value, hint)

    def _reads_values(self, node: ast.AST) -> bool:
        return any(name in self._locals or name == "input_data" for name in list_names(node))

    def _resolve(self, node: ast.AST) -> ast.expr:
        """A copy that reads values by their own names."""
        resolved = _Resolver(self._locals, self._tensors).visit(copy.deepcopy(node))
        assert isinstance(resolved, ast.expr)
        return resolved

    # -- statements

    def _add_statement(self, value: ast.expr, hint: str) -> str:
        name = self._name_freshly(hint or "value")
        tree = ast.Assign([ast.Name(name, ast.Store())], value, lineno=1)
        self._append([tree], (name,))
        if isinstance(value, (ast.Tuple, ast.List)):
            self._tuples[name] = value.elts
        return name

    def _append(self, tree: Sequence[ast.stmt], targets: tuple[str, ...], *, is_last: bool = False) -> None:
        fixed = tuple(ast.fix_missing_locations(statement) for statement in tree)
        if self._live is not None and not is_last:
            self._live.run_statement(fixed)
        reads = {name for statement in fixed for name in list_names(statement)}
        own = {*self._tensors, *self._values.values()} - set(targets)
        self.statements.append(ReferenceStatement(fixed, targets, frozenset(reads & own)))
        self._values |= {name: name for name in targets}

    def _keep_block(self, block: Sequence[ast.stmt]) -> None:
        """A block as it is, over values, with targets of their own names."""
        stored = list(dict.fromkeys(name for statement in block for name in _list_stored(statement)))
        fresh = {name: self._name_freshly(name) for name in stored}
        before = [name for name in stored if name in self._locals and self._reads_first(block, name)]
        rows: list[ast.stmt] = [
            ast.Assign([ast.Name(fresh[name], ast.Store())], ast.Name(self._locals[name], ast.Load()), lineno=1)
            for name in before
        ]
        resolver = _Resolver({**self._locals, **fresh}, self._tensors)
        rows += [resolver.visit(copy.deepcopy(statement)) for statement in block]
        self._append(rows, tuple(fresh.values()))
        self._locals |= fresh

    def _reads_first(self, block: Sequence[ast.stmt], name: str) -> bool:
        """Whether a block may read a name's value from before it."""
        first = block[0]
        plain = isinstance(first, ast.Assign) and name in _list_stored(first)
        return not plain or any(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
            for node in ast.walk(first)
        )

    def _name_freshly(self, name: str) -> str:
        stem, number = name, 2
        while name in self._used:
            name, number = f"{stem}_{number}", number + 1
        self._used.add(name)
        return name


class _Resolver(ast.NodeTransformer):
    """Puts values' own names where a text has others, and a tensor's name where it reads input_data."""

    def __init__(self, names: Mapping[str, str], tensors: Iterable[str]) -> None:
        self._names, self._tensors = names, set(tensors)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        tensor = _find_tensor(node)
        if tensor in self._tensors:
            return ast.Name(tensor, ast.Load())
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.name = self._names.get(node.name, node.name)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._names.get(node.arg, node.arg)
        return node


def _rename_value(statement: ReferenceStatement, name: str, new: str) -> ReferenceStatement:
    if name not in (*statement.targets, *statement.reads):
        return statement
    resolver = _Resolver({name: new}, ())
    tree = tuple(ast.fix_missing_locations(resolver.visit(copy.deepcopy(row))) for row in statement.tree)
    targets = tuple(new if target == name else target for target in statement.targets)
    return ReferenceStatement(tree, targets, frozenset(new if read == name else read for read in statement.reads))


def _list_own_words(statement: ast.stmt, is_data: IsData) -> Iterable[str]:
    """What a statement does: of an assignment, its outermost operation, since what is inside reads no value."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    if value is None or any(isinstance(node, (ast.Lambda, ast.comprehension, ast.Assign)) for node in ast.walk(value)):
        return list_words(statement, is_data)
    return word_operation(value, is_data)


def _find_tensor(node: ast.AST) -> str | None:
    """The X of input_data['X']."""
    is_tensor = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "input_data"
    return next(list_mentions(node), None) if is_tensor else None


def _parse_text(text: str) -> ast.Module:
    try:
        return ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(f"a reference that does not parse: {error}") from None


def list_names(node: ast.AST) -> Iterator[str]:
    """Every name that is written in a tree, as often as it is."""
    return (child.id for child in ast.walk(node) if isinstance(child, ast.Name))


def _find_noun(node: ast.expr) -> str:
    words = [strip_arity(word) for word in list_words(node, bool) if word]
    return _NOUNS.get(words[0], words[0].lower()) if words and words[0].isidentifier() else "value"


def _list_stored(statement: ast.stmt) -> list[str]:
    """Names that a statement binds where the rest of the text sees them."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).split(".")[0] for alias in statement.names]
    inner = {
        id(name)
        for node in ast.walk(statement)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.Lambda, ast.FunctionDef))
        for name in ast.walk(node)
    }
    stored = [
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in inner
    ]
    changed = _list_changed(statement)
    return list(dict.fromkeys([*stored, *changed]))


def _list_changed(statement: ast.stmt) -> list[str]:
    """Names whose tensors or lists a statement changes in place."""
    names = []
    for node in ast.walk(statement):
        place: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            place = node.value
        elif isinstance(node, ast.AugAssign):
            place = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            attribute = node.func.attr
            if attribute in _CHANGING or (attribute.endswith("_") and not attribute.endswith("__")):
                place = node.func.value
        while isinstance(place, (ast.Subscript, ast.Attribute)):
            place = place.value
        if isinstance(place, ast.Name) and place.id not in ("torch", "input_data", "ctx"):
            names.append(place.id)
    return names


Row = tuple[ast.stmt, tuple[int, int] | None]


def _join_changes(rows: Sequence[Row]) -> list[tuple[list[ast.stmt], list[tuple[tuple[int, int], str]]]]:
    """Blocks of statements, each with the outputs that it makes: from where a name is bound to where its tensor is
    last changed in place is one block."""
    ends = list(range(len(rows)))
    bound: dict[str, int] = {}
    for number, (statement, _) in enumerate(rows):
        changed = _list_changed(statement)
        for name in changed:
            if name in bound:
                ends[bound[name]] = number
        bound |= dict.fromkeys((name for name in _list_stored(statement) if name not in changed), number)
    blocks = []
    first = last = 0
    for number in range(len(rows)):
        last = max(last, ends[number])
        if last == number:
            blocks.append(_name_results(rows[first : number + 1]))
            first = last = number + 1
    return blocks


def _name_results(rows: Sequence[Row]) -> tuple[list[ast.stmt], list[tuple[tuple[int, int], str]]]:
    marks = []
    for statement, mark in rows:
        if mark is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if not isinstance(target, ast.Name):
                raise UnreadableError("a data_transform without a value at its end")
            if target.id == "_result":
                target.id = f"_result_{mark[0]}_{mark[1]}"
            marks.append((mark, target.id))
    return [statement for statement, _ in rows], marks
