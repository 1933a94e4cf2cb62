"""One operator's module: a function of torch tensors, written out from the program that was judged.

torch is all that it needs; nothing of ours runs in it. Code of the task's author stands there as it was written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from opsmith.problems.dims import Dim
from opsmith.problems.dtypes import TORCH_NAMES
from opsmith.problems.problem import Problem
from opsmith.targets.literals import write_docstring
from opsmith.targets.native.library.sizes import SizeRule, plan_sizes
from opsmith.targets.step.codegen.text import dim_code, function_text, indent_text
from opsmith.targets.step.ir.code import SIZE_SUFFIX
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.program import dedent_program
from opsmith.targets.step.language.spec import FnSpec, TaskSpec
from opsmith.targets.step.library.statements import FnForm, NoStatementsError, StatementWriter, names_by_line

_OWN = frozenset({"torch", "Tensor", "ctx", "input_data", "name", "tensor", "axes", "dtype", "given", "shape", "state"})
_FLOATS = frozenset({"fp64", "fp32", "fp16", "bf16"})
LONGEST = 400  # statements of a function that a person still reads


@dataclass(frozen=True)
class SizedGraph:
    """A program at the sizes of symbols that it reads as numbers; {}: it reads none."""

    sizes: Mapping[str, int]
    graph: Graph


def write_function(
    spec: TaskSpec, source: str, name: str, graphs: Sequence[SizedGraph], fns: Mapping[str, FnForm]
) -> str:
    """The text of a module that defines `name`, without its docstring, whose place `DOCSTRING` marks.

    Raises NoStatementsError where the program has no such form.
    """
    writer = _ModuleWriter(spec, source, name, fns)
    bodies: dict[tuple[str, ...], list[Mapping[str, int]]] = {}
    for sized in graphs:
        bodies.setdefault(tuple(writer.write_body(sized)), []).append(sized.sizes)
    lines = list(writer.branch_bodies(bodies))
    if len(lines) > LONGEST:
        raise NoStatementsError(f"{len(lines)} statements; expected at most {LONGEST}, which a person can read")
    return writer.write_module(lines)


DOCSTRING = '"""DOCSTRING"""'


class _ModuleWriter:
    def __init__(self, spec: TaskSpec, source: str, name: str, fns: Mapping[str, FnForm]) -> None:
        self.spec, self.name, self.fns = spec, name, fns
        self.source = dedent_program(source)
        self.problem: Problem = spec.problem
        self.plan = plan_sizes(self.problem)
        self.used: set[str] = set()
        self.globals = list(_read_global(spec))

    def write_body(self, sized: SizedGraph) -> list[str]:
        writer = StatementWriter(
            self.spec, sized.graph, self.fns, {*_OWN, *self._list_names()}, names_by_line(self.source)
        )
        lines = [line.replace("{name}", self.name) for line in writer.write_statements()]
        self.used |= writer.used_fns
        return lines

    def branch_bodies(self, bodies: Mapping[tuple[str, ...], Sequence[Mapping[str, int]]]) -> Iterator[str]:
        """One branch for each body: which graph the program has depends on sizes, and no others were judged."""
        every = [sizes for combos in bodies.values() for sizes in combos]
        names = [name for name in every[0] if len(bodies) > 1 or len({sizes[name] for sizes in every}) == 1]
        if not names:  # any size gives the same
            yield from next(iter(bodies))
            return
        own = names[0] if len(names) == 1 else _write_tuple(names)
        rows = {
            lines: sorted({_join([sizes[name] for name in names]) for sizes in own}) for lines, own in bodies.items()
        }
        judged = sorted(row for own in rows.values() for row in own)
        yield f"if {own} not in {judged!r}:"
        expected = f"expected one of {judged!r}, where it was judged"
        yield f'    raise ValueError(f"{self.name}: given {own} = {{{own}}}; {expected}")'
        for lines, combos in rows.items():
            yield from lines if len(rows) == 1 else [f"if {own} in {combos!r}:", *(f"    {line}" for line in lines)]

    def _list_names(self) -> set[str]:
        """Those of the task."""
        symbols = {*self.problem.symbols, *self.spec.sizes}
        own = {tensor.name for tensor in self.problem.tensors} | {fn.func_name for fn in self.spec.fns}
        bound = {bound for _, names in self.globals for bound in names}
        return {self.name, *symbols, *(f"{name}{SIZE_SUFFIX}" for name in symbols), *own, *bound}

    def write_module(self, body: Sequence[str]) -> str:
        fns = [fn for fn in self.spec.fns if fn.func_name in self.used]
        needed = _names_in(text for fn in fns for text in [fn.apply]) | _words(body)
        kept: list[str] = []
        for text, bound in reversed(self.globals):
            if not bound or bound & needed:
                kept.insert(0, text)
                needed |= _names_in([text])
        inside = self._list_inner(kept, fns)
        outer = [text for text in kept if text not in inside]
        head = ["from __future__ import annotations\n\nimport torch\nfrom torch import Tensor\n"]
        sections = [*head, *(["\n".join(outer) + "\n"] if outer else [])]
        sections += [f"\n{self._write_fn(fn)}" for fn in fns if fn.func_name not in inside]
        inner = [
            text if text in kept else self._write_fn(next(fn for fn in fns if fn.func_name == text)) for text in inside
        ]
        lines = [*self._write_checks(), *self._write_sizes(needed)]
        defined = [f"\n{text}" if text.startswith("def ") else text for text in inner]
        rows = "\n".join([*lines, *defined, *body])
        sections.append(f"\n{self._write_signature()}\n    {DOCSTRING}\n{indent_text(rows, 4)}\n")
        return "\n".join(sections)

    def _list_inner(self, kept: Sequence[str], fns: Sequence[FnSpec]) -> list[str]:
        """Statements of `global`, and names of fns, that see sizes or data: they stand inside of the function."""
        symbols = {*self.problem.symbols, *self.spec.sizes}
        dependent = {"ctx", "input_data", *symbols, *(f"{name}{SIZE_SUFFIX}" for name in symbols)}
        inside = []
        for text in kept:
            if _names_in([text]) & dependent:
                inside.append(text)
                dependent |= _bound_names(text)
        return [*inside, *(fn.func_name for fn in fns if _names_in([fn.apply]) & dependent)]

    def _write_fn(self, fn: FnSpec) -> str:
        text = fn.apply if fn.apply.endswith("\n") else f"{fn.apply}\n"
        return function_text(fn.func_name, (), text, ["state", "input"] if fn.stateful else ["input"])

    # -- the function around the statements

    def _write_signature(self) -> str:
        problem = self.problem
        named = [f"{tensor.name}: Tensor" for tensor in problem.parameters]
        named += [f"{name}: int = {problem.base_sizes[name]}" for name in self.plan.free]
        inputs = [f"{tensor.name}: Tensor" for tensor in problem.inputs]
        kinds = [
            f"tuple[{', '.join('Tensor' for _ in output.types)}]" if len(output.types) > 1 else "Tensor"
            for output in problem.outputs
        ]
        result = kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"
        return f"def {self.name}({', '.join([*inputs, *(['*', *named] if named else [])])}) -> {result}:"

    def _loop_names(self, *words: str) -> list[str]:
        """Variables of the checks, which hide nothing of the task's."""
        return [f"{word}_" if word in self._list_names() else word for word in words]

    def _write_checks(self) -> Iterator[str]:
        rows = [
            f'("{tensor.name}", {tensor.name}, {len(tensor.type.shape)}, torch.{TORCH_NAMES[tensor.type.dtype]})'
            for tensor in self.problem.tensors
        ]
        name, tensor, axes, dtype, given = self._loop_names("name", "tensor", "axes", "dtype", "given")
        expected = f'raise ValueError(f"{self.name}: {{{name}}}: given {{{given}}}; expected'
        yield from _loop_over(f"{name}, {tensor}, {axes}, {dtype}", rows)
        yield f"    if not isinstance({tensor}, Tensor) or {tensor}.dim() != {axes} or 0 in {tensor}.shape:"
        yield f"        {given} = tuple({tensor}.shape) if isinstance({tensor}, Tensor) else type({tensor}).__name__"
        yield f'        {expected} a torch tensor of {{{axes}}} axes, each at least 1")'
        yield f"    {given} = {tensor}.dtype"
        yield f"    if {given} is not {dtype} and not ({dtype}.is_floating_point and {given} is torch.float64):"
        yield f'        {expected} {{{dtype}}}, or float64 for all floats")'

    def _write_sizes(self, needed: set[str]) -> Iterator[str]:
        """Sizes from shapes; then every shape is compared that is not their source alone."""
        for name in self.plan.free:
            yield f"if type({name}) is not int or {name} < 1:"
            given = f"{self.name}: {name}: given {{{name}!r}}"
            yield f'    raise ValueError(f"{given}; expected a size, an int of at least 1")'
        rules, told = list(self.plan.rules), set(self.plan.free) | {rule.symbol for rule in self.plan.rules}
        plain = {(rule.tensor, rule.axis) for rule in rules if str(rule.dim) == rule.symbol}
        for tensor in self.problem.tensors:
            axes = {(tensor.name, axis) for axis in range(len(tensor.type.shape))}
            if axes and axes <= plain:
                yield f"{_write_tuple(map(str, tensor.type.shape)).strip('()')} = {tensor.name}.shape"
                rules = [rule for rule in rules if (rule.tensor, rule.axis) not in axes]
        yield from (f"{rule.symbol} = {_solve(rule)}" for rule in rules)
        rows = []
        for tensor in self.problem.tensors:
            if not {(tensor.name, axis) for axis in range(len(tensor.type.shape))} <= plain:
                code, text = (_write_tuple(map(write, tensor.type.shape)) for write in (_code, str))
                rows.append(f'("{tensor.name}", {tensor.name}, {code}, "{text}")')
        if rows:
            name, own, shape, text = self._loop_names("name", "tensor", "shape", "axes")
            yield from _loop_over(f"{name}, {own}, {shape}, {text}", rows)
            yield f"    if {own}.shape != {shape}:"
            given = f"{self.name}: {{{name}}}: given shape {{tuple({own}.shape)}}"
            yield f'        raise ValueError(f"{given}; expected {{{text}}} = {{{shape}}}")'
        symbols = sorted({*self.problem.symbols, *self.spec.sizes})
        fixed = [name for name in symbols if name not in told and {name, f"{name}{SIZE_SUFFIX}"} & needed]
        yield from (f"{name} = {self.problem.base_sizes[name]}" for name in fixed)
        yield from (f"{name}{SIZE_SUFFIX} = {name}" for name in symbols if f"{name}{SIZE_SUFFIX}" in needed)
        if "ctx" in needed:
            yield f"ctx = {{{', '.join(f'{name}: {name}' for name in symbols)}}}"
        if "input_data" in needed:
            rows = [f'"{tensor.name}": {tensor.name}' for tensor in self.problem.tensors]
            yield f"input_data = {{{', '.join(rows)}}}"


