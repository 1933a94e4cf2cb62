"""Turnstiles: work is done beside work, and never beside somebody who has the device alone; neither starves."""

from __future__ import annotations

import fcntl
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from opsmith.running import turnstile
from opsmith.running.turnstile import OccupiedError, have_alone, read_note, use_device

CONTEXT = multiprocessing.get_context("forkserver")  # a fork of this process, which has threads, could hang
WAIT_S = 60.0  # for what comes at once


@contextmanager
def start_thread(work: Callable[[], object]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def await_waiting(folder: Path) -> None:
    """Until some work waits."""
    with open(folder / "cpu.waiting", "wb") as waiting:
        while True:
            try:
                fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(waiting, fcntl.LOCK_UN)
            time.sleep(0.005)


def work_until_told(folder: Path, connection: Connection) -> None:
    with use_device("cpu", folder=folder):
        connection.send("at work")
        connection.recv()


@contextmanager
def start_worker(folder: Path) -> Iterator[tuple[BaseProcess, Connection]]:
    """Another process that works until it is sent something, or is killed."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=work_until_told, args=(folder, theirs))
    process.start()
    try:
        assert ours.recv() == "at work"
        yield process, ours
    finally:
        process.kill()
        process.join()


def test_work_is_done_beside_work_of_other_threads_and_processes(tmp_path: Path) -> None:
    met = threading.Barrier(2)

    def meet_others() -> None:
        with use_device("cpu", folder=tmp_path):
            met.wait(WAIT_S)

    with start_worker(tmp_path), start_thread(meet_others), use_device("cpu", folder=tmp_path):
        met.wait(WAIT_S)
        assert read_note("cpu", tmp_path) is None


def test_who_measures_waits_for_the_end_of_work_in_another_process(tmp_path: Path) -> None:
    with start_worker(tmp_path) as (_, connection):
        with pytest.raises(OccupiedError) as refusal, have_alone("cpu", b"me", 0.2, tmp_path):
            pass
        assert refusal.value.note is None
        connection.send("end")
        with have_alone("cpu", b"me", WAIT_S, tmp_path):
            assert read_note("cpu", tmp_path) == b"me"


def test_work_that_is_killed_keeps_nobody_away(tmp_path: Path) -> None:
    with start_worker(tmp_path) as (process, _):
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with have_alone("cpu", b"me", 0.2, tmp_path):
            pass


def test_work_begins_when_the_device_is_given_back(tmp_path: Path) -> None:
    order: list[str] = []

    def work_once() -> None:
        with use_device("cpu", folder=tmp_path):
            order.append("work")

    with have_alone("cpu", b"me", 0, tmp_path):
        thread = threading.Thread(target=work_once)
        thread.start()
        await_waiting(tmp_path)
        order.append("measured")
    thread.join(WAIT_S)
    assert order == ["measured", "work"]


def test_a_stream_of_work_does_not_keep_a_measurement_away(tmp_path: Path) -> None:
    """Two threads in turn: at no moment does nobody work, but for the one who waits."""
    end = threading.Event()
    pieces = [0, 0]

    def work_on(number: int) -> None:
        while not end.is_set():
            with use_device("cpu", folder=tmp_path):
                pieces[number] += 1
                before, deadline = pieces[1 - number], time.monotonic() + 0.02
                while pieces[1 - number] == before and time.monotonic() < deadline:
                    time.sleep(0.001)

    with start_thread(lambda: work_on(0)), start_thread(lambda: work_on(1)):
        try:
            while min(pieces) < 3:
                time.sleep(0.001)
            with have_alone("cpu", b"me", WAIT_S, tmp_path):
                done = sum(pieces)
                time.sleep(0.1)
                assert sum(pieces) == done
        finally:
            end.set()


def test_measurements_one_after_another_let_in_between_them_who_waits(tmp_path: Path) -> None:
    entered = threading.Event()

    def work_once() -> None:
        with use_device("cpu", folder=tmp_path):
            entered.set()

    with have_alone("cpu", b"first", 0, tmp_path):
        thread = threading.Thread(target=work_once)
        thread.start()
        await_waiting(tmp_path)
        assert not entered.is_set()
    with have_alone("cpu", b"second", WAIT_S, tmp_path):
        assert entered.is_set()
    thread.join(WAIT_S)


def test_what_a_piece_of_work_does_is_part_of_it(tmp_path: Path) -> None:
    """Else a verdict would wait for a lease that waits for the verdict."""
    is_tried = threading.Event()

    def try_alone() -> None:
        with pytest.raises(OccupiedError), have_alone("cpu", b"me", 1.0, tmp_path):
            pass
        is_tried.set()

    with use_device("cpu", folder=tmp_path), start_thread(try_alone):
        while read_note("cpu", tmp_path) is None and not is_tried.is_set():
            time.sleep(0.001)
        with use_device("cpu", folder=tmp_path):
            assert not is_tried.is_set()


def test_who_has_the_device_may_work_on_it(tmp_path: Path) -> None:
    with have_alone("cpu", b"me", 0, tmp_path):
        with use_device("cpu", folder=tmp_path):
            pass
        with pytest.raises(OccupiedError), have_alone("cpu", b"again", 0, tmp_path):
            pass


def test_work_that_is_to_stop_waits_no_longer(tmp_path: Path) -> None:
    stop = threading.Event()

    def work_once() -> None:
        with use_device("cpu", stop, tmp_path):
            pass

    with have_alone("cpu", b"me", 0, tmp_path), start_thread(work_once) as thread:
        await_waiting(tmp_path)
        assert thread.is_alive()
        stop.set()


def test_a_device_that_is_never_given_back_is_worked_on_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turnstile, "LONGEST_S", 0.1)

    def work_once() -> None:
        with use_device("cpu", folder=tmp_path):
            pass

    with caplog.at_level(logging.WARNING), have_alone("cpu", b"measure softmax", 0, tmp_path):
        thread = threading.Thread(target=work_once)
        thread.start()
        thread.join(WAIT_S)
    assert "going on after 0 s: the cpu stays reserved by measure softmax" in caplog.text


def test_work_needs_no_folder_for_locks(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with use_device("cpu", folder=tmp_path / "file"):
        pass
    with pytest.raises(OSError, match="Not a directory"), have_alone("cpu", b"me", 0, tmp_path / "file"):
        pass
