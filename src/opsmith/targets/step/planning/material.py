"""A reference as a graph of work: statements that depend on the task's streams, and what each of them needs.

What depends on no stream (sizes, constants, parameters alone), and what is no tensor, supports: every part that needs
it computes it itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from opsmith.problems.dims import Dim
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.types import Multihot
from opsmith.targets.step.planning.forms import list_multihots
from opsmith.targets.step.planning.observation import Observation, ValueType
from opsmith.targets.step.planning.statements import ReferenceStatement, list_names

CHEAP = 2  # operations that are computed anew rather than handed over beside other values


@dataclass
class WorkGraph:
    """The statements of a task by what they are for. Work is numbered in the order of the reference."""

    spec: TaskSpec
    observation: Observation = field(repr=False)
    work: list[ReferenceStatement] = field(default_factory=list)
    constants: dict[str, ast.expr] = field(default_factory=dict)  # names of what depends on sizes alone
    support: dict[str, ReferenceStatement] = field(default_factory=dict)  # by each of their targets

    def __post_init__(self) -> None:
        self.streams = frozenset(tensor.name for tensor in self.spec.inputs)
        self.parameters = frozenset(tensor.name for tensor in self.spec.parameters)
        self._data = {*self.streams, *self.parameters}
        dependent: set[str] = set()
        for statement in self.observation.reference.statements:
            is_single = len(statement.targets) == 1 and bool(statement.reads)
            constant = self.observation.write_constant(statement.targets[0]) if is_single else None
            if constant is not None:  # a size in place of what the statement reads
                self.constants[statement.targets[0]] = constant
                continue
            reads = self._list_sources(statement)
            is_cheap = self._is_cheap(statement, reads)
            is_work = not is_cheap and bool(reads & (self.streams | dependent)) and self._makes_value(statement)
            if is_work:
                self.work.append(statement)
                dependent.update(statement.targets)
            else:
                self.support |= dict.fromkeys(statement.targets, statement)
            if is_cheap or is_work:
                self._data.update(statement.targets)
        self._makers = {name: number for number, statement in enumerate(self.work) for name in statement.targets}

    def _is_cheap(self, statement: ReferenceStatement, reads: frozenset[str]) -> bool:
        """Whether it only arranges the task's own tensors anew: whoever needs it does so itself."""
        is_output = any(name in self.outputs for name in statement.targets)
        return not is_output and not self._list_words(statement) and reads <= self.streams | self.parameters

    def _list_words(self, statement: ReferenceStatement) -> tuple[str, ...]:
        return statement.list_operations(lambda name: name in self._data)

    def _makes_value(self, statement: ReferenceStatement) -> bool:
        values = ((name, self.observation.find_value(name)) for name in statement.targets)
        return any(name in self.outputs or isinstance(value, Tensor) for name, value in values)

    def _list_sources(self, statement: ReferenceStatement) -> frozenset[str]:
        """Values and tensors that a statement reads, also through what supports it."""
        names: set[str] = set()
        pending = list(statement.reads)
        while pending:
            name = pending.pop()
            if name in self.support:
                pending += self.support[name].reads
            elif name not in self.constants:
                names.add(name)
        return frozenset(names)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.observation.reference.outputs

    @cached_property
    def needs(self) -> list[frozenset[str]]:
        """Per work: streams and values of other work that it needs."""
        return [self._list_sources(statement) - self.parameters for statement in self.work]

    @cached_property
    def parents(self) -> list[int]:
        """Per work: other work that it needs directly, as bits."""
        return [sum({1 << self._makers[name] for name in needs if name in self._makers}) for needs in self.needs]

    @cached_property
    def ancestors(self) -> list[int]:
        """Per work: itself and all that it depends on, as bits."""
        closures: list[int] = []
        for number, parents in enumerate(self.parents):
            closure = 1 << number
            for parent in list_bits(parents):
                closure |= closures[parent]
            closures.append(closure)
        return closures

    def find_maker(self, name: str) -> int | None:
        """The work that makes a value; None: it is a stream of the task."""
        return self._makers.get(name)

    def list_supports(self, numbers: Iterable[int]) -> list[ReferenceStatement]:
        """What work needs beside values, in the order of the reference."""
        needed: set[str] = set()
        pending = [name for number in numbers for name in self.work[number].reads]
        while pending:
            name = pending.pop()
            if name in self.support and name not in needed:
                needed.add(name)
                pending += self.support[name].reads
        return self._select_statements(needed)

    def order_statements(self, numbers: Sequence[int]) -> list[ReferenceStatement]:
        """Work and what supports it, in the order of the reference."""
        statements = (*self.list_supports(numbers), *(self.work[number] for number in numbers))
        return self._select_statements({target for statement in statements for target in statement.targets})

    def _select_statements(self, targets: Set[str]) -> list[ReferenceStatement]:
        """Those that make one of these values, in the order of the reference."""
        return [row for row in self.observation.reference.statements if not targets.isdisjoint(row.targets)]

    @cached_property
    def operations(self) -> list[tuple[str, ...]]:
        """Per work: its operations, and those of what supports it that depends on values."""
        words = []
        for number, work in enumerate(self.work):
            supports = (row for row in self.list_supports([number]) if self._list_sources(row) - self.parameters)
            words.append(tuple(word for row in (*supports, work) for word in self._list_words(row)))
        return words

    @cached_property
    def groups(self) -> list[int]:
        """Work that no cut may go through, as bits: what a routing index chooses, up to where the chosen are brought
        together."""
        from_index = self._list_decided()
        routed = 0
        for name in from_index:
            for number in self.list_consumers(name):
                if not any(target in from_index for target in self.work[number].targets):
                    routed |= 1 << number
        if not routed or not from_index:
            return []
        last = max(list_bits(routed))
        meetings = (number for number in range(last, len(self.work)) if self.ancestors[number] & routed == routed)
        end = next(meetings, None)  # the first work that all routed work leads to
        return [] if end is None else [self._close_region(routed, end, from_index)]

    def _list_decided(self) -> set[str]:
        """Routing indices of 0 and 1 per expert, and all that depends on nothing else."""
        lengths = {hot.length for fn in self.spec.fns for hot in list_multihots(fn)}
        decided = {tensor.name for tensor in self.spec.inputs if isinstance(tensor.dtype, Multihot)}
        for number, statement in enumerate(self.work):
            is_index = any(self._is_index(name, lengths) for name in statement.targets)
            if is_index or (self.needs[number] and self.needs[number] <= decided):
                decided.update(statement.targets)
        return decided

    def _is_index(self, name: str, lengths: set[Dim]) -> bool:
        type_, value = self.find_type(name), self.observation.find_value(name)
        if type_ is None or len(type_.shape) < 2 or type_.shape[-1] not in lengths:
            return False
        return bool(((value == 0) | (value == 1)).all())

    @cached_property
    def _descendants(self) -> list[int]:
        return [
            sum(1 << later for later, closure in enumerate(self.ancestors) if closure >> number & 1)
            for number in range(len(self.work))
        ]

    def _close_region(self, routed: int, end: int, decided: set[str]) -> int:
        """What lies between routed work and its end, and work that is for it alone."""
        region = routed | 1 << end
        for number in list_bits(routed):
            region |= self._descendants[number] & self.ancestors[end]
        index = 0
        for number, statement in enumerate(self.work):
            if any(name in decided for name in statement.targets):
                index |= self.ancestors[number]
        for number in reversed(range(len(self.work))):
            targets = self.work[number].targets
            takers = {taker for name in targets for taker in self.list_consumers(name)}
            is_output = any(name in self.outputs for name in targets)
            if takers and not is_output and not index >> number & 1 and all(region >> taker & 1 for taker in takers):
                region |= 1 << number
        return region

    @cached_property
    def mentions(self) -> list[frozenset[str]]:
        """Per work: the parameters, and names of `global`, that it reads."""
        names = {name for name in list_names(ast.parse(self.spec.global_code)) if not name.endswith("_value")}
        ours = self.parameters | (names - {"torch", "ctx"} - set(self.spec.problem.symbols))
        return [
            frozenset(name for row in self.order_statements([number]) for tree in row.tree for name in list_names(tree))
            & ours
            for number in range(len(self.work))
        ]

    def find_type(self, name: str) -> ValueType | None:
        return self.observation.types.get(name)

    def list_crossing(self, inside: int) -> list[str]:
        """Values of the work `inside` that other work needs, in order."""
        names = {name for number in range(len(self.work)) if not inside >> number & 1 for name in self.needs[number]}
        return [name for name, maker in self._makers.items() if inside >> maker & 1 and name in names]

    def list_borders(self, inside: int) -> list[str]:
        """Those that cross, without what others can as well compute anew from the task's streams; one at least."""
        crossing = self.list_crossing(inside)
        takers = {name: sum(not inside >> number & 1 for number in self.list_consumers(name)) for name in crossing}
        dear = [name for name in crossing if not (self.is_cheap(name) and takers[name] == 1)]
        return dear or crossing[:1]

    def is_cheap(self, name: str) -> bool:
        """Whether a value is little work on the task's streams alone."""
        number = self._makers.get(name)
        if number is None or name in self.outputs:
            return False
        return sum(len(self.operations[step]) for step in list_bits(self.ancestors[number])) <= CHEAP

    def list_consumers(self, name: str) -> list[int]:
        return [number for number, needs in enumerate(self.needs) if name in needs]


def list_bits(bits: int) -> list[int]:
    return [number for number in range(bits.bit_length()) if bits >> number & 1]