def _loop_over(names: str, rows: Sequence[str]) -> list[str]:
    """The head of a loop over rows that stand in it."""
    return [f"for {names} in (", *(f"    {row}," for row in rows), "):"]


def _join(sizes: list[int]) -> int | tuple[int, ...]:
    return sizes[0] if len(sizes) == 1 else tuple(sizes)


def _write_tuple(words: Iterable[str]) -> str:
    texts = list(words)
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _code(dim: Dim) -> str:
    return dim_code(dim, "", "//")


def _solve(rule: SizeRule) -> str:
    """A symbol's size from the length of one axis, as an expression."""
    rest = Dim(rule.dim.coefficient, tuple(pair for pair in rule.dim.powers if pair[0] != rule.symbol))
    power, length = dict(rule.dim.powers)[rule.symbol], f"{rule.tensor}.shape[{rule.axis}]"
    if power < 0:
        quotient = f"({_code(rest)}) // {length}"
    else:
        top, bottom = _code(Dim(1) / rest).partition(" // ")[::2] if rest != Dim(1) else ("1", "")
        quotient = length if top == "1" else f"{length} * {top}"
        quotient = f"{quotient} // {bottom}" if bottom else quotient
    return quotient if abs(power) == 1 else f"round(({quotient}) ** (1 / {abs(power)}))"


