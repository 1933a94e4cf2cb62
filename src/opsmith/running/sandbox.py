"""What may a process of foreign code do? Two sizes: a worker's (code of a task's author) and a candidate's.

Confinement is the kernel's (Linux with Landlock and seccomp; it needs no package and no rights) and is applied by the
process itself, once, before it runs foreign code; it cannot be taken off. Both kinds may compute, and answer on the one
descriptor that they keep. A worker may also read what Python and torch import, a candidate no more than what its
target names, and threads only where its build says so. Commands are confined in a third way, by `command_process`.
`missing` says why a system offers no isolation. Deadlines are the parent's.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opsmith.running import landlock, seccomp
from opsmith.running.syscalls import MACHINE

if sys.platform == "linux":
    import resource

_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/urandom")  # what a late dlopen reads


@dataclass(frozen=True)
class Sandbox:
    """The limits of one process of foreign code."""

    memory: int = 4 << 30  # bytes that it may map beyond what it got from the nursery
    open_files: int = 64
    isolate: bool = True  # False: as on a system that offers no isolation

    @property
    def missing(self) -> str:
        """Why processes are not isolated; "": they are."""
        return missing() if self.isolate else "it is switched off in the settings of the sandbox"


def missing() -> str:
    """What this system lacks for isolation, in words; "": nothing."""
    if sys.platform != "linux":
        return f"Landlock and seccomp are Linux's, this is {sys.platform}"
    if MACHINE is None:
        return f"the numbers of system calls are not known for {os.uname().machine}"
    if not landlock.find_version():
        return "the kernel offers no Landlock (it came with Linux 5.13)"
    return "" if seccomp.is_known() else "the kernel offers no seccomp"


def confine_worker(sandbox: Sandbox, own: Iterable[Path]) -> None:
    """Confine this process for an author's code, which may read what is imported and `own`. Raises OSError."""
    _limit_resources(sandbox)
    if sandbox.isolate:
        _confine_process([*readable_by_workers(), *own], strict=False)


def confine_candidate(sandbox: Sandbox, runtime: Iterable[Path], threads: int = 1) -> None:
    """Confine this process for a candidate, which may read `runtime` and nothing else. Raises OSError.

    `threads`: above 1 it may start some; how many is the parent's to watch.
    """
    _limit_resources(sandbox)
    _confine_process(runtime, strict=True, threads=threads > 1)


def package_of(module: str) -> list[Path]:
    """Where the top-level package of a module, or the single module, is read from; nowhere unless it is loaded."""
    top = sys.modules.get(module.partition(".")[0])
    folders = list(getattr(top, "__path__", ())) or [getattr(top, "__file__", None)]
    return [Path(folder) for folder in folders if folder]


@cache
def readable_by_workers() -> tuple[Path, ...]:
    """Python's library, installed packages and our own; not the rest of the import path, where a user's files lie.

    The nursery asks once, for all its forks.
    """
    library = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    packages = [Path(entry) for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"}]
    return (*library, *packages, *package_of("torch"), *package_of(__name__), *map(Path, _SYSTEM))


def _confine_process(readable: Iterable[Path], strict: bool, threads: bool = False) -> None:
    seccomp.give_up_privileges()
    landlock.restrict_paths(readable)
    truncation = landlock.find_version() < landlock.TRUNCATES
    seccomp.install_filter(strict, truncation, threads)


def _limit_resources(sandbox: Sandbox) -> None:
    """Limits of the operating system; the memory's is on mapped addresses, so that nothing escapes it."""
    if sys.platform != "linux":
        return
    with open("/proc/self/statm", "rb") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    limits = {
        resource.RLIMIT_AS: mapped + sandbox.memory,
        resource.RLIMIT_NOFILE: sandbox.open_files,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for limit, amount in limits.items():
        hard = resource.getrlimit(limit)[1]
        least = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(limit, (least, least))
