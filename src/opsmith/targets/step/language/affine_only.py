"""The affine rule for a program without a task: for the guardian's prompt, whose texts have no types.

A free name that reaches the argument of an application is an input stream, any other free name is opaque. A Partition
whose N is not a number gives two streams, and an opaque list inside zip is as long as the other lists.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from opsmith.records import Diagnostic
from opsmith.targets.step.language.affine import Consumption, affine_findings
from opsmith.targets.step.language.program import Interpreter
from opsmith.targets.step.language.values import MAX_OPENED, Opaque, Primitive, Sized, list_leaves


@dataclass(eq=False, slots=True)
class Loose(Opaque):
    """A stream, a fn or a size: only its uses will tell."""

    noun: ClassVar[str] = "loose"
    op: str = "input"
    line: int | None = None
    uses: list[Consumption] = field(default_factory=list)


def affine_errors(source: str) -> tuple[Diagnostic, ...]:
    """LANG and AFFINE findings of a program whose task is not known.

    >>> [error.kind for error in affine_errors("A = step.Zip().apply((E0, E0))\\nreturn A")]
    ['AFFINE']
    """
    counter = _Counter()
    interpreter = _Untyped({}, counter, counter.add_free)
    interpreter.run_program(source)
    return (*interpreter.errors, *affine_findings(counter.streams, interpreter.lines))


class _Untyped(Interpreter):
    """The interpreter, with opaque names inside zip."""

    def _iterate_call(self, name: str, node: ast.Call) -> Iterable[Any]:
        if name != "zip":
            return super()._iterate_call(name, node)
        values = [self._list_operand(argument) for argument in node.args]
        shortest = min((len(value) for value in values if isinstance(value, list)), default=0)
        return zip(*(value if isinstance(value, list) else [value] * shortest for value in values), strict=False)

    def _list_operand(self, node: ast.expr) -> Any:
        value = self.evaluate_node(node) if isinstance(node, ast.Name) else None
        return value if isinstance(value, Loose) else list(self.iterate_over(node))


class _Counter:
    """The Applier that counts consumptions and knows no types."""

    def __init__(self) -> None:
        self.streams: list[Loose] = []

    def add_free(self, name: str) -> Loose:
        return self._add_stream(name, "input", None)

    def _add_stream(self, name: str, op: str, line: int | None) -> Loose:
        self.streams.append(Loose(name, op, line))
        return self.streams[-1]

    def configure_primitive(self, op: str, keywords: Mapping[str, Any], line: int) -> Mapping[str, Any]:
        return keywords

    def apply_primitive(self, primitive: Primitive, argument: Any, node: ast.expr, line: int) -> Any:
        for stream in list_leaves(argument):
            if isinstance(stream, Loose):
                stream.uses.append(Consumption(line, primitive.op, "", node))
        if primitive.op == "Copy":
            return (self._add_stream("", "Copy", line), self._add_stream("", "Copy", line))
        if primitive.op == "Partition":
            count = primitive.config["N"]
            is_bounded = isinstance(count, int) and count <= MAX_OPENED
            return [self._add_stream("", "Partition", line) for _ in range(count if is_bounded else 2)]
        return self._add_stream("", primitive.op, line)

    def bind_name(self, name: str, value: Any) -> None:
        if isinstance(value, Loose) and not value.name:
            value.name = name

    def read_size(self, sized: Sized) -> int:
        return sized.value
