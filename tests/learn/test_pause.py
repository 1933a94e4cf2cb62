"""A run pauses while the store says so, whichever process said it, and nothing of it changes."""

import asyncio
import contextlib
import threading
import time
from pathlib import Path

from tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.learn.attend import store_wish
from opsmith.learn.events import Event, RoundStarted, SampleJudged, Warned
from opsmith.learn.loop import improve, improve_async
from opsmith.store import Store
from opsmith.store.rows import control_row


def test_a_run_waits_while_it_is_paused_and_ends_as_one_that_was_not(tmp_path: Path) -> None:
    with Store.open(tmp_path / "whole.sqlite") as store:
        whole = store.read_contents(improve(TASKS, TinyModel(), SETTINGS, store, judge=InProcess()).run)
    seen: list[Event] = []
    resumer: list[threading.Thread] = []

    def watcher(event: Event) -> None:
        seen.append(event)
        if isinstance(event, RoundStarted) and event.round.number == 0:
            run.append(runs(tmp_path))
            wish(tmp_path, run[0], "pause")
        if isinstance(event, Warned) and event.message.startswith("paused"):
            resumer.append(threading.Thread(target=later, args=(tmp_path, run[0])))
            resumer[0].start()

    run: list[str] = []
    with Store.open(tmp_path / "paused.sqlite") as store:
        result = improve(TASKS, TinyModel(), SETTINGS, store, judge=InProcess(), on_event=watcher)
        resumer[0].join()
        assert store.read_contents(result.run) == whole
    told = {event.message.split(":")[0]: place for place, event in enumerate(seen) if isinstance(event, Warned)}
    judged = [place for place, event in enumerate(seen) if isinstance(event, SampleJudged)]
    meanwhile = [place for place in judged if told["paused"] < place < told["resumed"]]
    assert len(meanwhile) <= SETTINGS.provider.concurrency, "what was in flight, although the pause is a second long"


def test_a_run_that_was_paused_and_killed_waits_when_it_is_started_again(tmp_path: Path) -> None:
    seen: list[Event] = []

    def stop_at_once(event: Event) -> None:
        seen.append(event)
        if isinstance(event, RoundStarted):
            wish(tmp_path, runs(tmp_path), "pause")
            raise KeyboardInterrupt

    with Store.open(tmp_path / "paused.sqlite") as store, contextlib.suppress(KeyboardInterrupt):
        improve(TASKS, TinyModel(), SETTINGS, store, judge=InProcess(), on_event=stop_at_once)
    resumer = threading.Thread(target=later, args=(tmp_path, runs(tmp_path)))
    seen.clear()
    with Store.open(tmp_path / "paused.sqlite") as store:
        resumer.start()
        assert improve(TASKS, TinyModel(), SETTINGS, store, judge=InProcess(), on_event=seen.append).finished
    resumer.join()
    told = [event.message.split(":")[0] for event in seen if isinstance(event, Warned)]
    assert told == ["paused", "resumed"]


def runs(folder: Path) -> str:
    with Store.open(folder / "paused.sqlite") as store:
        return store.list_runs()[0].info.id


def wish(folder: Path, run: str, what: str) -> None:
    with Store.open(folder / "paused.sqlite") as store:
        store.put([control_row(run, what)]).result()  # type: ignore[arg-type]


def later(folder: Path, run: str) -> None:
    time.sleep(1.5)
    wish(folder, run, "resume")


def test_a_run_that_is_paused_asks_for_nothing_when_it_is_started_again(tmp_path: Path) -> None:
    model = TinyModel()
    with Store.open(tmp_path / "paused.sqlite") as store:
        info = []

        async def stopped() -> None:
            stop = asyncio.Event()
            asyncio.get_running_loop().call_later(1.5, stop.set)
            result = await improve_async(TASKS, model, SETTINGS, store, InProcess(), stop=stop)
            info.append(result.run)

        stop_at_once = TinyModel()

        async def begun() -> str:
            stop = asyncio.Event()
            stop.set()
            return (await improve_async(TASKS, stop_at_once, SETTINGS, store, InProcess(), stop=stop)).run

        run = asyncio.run(begun())
        store_wish(store, run, "pause")
        asyncio.run(stopped())
    assert model.asked == []
    assert info == [run]
