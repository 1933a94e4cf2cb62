"""The programs of an exported library that lie in cubins: launched by NVIDIA's driver, on torch's tensors and stream.

torch and the standard library are all that this needs. Tensors of the CPU are copied to the device and back.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import torch
from torch import Tensor

from opsmith.targets.gpu.nvidia.driver import CudaDriver, DriverFault, KernelLaunch
from opsmith.targets.gpu.nvidia.launches import write_launches
from opsmith.targets.gpu.plan import read_bound_plan
from opsmith.targets.gpu.resolving import PlanFault
from opsmith.targets.native.library.operator import ProgramCall
from opsmith.targets.operator_error import OperatorError

Pointers = Mapping[str, Sequence[int]]  # on the device, by kind of array
MOST_READY = 512  # launches that are kept, of an operator at some sizes each


@dataclass(frozen=True)
class ReadyLaunches:
    """What is launched of an operator at given numbers; each call only says where its arrays lie."""

    workspaces: Sequence[int]  # bytes
    kernels: Sequence[KernelLaunch]


class CubinPrograms:
    """Those of one package; see `Programs`.

    plans: by operator, the bound launch plan and what its kernels are called, both JSON, and the cubin's architecture.
    """

    devices = ("cpu", "cuda")

    def __init__(self, package: str, front: str, plans: Mapping[str, Mapping[str, str]]) -> None:
        self.package, self._folder, self._plans = package, Path(front).parent, plans
        self._modules: dict[str, ctypes.c_void_p] = {}
        self._find_ready = lru_cache(MOST_READY)(self._make_ready)
        self._launching = threading.Lock()  # what is ready is shared by all threads

    def explain_lack(self) -> str:
        try:
            assert self._driver is not None
        except DriverFault as error:
            return f"{self.package}: {error}"
        return ""

    def run_program(self, call: ProgramCall) -> None:
        """See `Programs`. On tensors of a GPU it is launched on torch's current stream, and not waited for."""
        try:
            ready = self._find_ready(call.name, (*call.dims, *call.scalars))
            if call.results[0].device.type == "cuda":
                self._run_there(call, ready)
            else:
                self._run_with_copies(call, ready)
        except (DriverFault, PlanFault) as error:
            raise OperatorError(f"{self.package}.{call.name}: {error}") from error

    def _make_ready(self, name: str, numbers: Sequence[float]) -> ReadyLaunches:
        plan = self._plans[name]
        words = write_launches(read_bound_plan(plan["plan"].encode()), json.loads(plan["kernels"]), numbers)
        module = self._find_module(name)
        kernels = [KernelLaunch(self._driver, module, launch) for launch in words["launches"]]
        return ReadyLaunches(words["workspaces"], kernels)

    def _run_there(self, call: ProgramCall, ready: ReadyLaunches) -> None:
        device = call.results[0].device
        sizes = [max(1, size) for size in ready.workspaces]
        spaces = [torch.empty(size, dtype=torch.uint8, device=device) for size in sizes]
        kinds = {"input": call.tensors, "output": call.results, "workspace": spaces}
        pointers = {kind: [tensor.data_ptr() for tensor in tensors] for kind, tensors in kinds.items()}
        self._launch_kernels(ready, pointers, torch.cuda.current_stream(device).cuda_stream)

    def _run_with_copies(self, call: ProgramCall, ready: ReadyLaunches) -> None:
        driver = self._driver
        with contextlib.ExitStack() as stack:
            sizes = {
                "input": [tensor.nbytes for tensor in call.tensors],
                "output": [tensor.nbytes for tensor in call.results],
                "workspace": ready.workspaces,
            }
            pointers = {
                kind: [stack.enter_context(_lend_memory(driver, size)) for size in row] for kind, row in sizes.items()
            }
            for pointer, tensor in zip(pointers["input"], call.tensors, strict=True):
                driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), *_name_bytes(tensor))
            self._launch_kernels(ready, pointers, 0)
            driver.call("cuCtxSynchronize")
            for pointer, tensor in zip(pointers["output"], call.results, strict=True):
                host, size = _name_bytes(tensor)
                driver.call("cuMemcpyDtoH_v2", host, ctypes.c_uint64(pointer), size)

    def _launch_kernels(self, ready: ReadyLaunches, pointers: Pointers, stream: int) -> None:
        with self._launching:
            for kernel in ready.kernels:
                kernel.point(pointers)
                kernel.start(stream)

    def _find_module(self, name: str) -> ctypes.c_void_p:
        if name not in self._modules:
            module, image = ctypes.c_void_p(), (self._folder / "programs" / f"{name}.cubin").read_bytes()
            try:
                self._driver.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image))
            except DriverFault as error:
                what = f"its kernels are built for {self._plans[name]['architecture']}: {error}"
                raise DriverFault(f"{what}; try: export a run with --option arch of this device") from error
            self._modules[name] = module
        return self._modules[name]

    @cached_property
    def _driver(self) -> CudaDriver:
        driver = CudaDriver(torch.cuda.current_device() if torch.cuda.is_available() else 0)
        driver.open_context()  # the primary one, which is torch's
        return driver


@contextlib.contextmanager
def _lend_memory(driver: CudaDriver, size: int) -> Iterator[int]:
    pointer = ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(1, size)))
    try:
        yield pointer.value
    finally:
        driver.call("cuMemFree_v2", pointer)


def _name_bytes(tensor: Tensor) -> tuple[ctypes.c_void_p, ctypes.c_size_t]:
    return ctypes.c_void_p(tensor.data_ptr()), ctypes.c_size_t(tensor.nbytes)
