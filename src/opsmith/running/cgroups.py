"""Limits for several processes together: groups of the Linux kernel (cgroups), where this process may make some.

A group lies below the one that this process is in, so that what binds us binds it too. Version 1 (a hierarchy for each
of memory, processes and processor) and version 2 (one for all) are used as they are mounted; nothing is mounted, and no
group of others is touched. Where none can be made `lend_group` lends none, and limits hold for each process alone
(`describe_limits` says which is so).

Groups are used again: making one costs a fraction of a millisecond, but the kernel remembers each for long. They are
removed when this process ends. Those of a process that was killed are emptied and removed by the next one that makes
some: their names say whose they were.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path

MEMORY, PROCESSES, CPU = "memory", "pids", "cpu"
CONTROLLERS = {MEMORY: "memory", PROCESSES: "processes", CPU: "CPU"}  # and what each limits, in words

_PERIOD_US = 100_000  # in which a group's share of the processors is counted
_WEIGHT = 1024, 100  # of one process on busy processors, by version
_NAME = re.compile(r"opsmith-(?P<space>\d+)-(?P<pid>\d+)-(?P<start>\d+)-\d+")
_MOST_MEMORY = 1 << 62  # bytes: no limit
_REMOVING_S = 0.5  # for the end of what is killed


@dataclass(frozen=True)
class GroupLimits:
    """What the processes of one group may use together; None: as much as there is."""

    memory: int | None = None  # bytes in use, files in memory among them
    processes: int | None = None  # threads are counted too
    cores: float | None = None  # seconds of processor time in a second
    weight: int = 1  # on busy processors: as much as so many processes outside

    def describe_excess(self, controller: str) -> str:
        """The limit that was broken, in words."""
        if controller == MEMORY:
            return f"{self.memory} bytes of memory in all its processes together"
        return f"{self.processes} processes and threads together"


@dataclass(frozen=True)
class Hierarchy:
    """Where groups can be made that a controller heeds."""

    folder: Path
    version: int


@dataclass(eq=False)
class Group:
    """One group of processes, for whom it is lent to."""

    name: str
    hierarchies: Mapping[str, Hierarchy]  # by controller
    limits: GroupLimits = GroupLimits()
    _before: dict[str, int] = field(default_factory=dict)  # how often limits had been met when it was lent

    @property
    def entries(self) -> list[str]:
        """The files that a process writes 0 to that enters, or another's id."""
        return [str(folder / "cgroup.procs") for folder in self._folders]

    @property
    def _folders(self) -> list[Path]:
        return list(dict.fromkeys(hierarchy.folder / self.name for hierarchy in self.hierarchies.values()))

    def make_folders(self) -> None:
        """Raises OSError where it cannot be made."""
        for folder in self._folders:
            folder.mkdir(exist_ok=True)

    def set_limits(self, limits: GroupLimits) -> None:
        """From now on. Raises OSError."""
        for name, (controller, text) in self._write_limits(limits).items():
            _write_file(self._find_folder(controller) / name, text)
        self.limits = limits

    def add_process(self, pid: int) -> None:
        """Raises OSError for one that is gone."""
        for entry in self.entries:
            _write_file(Path(entry), str(pid))

    def mark_begin(self) -> None:
        """`find_excess` is about what happens from now on."""
        self._before = self._count_events()

    def find_excess(self) -> str:
        """The controller whose limit a process was ended or refused by; "": none was."""
        events = {name: number - self._before.get(name, 0) for name, number in self._count_events().items()}
        if events.get("killed") and events.get("memory met"):
            return MEMORY
        return PROCESSES if events.get("processes refused") else ""

    def was_shortage(self) -> bool:
        """Whether a process was killed for memory that others had taken: the group had not met its own limit."""
        events = {name: number - self._before.get(name, 0) for name, number in self._count_events().items()}
        return bool(events.get("killed")) and not events.get("memory met")

    def kill_all(self) -> bool:
        """End all that is in it, which can start nothing meanwhile; whether it is empty."""
        deadline = time.monotonic() + _REMOVING_S
        while pids := self._list_processes():
            with contextlib.suppress(OSError):
                _write_file(self._find_folder(PROCESSES) / "pids.max", "0")
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True

    def remove_folders(self) -> bool:
        """Whether nothing is left of it. What is in it is ended."""
        deadline = time.monotonic() + _REMOVING_S
        self.kill_all()
        for folder in self._folders:
            while folder.exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.002)
        return True

    def count_processes(self) -> int:
        """Those that count against its limit: who is dead and not reaped does too. 0 where that is not known."""
        return _read_numbers(self._find_folder(PROCESSES) / "pids.current").get("", 0)

    def _list_processes(self) -> set[int]:
        pids: set[int] = set()
        for entry in self.entries:
            with contextlib.suppress(OSError):
                pids.update(map(int, Path(entry).read_text().split()))
        return pids - {os.getpid()}

    def _find_folder(self, controller: str) -> Path:
        return self.hierarchies[controller].folder / self.name if controller in self.hierarchies else Path(os.devnull)

    def _write_limits(self, limits: GroupLimits) -> dict[str, tuple[str, str]]:
        """By the name of a file: the controller, and what is written there."""
        texts: dict[str, tuple[str, str]] = {}
        for controller, hierarchy in self.hierarchies.items():
            if controller == MEMORY:
                amount = "max" if hierarchy.version > 1 else str(_MOST_MEMORY)
                name = "memory.max" if hierarchy.version > 1 else "memory.limit_in_bytes"
                texts[name] = controller, str(limits.memory or amount)
            elif controller == PROCESSES:
                texts["pids.max"] = controller, str(limits.processes or "max")
            else:
                quota = None if limits.cores is None else round(limits.cores * _PERIOD_US)
                weight = _WEIGHT[hierarchy.version - 1] * limits.weight
                if hierarchy.version > 1:
                    texts["cpu.max"] = controller, f"{quota or 'max'} {_PERIOD_US}"
                    texts["cpu.weight"] = controller, str(min(weight, 10_000))
                else:
                    texts["cpu.cfs_quota_us"] = controller, str(quota or -1)
                    texts["cpu.shares"] = controller, str(weight)
        return texts

    def _count_events(self) -> dict[str, int]:
        events: dict[str, int] = {}
        if MEMORY in self.hierarchies:
            folder = self._find_folder(MEMORY)
            is_new = self.hierarchies[MEMORY].version > 1
            told = _read_numbers(folder / ("memory.events" if is_new else "memory.oom_control"))
            met = told.get("max", 0) if is_new else _read_numbers(folder / "memory.failcnt").get("", 0)
            events |= {"killed": told.get("oom_kill", 0), "memory met": met}
        if PROCESSES in self.hierarchies:
            told = _read_numbers(self._find_folder(PROCESSES) / "pids.events")
            events["processes refused"] = told.get("max", 0)
        return events


