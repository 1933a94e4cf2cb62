"""The description of this machine's processor as a device. What cannot be read is None; nothing is measured or run,
but for the question which compiler there is."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from opsmith.errors import UsageError
from opsmith.records import content_hash, dumps
from opsmith.running import cgroups, mounts
from opsmith.running.toolchain import find_toolchain
from opsmith.targets.native.caches import CpuCache, list_caches, read_fact
from opsmith.targets.native.flags import choose_isa, read_features

__all__ = ["CpuCache", "Device", "describe_device"]


@dataclass(frozen=True)
class Device:
    """A processor and what decides how fast programs are on it."""

    name: str | None  # as it calls itself
    architecture: str  # x86_64, aarch64
    isa: str | None  # the compiler's name of the widest instruction set; None: none that we build for
    cores: int | None  # of the machine
    usable_cores: int | None  # that this process may run on
    caches: tuple[CpuCache, ...]  # innermost first; empty: they cannot be read
    memory: int | None  # bytes of the machine
    governor: str | None  # what chooses the frequency
    max_mhz: float | None
    mhz: float | None  # of the first core, now
    hypervisor: str | None  # None: none, or none that says so
    compiler: str | None

    @property
    def digest(self) -> str:
        """Names the kind of device: equal where the same program should be equally fast. Load, the frequency of this
        moment, memory, the process's share and the compiler are not in it."""
        passing = ("mhz", "memory", "usable_cores", "compiler")
        return content_hash(dumps({name: value for name, value in asdict(self).items() if name not in passing}))


@dataclass(frozen=True)
class MachineFacts:
    """What files of `proc` and `sys` do not say of a machine."""

    architecture: str
    cores: int | None
    usable_cores: int | None
    compiler: str | None


def describe_device(root: Path = Path("/"), facts: MachineFacts | None = None) -> Device:
    """This machine's. `root` is where `proc` and `sys` lie; with `facts` it is another machine's."""
    facts = facts or _find_facts()
    cpuinfo, frequency = root / "proc/cpuinfo", root / "sys/devices/system/cpu/cpu0/cpufreq"
    return Device(
        name=_find_field(cpuinfo, "model name") or _find_field(cpuinfo, "CPU part"),
        architecture=facts.architecture,
        isa=_find_isa(facts.architecture, cpuinfo),
        cores=facts.cores,
        usable_cores=facts.usable_cores,
        caches=tuple(list_caches(root / "sys/devices/system/cpu/cpu0/cache")),
        memory=_read_memory(root / "proc/meminfo"),
        governor=read_fact(frequency / "scaling_governor"),
        max_mhz=_as_mhz(read_fact(frequency / "cpuinfo_max_freq")),
        mhz=_as_mhz(read_fact(frequency / "scaling_cur_freq")) or _as_float(_find_field(cpuinfo, "cpu MHz")),
        hypervisor=read_fact(root / "sys/hypervisor/type")
        or ("unnamed" if "hypervisor" in read_features(cpuinfo) else None),
        compiler=facts.compiler,
    )


def describe_limits() -> str:
    """What is limited for all processes of a verdict together on this machine, and by what; the rest is for each."""
    files = "; temporary files have a size" if mounts.can_mount() else "; temporary files: each has a size"
    return cgroups.describe_limits() + files


def _find_facts() -> MachineFacts:
    toolchain = find_toolchain()
    usable_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    compiler = None if toolchain is None else toolchain.version
    return MachineFacts(platform.machine(), os.cpu_count(), usable_cores, compiler)


def _find_isa(architecture: str, cpuinfo: Path) -> str | None:
    try:
        return choose_isa(architecture, read_features(cpuinfo)).name
    except UsageError:
        return None


def _read_memory(meminfo: Path) -> int | None:
    match = re.fullmatch(r"(\d+) kB", _find_field(meminfo, "MemTotal") or "")
    return int(match[1]) << 10 if match else None


def _find_field(file: Path, name: str) -> str | None:
    """The value of the first line `name: value`."""
    match = re.search(rf"^{name}\s*:[ \t]*(\S.*)$", read_fact(file) or "", re.MULTILINE)
    return match[1].strip() if match else None


def _as_mhz(kilohertz: str | None) -> float | None:
    value = _as_float(kilohertz)
    return None if value is None else value / 1000


def _as_float(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
