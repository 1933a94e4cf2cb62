"""NVIDIA's compiler for kernels (NVRTC) as Python packages hold it: where it lies, its version, and what it reads."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

NO_NVRTC = "the language CUDA: NVIDIA's compiler NVRTC is not installed; try: pip install 'opsmith[cuda]'"
_PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-crt")  # the compiler, and its headers
_FOLDERS = "cu*"  # of the namespace package: nvidia/cu13
_BUILTINS, _COMPILER = "libnvrtc-builtins.so.*", "libnvrtc.so.*"
_HEADERS = ("cuda_fp16.h", "crt/host_defines.h")  # one of each package that has some
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache")  # what Python and the compiler are loaded with


@dataclass(frozen=True)
class CudaToolkit:
    """The compiler and its headers."""

    builtins: Path  # a library that must be loaded first
    compiler: Path
    headers: Path
    version: str  # `nvrtc 13.0.88`: part of the name of what it builds
    headers_version: str  # of the packages with headers: 13.0.96 13.0.88

    @property
    def readable(self) -> tuple[Path, ...]:
        """What a process that compiles may read, Python's own library among it."""
        return (self.compiler.parent, self.headers, *_list_python())


@cache
def find_toolkit() -> CudaToolkit | None:
    """That of this environment; None: it is missing or not whole."""
    for folder in _list_folders():
        builtins, compiler = _find_library(folder, _BUILTINS), _find_library(folder, _COMPILER)
        headers = folder / "include"
        if builtins and compiler and all((headers / name).is_file() for name in _HEADERS):
            compiler_version, *others = map(_find_version, _PACKAGES)
            version = f"nvrtc {compiler_version}"
            return CudaToolkit(builtins, compiler, headers.resolve(), version, " ".join(others))
    return None


def find_python() -> Path:
    """The interpreter itself, and not the link of an environment."""
    return Path(sys.executable).resolve()


def _list_folders() -> Iterator[Path]:
    """Those of the packages' common folder `nvidia` that hold a toolkit, the newest first."""
    spec = find_spec("nvidia")
    for place in spec.submodule_search_locations or () if spec is not None else ():
        yield from sorted(Path(place).glob(_FOLDERS), reverse=True)


def _find_library(folder: Path, pattern: str) -> Path | None:
    """The library of that name, and not its twin with `.alt.` in the name."""
    names = sorted(path for path in (folder / "lib").glob(pattern) if ".alt." not in path.name)
    return names[0].resolve() if names else None


def _find_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _list_python() -> Iterator[Path]:
    yield find_python()
    names = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    yield from (Path(name).resolve() for name in (*names, sysconfig.get_config_var("LIBDIR") or "/lib"))
    yield from map(Path, _SYSTEM)