def enter_groups(entries: Iterable[str]) -> None:
    """Move this process into a group, by `Group.entries`. Raises OSError."""
    for entry in entries:
        _write_file(Path(entry), "0")


# -- which there are


def find_hierarchies(root: Path = Path("/")) -> dict[str, Hierarchy]:
    """By controller, where this process may make groups; `root`: where `proc` lies."""
    try:
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return {}
    hierarchies: dict[str, Hierarchy] = {}
    for line in lines:
        _, names, path = line.split(":", 2)
        for mount in mounts:
            folder = _place_in_mount(mount, names, path)
            if folder is not None and (hierarchy := Hierarchy(root / folder.relative_to("/"), 1 if names else 2)):
                usable = _list_controllers(hierarchy, names)
                hierarchies.update({name: hierarchy for name in usable if name not in hierarchies})
    return hierarchies


def _place_in_mount(mount: str, names: str, path: str) -> Path | None:
    """The folder of a group below this mount, of the hierarchy with these controllers ("": version 2's)."""
    before, _, after = mount.partition(" - ")
    fields, kind = before.split(), after.split()
    if kind[0] != ("cgroup" if names else "cgroup2") or (
        names and not set(names.split(",")) <= set(kind[-1].split(","))
    ):
        return None
    root, point = fields[3], fields[4]
    below = os.path.relpath(path, root)
    return None if below.startswith("..") else Path(point) / below


def _list_controllers(hierarchy: Hierarchy, names: str) -> list[str]:
    """Those that heed groups made there by us."""
    if not os.access(hierarchy.folder, os.W_OK):
        return []
    if hierarchy.version > 1:
        with contextlib.suppress(OSError):
            names = ",".join((hierarchy.folder / "cgroup.subtree_control").read_text().split())
    return [name for name in names.split(",") if name in CONTROLLERS]


