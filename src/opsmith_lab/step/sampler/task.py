"""A task as the sampler sees it: interned types, fns with their vocabulary, and what each stream can be brought to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from opsmith.problems.dims import Dim
from opsmith.targets.step.language.spec import FnSpec, TaskSpec
from opsmith.targets.step.language.types import Buffer, DType, Multihot, fields_of
from opsmith_lab.step.sampler.coerce import Distance, Option, Relevant, Table, find_coercions, find_goal_coercions
from opsmith_lab.step.sampler.kinds import ONE, Dims, Fields, Kinds, StreamKind
from opsmith_lab.step.sampler.wording import list_picked, split_words, summarise_body


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

    @property
    def signature(self) -> tuple[Fields, Fields, bool]:
        """What decides how it can be applied."""
        return self.takes, self.gives, self.stateful


@dataclass(frozen=True)
class Goal:
    """One wanted output."""

    fields: Fields
    dims: Dims

    @cached_property
    def axes(self) -> Dims:
        """Buffer dims of the first field, then stream dims."""
        return self.fields[0][1] + self.dims


SPARE = 6  # moves of a program beyond one per fn
MAX_MOVES = 48  # of a program
KINDS = 32_000  # types looked at for what the streams of one program can be brought to
GOAL_KINDS = 10_000  # types looked at for how one stream per move could be an output
WAY_BYTES = 500  # of one way to a type, with its place in a table


class SamplerTask:
    """Built once per task text; its tables fill as they are asked."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.kinds = Kinds(spec.sizes)
        self.inputs = tuple(self.kinds.encode_stream(entry.type) for entry in spec.inputs)
        self.input_names = tuple(entry.name for entry in spec.inputs)
        self.fns = tuple(self._view_fn(index, fn) for index, fn in enumerate(spec.fns))
        self.goals = tuple(
            Goal(self.kinds.encode_fields(out.dtype), self._encode_dims(out.dims)) for out in spec.outputs
        )
        self.relevant = self._find_relevant()
        self.field_runs = self._list_field_runs()
        self.limit = min(len(self.fns) + SPARE, MAX_MOVES)  # moves of a program
        self._tables: dict[StreamKind, Table] = {}
        self._ways: dict[tuple[StreamKind, StreamKind], tuple[Option, ...]] = {}
        self._distances: dict[StreamKind, Distance] = {}
        self._options = 0

    def _encode_dims(self, dims: tuple[Dim, ...]) -> Dims:
        return tuple(self.kinds.encode_dim(dim) for dim in dims)

    def _view_fn(self, index: int, fn: FnSpec) -> FnView:
        return FnView(
            index,
            fn.func_name,
            self.kinds.encode_fields(fn.input_dtype),
            self.kinds.encode_fields(fn.output_dtype),
            fn.stateful,
            split_words(fn.func_name, fn.name),
            summarise_body(fn.apply),
            fn.apply,
            list_picked(fn.apply),
        )

    def _find_relevant(self) -> Relevant:
        axes: dict[int, None] = {ONE: None}
        types = [entry.type for entry in self.spec.inputs] + [entry.type for entry in self.spec.outputs]
        for stream in types:
            axes |= dict.fromkeys(self._encode_dims(stream.dims))
        dtypes: list[DType] = [stream.dtype for stream in types]
        dtypes += [dtype for fn in self.spec.fns for dtype in (fn.input_dtype, fn.output_dtype)]
        for dtype in dtypes:
            for field in fields_of(dtype):
                if isinstance(field, Buffer):
                    axes |= dict.fromkeys(self._encode_dims(field.dims))
        return Relevant(frozenset(axes), tuple(axis for axis in axes if axis != ONE))

    def _list_field_runs(self) -> frozenset[Fields]:
        """Every run of fields that one stream may have to supply."""
        lists = [fn.takes for fn in self.fns] + [goal.fields for goal in self.goals]
        dtypes = [fn.output_dtype for fn in self.spec.fns] + [entry.dtype for entry in self.spec.inputs]
        lists += [self.kinds.encode_fields(dtype) for dtype in dtypes if isinstance(dtype, Multihot)]
        return frozenset(
            fields[i:j] for fields in lists for i in range(len(fields)) for j in range(i + 1, len(fields) + 1)
        )

    @property
    def size(self) -> int:
        """Bytes that its tables take, roughly."""
        looked_at = sum(len(distance.bounds) for distance in self._distances.values())
        return WAY_BYTES * (self._options + len(self._tables) + len(self._ways) + looked_at) + self.kinds.size

    def find_table(self, kind: StreamKind) -> Table:
        """What a stream of this kind can be brought to, by fields and dims."""
        table = self._tables.get(kind)
        if table is None:
            limit = max(1, KINDS // (len(self.inputs) + self.limit))
            table = self._tables[kind] = find_coercions(self.kinds, kind, self.relevant, self.field_runs, limit)
            self._options += sum(len(options) for by_dims in table.values() for options in by_dims.values())
        return table

    def find_ways(self, kind: StreamKind, fields: Fields, dims: Dims) -> tuple[Option, ...]:
        """How a stream of this kind can be brought to these fields and dims, the cheapest first."""
        key = kind, StreamKind(fields, dims)
        ways = self._ways.get(key)
        if ways is None:
            limit = max(1, GOAL_KINDS // (max(1, len(self.goals)) * (len(self.inputs) + self.limit)))
            ways = self._ways[key] = find_goal_coercions(
                self.kinds, kind, self.relevant, self._distance_to(key[1]), limit
            )
            self._options += len(ways)
        return ways

    def _distance_to(self, goal: StreamKind) -> Distance:
        if goal not in self._distances:
            self._distances[goal] = Distance(self.kinds, goal, self.relevant)
        return self._distances[goal]

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words and meanings of its fns."""
        return frozenset(text for fn in self.fns for text in (*fn.words, fn.meaning))

    @cached_property
    def feeds(self) -> dict[Fields, int]:
        """Per run of fields: a bit for every fn that takes it without a change."""
        masks: dict[Fields, int] = {}
        for fn in self.fns:
            for i in range(len(fn.takes)):
                for j in range(i + 1, len(fn.takes) + 1):
                    masks[fn.takes[i:j]] = masks.get(fn.takes[i:j], 0) | 1 << fn.index
        return masks
