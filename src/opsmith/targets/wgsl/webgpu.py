"""The part of WebGPU's C interface that compute kernels need, called by ctypes in the library that `wgpu` brings.

`wgpu`'s own Python interface parses C declarations at every new use of one: of a process that runs one program that is
0.8 s of 0.9 s. Structures are those of webgpu.h and wgpu.h as that library has them (`SUPPORTED`). No torch, no numpy:
candidates' processes import this. Nothing is loaded when this is imported.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterator
from ctypes import POINTER, Structure, c_char_p, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from glob import glob
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SUPPORTED = (0, 32)  # of the package wgpu: the version whose structures these are
NO_PACKAGE = "the package wgpu is not installed; try: pip install 'opsmith[wgsl]'"
NO_DRIVER = (
    "no software driver for Vulkan (lavapipe); try: install Debian's packages mesa-vulkan-drivers and libvulkan1"
)
STRLEN, WHOLE = c_size_t(-1).value, c_uint64(-1).value
VULKAN, METAL = 1, 4  # backends of wgpu.h
CPU = 3  # WGPUAdapterType
SHADER_F16 = 0x0B  # WGPUFeatureName
VALIDATION = 1  # WGPUErrorFilter
OUT_OF_MEMORY, INTERNAL = 2, 3
SPONTANEOUS = 3  # WGPUCallbackMode
MAP_READ, COPY_SRC, COPY_DST, UNIFORM, STORAGE = 0x01, 0x04, 0x08, 0x40, 0x80  # WGPUBufferUsage

_WGSL_SOURCE, _INSTANCE_EXTRAS = 2, 0x00030004  # WGPUSType
_MANIFESTS = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")


class _Text(Structure):
    _fields_ = (("data", c_char_p), ("length", c_size_t))

    def read(self) -> str:
        data: bytes | None = self.data
        return "" if not data else data[: min(self.length, len(data))].decode(errors="replace")


class _RawText(Structure):
    """A text that need not end with NUL."""

    _fields_ = (("data", c_void_p), ("length", c_size_t))

    def read(self) -> str:
        if not self.data or self.length == STRLEN:
            return ""
        return ctypes.string_at(self.data, self.length).decode(errors="replace")


class _Chain(Structure):
    _fields_ = (("next", c_void_p), ("kind", c_uint32))


def make_struct(name: str, *fields: tuple[str, Any]) -> type[Structure]:
    """A structure that begins with a pointer to what extends it."""
    return type(name, (Structure,), {"_fields_": (("next", c_void_p), *fields)})


REQUEST_DONE = ctypes.CFUNCTYPE(None, c_uint32, c_void_p, _RawText, c_void_p, c_void_p)
SCOPE_DONE = ctypes.CFUNCTYPE(None, c_uint32, c_uint32, _RawText, c_void_p, c_void_p)
MAP_DONE = ctypes.CFUNCTYPE(None, c_uint32, _RawText, c_void_p, c_void_p)
ON_ERROR = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, _RawText, c_void_p, c_void_p)
ON_LOST = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, _RawText, c_void_p, c_void_p)


def _make_callback(name: str, type_: Any) -> type[Structure]:
    return make_struct(name, ("mode", c_uint32), ("callback", type_), ("userdata1", c_void_p), ("userdata2", c_void_p))


RequestCallback = _make_callback("RequestCallback", REQUEST_DONE)
ScopeCallback = _make_callback("ScopeCallback", SCOPE_DONE)
MapCallback = _make_callback("MapCallback", MAP_DONE)
LostCallback = _make_callback("LostCallback", ON_LOST)
ErrorCallback = make_struct("ErrorCallback", ("callback", ON_ERROR), ("userdata1", c_void_p), ("userdata2", c_void_p))
_Instance = make_struct("_Instance", ("feature_count", c_size_t), ("features", c_void_p), ("limits", c_void_p))
_Future = type("_Future", (Structure,), {"_fields_": (("id", c_uint64),)})


class _InstanceExtras(Structure):
    _fields_ = (
        ("chain", _Chain),
        ("backends", c_uint64),
        ("flags", c_uint64),
        ("dx12_compiler", c_uint32),
        ("gles3_version", c_uint32),
        ("fences", c_uint32),
        ("dxc_path", _Text),
        ("dxc_model", c_uint32),
        ("dx12_presentation", c_uint32),
        ("budget_for_creation", c_void_p),
        ("budget_for_loss", c_void_p),
        ("display", c_uint64 * 8),
    )


_Enumeration = make_struct("_Enumeration", ("backends", c_uint64))
_Info = make_struct(
    "_Info",
    ("vendor", _Text),
    ("architecture", _Text),
    ("device", _Text),
    ("description", _Text),
    *((name, c_uint32) for name in ("backend", "kind", "vendor_id", "device_id", "subgroup_min", "subgroup_max")),
)
_U32_LIMITS = """
    textures_1d textures_2d textures_3d layers bind_groups bind_groups_and_vertices bindings dynamic_uniforms
    dynamic_storages sampled_textures samplers storage_buffers storage_textures uniform_buffers
