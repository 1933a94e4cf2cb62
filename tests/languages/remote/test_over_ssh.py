"""Programs in C measured on a machine that ssh reaches: figures come back, and what goes wrong is said."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from targets.native.programs import needs_compiler

from languages.remote.machines import SshServer, needs_sshd
from languages.remote.requests import COPIED, make_request
from opsmith.devices.describe import describe_device
from opsmith.judging.pool import Pool
from opsmith.measuring.loop import TimingRoom
from opsmith.remote.merging import merge_results, read_results
from opsmith.remote.packing import Pack, pack_requests
from opsmith.remote.ssh import COMMAND_VARIABLE, RemoteError, RemotePlace, measure_over_ssh

pytestmark = [needs_compiler, needs_sshd]
BOX = RemotePlace("box")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with SshServer(tmp_path_factory.mktemp("machine")) as running:
        yield running


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: SshServer) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(COMMAND_VARIABLE, server.command)


@pytest.fixture(scope="module")
def pack(pool: Pool, room: TimingRoom) -> Pack:
    return pack_requests(room, pool.verify, [make_request("row_sum", ["small", "odd"], COPIED)])


def ignore(_: str) -> None:
    pass


def test_what_is_measured_there_comes_back_with_that_machines_name(
    room: TimingRoom, server: SshServer, pack: Pack
) -> None:
    received = measure_over_ssh(pack, BOX, ignore)
    reports = [report for _, report in merge_results(room, pack, read_results(received.write_all(), pack))]
    assert [report.measurement.reason for report in reports] == ["", ""]
    assert {report.measurement.device for report in reports} == {describe_device().digest}  # the same processor
    assert {report.measurement.protocol for report in reports} == {"remote-pairs/2"}
    for report in reports:
        assert report.measurement.ratio is not None
        assert 0.5 < report.measurement.ratio.precise.value < 2  # equal programs
    server.await_no_leftovers()


def test_a_lost_connection_loses_nothing_and_the_same_command_goes_on(server: SshServer, pack: Pack) -> None:
    rows: list[str] = []

    def lose_connection(row: str) -> None:
        rows.append(row)
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            if server.command.split()[-1] in _read_command(process):
                os.kill(int(process.parent.name), signal.SIGKILL)

    with pytest.raises(RemoteError, match=r"connection was lost.*the same command, which goes on"):
        measure_over_ssh(pack, BOX, lose_connection)
    server.await_no_leftovers()
    assert len(rows) == 1
    received = measure_over_ssh(pack, BOX, rows.append)
    assert [row.split(": ")[1] for row in rows] == ["row_sum at small", "row_sum at odd"]
    assert received.list_keys() == frozenset(pack.sets)


def _read_command(path: Path) -> str:
    try:
        return path.read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def test_an_interrupt_here_ends_what_runs_there(server: SshServer, pack: Pack) -> None:
    def interrupt(_: str) -> None:
        assert server.list_leftovers()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_over_ssh(pack, BOX, interrupt)
    server.await_no_leftovers()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda box: (box.folder / "known").write_text(""), "its host key is not known here"),
        (lambda box: (box.folder / "authorized").write_text(""), "permission denied"),
        (lambda box: (box.folder / "client").write_text("Host box\n  HostName no-such-host.invalid\n"), "no such host"),
        (
            lambda box: (box.folder / "client").write_text("Host box\n  HostName 127.0.0.1\n  Port 1\n"),
            "connection refused",
        ),
    ],
    ids=["host key", "key", "name", "port"],
)
def test_a_machine_that_cannot_be_reached_is_said_in_words(
    pack: Pack, server: SshServer, spoil: Callable[[SshServer], object], words: str
) -> None:
    files = [server.folder / name for name in ("known", "authorized", "client")]
    before = [file.read_text() for file in files]
    try:
        spoil(server)
        with pytest.raises(RemoteError, match=words):
            measure_over_ssh(pack, BOX, ignore)
    finally:
        for file, text in zip(files, before, strict=True):
            file.write_text(text)


def test_a_machine_without_python_is_said_in_words(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SshServer(tmp_path / "machine", "SetEnv PATH=/nowhere") as machine:
        monkeypatch.setenv(COMMAND_VARIABLE, machine.command)
        with pytest.raises(RemoteError, match="no python3 there"):
            measure_over_ssh(pack, BOX, ignore)


def test_no_client_of_ssh_is_said(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, "/nowhere/ssh")
    with pytest.raises(RemoteError, match="install OpenSSH's client"):
        measure_over_ssh(pack, BOX, ignore)
