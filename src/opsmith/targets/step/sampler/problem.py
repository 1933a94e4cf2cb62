"""A task as the sampler sees it: interned types, fns with their vocabulary, and what each stream can be brought to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from opsmith.targets.step.language.dims import Dim
from opsmith.targets.step.language.spec import Fn, TaskSpec
from opsmith.targets.step.language.types import Buffer, DType, Multihot, fields_of
from opsmith.targets.step.sampler.coerce import Relevant, Table, coercions
from opsmith.targets.step.sampler.kinds import ONE, Dims, Fields, Kind, Kinds
from opsmith.targets.step.sampler.wording import picked, summary, words


@dataclass(frozen=True, eq=False)
class FnView:
    """One fn of the task: its types as numbers, and its vocabulary."""

    index: int
    name: str
    takes: Fields
    gives: Fields
    stateful: bool
    words: tuple[str, ...]
    meaning: str
    body: str
    picks: tuple[int, ...]


@dataclass(frozen=True)
class Goal:
    """One wanted output."""

    fields: Fields
    dims: Dims

    @cached_property
    def axes(self) -> Dims:
        """Buffer dims of the first field, then stream dims."""
        return self.fields[0][1] + self.dims


class Problem:
    """Built once per task text; its tables fill as they are asked."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.kinds = Kinds(spec.sizes)
        self.inputs = tuple(self.kinds.of(entry.type) for entry in spec.inputs)
        self.input_names = tuple(entry.name for entry in spec.inputs)
        self.fns = tuple(self._view(index, fn) for index, fn in enumerate(spec.fns))
        self.goals = tuple(Goal(self.kinds.fields(out.dtype), self._numbers(out.dims)) for out in spec.outputs)
        self.relevant = self._relevant()
        self.wanted = self._wanted()
        self._tables: dict[Kind, Table] = {}

    def _numbers(self, dims: tuple[Dim, ...]) -> Dims:
        return tuple(self.kinds.number(dim) for dim in dims)

    def _view(self, index: int, fn: Fn) -> FnView:
        return FnView(
            index,
            fn.func_name,
            self.kinds.fields(fn.input_dtype),
            self.kinds.fields(fn.output_dtype),
            fn.stateful,
            words(fn.func_name, fn.name),
            summary(fn.apply),
            fn.apply,
            picked(fn.apply),
        )

    def _relevant(self) -> Relevant:
        axes: dict[int, None] = {ONE: None}
        types = [entry.type for entry in self.spec.inputs] + [entry.type for entry in self.spec.outputs]
        for stream in types:
            axes |= dict.fromkeys(self._numbers(stream.dims))
        dtypes: list[DType] = [stream.dtype for stream in types]
        dtypes += [dtype for fn in self.spec.fns for dtype in (fn.input_dtype, fn.output_dtype)]
        for dtype in dtypes:
            for field in fields_of(dtype):
                if isinstance(field, Buffer):
                    axes |= dict.fromkeys(self._numbers(field.dims))
        return Relevant(frozenset(axes), tuple(axis for axis in axes if axis != ONE))

    def _wanted(self) -> frozenset[Fields]:
        """Every run of fields that one stream may have to supply."""
        lists = [fn.takes for fn in self.fns] + [goal.fields for goal in self.goals]
        dtypes = [fn.output_dtype for fn in self.spec.fns] + [entry.dtype for entry in self.spec.inputs]
        lists += [self.kinds.fields(dtype) for dtype in dtypes if isinstance(dtype, Multihot)]
        return frozenset(
            fields[i:j] for fields in lists for i in range(len(fields)) for j in range(i + 1, len(fields) + 1)
        )

    def table(self, kind: Kind) -> Table:
        """What a stream of this kind can be brought to, by fields and dims."""
        found = self._tables.get(kind)
        if found is None:
            found = self._tables[kind] = coercions(self.kinds, kind, self.relevant, self.wanted)
        return found

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words and meanings of its fns."""
        return frozenset(text for fn in self.fns for text in (*fn.words, fn.meaning))

    @cached_property
    def feeds(self) -> dict[Fields, int]:
        """Per run of fields: a bit for every fn that takes it without a change."""
        found: dict[Fields, int] = {}
        for fn in self.fns:
            for i in range(len(fn.takes)):
                for j in range(i + 1, len(fn.takes) + 1):
                    found[fn.takes[i:j]] = found.get(fn.takes[i:j], 0) | 1 << fn.index
        return found
