"""A disk that is full: the run pauses and says so, goes on by itself when there is room, and no reply is lost."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.books import contents, replies
from chaos.conftest import SAMPLES, Undisturbed
from chaos.processes import Command, Commands, wait_until

INTERRUPTED = 130
STORE_FAILED = 4
AT_WORK = 8  # samples: twice as many as may ask at once
PAUSES = "the run waits for room on the disk"
GOES_ON = "the store can be used again"


class Disk:
    """A file system of a few MiB in memory, which can be filled to its last byte."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        with self._ballast.open("wb", buffering=0) as file:
            for piece in (b"\0" * 2**16, b"\0" * 2**10, b"\0"):
                try:
                    while file.write(piece) == len(piece):
                        pass
                except OSError:
                    continue

    def make_room(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=8m", "opsmith-chaos", str(folder)]
    done = subprocess.run(mounted, check=False, capture_output=True, text=True) if os.getuid() == 0 else None
    if done is None or done.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip() if done else 'needs root'}")
    yield Disk(folder)
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def paused(commands: Commands, whole: Undisturbed, disk: Disk) -> Command:
    """A run whose disk has become full after 30 replies."""
    whole.server.hold_after = 30
    run = commands.run(disk.folder, *whole.options)
    wait_until(lambda: len(whole.server.sent) == 30, why=lambda: run.said)
    time.sleep(0.5)
    disk.fill()
    whole.server.hold_after = None
    run.wait_for(PAUSES)
    return run


def test_a_run_waits_while_its_disk_is_full(commands: Commands, whole: Undisturbed, disk: Disk) -> None:
    run = paused(commands, whole, disk)
    time.sleep(2.0)
    asked = len(whole.server.sent)
    time.sleep(2.0)
    assert run.alive
    assert len(whole.server.sent) == asked <= 30 + AT_WORK, "nothing new is asked for while nothing can be stored"
    disk.make_room()
    assert run.result()["run"] == whole.run
    print(run.said)
    assert (run.said.count(PAUSES), run.said.count(GOES_ON)) == (1, 1)
    assert Counter(whole.server.sent.values()) == {1: SAMPLES}
    assert contents(disk.folder, whole.run) == whole.contents


def test_ctrl_c_ends_the_wait_and_keeps_what_is_stored(commands: Commands, whole: Undisturbed, disk: Disk) -> None:
    run = paused(commands, whole, disk)
    run.interrupt()
    code = run.code(seconds=40)
    print(code, run.said)
    assert code in (INTERRUPTED, STORE_FAILED)
    assert "Traceback" not in run.said
    disk.make_room()
    assert set(replies(disk.folder, whole.run)) <= set(whole.server.texts)
    assert len(replies(disk.folder, whole.run)) >= 30
    assert commands.finish(disk.folder, *whole.options)["run"] == whole.run
    assert "could not be stored are in" in run.said
    assert Counter(whole.server.sent.values()) == {1: SAMPLES}, "what could not be stored is not asked for again"
    assert contents(disk.folder, whole.run) == whole.contents
