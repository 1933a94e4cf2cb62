"""The programs of an exported library in WGSL: run by the driver of the machine that it is installed on.

torch, the package wgpu and the standard library are all that this needs. Tensors lie on the CPU, and are copied.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from opsmith.targets.gpu.plan import BoundPlan, read_bound_plan
from opsmith.targets.gpu.resolving import PlanFault
from opsmith.targets.native.library.operator import ProgramCall
from opsmith.targets.operator_error import OperatorError
from opsmith.targets.wgsl.device import ComputeDevice, DeviceRefusal, Dispatch, open_device
from opsmith.targets.wgsl.memory import CallMemory

DEVICE_VARIABLE = "OPSMITH_WGSL_DEVICE"  # "software": that driver, which the programs were judged on


class WgslPrograms:
    """Those of one package; see `Programs`.

    plans: by operator, the bound launch plan as JSON, and by kernel the widths of its bindings and whether it uses
    numbers.
    """

    devices = ("cpu",)

    def __init__(self, package: str, front: str, plans: Mapping[str, Mapping[str, Any]]) -> None:
        self.package, self._folder, self._kernels = package, Path(front).parent, plans
        self._plans: dict[str, BoundPlan] = {}
        self._pipelines: dict[tuple[str, str], Any] = {}

    def explain_lack(self) -> str:
        try:
            assert self._device is not None
        except OperatorError as error:
            return str(error)
        return ""

    def run_program(self, call: ProgramCall) -> None:
        """See `Programs`."""
        inputs = [ctypes.string_at(tensor.data_ptr(), tensor.nbytes) for tensor in call.tensors]
        sizes = [tensor.nbytes for tensor in call.results]
        numbers = [*call.dims, *call.scalars]
        try:
            with CallMemory(self._device, self._find_plan(call.name), numbers, list(map(len, inputs)), sizes) as memory:
                memory.write_inputs([memoryview(data) for data in inputs])
                self._device.run_dispatches(self._list_dispatches(call.name, memory))
                outputs = list(memory.read_outputs())
        except (PlanFault, DeviceRefusal, OverflowError) as error:
            raise OperatorError(f"{self.package}.{call.name}: {error}") from error
        for result, data in zip(call.results, outputs, strict=True):
            ctypes.memmove(result.data_ptr(), data, result.nbytes)

    def _list_dispatches(self, name: str, memory: CallMemory) -> list[Dispatch]:
        dispatches = []
        for launch in memory.launches:
            pipeline, words = self._find_pipeline(name, launch.kernel), self._kernels[name]["kernels"][launch.kernel]
            widths = {int(place): width for place, width in words["widths"].items()}
            groups = memory.bind_arrays(pipeline, launch, widths, widths, words["has_numbers"])
            dispatches.append(Dispatch(pipeline, groups, launch.grid))
        return dispatches

    def _find_plan(self, name: str) -> BoundPlan:
        if name not in self._plans:
            self._plans[name] = read_bound_plan(self._kernels[name]["plan"].encode())
        return self._plans[name]

    def _find_pipeline(self, name: str, kernel: str) -> Any:
        if (name, kernel) not in self._pipelines:
            module = self._device.compile_source((self._folder / "programs" / f"{name}.wgsl").read_text("utf-8"))
            for own in self._kernels[name]["kernels"]:
                self._pipelines[name, own] = self._device.make_pipeline(module, own)
        return self._pipelines[name, kernel]

    @cached_property
    def _device(self) -> ComputeDevice:
        try:
            return open_device(is_software=os.environ.get(DEVICE_VARIABLE) == "software")
        except (OSError, ImportError) as error:
            expected = "a driver for Vulkan, or Metal, and the package wgpu"
            raise OperatorError(f"{self.package}: given no device of WebGPU ({error}); expected {expected}") from error
