"""A task in bare Python, read back: the inverse of `bare`, from the text alone, which is never executed.

What cannot be told from the text is not in the task: a tolerance of zero, keys without meaning, the name of its test.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml

from opsmith.errors import TaskError
from opsmith.targets.step.codegen.bare import PLACE
from opsmith.targets.step.codegen.text import class_name
from opsmith.targets.step.ir import read_spec, write_spec

MAX_TEXT = 1 << 17
INDENT = 4  # of what a function holds
_PIN = re.compile(r"(\w+)_value = step\.Size\(\1\)")


class _OtherError(Exception):
    """The text is no task that `bare` wrote."""


_NOT_OURS = (
    *(_OtherError, TaskError, yaml.YAMLError, SyntaxError, ValueError, TypeError, AssertionError),
    *(LookupError, AttributeError, RuntimeError, MemoryError, StopIteration),
)


def read_bare(text: str) -> tuple[str, str | None] | None:
    """The task's text, and the program in `body` (None: its place); None: the text is no such script."""
    if len(text) > MAX_TEXT or "def body(" not in text:
        return None
    try:
        script = _Script(text, ast.parse(text))
        mapping, program = script.read_mapping(), script.read_program()
        return write_spec(read_spec(yaml.safe_dump(mapping, sort_keys=False))), program
    except _NOT_OURS:
        return None