"""
_LATER_LIMITS = """
    vertex_attributes vertex_stride inter_stage attachments attachment_bytes workgroup_storage invocations size_x size_y
    size_z workgroups immediates
"""
DeviceLimits = make_struct(
    "DeviceLimits",
    *((name, c_uint32) for name in _U32_LIMITS.split()),
    ("uniform_size", c_uint64),
    ("storage_size", c_uint64),
    ("uniform_alignment", c_uint32),
    ("storage_alignment", c_uint32),
    ("vertex_buffers", c_uint32),
    ("buffer_size", c_uint64),
    *((name, c_uint32) for name in _LATER_LIMITS.split()),
)
_Labelled = make_struct("_Labelled", ("label", _Text))
DeviceOrder = make_struct(
    "DeviceOrder",
    ("label", _Text),
    ("feature_count", c_size_t),
    ("features", POINTER(c_uint32)),
    ("limits", c_void_p),
    ("queue", _Labelled),
    ("lost", LostCallback),
    ("error", ErrorCallback),
)


class _WgslSource(Structure):
    _fields_ = (("chain", _Chain), ("code", _Text))


_Compute = make_struct(
    "_Compute", ("module", c_void_p), ("entry", _Text), ("constant_count", c_size_t), ("constants", c_void_p)
)
_PipelineOrder = make_struct("_PipelineOrder", ("label", _Text), ("layout", c_void_p), ("compute", _Compute))
BufferOrder = make_struct(
    "BufferOrder", ("label", _Text), ("usage", c_uint64), ("size", c_uint64), ("mapped", c_uint32)
)
BindEntry = make_struct(
    "BindEntry",
    ("binding", c_uint32),
    ("buffer", c_void_p),
    ("offset", c_uint64),
    ("size", c_uint64),
    ("sampler", c_void_p),
    ("view", c_void_p),
)
BindOrder = make_struct(
    "BindOrder", ("label", _Text), ("layout", c_void_p), ("count", c_size_t), ("entries", POINTER(BindEntry))
)

_P, _U, _L = c_void_p, c_uint32, c_uint64
_FUNCTIONS: dict[str, tuple[Any, ...]] = {  # result, arguments
    "GetVersion": (_U,),
    "CreateInstance": (_P, _P),
    "InstanceEnumerateAdapters": (c_size_t, _P, _P, _P),
    "AdapterGetInfo": (_U, _P, _P),
    "AdapterGetLimits": (_U, _P, _P),
    "AdapterHasFeature": (_U, _P, _U),
    "AdapterRequestDevice": (_Future, _P, _P, RequestCallback),
    "DeviceGetQueue": (_P, _P),
    "DevicePushErrorScope": (None, _P, _U),
    "DevicePopErrorScope": (_Future, _P, ScopeCallback),
    "DevicePoll": (_U, _P, _U, _P),
    "DeviceCreateShaderModule": (_P, _P, _P),
    "DeviceCreateComputePipeline": (_P, _P, _P),
    "ComputePipelineGetBindGroupLayout": (_P, _P, _U),
    "DeviceCreateBuffer": (_P, _P, _P),
    "BufferDestroy": (None, _P),
    "BufferRelease": (None, _P),
    "DeviceCreateBindGroup": (_P, _P, _P),
    "BindGroupRelease": (None, _P),
    "QueueWriteBuffer": (None, _P, _P, _L, _P, c_size_t),
    "QueueSubmit": (None, _P, c_size_t, _P),
    "DeviceCreateCommandEncoder": (_P, _P, _P),
    "CommandEncoderBeginComputePass": (_P, _P, _P),
    "CommandEncoderCopyBufferToBuffer": (None, _P, _P, _L, _P, _L, _L),
    "CommandEncoderFinish": (_P, _P, _P),
    "CommandEncoderRelease": (None, _P),
    "CommandBufferRelease": (None, _P),
    "ComputePassEncoderSetPipeline": (None, _P, _P),
    "ComputePassEncoderSetBindGroup": (None, _P, _U, _P, c_size_t, _P),
    "ComputePassEncoderDispatchWorkgroups": (None, _P, _U, _U, _U),
    "ComputePassEncoderEnd": (None, _P),
    "ComputePassEncoderRelease": (None, _P),
    "BufferMapAsync": (_Future, _P, _L, c_size_t, c_size_t, MapCallback),
    "BufferGetConstMappedRange": (_P, _P, c_size_t, c_size_t),
    "BufferUnmap": (None, _P),
}


# -- what is here


def explain_lack_of_webgpu() -> str:
    """What is missing of package and driver, in words; "": nothing."""
    if find_spec("wgpu") is None or find_library() is None:
        return NO_PACKAGE
    if read_package_version() != SUPPORTED:
        expected, present = ".".join(map(str, SUPPORTED)), name_package()
        return f"the installed package is {present}; expected wgpu {expected}; try: pip install 'wgpu=={expected}.*'"
    return "" if sys.platform != "linux" or find_manifest() is not None else NO_DRIVER


def name_package() -> str:
    """`wgpu 0.32.0`."""
    try:
        return f"wgpu {version('wgpu')}"
    except PackageNotFoundError:
        return "no wgpu"


def read_package_version() -> tuple[int, ...]:
    return tuple(int(word) for word in name_package().split()[1].split(".")[:2] if word.isdigit())


_CHOSEN: list[Path] = []  # the library that a process was told to load


def choose_library(path: Path) -> None:
    """Take this one, in a process that does not see installed packages."""
    _CHOSEN[:] = [path]


def find_library() -> Path | None:
    """The library of the package, which is not imported."""
    if _CHOSEN:
        return _CHOSEN[0]
    spec = find_spec("wgpu")
    folders = [Path(folder) / "resources" for folder in (spec.submodule_search_locations or ())] if spec else []
    paths = (path for folder in folders for path in sorted(folder.glob("*wgpu_native*")) if path.suffix != ".pdb")
    return next(paths, None)


@cache
def find_manifest() -> Path | None:
    """The file that names the software driver to Vulkan's loader; None: there is none."""
    paths = (path for folder in _MANIFESTS for path in sorted(glob(f"{folder}/lvp_icd*.json")))
    return next(map(Path, paths), None)


