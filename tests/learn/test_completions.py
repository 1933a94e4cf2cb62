"""Several samples by one request: the bill adds up, each sample has its own rows, and nothing is asked twice."""

import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_run
from tiny_run import SETTINGS, TASKS, FaultyModel, InProcess, TinyModel

from opsmith.config import resolve_settings
from opsmith.errors import ProviderError
from opsmith.learn.ask import split_reply
from opsmith.learn.identity import run_info
from opsmith.learn.loop import improve
from opsmith.models import Reply, Request
from opsmith.models.roles import RoleModels
from opsmith.records import Usage
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.spending import known_usd, prompt_tokens_by_round
from opsmith.suites import load_tasks
from opsmith.targets import get_target

FIVE = SETTINGS.replace(completions=5)  # of 12 samples: requests of 5, 5 and 2
ONE_ROUND = FIVE.replace(max_rounds=1, agents="single")
MAIN = Path(__file__).parents[2] / "experiments" / "main.toml"


def run(store: Store, settings: Settings, model: TinyModel) -> RunResult:
    return improve(TASKS, model, settings, store, judge=InProcess())


def test_each_sample_has_its_rows_and_the_bill_adds_up(tmp_path: Path) -> None:
    model = TinyModel(price=0.01)
    with Store.open(tmp_path) as store:
        result = run(store, ONE_ROUND, model)
        rows = list(store.list_samples(result.run))
        found = [store.find_sample(result.run, row.id) for row in rows]
        assert Counter(request.n for request in model.asked) == {5: 24, 2: 12}
        assert len(rows) == 6 * 2 * 12
        assert all(row.outcome is not None and len(item.calls) == 1 for row, item in zip(rows, found, strict=True))
        parts = Usage.total(item.calls[0].reply.usage for item in found)
        assert (parts.requests, result.usage.requests) == (36, 36)
        assert parts.cost_usd == pytest.approx(0.36)
        asked = {request.messages: request for request in model.asked}
        prompts = prompt_tokens_by_round(store, result.run)[0]
        assert all(prompts.values()), "rows that share a request have no prompt of their own"
        assert len(asked) == len(prompts)


def test_a_share_is_a_whole_reply_and_nothing_is_lost_or_made_up() -> None:
    for texts, output in [(("a", "bb", ""), 7), (("", ""), 3), (("x" * 9,) * 7, 100), (("one",), 5)]:
        found = split_reply(Reply(texts, Usage(2, 300, output, 60, 0.1), "m", ("stop",) * len(texts)))
        assert [part.texts for part in found] == [(text,) for text in texts]
        assert Usage.total(part.usage for part in found) == Usage(2, 300, output, 60, 0.1)
        assert all(part.usage.output_tokens >= 0 and part.finish == ("stop",) for part in found)
    unknown = split_reply(Reply(("a", "b"), Usage(1, 0, 0, 0, None)))
    assert [part.usage.cost_usd for part in unknown] == [None, None]


def test_a_run_that_stopped_at_its_cap_goes_on_with_the_same_requests(tmp_path: Path) -> None:
    cap, model = FIVE.replace(max_cost=0.2), TinyModel(price=0.01)
    with Store.open(tmp_path / "a") as store, Store.open(tmp_path / "b") as other:
        stopped = run(store, cap, model)
        assert not stopped.finished
        assert 0.2 <= known_usd(store, stopped.run) <= 0.2 + 0.01 * SETTINGS.provider.concurrency
        whole = run(store, FIVE, model)
        at_once = run(other, FIVE, TinyModel(price=0.01))
        assert store.read_contents(whole.run) == other.read_contents(at_once.run)
    assert len({request.seed for request in model.asked}) == len(model.asked), "nothing is asked twice"


