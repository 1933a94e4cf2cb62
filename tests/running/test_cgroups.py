"""Limits that hold for several processes together: commands that break them, what is left of groups, both versions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from running.test_commands import TIGHT, order_script, run_script

from opsmith.running import cgroups, commands, sandbox
from opsmith.running.cgroups import CPU, MEMORY, PROCESSES, Group, GroupLimits, Hierarchy
from opsmith.running.commands import CommandFailure, run_commands

GROUPS = cgroups.find_hierarchies()
needs_groups = pytest.mark.skipif(
    not {MEMORY, PROCESSES} <= set(GROUPS) or bool(sandbox.missing()), reason="no groups of processes can be made here"
)
LIMITS = replace(TIGHT, memory=128 << 20, threads=24)
MANY_PROCESSES = """
    import os, time
    for number in range(6):
        if os.fork() == 0:
            held = bytearray(80 << 20)
            time.sleep(5)
            os._exit(0)
    while True:
        os.wait()
    """
FORKS = """
    import os, time
    for number in range(60):
        try:
            if os.fork() == 0:
                time.sleep(5)
                os._exit(0)
        except OSError:
            break
    time.sleep(5)
    """


@needs_groups
@pytest.mark.parametrize(
    ("script", "limit"),
    [
        (MANY_PROCESSES, "268435456 bytes of memory in all its processes together"),
        (FORKS, "24 processes and threads together"),
    ],
)
def test_processes_below_their_limits_break_those_of_all_together(script: str, limit: str) -> None:
    begin = time.monotonic()
    assert run_script(script, limits=LIMITS).limit == limit
    assert time.monotonic() - begin < 4, "it is ended where the limit is met"


def test_files_have_a_size_together_and_are_gone_with_the_process() -> None:
    script = "for number in range(40): open(f'f{number}', 'wb').write(bytes(1 << 20))"
    limits = replace(TIGHT, file_bytes=2 << 20, files_together=8 << 20)
    with commands.mounts.open_files_of_size(1 << 20) as files:
        if files < 0:
            pytest.skip("no file system can be mounted here: needs root")
    result = run_script(script, limits=limits)
    assert (result.limit, result.codes) == (f"{8 << 20} bytes in all its files together", (1,))


def test_where_no_group_and_no_file_system_can_be_had_commands_run_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cgroups, "_usable_hierarchies", dict)
    monkeypatch.setattr(commands.mounts, "_make_files", _refuse)
    assert cgroups.describe_limits().startswith("per process only")
    result = run_script("print(1)", limits=LIMITS)
    assert (result.printed, result.codes, result.limit) == (b"1\n", (0,), "")


def _refuse(size: int) -> int:
    raise PermissionError(1, "not here")


def test_a_file_system_that_cannot_be_put_over_the_folder_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands.mounts, "_make_files", lambda size: os.open("/", os.O_PATH))  # no mount
    monkeypatch.setattr(commands, "_write_files", _write_beside)
    monkeypatch.setattr(commands, "_unmountable", commands.threading.Event())
    assert run_script("print(1)").printed == b"1\n"


_WRITE = commands._write_files


def _write_beside(order: commands.CommandOrder, folder: Path) -> None:
    """Not into the root of this machine."""
    if not str(folder).startswith("/proc"):
        _WRITE(order, folder)


@needs_groups
def test_a_process_killed_for_memory_that_others_took_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Group, "find_excess", lambda group: "")
    monkeypatch.setattr(Group, "was_shortage", lambda group: True)
    result = run_commands(order_script("import os; os.kill(os.getpid(), 9)", has_processes=False), TIGHT)
    assert isinstance(result, CommandFailure)
    assert "memory that others had taken" in result.reason


@needs_groups
def test_groups_of_a_process_that_was_killed_are_emptied_and_removed() -> None:
    script = (
        "import subprocess, sys, time\n"
        "from opsmith.running.cgroups import GroupLimits, take_group\n"
        "group = take_group(GroupLimits(processes=8))\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "group.add_process(child.pid)\n"
        "print(child.pid, group.name, flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child, name = process.stdout.readline().split()
    places = [hierarchy.folder / name for hierarchy in GROUPS.values()]
    assert all(place.is_dir() for place in places)
    cgroups.remove_stale(GROUPS)
    assert all(place.is_dir() for place in places), "its process is alive"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    cgroups.remove_stale(GROUPS)
    assert not any(place.exists() for place in places)
    assert not Path(f"/proc/{child}/cmdline").exists() or not Path(f"/proc/{child}/cmdline").read_bytes()


@pytest.mark.parametrize(
    ("mounts", "groups", "expected"),
    [
        ("30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw", "0::/user.slice/a.scope", {CPU: 2, MEMORY: 2}),
        (
            "31 1 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "32 1 0:28 /docker/1 /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
            "4:memory:/user\n3:cpu,cpuacct:/docker/1/a\n2:pids:/x",
            {MEMORY: 1, CPU: 1},
        ),
        ("30 1 0:26 / / rw - ext4 /dev/a rw", "0::/", {}),
    ],
)
def test_where_groups_can_be_made_is_read_from_proc(
    tmp_path: Path, mounts: str, groups: str, expected: dict[str, int]
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(f"{mounts}\n")
    (tmp_path / "proc/self/cgroup").write_text(f"{groups}\n")
    for place in ("user.slice/a.scope", "memory/user", "cpu,cpuacct/a"):
        (tmp_path / "sys/fs/cgroup" / place).mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/user.slice/a.scope/cgroup.subtree_control").write_text("cpu memory hugetlb\n")
    hierarchies = cgroups.find_hierarchies(tmp_path)
    assert {name: hierarchy.version for name, hierarchy in hierarchies.items()} == expected


def test_limits_are_written_as_each_version_reads_them(tmp_path: Path) -> None:
    limits = GroupLimits(memory=1 << 20, processes=5, cores=1.5)
    written = {}
    for version in (1, 2):
        hierarchy = Hierarchy(tmp_path / str(version), version)
        group = Group("opsmith-1", {MEMORY: hierarchy, PROCESSES: hierarchy, CPU: hierarchy})
        hierarchy.folder.mkdir()
        group.make_folders()
        group.set_limits(limits)
        files = (hierarchy.folder / "opsmith-1").iterdir()
        written[version] = {file.name: file.read_text() for file in files}
    assert written == {
        1: {
            "memory.limit_in_bytes": "1048576",
            "pids.max": "5",
            "cpu.cfs_quota_us": "150000",
            "cpu.shares": "1024",
        },
        2: {"memory.max": "1048576", "pids.max": "5", "cpu.max": "150000 100000", "cpu.weight": "100"},
    }
