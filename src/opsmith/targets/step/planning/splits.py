"""Splits of a task, best first: cuts of its reference, each border in the stream type that functions fit best.

It runs code of the task's author: in workers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from opsmith.problems.dims import Dim
from opsmith.splits import Border, PlanNode, Split
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.planning.cuts import CutFinder, choose_fns
from opsmith.targets.step.planning.forms import BorderForm, list_forms, rank_form
from opsmith.targets.step.planning.material import WorkGraph, list_bits
from opsmith.targets.step.planning.writing import write_statements


@dataclass
class SplitMaker:
    """Writes chains of cuts as splits."""

    material: WorkGraph
    _forms: dict[str, list[BorderForm]] = field(default_factory=dict)

    @property
    def spec(self) -> TaskSpec:
        return self.material.spec

    def list_splits(self) -> Iterator[Split]:
        for sections in CutFinder(self.material, self._rank_value).list_chains():
            yield self.make_split(sections)

    def make_split(self, sections: Sequence[int]) -> Split:
        names = self._name_parts(sections)
        gives = [self._list_gives(section) for section in sections]
        borders = {value for values in gives for value in values}
        nodes = [self._make_node(*row, borders) for row in zip(sections, names, gives, strict=True)]
        return Split(tuple(nodes), self.material.outputs)

    def _list_gives(self, section: int) -> list[str]:
        """What a part hands over, outputs last."""
        targets = {target for number in list_bits(section) for target in self.material.work[number].targets}
        outputs = [output for output in self.material.outputs if output in targets]
        crossing = [value for value in self.material.list_borders(section) if value in targets]
        if outputs and all(self.material.is_cheap(value) for value in crossing):
            return outputs
        return [*(value for value in crossing if value not in outputs), *outputs]

    def _list_work(self, section: int, gives: Sequence[str], borders: set[str]) -> list[int]:
        """The statements of a part: what its results need of its own work, and of work that nobody hands over."""
        needed: set[int] = set()
        pending = [number for value in gives if (number := self.material.find_maker(value)) is not None]
        while pending:
            number = pending.pop()
            if number in needed:
                continue
            needed.add(number)
            makers = ((name, self.material.find_maker(name)) for name in self.material.needs[number])
            pending += [
                maker for name, maker in makers if maker is not None and (section >> maker & 1 or name not in borders)
            ]
        return sorted(needed)

    def _make_node(self, section: int, name: str, gives: Sequence[str], borders: set[str]) -> PlanNode:
        numbers = self._list_work(section, gives, borders)
        targets = {target for number in numbers for target in self.material.work[number].targets}
        needs = dict.fromkeys(need for number in numbers for need in sorted(self.material.needs[number]))
        takes = [need for need in needs if need not in targets]
        order = [tensor.name for tensor in self.spec.inputs]
        takes.sort(key=lambda need: order.index(need) if need in order else len(order))
        statements = self.material.order_statements(numbers)
        forms = {value: self.list_border_forms(value)[0] for value in (*takes, *gives) if self._is_border(value)}
        code = write_statements(
            statements,
            {*self.material.streams, *self.material.parameters},
            self.material.constants,
            {value: forms[value].enter for value in takes if value in forms}
            | {value: "{}" for value in takes if value in self.material.outputs},
            {value: forms[value].leave for value in gives if value in forms},
        )
        contracts = tuple(self._make_border(value, forms.get(value)) for value in gives)
        fns = choose_fns(self.material, sum(1 << number for number in numbers), self.spec.fns)
        return PlanNode(name, tuple(takes), contracts, code, fns)

    def _is_border(self, value: str) -> bool:
        return value not in self.material.outputs and value not in self.material.streams

    def _make_border(self, value: str, form: BorderForm | None) -> Border:
        if form is not None:
            return Border(value, str(form.dtype), tuple(map(str, form.dims)))
        output = next(output for output in self.spec.outputs if output.name == value)
        return Border(value, str(output.dtype), tuple(map(str, output.dims)))

    def list_border_forms(self, value: str) -> list[BorderForm]:
        """The forms of a value that crosses a border, those that fit the functions best first."""
        if value not in self._forms:
            type_ = self.material.find_type(value)
            assert type_ is not None
            forms = list_forms(type_, self._list_stretched(value), self.spec.fns)
            made_by, taken_by = self._list_sides(value)
            ranks = {form.key: rank_form(form, made_by, taken_by, self.spec.fns) for form in forms}
            self._forms[value] = sorted(forms, key=lambda form: -ranks[form.key])
        return self._forms[value]

    def _rank_value(self, value: str) -> float:
        """How well functions fit a value as a border, from about -1 to 1."""
        best = self.list_border_forms(value)[0]
        return rank_form(best, *self._list_sides(value), self.spec.fns) / 3.0 - 1.0

    def _list_stretched(self, value: str) -> list[tuple[Dim, ...]]:
        """Shapes of what a value is combined with, also after operations that leave its shape as it is."""
        own = self.material.find_type(value)
        shapes: dict[tuple[Dim, ...], None] = {}
        pending, passed = [value], {value}
        while pending and own is not None:
            for number in self.material.list_consumers(pending.pop()):
                for name in self.material.work[number].targets:
                    type_ = self.material.find_type(name)
                    if type_ is not None and name not in passed:
                        passed.add(name)
                        shapes[type_.shape] = None
                        pending += [name] if type_.shape == own.shape else []
        return list(shapes)

    def _list_sides(self, value: str) -> tuple[list[str], list[str]]:
        """The operations that make a value and that take it, across views."""
        makers: list[str] = []
        pending = [value]
        while pending:
            number = self.material.find_maker(pending.pop())
            if number is not None and self.material.operations[number]:
                makers += self.material.operations[number]
            elif number is not None:
                pending += self.material.needs[number]
        takers: list[str] = []
        pending = [value]
        while pending:
            for number in self.material.list_consumers(pending.pop()):
                takers += self.material.operations[number]
                if not self.material.operations[number]:
                    pending += self.material.work[number].targets
        return makers, takers

    def _name_parts(self, sections: Sequence[int]) -> list[str]:
        """A name for each part: that of the last value it makes, made a name of its own."""
        used = {*self.material.streams, *self.material.parameters}
        names = []
        for place, section in enumerate(sections, 1):
            last = self.material.work[list_bits(section)[-1]].targets[-1]
            name = f"p{place}_{last}".lower()
            while name in used:
                name += "_"
            used.add(name)
            names.append(name)
        return names