def test_killed_and_started_again_it_is_the_same_run(tmp_path: Path) -> None:
    path, kills = tmp_path / "killed.sqlite", 0
    for pause in (0.1, 0.25, 0.4):
        command = [sys.executable, tiny_run.__file__, str(path), "0.05", "5"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            time.sleep(pause)
            kills += process.poll() is None
            process.kill()
    assert kills >= 2
    with Store.open(path) as store, Store.open(tmp_path / "whole.sqlite") as other:
        result, whole = run(store, FIVE, TinyModel()), run(other, FIVE, TinyModel())
        assert store.read_contents(result.run) == other.read_contents(whole.run)
    asked = Counter(Path(f"{path}.asked").read_text().split())
    assert sum(asked.values()) - len(asked) <= kills * SETTINGS.provider.concurrency, (
        "only what was in flight is asked again"
    )


def test_a_request_that_fails_leaves_each_of_its_samples_unjudged(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        result = run(store, ONE_ROUND, FaultyModel(share=0.3))
        failures = store.read_failures(result.run, 0)
        assert len(failures) == sum(row.outcome is None for row in store.list_samples(result.run)) + (
            6 * 2 * 12 - store.sample_count(result.run)
        )
        assert {charged for _, charged, _ in failures} == {"provider"}
        assert all("HTTP 500" in message for _, _, message in failures)


class Stingy(TinyModel):
    """A server that sends fewer completions than it is asked for, and has none for some of the requests for the rest."""

    def __init__(self, sends: int, refuses: int = 0, price: float | None = 0.0) -> None:
        super().__init__(price=price)
        self.sends = sends
        self.refuses = refuses  # requests for so many completions

    async def complete(self, request: Request) -> Reply:
        if request.n == self.refuses:
            raise ProviderError("server: HTTP 400 after 1 attempt", status=400)
        reply = await super().complete(request)
        return replace(reply, texts=reply.texts[: self.sends], finish=reply.finish[: self.sends])


def test_the_rest_of_a_request_is_asked_for_by_itself_and_every_sample_has_its_reply(tmp_path: Path) -> None:
    model = Stingy(3, price=0.01)
    with Store.open(tmp_path) as store:
        result = run(store, ONE_ROUND, model)
        assert store.sample_count(result.run) == 6 * 2 * 12
        assert store.read_failures(result.run, 0) == []
        assert Counter(request.n for request in model.asked) == {5: 24, 2: 24 + 12}
        assert result.usage.requests == 60
        assert known_usd(store, result.run) == pytest.approx(0.6)
    assert len({request.seed for request in model.asked}) == 60


def test_a_server_that_has_nothing_to_say_is_asked_once_for_each_sample(tmp_path: Path) -> None:
    model = Stingy(0)
    two_tasks = ONE_ROUND.replace(samples=2, concurrency=100)
    with Store.open(tmp_path) as store:
        with pytest.raises(ProviderError, match="no sample could be judged; last: tiny-sampler: given a reply without"):
            improve(TASKS[:2], model, two_tasks, store, judge=InProcess())
        [found] = store.list_runs()
        assert (found.samples, len(model.asked), found.usage.requests) == (0, 8, 8)


def test_what_came_before_a_failure_is_judged_and_only_the_missing_samples_are_not(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        result = run(store, ONE_ROUND, Stingy(1, refuses=3))
        assert store.sample_count(result.run) == 6 * 2 * (2 + 2 + 2)
        assert [message for _, _, message in store.read_failures(result.run, 0)] == [
            "server: HTTP 400 after 1 attempt"
        ] * (6 * 2 * (3 + 3))


def test_each_part_of_a_request_is_stored_before_the_next_is_asked_for_and_the_cap_is_kept(tmp_path: Path) -> None:
    one_group = ONE_ROUND.replace(completions=12, temperatures=(1.0,))
    capped = one_group.replace(max_cost=0.03)
    with Store.open(tmp_path / "a") as store, Store.open(tmp_path / "b") as other:
        stored: list[float] = []

        class Watched(Stingy):
            async def complete(self, request: Request) -> Reply:
                stored.append(known_usd(store, store.list_runs()[0].info.id))
                return await super().complete(request)

        stopped = improve(TASKS[:1], Watched(1, price=0.01), capped, store, judge=InProcess())
        assert not stopped.finished
        assert [*stored, known_usd(store, stopped.run)] == pytest.approx([0.0, 0.01, 0.02, 0.03])
        model = Stingy(1, price=0.01)
        whole = improve(TASKS[:1], model, one_group, store, judge=InProcess())
        assert len(model.asked) == 12 - 3, "what was paid for before the stop is not asked for again"
        at_once = improve(TASKS[:1], Stingy(1, price=0.01), one_group, other, judge=InProcess())
        assert store.read_contents(whole.run) == other.read_contents(at_once.run)


def test_a_guardian_and_repairs_are_asked_one_by_one(tmp_path: Path) -> None:
    settings = ONE_ROUND.replace(agents="agent", guardian="llm", repair=1)
    model = TinyModel()
    with Store.open(tmp_path) as store:
        run(store, settings, model)
    assert all(request.n == 1 for request in model.asked if "input_impl:" in request.messages[1].content)
    assert all(request.n == 1 for request in model.asked if len(request.messages) > 2)
    assert any(len(request.messages) > 2 for request in model.asked)


def test_it_has_a_say_in_the_runs_name_and_runs_without_it_keep_theirs() -> None:
    class Embedded(TinyModel):
        name = "embedded"

    def name_of(**values: object) -> str:
        settings = resolve_settings(MAIN, values)
        tasks = load_tasks(settings.tasks)
        return run_info(tasks, [], None, RoleModels(Embedded()), get_target("step"), settings).id

    assert name_of() == "embedded-s0-ff55446223"
    assert name_of(request_timeout=10.0, request_deadline=20.0, concurrency=3) == "embedded-s0-ff55446223"
    assert name_of(candidate_seconds=60, trial_seconds=10) == "embedded-s0-ff55446223"
    others = ({"completions": 2}, {"candidate_seconds": 2}, {"trial_seconds": 2})
    assert "embedded-s0-ff55446223" not in [name_of(**values) for values in others]
