"""Flows: what is the data of one stream, in all draws of a stack at once?

    static    [S, *reversed(dims), *element]: the S draws are the first axis
    routed    behind a Partition, where S > 1: a draw has as many entries as its data chose, so that the outermost dim
              holds the draws one after the other, `rows[i]` entries of draw i, and there is no axis of draws

Nothing reads the sizes of dims from types: the axes of a tensor are what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor


@dataclass(slots=True)
class Flow:
    """The tensors of a stream, one per field; their first `rank` axes are the stream's, the rest the element's."""

    tensors: list[Tensor]
    rank: int
    rows: Sequence[int] | None = None  # routed: entries of axis 0 per draw

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(self.tensors[0].shape[: self.rank])

    def element(self, tensor: Tensor) -> tuple[int, ...]:
        """The element axes of one of its tensors."""
        return tuple(tensor.shape[self.rank :])

    def reshaped(self, axes: tuple[int, ...]) -> Flow:
        """The same entries in the same order under other stream axes; the rows of the draws grow with axis 0."""
        tensors = [tensor.reshape(*axes, *self.element(tensor)) for tensor in self.tensors]
        return Flow(tensors, len(axes), scaled(self.rows, self.tensors[0].shape[0], axes[0]))

    def split(self, axis: int, length: int) -> Iterator[Flow]:
        """Parts of at most `length` along a stream axis; as views."""
        for at in range(0, self.axes[axis], length):
            size = min(length, self.axes[axis] - at)
            yield replace(self, tensors=[tensor.narrow(axis, at, size) for tensor in self.tensors])


def scaled(rows: Sequence[int] | None, before: int, after: int) -> Sequence[int] | None:
    """The rows per draw after axis 0 went from one length to another."""
    if rows is None or before == after:
        return rows
    return [row * after // before for row in rows] if before else rows


def zipped(operands: Sequence[Flow]) -> Flow:
    """Streams of equal axes side by side."""
    first = operands[0]
    if any(other.axes != first.axes for other in operands[1:]):
        raise AssertionError(f"streams of axes {[operand.axes for operand in operands]} side by side")
    return Flow([tensor for operand in operands for tensor in operand.tensors], first.rank, first.rows)
