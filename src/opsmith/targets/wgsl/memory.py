"""The buffers of one call on a device of WebGPU: arrays by kind and place, and the numbers of launches.

No torch, no numpy: candidates' processes import this, and libraries that were exported.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.targets.gpu.plan import INPUT, OUTPUT, WHOLE, WORKSPACE, BoundArgument, BoundPlan, ResolvedLaunch
from opsmith.targets.gpu.resolving import resolve_plan
from opsmith.targets.wgsl import webgpu as api
from opsmith.targets.wgsl.device import ComputeDevice
from opsmith.targets.wgsl.encoding import count_device_bytes, decode_array, encode_array
from opsmith.targets.wgsl.limits import LIMITS

_ARRAY = api.STORAGE | api.COPY_SRC | api.COPY_DST


class CallMemory:
    """Gone at the end of its block. Raises PlanFault where the plan has no launches for these numbers.

    inputs, outputs: bytes of each array on this side.
    """

    def __init__(
        self,
        device: ComputeDevice,
        plan: BoundPlan,
        numbers: Sequence[float],
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> None:
        self.device, self.plan, self._numbers = device, plan, numbers
        resolved = resolve_plan(plan, numbers, LIMITS)
        self.launches = resolved.launches
        spaces = [(space.dtype, size) for space, size in zip(plan.workspaces, resolved.workspaces, strict=True)]
        self._sizes = {
            INPUT: list(zip(plan.inputs, inputs, strict=True)),
            OUTPUT: list(zip(plan.outputs, outputs, strict=True)),
            WORKSPACE: spaces,
        }
        self._buffers: list[Any] = []
        self.arrays = {
            (kind, place): (self.make_buffer(size), size)
            for kind, rows in self._sizes.items()
            for place, size in enumerate(count_device_bytes(dtype, size, BYTES_BY_DTYPE[dtype]) for dtype, size in rows)
        }

    def __enter__(self) -> CallMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop_buffers(*self._buffers)

    def make_buffer(self, size: int, usage: int = _ARRAY) -> Any:
        self._buffers.append(self.device.make_buffer(size, usage))
        return self._buffers[-1]

    def drop_buffers(self, *buffers: Any) -> None:
        for buffer in buffers:
            self._buffers = [kept_buffer for kept_buffer in self._buffers if kept_buffer != buffer]
            self.device.drop_buffer(buffer)

    def count_entries(self, launch: ResolvedLaunch) -> dict[int, int]:
        """Those of each array of a launch, by its place among them."""
        arrays = [argument for argument in launch.arguments if argument.is_array]
        sizes = [self._sizes[argument.kind][argument.place] for argument in arrays]
        return {place: size // BYTES_BY_DTYPE[dtype] for place, (dtype, size) in enumerate(sizes)}

    def bind_arrays(
        self,
        pipeline: Any,
        launch: ResolvedLaunch,
        places: Collection[int],
        widths: Mapping[int, int],
        has_numbers: bool,
    ) -> list[Any]:
        """Group 0, where the kernel uses anything. `places`: the bindings of arrays that it uses; `widths`: entries of
        an array that are one of its variable's."""
        arrays = [argument for argument in launch.arguments if argument.is_array]
        rows = [(place, *self._find_array(arrays[place], widths[place])) for place in sorted(places)]
        if has_numbers:
            rows.append((len(arrays), *self._make_numbers(launch)))
        entries = [(place, buffer, 0, size) for place, buffer, size in rows]
        return [self.device.bind_buffers(pipeline, 0, entries)] if entries else []

    def _find_array(self, argument: BoundArgument, width: int) -> tuple[Any, int]:
        """Its buffer and bytes; one entry at least for a variable of vectors."""
        buffer, size = self.arrays[argument.kind, argument.place]
        return buffer, max(size, 4 * width) if width > 1 else size

    def _make_numbers(self, launch: ResolvedLaunch) -> tuple[Any, int]:
        """A buffer with the numbers of a launch, in their order."""
        numbers = [argument for argument in launch.arguments if not argument.is_array]
        values = ((entry.type == WHOLE, self._numbers[entry.place]) for entry in numbers)
        data = b"".join(struct.pack("<i", int(value)) if whole else struct.pack("<f", value) for whole, value in values)
        data += bytes(-len(data) % 16)
        buffer = self.make_buffer(len(data), api.UNIFORM | api.COPY_DST)
        self.device.write_buffer(buffer, data)
        return buffer, len(data)

    def write_inputs(self, views: Sequence[memoryview]) -> None:
        """Raises OverflowError for whole numbers beyond 32 bits."""
        for place, view in enumerate(views):
            self.device.write_buffer(self.arrays[INPUT, place][0], encode_array(self.plan.inputs[place], view))

    def read_outputs(self) -> Iterator[bytes]:
        for place, (dtype, size) in enumerate(self._sizes[OUTPUT]):
            buffer, length = self.arrays[OUTPUT, place]
            yield decode_array(dtype, self.device.read_buffer(buffer, length), size)
