"""Moves -> program text: coercions, Zips and Copies written out, so that every stream is consumed once.

Equal applications on equal streams are written once. A stream with k uses gets k - 1 Copies just before its first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith_lab.step.sampler.kinds import Step
from opsmith_lab.step.sampler.orders import HAND_ON
from opsmith_lab.step.sampler.records import Move
from opsmith_lab.step.sampler.task import SamplerTask

Value = int  # a stream, or the list of streams that a Partition makes


@dataclass(frozen=True)
class _Line:
    """`{0}`, `{1}`, ... in `form` stand for the operands."""

    form: str
    operands: tuple[Value, ...]
    result: Value


def program_text(task: SamplerTask, moves: Sequence[Move]) -> str:
    """The program that makes these moves; the last one is a Return."""
    writer = _Writer(task)
    for move in moves:
        writer.add_move(move)
    return writer.write_program()


class _Writer:
    def __init__(self, task: SamplerTask) -> None:
        self.task = task
        self.streams: list[Value] = list(range(len(task.inputs)))
        self.kinds = list(task.inputs)
        self.lines: list[_Line] = []
        self.returned: list[Value] = []
        self._known: dict[tuple[Any, ...], Value] = {}
        self._values = len(task.inputs)
        spec = task.spec
        sizes = [name for symbol in (*spec.sizes, *spec.problem.symbols) for name in (symbol, f"{symbol}_value")]
        self._taken = {*task.input_names, *(fn.name for fn in task.fns), *sizes, "f", "part"}

    # ---------------------------------------------------------------- building
    def add_move(self, move: Move) -> None:
        """Append one move."""
        if move.fn is None:
            self.returned = [self._zip_streams(args, plan.paths) for args, plan in move.outputs]
            return
        self.streams.append(self._add_expert(move) if move.plan.op == "Expert" else self._apply_move(move))
        if move.plan.result is not None:
            self.kinds.append(move.plan.result)

    def _reuse_line(self, form: str, operands: tuple[Value, ...]) -> Value:
        key = (form, operands)
        if key not in self._known:
            self._known[key] = self._new_line(form, operands)
        return self._known[key]

    def _new_line(self, form: str, operands: tuple[Value, ...]) -> Value:
        self.lines.append(_Line(form, operands, self._values))
        self._values += 1
        return self._values - 1

    def _coerce_stream(self, arg: int, path: Sequence[Step]) -> Value:
        value = self.streams[arg]
        for step in path:
            value = self._reuse_line(f"step.{self._write_primitive(step)}.apply({{0}})", (value,))
        return value

    def _write_primitive(self, step: Step) -> str:
        op, *args = step
        dim = self.task.kinds.decode_dim
        if op == "Flatten":
            return f"Flatten(L={list(range(args[0], args[1] + 1))})"
        if op == "Reshape":
            return f"Reshape(S={dim(args[0])}, L=[{args[1]}])"
        if op == "Repeat":
            return f"Repeat(n={dim(args[0])})"
        return {"Promote": "Promote(b={})", "Bufferize": "Bufferize(a={})", "Streamify": "Streamify()"}[op].format(
            *args
        )

    def _apply_move(self, move: Move) -> Value:
        assert move.fn is not None
        if move.plan.op != "Map":
            zipped = self._zip_streams(move.args, move.plan.paths)
            return self._reuse_line(f"step.{move.plan.op}(fn={move.fn.name}, b={move.plan.b}).apply({{0}})", (zipped,))
        operands = tuple(map(self._coerce_stream, move.args, move.plan.paths))
        return self._reuse_line(f"step.Map(fn={move.fn.name}).apply({_tuple_form(len(operands))})", operands)

    def _zip_streams(self, args: Sequence[int], paths: Sequence[Sequence[Step]]) -> Value:
        zipped, *operands = map(self._coerce_stream, args, paths)
        for value in operands:
            zipped = self._reuse_line("step.Zip().apply(({0}, {1}))", (zipped, value))
        return zipped

    def _add_expert(self, move: Move) -> Value:
        assert move.fn is not None
        data = self._zip_streams(move.args[:-1], move.plan.paths[:-1])
        index = self._coerce_stream(move.args[-1], move.plan.paths[-1])
        routed = self._new_line(
            f"step.Partition(N={self._write_place_count(move)}).apply(({{0}}, {{1}}))", (data, index)
        )
        branch = self._write_branch(move)
        results = self._reuse_line(branch, (routed,)) if branch else routed
        return self._reuse_line(f"step.Merge(fn={move.fn.name}).apply(({{0}}, {{1}}))", (results, index))

    def _write_place_count(self, move: Move) -> str:
        """N of the Partition: the size's name where the index's length is a symbol."""
        index = self.task.kinds.decode_multihot(self.kinds[move.args[-1]].fields)
        named = index is not None and index.length.symbols == {str(index.length)}
        return f"{index.length}_value" if index is not None and named else str(len(move.branch))

    def _write_branch(self, move: Move) -> str:
        names = [None if place == HAND_ON else self.task.fns[place].name for place in move.branch]
        if all(name == names[0] for name in names):
            return "" if names[0] is None else f"[step.Map(fn={names[0]}).apply(part) for part in {{0}}]"
        if None in names:
            parts = (
                f"{{0}}[{i}]" if name is None else f"step.Map(fn={name}).apply({{0}}[{i}])"
                for i, name in enumerate(names)
            )
            return f"[{', '.join(parts)}]"
        return f"[step.Map(fn=f).apply(part) for f, part in zip([{', '.join(map(str, names))}], {{0}})]"

    # ---------------------------------------------------------------- writing
    def write_program(self) -> str:
        """The program, with Copies; without a Return it hands out the newest stream, right or wrong."""
        self.returned = self.returned or self.streams[-1:]
        uses: dict[Value, int] = {}
        needed = self._needed_lines()
        for line in needed:
            if not line.form.startswith("["):
                for operand in line.operands:
                    uses[operand] = uses.get(operand, 0) + 1
        names = dict(enumerate(self.task.input_names))
        fresh = self._fresh_names()
        handles: dict[Value, list[str]] = {}
        out: list[str] = []
        for line in needed:
            for operand in dict.fromkeys(line.operands):
                if uses.get(operand, 0) > 1 and operand not in handles:
                    handles[operand] = _write_copies(names[operand], uses[operand], fresh, out)
            operands = [handles[o].pop(0) if o in handles else names[o] for o in line.operands]
            names[line.result] = next(fresh)
            out.append(f"{names[line.result]} = {line.form.format(*operands)}")
        out.append("return " + ", ".join(names[value] for value in self.returned))
        return "\n".join(out) + "\n"

    def _needed_lines(self) -> list[_Line]:
        """The lines that the outputs depend on."""
        values = set(self.returned)
        lines = []
        for line in reversed(self.lines):
            if line.result in values:
                values.update(line.operands)
                lines.append(line)
        return lines[::-1]

    def _fresh_names(self) -> Iterator[str]:
        number = len(self.task.inputs)
        while True:
            if f"E{number}" not in self._taken:
                yield f"E{number}"
            number += 1


def _tuple_form(count: int) -> str:
    return "{0}" if count == 1 else "(" + ", ".join(f"{{{i}}}" for i in range(count)) + ")"


def _write_copies(name: str, uses: int, fresh: Iterator[str], out: list[str]) -> list[str]:
    """Append the Copies of a stream; returns one name per use."""
    handles = []
    while uses > 1:
        first, second = next(fresh), next(fresh)
        out.append(f"{first}, {second} = step.Copy().apply({name})")
        handles.append(first)
        name = second
        uses -= 1
    return [*handles, name]