# -- code of the author


def _read_global(spec: TaskSpec) -> Iterator[tuple[str, set[str]]]:
    """The statements of `global` with the names that each binds, but for those that only say what sizes are."""
    text = spec.global_code
    symbols = {*spec.problem.symbols, *spec.sizes}
    sizes = {f"{name}{SIZE_SUFFIX}" for name in symbols}
    for statement in ast.parse(text).body:
        targets = [ast.unparse(target) for target in statement.targets] if isinstance(statement, ast.Assign) else []
        if targets and all(target in sizes or target.startswith("ctx[") for target in targets):
            continue
        lines = text.split("\n")[statement.lineno - 1 : statement.end_lineno]
        written = "\n".join(lines)
        yield written, _bound_names(written)


def _bound_names(text: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(text)))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imported = [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    return names | {(alias.asname or alias.name).split(".")[0] for alias in imported}


def _names_in(texts: Iterable[str]) -> set[str]:
    trees = [ast.parse(function_text("f", (), text if text.endswith("\n") else f"{text}\n")) for text in texts]
    return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _words(lines: Sequence[str]) -> set[str]:
    return {
        node.id
        for node in ast.walk(ast.parse("def f():\n" + "\n".join(f"    {line}" for line in lines)))
        if isinstance(node, ast.Name)
    }


def fill_docstring(text: str, lines: Iterable[str]) -> str:
    """The module with the docstring of its function."""
    return text.replace(DOCSTRING, write_docstring(lines), 1)
