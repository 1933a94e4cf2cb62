"""The server: streams that nobody reads any more are given up, Ctrl-C ends it at once, a token is in no log."""

import http.client
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

from opsmith.errors import UsageError
from opsmith.store import Store
from opsmith.ui.app import make_app
from opsmith.ui.feed import Feed
from opsmith.ui.guard import Access
from opsmith.ui.serve import PageServer, serve_pages


@contextmanager
def served(store: Store) -> Iterator[tuple[int, Feed]]:
    """The port of a server in a thread, and its feed."""
    app, feed = make_app(store, Access())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = PageServer(uvicorn.Config(app, log_level="warning", access_log=False), feed)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield listener.getsockname()[1], feed
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive(), "it waits for its streams"


def stream(port: int, path: str) -> http.client.HTTPConnection:
    """A connection that has read the beginning of a stream of events."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.getheader("content-type", "").startswith("text/event-stream")
    assert answer.readline() == b"retry: 2000\n"
    return connection


def test_streams_that_are_gone_leave_nothing_behind(store: Store, going_on: str) -> None:
    with served(store) as (port, feed):
        open_ = [stream(port, f"/runs/{going_on}/events") for _ in range(12)] + [stream(port, "/events")]
        assert feed.page_counts == {going_on: 12, "": 1}
        for connection in open_:
            assert connection.sock is not None
            connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()
        until = time.monotonic() + 60
        while feed.page_counts and time.monotonic() < until:
            time.sleep(0.05)
        assert feed.page_counts == {}
        stream(port, "/events")  # and one that is open when the server ends


def test_ctrl_c_ends_it_at_once_and_the_token_is_in_no_log(finished: Path) -> None:
    token = "a-token-of-some-length"
    command = [sys.executable, "-m", "opsmith", "ui", str(finished), "--port", "0", "--token", token]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[0]
        assert address.endswith(f"/?token={token}")
        port = int(address.split(":")[2].split("/")[0])
        for path, status in ((f"/?token={token}", 303), ("/?token=wrong", 401), ("/", 401)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == status
            cookie = (answer.getheader("set-cookie") or "").split(";")[0]
            if cookie:
                kept = cookie
            connection.close()
        watching = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        watching.request("GET", "/events", headers={"Cookie": kept})
        assert watching.getresponse().status == 200
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate(timeout=60)
        assert (process.returncode, out, rest) == (0, "", ""), "nothing more is printed"


def test_a_port_that_is_taken_is_one_clear_message(store: Store) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(UsageError, match="address already in use; try: another --port"),
    ):
        serve_pages(store, "127.0.0.1", taken.getsockname()[1], None, print)
    with pytest.raises(UsageError, match="--host"):
        serve_pages(store, "no such host", 0, None, print)
    with pytest.raises(UsageError, match=r"192\.0\.2\.1, port 0: "):
        serve_pages(store, "192.0.2.1", 0, None, print)
