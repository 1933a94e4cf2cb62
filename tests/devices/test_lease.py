"""Leases: one holder at a time among processes, who is named, and whose crash frees it."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from opsmith.devices.lease import BusyError, find_holder, lease_device
from opsmith.running.turnstile import find_runtime_folder, use_device

CONTEXT = multiprocessing.get_context("forkserver")  # a fork of this process, which may have threads, could hang


def hold_lease(folder: Path, connection: Connection) -> None:
    with lease_device("cpu", "measure softmax", folder=folder):
        connection.send("held")
        connection.recv()


@contextmanager
def start_holder(folder: Path) -> Iterator[tuple[BaseProcess, Connection]]:
    """Another process that has the lease until it is sent something, or is killed."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=hold_lease, args=(folder, theirs))
    process.start()
    try:
        assert ours.recv() == "held"
        yield process, ours
    finally:
        process.kill()
        process.join()


def test_a_second_process_is_told_who_has_it(tmp_path: Path) -> None:
    with start_holder(tmp_path) as (process, _):
        with pytest.raises(BusyError) as refusal, lease_device("cpu", "measure gemm", folder=tmp_path):
            pass
        assert f"process {process.pid} (measure softmax)" in str(refusal.value)
        holder = find_holder("cpu", tmp_path)
        assert holder is not None
        assert (holder.pid, holder.purpose) == (process.pid, "measure softmax")
        with lease_device("cuda:0", "measure gemm", folder=tmp_path):
            assert find_holder("cuda:0", tmp_path) is not None


def test_a_lease_that_is_waited_for_comes_when_the_other_ends(tmp_path: Path) -> None:
    with start_holder(tmp_path) as (_, connection):
        connection.send("end")
        with lease_device("cpu", "measure gemm", seconds=60, folder=tmp_path) as holder:
            assert holder.pid == os.getpid()
            assert find_holder("cpu", tmp_path) == holder
    assert find_holder("cpu", tmp_path) is None


def test_a_holder_that_crashes_frees_it(tmp_path: Path) -> None:
    with start_holder(tmp_path) as (process, _):
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert find_holder("cpu", tmp_path) is None, "what it wrote is still there"
        with lease_device("cpu", "measure gemm", folder=tmp_path):
            pass


def test_an_error_in_the_block_frees_it(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), lease_device("cpu", "measure gemm", folder=tmp_path):
        raise RuntimeError
    assert find_holder("cpu", tmp_path) is None


def test_a_process_cannot_have_it_twice(tmp_path: Path) -> None:
    with (
        lease_device("cpu", "the outer one", folder=tmp_path),
        pytest.raises(BusyError, match="the outer one"),
        lease_device("cpu", "the inner one", folder=tmp_path),
    ):
        pass


def fork_in_lease(folder: Path, connection: Connection) -> None:
    with lease_device("cpu", "measure gemm", folder=folder):
        pid = os.fork()
        if not pid:
            signal.pause()
    connection.send(find_holder("cpu", folder))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_lease_ends_with_its_block_though_a_forked_process_lives_on(tmp_path: Path) -> None:
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=fork_in_lease, args=(tmp_path, theirs))
    process.start()
    try:
        assert ours.recv() is None
    finally:
        process.join()


def look_often(folder: Path) -> None:
    while True:
        find_holder("cpu", folder)


def test_those_who_look_do_not_refuse_those_who_take(tmp_path: Path) -> None:
    process = CONTEXT.Process(target=look_often, args=(tmp_path,))
    process.start()
    try:
        for _ in range(50):
            with lease_device("cpu", "measure gemm", seconds=10, folder=tmp_path):
                pass
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff" * 9000])
def test_a_file_that_names_nobody_still_locks(tmp_path: Path, text: bytes) -> None:
    with lease_device("cpu", "measure gemm", folder=tmp_path):
        (tmp_path / "cpu.lease").write_bytes(text)
        assert find_holder("cpu", tmp_path) is None
        with pytest.raises(BusyError, match="another process"), lease_device("cpu", "me", folder=tmp_path):
            pass


def test_a_folder_of_somebody_elses_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("opsmith.running.turnstile.SYSTEM_FOLDER", tmp_path / "none")
    folder = find_runtime_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="XDG_RUNTIME_DIR"):
        find_runtime_folder()


def test_a_device_that_is_worked_on_for_too_long_is_not_had(tmp_path: Path) -> None:
    with (
        use_device("cpu", folder=tmp_path),
        pytest.raises(BusyError, match=r"there was work for 0\.3 s"),
        lease_device("cpu", "measure gemm", 0.3, tmp_path),
    ):
        pass
    assert find_holder("cpu", tmp_path) is None
