"""Moves -> program text: coercions, Zips and Copies written out, so that every stream is consumed once.

Equal applications on equal streams are written once. A stream with k uses gets k - 1 Copies just before its first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.targets.step.sampler.kinds import Step
from opsmith.targets.step.sampler.orders import HAND_ON
from opsmith.targets.step.sampler.problem import Problem
from opsmith.targets.step.sampler.records import Move

Value = int  # a stream, or the list of streams that a Partition makes


@dataclass(frozen=True)
class _Line:
    """`{0}`, `{1}`, ... in `form` stand for the operands."""

    form: str
    operands: tuple[Value, ...]
    result: Value


def program_text(problem: Problem, moves: Sequence[Move]) -> str:
    """The program that makes these moves; the last one is a Return."""
    writer = _Writer(problem)
    for move in moves:
        writer.add(move)
    return writer.text()


class _Writer:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.streams: list[Value] = list(range(len(problem.inputs)))
        self.kinds = list(problem.inputs)
        self.lines: list[_Line] = []
        self.returned: list[Value] = []
        self._known: dict[tuple[Any, ...], Value] = {}
        self._values = len(problem.inputs)
        spec = problem.spec
        sizes = [name for symbol in (*spec.sizes, *spec.symbols) for name in (symbol, f"{symbol}_value")]
        self._taken = {*problem.input_names, *(fn.name for fn in problem.fns), *sizes, "f", "part"}

    # ---------------------------------------------------------------- building
    def add(self, move: Move) -> None:
        """Append one move."""
        if move.fn is None:
            self.returned = [self._zipped(args, plan.paths) for args, plan in move.outputs]
            return
        self.streams.append(self._expert(move) if move.plan.op == "Expert" else self._applied(move))
        if move.plan.result is not None:
            self.kinds.append(move.plan.result)

    def _line(self, form: str, operands: tuple[Value, ...]) -> Value:
        key = (form, operands)
        if key not in self._known:
            self._known[key] = self._new_line(form, operands)
        return self._known[key]

    def _new_line(self, form: str, operands: tuple[Value, ...]) -> Value:
        self.lines.append(_Line(form, operands, self._values))
        self._values += 1
        return self._values - 1

    def _coerced(self, arg: int, path: Sequence[Step]) -> Value:
        value = self.streams[arg]
        for step in path:
            value = self._line(f"step.{self._primitive(step)}.apply({{0}})", (value,))
        return value

    def _primitive(self, step: Step) -> str:
        op, *args = step
        dim = self.problem.kinds.dim
        if op == "Flatten":
            return f"Flatten(L={list(range(args[0], args[1] + 1))})"
        if op == "Reshape":
            return f"Reshape(S={dim(args[0])}, L=[{args[1]}])"
        if op == "Repeat":
            return f"Repeat(n={dim(args[0])})"
        return {"Promote": "Promote(b={})", "Bufferize": "Bufferize(a={})", "Streamify": "Streamify()"}[op].format(
            *args
        )

    def _applied(self, move: Move) -> Value:
        assert move.fn is not None
        if move.plan.op != "Map":
            zipped = self._zipped(move.args, move.plan.paths)
            return self._line(f"step.{move.plan.op}(fn={move.fn.name}, b={move.plan.b}).apply({{0}})", (zipped,))
        operands = tuple(map(self._coerced, move.args, move.plan.paths))
        return self._line(f"step.Map(fn={move.fn.name}).apply({_tuple(len(operands))})", operands)

    def _zipped(self, args: Sequence[int], paths: Sequence[Sequence[Step]]) -> Value:
        first, *rest = map(self._coerced, args, paths)
        for value in rest:
            first = self._line("step.Zip().apply(({0}, {1}))", (first, value))
        return first

    def _expert(self, move: Move) -> Value:
        assert move.fn is not None
        data = self._zipped(move.args[:-1], move.plan.paths[:-1])
        index = self._coerced(move.args[-1], move.plan.paths[-1])
        parts = self._new_line(f"step.Partition(N={self._places(move)}).apply(({{0}}, {{1}}))", (data, index))
        branch = self._branch(move)
        results = self._line(branch, (parts,)) if branch else parts
        return self._line(f"step.Merge(fn={move.fn.name}).apply(({{0}}, {{1}}))", (results, index))

    def _places(self, move: Move) -> str:
        """N of the Partition: the size's name where the index's length is a symbol."""
        index = self.problem.kinds.multihot(self.kinds[move.args[-1]].fields)
        named = index is not None and index.length.symbols == {str(index.length)}
        return f"{index.length}_value" if index is not None and named else str(len(move.branch))

    def _branch(self, move: Move) -> str:
        names = [None if place == HAND_ON else self.problem.fns[place].name for place in move.branch]
        if all(name == names[0] for name in names):
            return "" if names[0] is None else f"[step.Map(fn={names[0]}).apply(part) for part in {{0}}]"
        if None in names:
            places = (f"{{0}}[{i}]" for i in range(len(names)))
            return f"[{', '.join(_branch_map(name, place) for name, place in zip(names, places, strict=True))}]"
        return f"[step.Map(fn=f).apply(part) for f, part in zip([{', '.join(map(str, names))}], {{0}})]"

    # ---------------------------------------------------------------- writing
    def text(self) -> str:
        """The program, with Copies; without a Return it hands out the newest stream, right or wrong."""
        self.returned = self.returned or self.streams[-1:]
        uses: dict[Value, int] = {}
        needed = self._needed()
        for line in needed:
            if not _is_list(line):
                for operand in line.operands:
                    uses[operand] = uses.get(operand, 0) + 1
        names = dict(enumerate(self.problem.input_names))
        fresh = self._fresh()
        handles: dict[Value, list[str]] = {}
        out: list[str] = []
        for line in needed:
            for operand in dict.fromkeys(line.operands):
                if uses.get(operand, 0) > 1 and operand not in handles:
                    handles[operand] = _copies(names[operand], uses[operand], fresh, out)
            operands = [handles[o].pop(0) if o in handles else names[o] for o in line.operands]
            names[line.result] = next(fresh)
            out.append(f"{names[line.result]} = {line.form.format(*operands)}")
        out.append("return " + ", ".join(names[value] for value in self.returned))
        return "\n".join(out) + "\n"

    def _needed(self) -> list[_Line]:
        """The lines that the outputs depend on."""
        wanted = set(self.returned)
        kept = []
        for line in reversed(self.lines):
            if line.result in wanted:
                wanted.update(line.operands)
                kept.append(line)
        return kept[::-1]

    def _fresh(self) -> Iterator[str]:
        number = len(self.problem.inputs)
        while True:
            if f"E{number}" not in self._taken:
                yield f"E{number}"
            number += 1


def _tuple(count: int) -> str:
    return "{0}" if count == 1 else "(" + ", ".join(f"{{{i}}}" for i in range(count)) + ")"


def _branch_map(name: str | None, place: str) -> str:
    return place if name is None else f"step.Map(fn={name}).apply({place})"


def _is_list(line: _Line) -> bool:
    """Whether the line takes the streams of a Partition, a list, which is not consumed itself."""
    return line.form.startswith("[")


def _copies(name: str, uses: int, fresh: Iterator[str], out: list[str]) -> list[str]:
    """Append the Copies of a stream; returns one name per use."""
    handles = []
    while uses > 1:
        first, second = next(fresh), next(fresh)
        out.append(f"{first}, {second} = step.Copy().apply({name})")
        handles.append(first)
        name = second
        uses -= 1
    return [*handles, name]