def describe_limits() -> str:
    """For `opsmith devices`: what is limited in total, by what and where; or that each process is limited alone."""
    hierarchies = _usable_hierarchies()
    if not hierarchies:
        return "per process only: no group of processes (cgroup) can be made here"
    words = ", ".join(CONTROLLERS[name] for name in CONTROLLERS if name in hierarchies)
    places = dict.fromkeys(
        f"v{hierarchies[name].version} at {hierarchies[name].folder}" for name in CONTROLLERS if name in hierarchies
    )
    rest = [CONTROLLERS[name] for name in CONTROLLERS if name not in hierarchies]
    return f"{words} by cgroup {', '.join(places)}" + (f"; {', '.join(rest)} per process only" if rest else "")


# -- those of this process


@dataclass
class _Groups:
    """All that this process has made."""

    owner: int = 0  # its id: a fork has none
    names: Iterator[int] = field(default_factory=count)
    idle: list[Group] = field(default_factory=list)
    used: set[Group] = field(default_factory=set)  # lent, or given back with somebody in them who has not ended yet
    lock: threading.Lock = field(default_factory=threading.Lock)


_groups = _Groups()


def take_group(limits: GroupLimits) -> Group | None:
    """A group with nothing in it, to be given back; None: none can be made."""
    hierarchies = _usable_hierarchies() if sys.platform == "linux" else {}
    if not hierarchies:
        return None
    with _groups.lock:
        if _groups.owner != os.getpid():
            _groups.owner, _groups.idle, _groups.used = os.getpid(), [], set()
            atexit.register(remove_all)
        group = _groups.idle.pop() if _groups.idle else None
        group = group or Group(f"{_name_owner()}-{next(_groups.names)}", hierarchies)
        try:
            group.make_folders()
            group.set_limits(limits)
        except OSError:
            group.remove_folders()
            return None
        _groups.used.add(group)
    group.mark_begin()
    return group


def give_back(group: Group) -> None:
    """End all that is in it. It is used again unless some of that is not reaped yet, and still counted."""
    is_empty = group.kill_all() and not group.count_processes()
    with _groups.lock:
        if is_empty:
            _groups.used.discard(group)
            _groups.idle.append(group)


@contextlib.contextmanager
def lend_group(limits: GroupLimits) -> Iterator[Group | None]:
    """A group for the block; None: none can be made."""
    group = take_group(limits)
    try:
        yield group
    finally:
        if group is not None:
            give_back(group)


def remove_all() -> None:
    """Remove what this process has made."""
    with _groups.lock:
        if _groups.owner == os.getpid():
            for group in (*_groups.idle, *_groups.used):
                group.remove_folders()
            _groups.idle, _groups.used = [], set()


@cache
def _usable_hierarchies() -> Mapping[str, Hierarchy]:
    """Those in which a group could be made, tried once. Groups of processes that are gone are removed."""
    hierarchies = find_hierarchies()
    remove_stale(hierarchies)
    usable: dict[str, Hierarchy] = {}
    for name, hierarchy in hierarchies.items():
        probe = Group(f"{_name_owner()}-{10**9}", {name: hierarchy})
        with contextlib.suppress(OSError):
            probe.make_folders()
            probe.set_limits(GroupLimits(1 << 30, 8, 1.0))
            usable[name] = hierarchy
        probe.remove_folders()
    return usable


def remove_stale(hierarchies: Mapping[str, Hierarchy]) -> None:
    """Remove groups whose process is gone, with what it left in them."""
    folders = {hierarchy.folder: name for name, hierarchy in hierarchies.items()}
    for folder, controller in folders.items():
        for path in folder.glob("opsmith-*"):
            match = _NAME.fullmatch(path.name)
            if match is None or match["space"] != _name_space():
                continue
            if _read_start(int(match["pid"])) != match["start"]:
                Group(path.name, {controller: hierarchies[controller]}).remove_folders()


def _name_owner() -> str:
    return f"opsmith-{_name_space()}-{os.getpid()}-{_read_start(os.getpid())}"


def _name_space() -> str:
    """Names the system of process ids: another container's may have the same ids."""
    return str(os.stat("/proc/self/ns/pid").st_ino)


def _read_start(pid: int) -> str:
    """When a process started, in the kernel's words; "": there is none."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def _read_numbers(file: Path) -> dict[str, int]:
    """The numbers of a file by the words in front of them; nothing where it cannot be read."""
    numbers: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            *words, number = line.split()
            numbers[" ".join(words)] = int(number)
    return numbers


def _write_file(file: Path, text: str) -> None:
    with open(file, "w", encoding="ascii") as handle:
        handle.write(text)