@dataclass(frozen=True)
class _Script:
    text: str
    tree: ast.Module

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        return {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    @cached_property
    def assigned(self) -> dict[str, ast.expr]:
        """The value that each name of the script's own level got last."""
        pairs = [(node.targets[0], node.value) for node in self.tree.body if isinstance(node, ast.Assign)]
        return {target.id: value for target, value in pairs if isinstance(target, ast.Name)}

    def read_mapping(self) -> dict[str, Any]:
        streams = _read_streams(self.functions["prepare"])
        types = _dict_entries(self.assigned["input_dtype"])
        drawn = _dict_entries(self.assigned["input_data"])
        tensors = {
            name: {"name": name, "dtype": _read_type(types[name]), **_read_draw(value)} for name, value in drawn.items()
        }
        sections = {
            "global": self._read_global(),
            "inputs": [_drop_axes(tensors[name]) | {"dims": dims} for name, dims in streams.items()],
            "parameters": [_read_parameter(tensor) for name, tensor in tensors.items() if name not in streams],
            "fns": list(self._read_fns()),
            "outputs": list(self._read_outputs()),
        }
        return {key: value for key, value in sections.items() if value}

    def read_program(self) -> str | None:
        text = self._read_body(self.functions["body"])
        return None if text == PLACE else text

    def _read_body(self, node: ast.FunctionDef) -> str:
        """The text of a function's body, comments at its end included."""
        width, last = node.col_offset + INDENT, node.end_lineno or node.lineno
        while last < len(self.lines) and self.lines[last].startswith(" " * width):
            last += 1
        return "\n".join(self._dedent_rows(node.lineno, last, width)).strip("\n") + "\n"

    def _dedent_rows(self, first: int, last: int, width: int) -> list[str]:
        """The lines after line `first` up to line `last`, moved left; those that begin inside a string stay."""
        pairs = enumerate(self.lines[first:last], first + 1)
        return [row if number in self.quoted_lines else row[width:] for number, row in pairs]

    @cached_property
    def quoted_lines(self) -> frozenset[int]:
        """The lines that begin inside a string."""
        literals = (node for node in ast.walk(self.tree) if isinstance(node, ast.Constant | ast.JoinedStr))
        return frozenset(line for node in literals for line in range(node.lineno + 1, (node.end_lineno or 0) + 1))

    def _read_global(self) -> str:
        """What stands between the seed and the data, less the sizes that are pinned there."""
        places = [node.lineno for node in self.tree.body]
        seed = next(i for i, node in enumerate(self.tree.body) if ast.unparse(node).startswith("torch.manual_seed("))
        data = next(i for i, node in enumerate(self.tree.body) if self._assigned_name(node) == "input_dtype")
        rows = self.lines[places[seed] : places[data] - 1]
        return "\n".join(row for row in rows if not _PIN.fullmatch(row)).strip("\n")

    @staticmethod
    def _assigned_name(node: ast.stmt) -> str:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        return target.id if isinstance(target, ast.Name) else ""

    def _read_fns(self) -> Iterator[dict[str, Any]]:
        classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        for func_name, value in self.assigned.items():
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in classes:
                yield self._read_fn(func_name, classes[value.func.id], value)

    def _read_fn(self, func_name: str, definition: ast.ClassDef, call: ast.Call) -> dict[str, Any]:
        methods = {node.name: node for node in definition.body if isinstance(node, ast.FunctionDef)}
        fn: dict[str, Any] = {"name": _fn_label(definition.name), "func_name": func_name}
        fn["apply"] = self._read_body(methods["apply"])
        if "getInit" in methods:
            returned = methods["getInit"].body[-1]
            assert isinstance(returned, ast.Return)
            fn["init"] = [_read_number(value) for value in _list_elements(returned.value)]
        return fn | {"input_dtype": _read_type(call.args[1]), "output_dtype": _read_type(call.args[2])}

    def _read_outputs(self) -> Iterator[dict[str, Any]]:
        texts = self._read_transforms(self.functions["reference"])
        limits = ast.literal_eval(self.assigned["tolerance"])
        for name, pair in _dict_entries(self.assigned["output_type"]).items():
            dtype, dims = _list_elements(pair)
            own = {key: value for key, value in limits.get(name, {}).items() if value}
            yield {
                "name": name,
                "dtype": _read_type(dtype),
                "dims": _read_dims(dims),
                "data_transform": texts[name],
            } | own

    def _read_transforms(self, node: ast.FunctionDef) -> dict[str, list[str]]:
        """The texts between the assignments of `_S0_0`, `_S0_1`, ... in `reference`, by output."""
        returned = node.body[-1]
        assert isinstance(returned, ast.Return)
        names = {
            key: [ast.unparse(value) for value in _list_elements(of)]
            for key, of in _dict_entries(returned.value).items()
        }
        bound_names = [name for of in names.values() for name in of]
        body = [statement for statement in node.body if self._assigned_name(statement) in bound_names]
        ends = [self._start_line(node), *((statement.end_lineno or 0) for statement in body)]
        texts = {
            self._assigned_name(statement): self._read_transform(statement, first)
            for statement, first in zip(body, ends, strict=False)
        }
        return {key: [texts[name] for name in of] for key, of in names.items()}

    def _start_line(self, node: ast.FunctionDef) -> int:
        """The line after `input_data = clones()`."""
        return next(
            (statement.end_lineno or 0) for statement in node.body if self._assigned_name(statement) == "input_data"
        )

    def _read_transform(self, statement: ast.stmt, after: int) -> str:
        """A text as its author wrote it: `name = (value)` is the value, and `name = x` after `x = ...` is nothing."""
        assert isinstance(statement, ast.Assign)
        last = statement.end_lineno or statement.lineno
        before = self._dedent_rows(after, statement.lineno - 1, INDENT)
        rows = self._dedent_rows(statement.lineno - 1, last, INDENT)
        head = f"{self._assigned_name(statement)} = ("
        if not rows[0].startswith(head):
            return "\n".join(before).strip("\n")
        shift = 0 if last in self.quoted_lines else INDENT
        end = len(self.lines[last - 1].encode()[: statement.end_col_offset].decode()) - shift
        rows[-1] = rows[-1][: end - 1] + rows[-1][end:]  # the bracket that `head` opened
        rows[0] = rows[0][len(head) :]
        return "\n".join([*before, *rows]).strip("\n")


def _fn_label(name: str) -> str:
    """The fn's own label: a class may carry "_" because Python or the script has the name."""
    return name[:-1] if name.endswith("_") and class_name(name[:-1], frozenset()) == name else name


def _dict_entries(node: ast.expr | None) -> dict[str, ast.expr]:
    if not isinstance(node, ast.Dict):
        raise _OtherError
    return {ast.literal_eval(key): value for key, value in zip(node.keys, node.values, strict=True) if key is not None}


def _list_elements(node: ast.expr | None) -> list[ast.expr]:
    if not isinstance(node, ast.List | ast.Tuple):
        raise _OtherError
    return node.elts


def _read_call(node: ast.expr) -> tuple[str, list[ast.expr], dict[str, ast.expr]]:
    """The name, arguments and keywords of a call."""
    if not isinstance(node, ast.Call):
        raise _OtherError
    return ast.unparse(node.func), node.args, {word.arg: word.value for word in node.keywords if word.arg is not None}


def _read_type(node: ast.expr) -> Any:
    """A type as a task file writes it."""
    name, args, _ = _read_call(node)
    match name:
        case "step.Scalar":
            return ast.literal_eval(args[0])
        case "step.STuple":
            return [_read_type(field) for field in _list_elements(args[0])]
        case "step.Buffer":
            return f"Buffer({_read_type(args[0])}, [{', '.join(map(str, _read_dims(args[1])))}])"
        case "step.Multihot":
            return f"Multihot({_read_type(args[0])}, {_read_dim(args[1])})"
    raise _OtherError


def _read_dims(node: ast.expr) -> list[Any]:
    return [_read_dim(entry) for entry in _list_elements(node)]


def _read_dim(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else ast.unparse(node).replace(" ", "")


def _read_number(node: ast.expr) -> Any:
    """A start value; infinite ones are written as calls of float."""
    if isinstance(node, ast.Call):
        return float(ast.literal_eval(node.args[0]))
    return ast.literal_eval(node)


def _read_streams(node: ast.FunctionDef) -> dict[str, list[Any]]:
    """The dims of every input stream, from what `prepare` returns."""
    returned = node.body[-1]
    if not isinstance(returned, ast.Return):
        raise _OtherError
    calls = [_read_call(call)[1] for call in _list_elements(returned.value)]
    return {ast.literal_eval(args[0]): _read_dims(args[2]) for args in calls}


def _read_draw(node: ast.expr) -> dict[str, Any]:
    """How a tensor's data is made: data_gen, min, max; and its axes, outermost first."""
    name, args, words = _read_call(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        return _read_draw(node.func.value)
    if name == "torch.bernoulli":
        ones = next(inner for inner in ast.walk(args[0]) if isinstance(inner, ast.Call))
        return {"data_gen": "binary", "axes": ones.args}
    if name == "torch.randint":
        top = args[1]
        assert isinstance(top, ast.BinOp)
        low, high = ast.literal_eval(args[0]), ast.literal_eval(top.left)
        return {"data_gen": "randint", "min": low, "max": high, "axes": _list_elements(args[2])}
    if name == "step.multihot":
        return {key: ast.literal_eval(words[key]) for key in ("min", "max")} | {"axes": _list_elements(args[0])}
    return {"data_gen": name, "axes": args}


def _drop_axes(tensor: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tensor.items() if key != "axes"}


def _read_parameter(tensor: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter is no stream: its dims are the axes of its data that its type does not hold."""
    element_axes = _count_element_axes(tensor["dtype"])
    axes = [_read_dim(axis) for axis in tensor["axes"]]
    sizes = [re.sub(r"_value\b", "", str(axis)).replace("//", "/") for axis in axes[: len(axes) - element_axes]]
    dims = [int(size) if size.isdecimal() else size for size in reversed(sizes)]
    return _drop_axes(tensor) | {"dims": dims}


def _count_element_axes(dtype: Any) -> int:
    """How many axes an element of this type has."""
    if isinstance(dtype, str) and dtype.startswith("Buffer("):
        return dtype.partition("[")[2].count(",") + 1
    return int(isinstance(dtype, str) and dtype.startswith("Multihot("))
