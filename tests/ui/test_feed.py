"""Many pages learn at once what is new, from one poller, which ends with the last of them."""

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator

import pytest

from opsmith.errors import StoreError
from opsmith.ui import feed as feeds
from opsmith.ui.cache import ValueCache
from opsmith.ui.feed import Feed, Fragments


class Source:
    """Makes the fragments of one run; tells how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.now = Fragments({"a": "1", "b": "1"})
        self.fault: Exception | None = None

    def __call__(self, _: str) -> Fragments:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return self.now


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_S", 0.01)


async def told(events: AsyncIterator[str], number: int) -> list[str]:
    """The next events, comments and the like left out."""
    found: list[str] = []
    while len(found) < number:
        one = await asyncio.wait_for(anext(events), 5)
        found += [one] if one.startswith("event: ") else []
    return found


def test_each_page_gets_what_it_has_not_got_and_one_poller_serves_all() -> None:
    async def scene() -> None:
        source = Source()
        feed = Feed(source)
        pages = [feed.stream_events("run") for _ in range(20)]
        for page in pages:
            assert await told(page, 2) == ["event: a\ndata: 1\n\n", "event: b\ndata: 1\n\n"]
        assert feed.page_counts == {"run": 20}
        source.asked = 0
        source.now = Fragments({"a": "1", "b": "2"})
        assert await asyncio.gather(*(told(page, 1) for page in pages)) == [["event: b\ndata: 2\n\n"]] * 20
        assert source.asked < 10, "each page asks for itself"
        for page in pages:
            await page.aclose()
        assert feed.page_counts == {}
        await asyncio.sleep(0.05)
        source.asked = 0
        await asyncio.sleep(0.1)
        assert source.asked == 0, "it polls though nobody looks"

    asyncio.run(scene())


def test_a_slow_page_gets_the_last_version_and_nothing_is_kept_for_it() -> None:
    async def scene() -> None:
        source = Source()
        feed = Feed(source)
        slow = feed.stream_events("run")
        await told(slow, 2)
        for version in range(2, 30):
            source.now = Fragments({"a": str(version)})
            await asyncio.sleep(0.02)
        assert await told(slow, 1) == ["event: a\ndata: 29\n\n"]
        await slow.aclose()

    asyncio.run(scene())


def test_a_stream_ends_with_its_run_and_with_the_server() -> None:
    async def scene() -> None:
        source = Source()
        feed = Feed(source)
        first = feed.stream_events("run")
        await told(first, 2)
        source.now = Fragments({"a": "1", "b": "2"}, last=True)
        assert [one async for one in first][-2:] == ["event: b\ndata: 2\n\n", "event: end\ndata: \n\n"]
        source.now = Fragments({"a": "1"})
        other = feed.stream_events("another")
        await told(other, 1)
        await feed.close()
        assert [one async for one in other] == []
        assert feed.page_counts == {}

    asyncio.run(scene())


def test_a_store_that_is_locked_for_a_moment_ends_no_stream_and_a_mistake_does() -> None:
    async def scene() -> None:
        source = Source()
        feed = Feed(source)
        page = feed.stream_events("run")
        await told(page, 2)
        source.fault = StoreError("locked")
        await asyncio.sleep(0.05)
        source.fault, source.now = None, Fragments({"a": "2"})
        assert await told(page, 1) == ["event: a\ndata: 2\n\n"]
        source.fault = ZeroDivisionError()
        with pytest.raises(ZeroDivisionError):
            await told(page, 1)
        assert feed.page_counts == {}
        source.fault = None
        assert await told(feed.stream_events("run"), 1), "the page asks again"

    asyncio.run(scene())


def test_a_value_is_made_once_for_all_who_ask_at_once() -> None:
    made: list[str] = []
    kept = ValueCache(lambda name: (time.sleep(0.05), made.append(name)), lambda _: 1)
    threads = [threading.Thread(target=kept.get_value, args=("a",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["a"]


def test_a_value_is_made_again_when_its_version_changes_but_not_without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    count, version = itertools.count(1), itertools.count()
    kept = ValueCache(lambda _: next(count), lambda _: next(version))
    monkeypatch.setitem(ValueCache.get_value.__globals__, "PATIENCE", 1e9)
    assert [kept.get_value("a"), kept.get_value("a"), kept.get_value("b")] == [1, 1, 2]
    kept.forget_value("a")
    assert kept.get_value("a") == 3
    monkeypatch.setitem(ValueCache.get_value.__globals__, "PATIENCE", -1.0)
    kept.forget_value("a")
    assert [kept.get_value("a"), kept.get_value("a")] == [4, 5]
