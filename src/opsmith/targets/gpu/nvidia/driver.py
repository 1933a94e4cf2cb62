"""NVIDIA's driver by ctypes: its functions with a check of what they return, and kernels ready to launch.

The standard library of Python 3.8 or newer and nothing else: the stand-alone runner and exported libraries use it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Record = Mapping[str, Any]
TORCH_DEVICE = "cuda"  # what torch calls these devices
LIBRARY_VARIABLE = "OPSMITH_LIBCUDA"  # another file than libcuda.so.1
ARRAYS = ("input", "output", "workspace")  # kinds of arguments that are pointers
_DYNAMIC_SHARED = 8
_LARGE_SHARED = 48 << 10  # bytes from which on a kernel must be told that it may have them
_NUMBERS = {
    "i8": ctypes.c_int8,
    "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


class DriverFault(Exception):
    """The driver lacks something, or refuses what it was given; the text says which call."""


class CudaDriver:
    """NVIDIA's driver on one device: its functions, called with a check of what they return."""

    def __init__(self, index: int = 0) -> None:
        name = os.environ.get(LIBRARY_VARIABLE, "libcuda.so.1")
        try:
            self._library = ctypes.CDLL(name)
        except OSError as error:
            raise DriverFault(f"no CUDA driver here ({error}); try: install NVIDIA's driver")
        self.call("cuInit", ctypes.c_uint(0))
        self.device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(self.device), ctypes.c_int(index))
        self._context = context

    def open_context(self) -> None:
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self.device)
        self.call("cuCtxSetCurrent", self._context)

    def call(self, name: str, *arguments: Any) -> None:
        try:
            function = getattr(self._library, name)  # which keeps it, as [name] does not
        except AttributeError:
            raise DriverFault(f"the CUDA driver has no {name}; try: a newer driver")
        result = function(*arguments)
        if result:
            raise DriverFault(f"{name}: {self._name_error(result)}")

    def has_function(self, name: str) -> bool:
        return hasattr(self._library, name)

    def ask_number(self, name: str, *arguments: Any) -> int:
        """The whole number that a function writes to its first argument."""
        value = ctypes.c_int()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value

    def _name_error(self, number: int) -> str:
        text = ctypes.c_char_p()
        try:
            is_named = self._library["cuGetErrorName"](ctypes.c_int(number), ctypes.byref(text)) == 0
        except AttributeError:
            is_named = False
        return (text.value or b"").decode() if is_named and text.value else f"error {number}"


class KernelLaunch:
    """One kernel of a loaded module with its arguments: launched as often as wanted, once `point` said on which arrays.

    launch: kernel, grid, block, shared, args, as `carrying.plan_call` writes them.
    """

    def __init__(self, driver: CudaDriver, module: Any, launch: Record) -> None:
        self._driver, self._args = driver, launch["args"]
        self.function = ctypes.c_void_p()
        driver.call("cuModuleGetFunction", ctypes.byref(self.function), module, launch["kernel"].encode())
        if launch["shared"] > _LARGE_SHARED:
            driver.call(
                "cuFuncSetAttribute", self.function, ctypes.c_int(_DYNAMIC_SHARED), ctypes.c_int(launch["shared"])
            )
        self._values = self._make_values(launch)  # they live as long as what points to them
        addresses = [ctypes.addressof(value) for value in self._values]
        self._pointers = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        self._place = [ctypes.c_uint(number) for number in (*launch["grid"], *launch["block"], launch["shared"])]

    def point(self, arrays: Mapping[str, Sequence[int]]) -> None:
        """On these arrays: by kind, pointers of the device."""
        for (kind, place), value in zip(self._args, self._values):
            if kind in ARRAYS:
                value.value = arrays[kind][place]

    def start(self, stream: int = 0) -> None:
        """On a stream; 0: the default one."""
        stream_pointer = ctypes.c_void_p(stream)
        self._driver.call(
            "cuLaunchKernel", self.function, *self._place, stream_pointer, self._pointers, ctypes.c_void_p()
        )

    def _make_values(self, launch: Record) -> list[Any]:
        """The arguments. The driver says how large parameters are; another number of them, or another size, is
        refused."""
        sizes = self._list_parameter_sizes(len(launch["args"]) + 1)
        if sizes is not None and len(sizes) != len(launch["args"]):
            raise DriverFault(
                f"kernel {launch['kernel']}: {len(sizes)} parameters; the plan gives {len(launch['args'])}"
            )
        known_sizes = sizes or [0] * len(launch["args"])
        values = [self._make_value(kind, value, size) for (kind, value), size in zip(launch["args"], known_sizes)]
        for place, (value, size) in enumerate(zip(values, known_sizes)):
            if size and ctypes.sizeof(value) != size:
                raise DriverFault(
                    f"{launch['kernel']}: parameter {place} has {size} bytes, the plan gives {ctypes.sizeof(value)}"
                )
        return values

    def _make_value(self, kind: str, value: Any, size: int) -> Any:
        if kind in ARRAYS:
            return ctypes.c_uint64()
        if kind in ("whole", "floating"):  # of a width that the driver alone knows
            if not size:
                raise DriverFault("the CUDA driver does not say how large parameters are; try: a newer one (12.4)")
            kind = {("whole", 8): "i64", ("whole", 4): "i32", ("floating", 8): "f64"}.get((kind, size), "f32")
        return _NUMBERS[kind](value)

    def _list_parameter_sizes(self, most: int) -> list[int] | None:
        """None: this driver cannot say them."""
        if not self._driver.has_function("cuFuncGetParamInfo"):
            return None
        sizes: list[int] = []
        with contextlib.suppress(DriverFault):  # there is no further one
            while len(sizes) < most:
                place = [ctypes.c_size_t(len(sizes)), ctypes.c_size_t(), ctypes.c_size_t()]
                self._driver.call("cuFuncGetParamInfo", self.function, place[0], *map(ctypes.byref, place[1:]))
                sizes.append(place[2].value)
        return sizes
