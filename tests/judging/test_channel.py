"""Messages with a process that is not to be believed: each call ends, by its deadline at the latest."""

import os
import socket
import struct
import threading
import time

import pytest

from opsmith.running.channel import Channel, read_frame, write_frame


@pytest.fixture
def ends():
    """Our channel, and the other end's socket."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    with theirs:
        yield channel, theirs
    channel.close()


def soon():
    return time.monotonic() + 0.1


@pytest.mark.parametrize("data", [b"", b"x", os.urandom(50_000)])
def test_messages_arrive_whole_in_both_directions(ends, data):
    channel, theirs = ends
    channel.send(data, soon())
    assert read_frame(theirs.fileno()) == data
    write_frame(theirs.fileno(), data)
    assert channel.receive(len(data), soon()) == data


@pytest.mark.parametrize("sent", [b"", b"\0\0", struct.pack("!I", 10) + b"half"])
def test_half_a_message_ends_at_the_deadline(ends, sent):
    channel, theirs = ends
    theirs.sendall(sent)
    with pytest.raises(TimeoutError):
        channel.receive(100, soon())


def test_a_trickle_does_not_put_the_deadline_off(ends):
    channel, theirs = ends
    theirs.sendall(struct.pack("!I", 1000))
    stop = threading.Event()

    def trickle():
        while not stop.wait(0.02):
            theirs.sendall(b"x")

    thread = threading.Thread(target=trickle)
    thread.start()
    with pytest.raises(TimeoutError):
        channel.receive(1000, soon())
    stop.set()
    thread.join()


def test_who_does_not_read_ends_a_send_at_the_deadline(ends):
    with pytest.raises(TimeoutError):
        ends[0].send(bytes(10_000_000), soon())


def test_a_message_that_is_too_long_is_not_read(ends):
    ends[1].sendall(struct.pack("!I", 11))
    with pytest.raises(ValueError, match="a message of 11 bytes; expected at most 10"):
        ends[0].receive(10, soon())


@pytest.mark.parametrize("sent", [b"", struct.pack("!I", 10) + b"half"])
def test_a_hang_up_is_said_on_both_ends(ends, sent):
    channel, theirs = ends
    theirs.sendall(sent)
    theirs.close()
    with pytest.raises(EOFError):
        channel.receive(100, soon())
    ours, other = socket.socketpair()
    with ours:
        other.sendall(sent)
        other.close()
        assert read_frame(ours.fileno()) is None
