"""One mapping of a task file: what `Entry` reads, and STeP's types and dims, innermost first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from opsmith.problems.dims import Dim
from opsmith.problems.files.entries import Entry, FileNames
from opsmith.problems.files.nodes import Located
from opsmith.targets.step.language.types import (
    DType,
    Multihot,
    StepTypeError,
    inner_dims,
    parse_dims,
    parse_type,
)

T = TypeVar("T")


@dataclass
class StepNames(FileNames):
    """What the entries of one task file have in common."""

    ones: list[tuple[Multihot, int, Located, str]] = field(default_factory=list)  # a Multihot and its most ones per row


class StepEntry(Entry):
    """A mapping at a place of a task file, e.g. `inputs[0]`; `where` is "" for the file itself."""

    names: StepNames

    def read_dtype(self, key: str) -> DType | None:
        """An element type; its dims are noted."""
        node = self.need_value(key, "a type, such as fp32 or Buffer(fp32, [D])")
        dtype = None if node is None else self._try_parse(key, node, lambda: parse_type(node.strip_places()))
        if node is not None and dtype is not None:
            self.names.dims += [(dim, node, self.place_of(key)) for dim in inner_dims(dtype)]
        return dtype

    def read_dims(self) -> tuple[Dim, ...]:
        """The dims of a tensor, noted; () where something is wrong with them."""
        node = self.need_value("dims", "a list of dims, innermost first, such as [M, N]")
        if node is None:
            return ()
        if not isinstance(node.value, list) or not node.value:
            return self._try_parse("dims", node, lambda: parse_dims(node.strip_places())) or ()
        dims = [self._read_dim(entry) for entry in node.value]
        return tuple(dim for dim in dims if dim is not None) if None not in dims else ()

    def _read_dim(self, node: Located) -> Dim | None:
        dims = self._try_parse("dims", node, lambda: parse_dims([node.strip_places()]))
        if dims is None:
            return None
        self.names.dims.append((dims[0], node, self.place_of("dims")))
        return dims[0]

    def _try_parse(self, key: str, node: Located, parse: Callable[[], T]) -> T | None:
        """What `parse` gives; a StepTypeError becomes a finding."""
        try:
            return parse()
        except StepTypeError as error:
            mistake, _, remainder = str(error).partition("; expected ")
            expected, _, remedy = remainder.partition("; try: ")
            self.report_error(node, key, mistake.removeprefix("given "), expected, remedy)
            return None
