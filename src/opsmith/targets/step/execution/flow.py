"""Flows: the data of one stream, in all draws of a stack at once.

    static    [S, *reversed(dims), *element]: the S draws are the first axis
    routed    behind a Partition, where S > 1: a draw has as many entries as its data chose, so that the outermost dim
              holds the draws one after the other, `rows[i]` entries of draw i, and there is no axis of draws

Nothing reads the sizes of dims from types: the axes of a tensor are what they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

Index = tuple[slice, ...]


@dataclass(slots=True)
class Flow:
    """The tensors of a stream, one per field; their first `rank` axes are the stream's, the rest the element's."""

    tensors: list[Tensor]
    rank: int
    rows: Sequence[int] | None = None  # routed: entries of axis 0 per draw

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(self.tensors[0].shape[: self.rank])

    def element_axes(self, tensor: Tensor) -> tuple[int, ...]:
        """The element axes of one of its tensors."""
        return tuple(tensor.shape[self.rank :])

    def of_draw(self, draw: int) -> list[Tensor]:
        """What one draw has of its tensors."""
        if self.rows is None:
            return [tensor[draw] for tensor in self.tensors]
        start = sum(self.rows[:draw])
        return [tensor[start : start + self.rows[draw]] for tensor in self.tensors]

    def reshape_axes(self, axes: tuple[int, ...]) -> Flow:
        """The same entries in the same order under other stream axes; the rows of the draws grow with axis 0."""
        tensors = [tensor.reshape(*axes, *self.element_axes(tensor)) for tensor in self.tensors]
        return Flow(tensors, len(axes), scale_rows(self.rows, self.tensors[0].shape[0], axes[0]))

    def cut_axes(self, last: int, limit: int) -> Iterator[tuple[Flow, Index]]:
        """Parts of at most `most` entries of the axes from 1 to `last`, as views, and where each was."""
        for cuts in _slice_axes(self.axes[1:last], limit):
            index = (slice(None), *cuts)
            yield replace(self, tensors=[tensor[index] for tensor in self.tensors]), index


def _slice_axes(axes: Sequence[int], limit: int) -> Iterator[Index]:
    """Slices of axes that together hold every entry once; the outer axes are cut first."""
    if math.prod(axes) <= limit or not axes:
        yield (slice(None),) * len(axes)
        return
    length = max(1, limit // math.prod(axes[1:]))
    for start in range(0, axes[0], length):
        for inner in _slice_axes(axes[1:], limit):
            yield slice(start, start + length), *inner


def scale_rows(rows: Sequence[int] | None, before: int, after: int) -> Sequence[int] | None:
    """The rows per draw after axis 0 went from one length to another."""
    if rows is None or before == after:
        return rows
    return [row * after // before for row in rows] if before else rows


def zip_flows(operands: Sequence[Flow]) -> Flow:
    """Streams of equal axes side by side."""
    first = operands[0]
    if any(flow.axes != first.axes for flow in operands[1:]):
        raise AssertionError(f"streams of axes {[operand.axes for operand in operands]} side by side")
    return Flow([tensor for operand in operands for tensor in operand.tensors], first.rank, first.rows)
