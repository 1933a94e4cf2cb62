"""One device of WebGPU, opened for computing: pipelines, buffers, dispatches. What it refuses are `DeviceRefusal`s.

A device is opened once in a process. Everything is waited for: a call returns when the device has done it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from ctypes import byref, c_uint32
from dataclasses import dataclass
from functools import cache
from typing import Any

from opsmith.targets.wgsl import webgpu as api


class DeviceRefusal(Exception):
    """What the device, or the compiler in front of it, says against what it was given."""

    def __init__(self, kind: int, words: str) -> None:
        super().__init__(words)
        self.kind = kind  # a WGPUErrorFilter


@dataclass(frozen=True)
class AdapterRecord:
    """What a device is, in words."""

    name: str  # llvmpipe (LLVM 15.0.6, 256 bits)
    driver: str  # Mesa 22.3.6 (LLVM 15.0.6)
    is_software: bool
    has_halves: bool  # computes with f16


@dataclass(frozen=True)
class Dispatch:
    """One launch: a pipeline, its groups of bindings, and how many workgroups."""

    pipeline: Any
    groups: Sequence[Any]
    grid: tuple[int, int, int]


class ComputeDevice:
    """An open device with its queue."""

    def __init__(self, record: AdapterRecord, handle: Any, callbacks: Sequence[object]) -> None:
        self.record = record
        self._handle, self._callbacks = handle, callbacks  # what is called back must outlive the device
        self._library = api.load_webgpu()
        self._queue = self._library.wgpuDeviceGetQueue(handle)

    def compile_source(self, source: str) -> Any:
        """The module. Raises DeviceRefusal."""
        return self._watch_errors(lambda: api.make_module(self._handle, source))

    def make_pipeline(self, module: Any, entry: str) -> Any:
        """Raises DeviceRefusal."""
        return self._watch_errors(lambda: api.make_pipeline(self._handle, module, entry))

    def make_buffer(self, size: int, usage: int) -> Any:
        """Raises DeviceRefusal."""
        order = api.BufferOrder(None, api.make_text(""), usage, max(size, 16), 0)
        return self._watch_errors(lambda: self._library.wgpuDeviceCreateBuffer(self._handle, byref(order)))

    def drop_buffer(self, buffer: Any) -> None:
        self._library.wgpuBufferDestroy(buffer)
        self._library.wgpuBufferRelease(buffer)

    def write_buffer(self, buffer: Any, data: bytes | bytearray | memoryview) -> None:
        """`data`: of a multiple of four bytes."""
        view = memoryview(data).cast("B")
        if not len(view):
            return
        array = (ctypes.c_char * len(view)).from_buffer_copy(view)
        self._library.wgpuQueueWriteBuffer(self._queue, buffer, 0, array, len(view))

    def bind_buffers(self, pipeline: Any, group: int, entries: Sequence[tuple[int, Any, int, int]]) -> Any:
        """Bindings of one group: number, buffer, offset, bytes. Raises DeviceRefusal."""
        layout = self._library.wgpuComputePipelineGetBindGroupLayout(pipeline, group)
        rows = [
            api.BindEntry(None, number, buffer, offset, size, None, None) for number, buffer, offset, size in entries
        ]
        array = api.make_array(api.BindEntry, rows)
        order = api.BindOrder(None, api.make_text(""), layout, len(rows), array)
        return self._watch_errors(lambda: self._library.wgpuDeviceCreateBindGroup(self._handle, byref(order)))

    def run_dispatches(self, dispatches: Sequence[Dispatch]) -> None:
        """One after the other; each sees what those before it wrote. Raises DeviceRefusal."""
        self._watch_errors(lambda: self._submit(dispatches))
        self._library.wgpuDevicePoll(self._handle, 1, None)

    def read_buffer(self, buffer: Any, size: int) -> bytes:
        """Its first bytes. Raises DeviceRefusal."""
        size += -size % 4
        staging = self.make_buffer(size, api.MAP_READ | api.COPY_DST)
        library = self._library
        encoder = library.wgpuDeviceCreateCommandEncoder(self._handle, None)
        library.wgpuCommandEncoderCopyBufferToBuffer(encoder, buffer, 0, staging, 0, size)
        self._finish(encoder)
        try:
            return self._map_buffer(staging, size)
        finally:
            self.drop_buffer(staging)

    def _map_buffer(self, staging: Any, size: int) -> bytes:
        statuses: list[int] = []
        done = api.MAP_DONE(lambda status, words, first, second: statuses.append(status))
        callback = api.MapCallback(None, api.SPONTANEOUS, done, None, None)
        self._library.wgpuBufferMapAsync(staging, 1, 0, size, callback)
        self._library.wgpuDevicePoll(self._handle, 1, None)
        if statuses != [1]:
            raise DeviceRefusal(api.INTERNAL, f"results could not be read (status {statuses})")
        data = ctypes.string_at(self._library.wgpuBufferGetConstMappedRange(staging, 0, size), size)
        self._library.wgpuBufferUnmap(staging)
        return data

    def _submit(self, dispatches: Sequence[Dispatch]) -> None:
        library = self._library
        encoder = library.wgpuDeviceCreateCommandEncoder(self._handle, None)
        computing = library.wgpuCommandEncoderBeginComputePass(encoder, None)
        for dispatch in dispatches:
            library.wgpuComputePassEncoderSetPipeline(computing, dispatch.pipeline)
            for number, group in enumerate(dispatch.groups):
                library.wgpuComputePassEncoderSetBindGroup(computing, number, group, 0, None)
            library.wgpuComputePassEncoderDispatchWorkgroups(computing, *dispatch.grid)
        library.wgpuComputePassEncoderEnd(computing)
        library.wgpuComputePassEncoderRelease(computing)
        self._finish(encoder)

    def _finish(self, encoder: Any) -> None:
        commands = self._library.wgpuCommandEncoderFinish(encoder, None)
        self._library.wgpuCommandEncoderRelease(encoder)
        self._library.wgpuQueueSubmit(self._queue, 1, byref(ctypes.c_void_p(commands)))
        self._library.wgpuCommandBufferRelease(commands)

    def _watch_errors(self, call: Callable[[], Any]) -> Any:
        """What it gives. Raises DeviceRefusal."""
        filters = (api.OUT_OF_MEMORY, api.VALIDATION)
        for kind in filters:
            self._library.wgpuDevicePushErrorScope(self._handle, kind)
        result = call()
        refusals = [(kind, words) for kind in reversed(filters) if (words := self._pop_scope())]
        if refusals:
            raise DeviceRefusal(*refusals[0])
        return result

    def _pop_scope(self) -> str:
        """The words of the first error in it; "": there was none."""
        errors: list[str] = []

        def note_error(status: int, kind: int, words: Any, first: object, second: object) -> None:
            if kind != 1:
                errors.append(words.read() or "an error without words")

        callback = api.ScopeCallback(None, api.SPONTANEOUS, api.SCOPE_DONE(note_error), None, None)
        self._library.wgpuDevicePopErrorScope(self._handle, callback)
        return errors[0] if errors else ""


@cache
def open_device(has_limits: bool = False, is_software: bool = True) -> ComputeDevice:
    """The device of this process: the software driver's under Linux where it `is_software`, else another one if there
    is one. `has_limits`: those that every device of WebGPU has; else all that this one has. Raises OSError."""
    if is_software:
        api.choose_software()
    backend = api.METAL if sys.platform == "darwin" else api.VULKAN
    instance = api.make_instance(backend)
    adapters = api.list_adapters(instance, backend)
    records = [_describe_adapter(adapter) for adapter in adapters]
    places = sorted(range(len(adapters)), key=lambda place: records[place].is_software != is_software)
    if not places:
        raise OSError("no device of WebGPU is here")
    return _request_device(adapters[places[0]], records[places[0]], has_limits)


def _describe_adapter(adapter: Any) -> AdapterRecord:
    info = api.read_info(adapter)
    has_halves = bool(api.load_webgpu().wgpuAdapterHasFeature(adapter, api.SHADER_F16))
    return AdapterRecord(info.device.read(), info.description.read(), info.kind == api.CPU, has_halves)


def _request_device(adapter: Any, record: AdapterRecord, has_limits: bool) -> ComputeDevice:
    library, answers = api.load_webgpu(), []
    limits = api.DeviceLimits()
    library.wgpuAdapterGetLimits(adapter, byref(limits))
    features = api.make_array(c_uint32, [api.SHADER_F16] if record.has_halves else [])
    done = api.REQUEST_DONE(lambda status, device, words, first, second: answers.append((status, device, words.read())))
    lost = api.ON_LOST(lambda device, reason, words, first, second: None)
    error = api.ON_ERROR(lambda device, kind, words, first, second: None)
    order = api.DeviceOrder(
        None,
        api.make_text(""),
        len(features),
        features,
        None if has_limits else ctypes.addressof(limits),
        error=api.ErrorCallback(None, error, None, None),
        lost=api.LostCallback(None, api.SPONTANEOUS, lost, None, None),
    )
    library.wgpuAdapterRequestDevice(
        adapter, byref(order), api.RequestCallback(None, api.SPONTANEOUS, done, None, None)
    )
    if not answers or answers[0][0] != 1:
        raise OSError(f"no device of WebGPU: {answers[0][2] if answers else 'no answer'}")
    return ComputeDevice(record, answers[0][1], (lost, error))