def find_driver() -> str | None:
    """The driver's library: a path, or a name that the system looks for."""
    manifest = find_manifest()
    if manifest is None:
        return None
    try:
        return str(json.loads(manifest.read_text())["ICD"]["library_path"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def list_runtime() -> Iterator[Path]:
    """What a process reads that runs programs: the library, and what Vulkan's loader and the driver look at."""
    library = find_library()
    if library is not None:
        yield library
    manifest, driver = find_manifest(), find_driver()
    if manifest is not None:
        yield manifest.parent
    if driver is not None and os.path.isabs(driver):
        yield Path(driver)
    yield from map(Path, ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"))


# -- loading


def choose_software() -> None:
    """Let Vulkan's loader know the software driver alone, with one thread, and none of what a user hooked into it."""
    manifest = find_manifest()
    if manifest is not None:
        os.environ["VK_DRIVER_FILES"] = os.environ["VK_ICD_FILENAMES"] = str(manifest)
    os.environ["VK_LOADER_LAYERS_DISABLE"] = "~all~"
    os.environ["VK_LOADER_DEBUG"] = "none"
    os.environ["MESA_SHADER_CACHE_DISABLE"] = os.environ["MESA_GLSL_CACHE_DISABLE"] = "true"
    os.environ["LP_NUM_THREADS"] = "1"


def preload_driver() -> None:
    """Load what a device needs, for all forks; no thread is started."""
    load_webgpu()
    for name in ("libvulkan.so.1", find_driver()):
        if name is not None:
            ctypes.CDLL(name)


@cache
def load_webgpu() -> Any:
    """The library, its functions declared: `load_webgpu().wgpuCreateInstance`. Raises OSError."""
    path = find_library()
    if path is None:
        raise OSError(NO_PACKAGE)
    library = ctypes.CDLL(str(path))
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, f"wgpu{name}")
        function.restype, function.argtypes = result, arguments
    return library


# -- what structures hold


def make_text(text: str) -> _Text:
    data = text.encode()
    return _Text(data, len(data))


def make_instance(backends: int) -> Any:
    """An instance that asks for no other backend. Raises OSError."""
    extras = _InstanceExtras(_Chain(None, _INSTANCE_EXTRAS), backends)
    order = _Instance(ctypes.addressof(extras))
    instance = load_webgpu().wgpuCreateInstance(ctypes.byref(order))
    if not instance:
        raise OSError("WebGPU could not be started")
    return instance


def list_adapters(instance: Any, backends: int) -> list[Any]:
    options, library = _Enumeration(None, backends), load_webgpu()
    count = library.wgpuInstanceEnumerateAdapters(instance, ctypes.byref(options), None)
    adapters = (c_void_p * max(count, 1))()
    count = library.wgpuInstanceEnumerateAdapters(instance, ctypes.byref(options), adapters)
    return list(adapters)[:count]


def read_info(adapter: Any) -> Any:
    info = _Info()
    load_webgpu().wgpuAdapterGetInfo(adapter, ctypes.byref(info))
    return info


def make_module(device: Any, source: str) -> Any:
    data = source.encode()
    code = _WgslSource(_Chain(None, _WGSL_SOURCE), _Text(data, len(data)))
    order = _Labelled(ctypes.addressof(code))
    return load_webgpu().wgpuDeviceCreateShaderModule(device, ctypes.byref(order))


def make_pipeline(device: Any, module: Any, entry: str) -> Any:
    order = _PipelineOrder(None, _Text(), None, _Compute(None, module, make_text(entry)))
    return load_webgpu().wgpuDeviceCreateComputePipeline(device, ctypes.byref(order))


def make_array(type_: Any, values: list[Any]) -> Any:
    return (type_ * len(values))(*values)
