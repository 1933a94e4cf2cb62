"""Shared memory between us and one process: what is written is read, and its size is nobody's to change."""

import os
import sys

import pytest

from opsmith.running.arena import CAPACITY, Arena, open_arena, opened_files


@pytest.fixture
def ends():
    fd = open_arena()
    ours, theirs = Arena(os.dup(fd)), Arena(fd)
    yield ours, theirs
    ours.unmap_memory()
    theirs.unmap_memory()


def test_what_one_end_writes_the_other_reads(ends):
    ours, theirs = ends
    sizes = ours.write_blobs([b"inputs", b"", memoryview(b"more")])
    assert sizes == [6, 0, 4]
    assert [bytes(blob) for blob in theirs.view_blobs(sizes)] == [b"inputs", b"", b"more"]
    theirs.write_blobs([b"outputs"])
    assert bytes(*ours.view_blobs([7])) == b"outputs"


def test_pages_that_were_given_back_hold_zeros(ends):
    ours, theirs = ends
    ours.write_blobs([b"x" * 10_000])
    ours.free_pages()
    if sys.platform == "linux":
        assert bytes(*theirs.view_blobs([10_000])) == bytes(10_000)


@pytest.mark.parametrize("sizes", [[-1], [CAPACITY + 1], [CAPACITY, 1], [1.5], ["1"]])
def test_sizes_that_nothing_can_have_are_refused(ends, sizes):
    with pytest.raises(ValueError, match="expected numbers of bytes"):
        ends[0].view_blobs(sizes)


def test_more_than_it_holds_is_refused(ends):
    with pytest.raises(ValueError, match=f"{CAPACITY + 1} bytes; expected at most {CAPACITY}"):
        ends[0].write_blobs([bytes(CAPACITY), b"x"])


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no sealed memory")
def test_its_size_cannot_be_changed_nor_what_artefacts_hold():
    fd = open_arena()
    for size in (0, CAPACITY + 1):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    os.close(fd)
    with opened_files({"kernel.so": b"code", "other": b""}) as fds:
        assert [os.pread(each, 9, 0) for each in fds] == [b"code", b""]
        with pytest.raises(PermissionError):
            os.pwrite(fds[0], b"x", 0)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fds[0])


def test_an_end_can_be_closed_while_somebody_looks(ends):
    ours, _ = ends
    ours.write_blobs([b"seen"])
    (view,) = ours.view_blobs([4])
    ours.unmap_memory()
    assert bytes(view) == b"seen"
