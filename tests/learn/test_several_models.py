"""Several models in one run: figures and money of each to the request, policies, and what one that fails leaves."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from models.servers import SERVER_ERROR, AnthropicServer, OpenAIServer
from sqlalchemy import select
from team_run import CHEAP, DEAR, MIDDLE, answer_wrongly, make_model, sample_program
from tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.agents.prompt import read_prompt
from opsmith.errors import ProviderError
from opsmith.learn.events import Event, ModelLeftOut, Warned
from opsmith.learn.loop import improve, improve_async
from opsmith.models import ExhaustedError, Message, Reply, Request
from opsmith.models.roles import GUARDIAN, RoleModels
from opsmith.records import Usage
from opsmith.results.by_model import ModelFigures, read_by_model
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store, schema

ALL = (CHEAP, MIDDLE, DEAR)
TEAM = SETTINGS.replace(samples=3, models=ALL, max_rounds=1)
EASY = ("sum_0", "mul_0")
PROGRAMS = {task.id: task.impl for task in TASKS}


class Named(TinyModel):
    """A tiny model of another name. `price` is also that of a token; `knows`: the only tasks that it can write, at
    once."""

    is_language_model = True

    def __init__(self, name: str, price: float = 0.01, knows: tuple[str, ...] | None = None, pause: float = 0) -> None:
        super().__init__(pause, price)
        self.name, self.token_price, self.knows = name, price, knows

    def answer(self, request: Request) -> str:
        if self.knows is None:
            return super().answer(request)
        program = PROGRAMS[asked_task(request)] if asked_task(request) in self.knows else "x"
        return f"impl: |\n  {program}\n"


class Failing(Named):
    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        raise ProviderError(f"{self.name}: HTTP 500 after 3 tries", status=500, retryable=True)


def asked_task(request: Request) -> str:
    return name_task(request.messages)


@cache
def name_task(messages: tuple[Message, ...]) -> str:
    text = read_prompt(messages).task
    [name] = [task.id for task in TASKS if yaml.safe_load(task.prompt_text) == yaml.safe_load(text)]
    return name


def gather(*models: TinyModel) -> RoleModels:
    return RoleModels(models[0], {}, {model.name: model for model in models})


def run_team(store: Store, settings: Settings, *models: TinyModel, **watching: Any) -> RunResult:
    settings = settings.replace(models=tuple(model.name for model in models))
    return improve(TASKS, gather(*models), settings, store, judge=InProcess(), **watching)


def figures_of(store: Store, run: str) -> dict[str, ModelFigures]:
    return {row.model: row for row in read_by_model(store, run)}


def sum_costs(figures: dict[str, ModelFigures]) -> float:
    return sum(row.usage.cost_usd or 0.0 for row in figures.values())


def test_one_fails_one_is_slow_one_is_good_and_each_is_counted_and_paid_to_the_request(tmp_path: Path) -> None:
    def answer_slowly(body: dict[str, Any]) -> str:
        time.sleep(0.002)
        return sample_program(body)

    events: list[Event] = []
    with (
        OpenAIServer(SERVER_ERROR) as down,
        OpenAIServer(sample_program) as good,
        AnthropicServer(answer_slowly) as slow,
        Store.open(tmp_path) as store,
    ):
        models = {name: make_model(name, server) for name, server in zip(ALL, (down, good, slow), strict=True)}
        roles = RoleModels(models[CHEAP], {}, models)
        result = improve(TASKS, roles, TEAM, store, judge=InProcess(), on_event=events.append)
        figures, total = figures_of(store, result.run), store.sum_usage(result.run)
        [session_end] = store.fetch_rows(select(schema.session_end))
    assert result.finished
    assert (figures[CHEAP].samples, figures[CHEAP].usage) == (0, Usage())
    assert [figures[name].usage.requests for name in (MIDDLE, DEAR)] == [good.count, slow.count]
    # USD a million tokens, new, from the cache and written: 2.5, 1.25, 10; and 15, 1.5, 75, to the cache 18.75
    assert figures[MIDDLE].usage.cost_usd == pytest.approx(good.count * (40 * 2.5 + 60 * 1.25 + 10 * 10) / 1e6)
    opus = 10 * 15 + 60 * 1.5 + 30 * 18.75 + 10 * 75
    assert figures[DEAR].usage.cost_usd == pytest.approx(slow.count * opus / 1e6)
    assert sum_costs(figures) == pytest.approx(total.cost_usd)
    assert figures[MIDDLE].first + figures[DEAR].first == result.solved > 0
    assert f"without {CHEAP}" in session_end.reason
    assert [event.model for event in events if isinstance(event, ModelLeftOut)] == [CHEAP]
    assert any(isinstance(event, Warned) and CHEAP in event.message for event in events)


def test_the_bandit_spends_on_the_good_one(tmp_path: Path) -> None:
    def answer_slowly(body: dict[str, Any]) -> str:
        time.sleep(0.002)
        return answer_wrongly(body)

    settings = SETTINGS.replace(samples=16, models=ALL, policy="bandit", max_rounds=2, agents="single")
    with (
        OpenAIServer(SERVER_ERROR) as down,
        OpenAIServer(sample_program) as good,
        AnthropicServer(answer_slowly) as slow,
        Store.open(tmp_path) as store,
    ):
        models = {name: make_model(name, server) for name, server in zip(ALL, (down, good, slow), strict=True)}
        result = improve(TASKS, RoleModels(models[CHEAP], {}, models), settings, store, judge=InProcess())
        figures, rounds = figures_of(store, result.run), store.read_rounds(result.run)
    assert slow.count > 0
    assert figures[MIDDLE].usage.requests == good.count
    assert (figures[MIDDLE].usage.cost_usd or 0) >= 2 / 3 * sum_costs(figures)
    assert figures[MIDDLE].samples >= 2 / 3 * sum(row.samples for row in figures.values())
    assert all(len(info.attempted) * 32 == info.planned for info, _ in rounds), "as many as one model would make"


def test_the_dear_one_is_asked_for_what_the_cheap_ones_leave_whatever_the_order_given(tmp_path: Path) -> None:
    dear, cheap, middle = (
        Named("dear", 0.3, ("sum_2",)),
        Named("cheap", 0.1, EASY),
        Named("middle", 0.2, (*EASY, "sum_1")),
    )
    settings = SETTINGS.replace(samples=16, policy="cheapest-first", max_rounds=1)
    with Store.open(tmp_path) as store:
        result = run_team(store, settings, dear, cheap, middle)
        figures = figures_of(store, result.run)
    assert {asked_task(request) for request in cheap.asked} == {task.id for task in TASKS}
    assert {asked_task(request) for request in middle.asked} == {task.id for task in TASKS} - set(EASY)
    assert {asked_task(request) for request in dear.asked} == {"sum_2", "mul_1", "max_0"}
    assert [figures[name].first for name in ("cheap", "middle")] == [2, 1]
    assert figures["dear"].usage.cost_usd == pytest.approx(0.3 * len(dear.asked))


def test_each_model_makes_every_sample_and_counts_its_own_attempts(tmp_path: Path) -> None:
    first, second = Named("a", 0.01, EASY), Named("b", 0.01, ())
    with Store.open(tmp_path) as store:
        result = run_team(store, SETTINGS.replace(samples=3, max_rounds=1), first, second)
        models = Counter(row.asked for row in store.fetch_rows(select(schema.request.c.asked)))
    assert models == {"a": 36, "b": 36}
    for model in (first, second):
        assert Counter(request.attempt for request in model.asked) == dict.fromkeys(range(6), len(TASKS))
    assert not {request.seed for request in first.asked} & {request.seed for request in second.asked}
    assert result.overall.tasks == len(TASKS)


@pytest.mark.parametrize("policy", ["bandit", "cheapest-first", "each"])
def test_broken_off_in_the_middle_of_slices_it_ends_as_one_that_was_not(tmp_path: Path, policy: str) -> None:
    settings = SETTINGS.replace(samples=4, policy=policy, models=("a", "b", "c"), max_rounds=2)

    def make_team(pause: float) -> RoleModels:
        return gather(
            Named("a", 0.1, EASY, pause), Named("b", 0.3, ("sum_2",), pause), Named("c", 0.2, (*EASY, "sum_1"), pause)
        )

    rng, breaks = random.Random(3), 0
    with Store.open(tmp_path / "a.sqlite") as store, Store.open(tmp_path / "b.sqlite") as other:
        for _ in range(5):
            work = improve_async(TASKS, make_team(0.004), settings, store, InProcess())
            try:
                asyncio.run(asyncio.wait_for(work, rng.uniform(0.03, 0.1)))
            except TimeoutError:
                breaks += 1
        result = improve(TASKS, make_team(0), settings, store, judge=InProcess())
        whole = improve(TASKS, make_team(0), settings, other, judge=InProcess())
        assert breaks >= 2
        assert store.read_contents(result.run) == other.read_contents(whole.run)
        assert figures_of(store, result.run) == figures_of(other, whole.run)


def test_when_all_have_failed_the_session_ends_and_a_later_one_makes_what_is_missing(tmp_path: Path) -> None:
    settings = SETTINGS.replace(samples=12, max_rounds=1)
    with Store.open(tmp_path) as store:
        with pytest.raises(ProviderError, match="HTTP 500"):
            run_team(store, settings, Failing("a"), Failing("b"))
        result = run_team(store, settings, Named("a", 0.01, EASY), Failing("b"))
        assert [row.samples for row in read_by_model(store, result.run)] == [144, 0]
        later = Named("b", 0.01, ())
        assert run_team(store, settings, Named("a"), later) == result
    assert not later.asked, "the round is closed"


def test_when_all_fail_in_short_slices_the_round_stays_open(tmp_path: Path) -> None:
    class Dying(Named):
        async def complete(self, request: Request) -> Reply:
            if len(self.asked) >= 8:
                self.asked.append(request)
                raise ProviderError(f"{self.name}: HTTP 500 after 3 tries", status=500, retryable=True)
            return await super().complete(request)

    settings = SETTINGS.replace(samples=4, temperatures=(1.0,), policy="bandit", max_rounds=2, selection="none")
    with Store.open(tmp_path) as store:
        with pytest.raises(ProviderError, match="HTTP 500"):
            run_team(store, settings, Dying("a", 0.01, ()), Dying("b", 0.01, ()))
        [summary] = store.list_runs()
        assert not summary.finished
        assert [solved for _, solved in store.read_rounds(summary.info.id)] in ([None], [(), None])
        assert run_team(store, settings, Named("a", 0.01, EASY), Named("b", 0.01, EASY)).end == "max rounds"


def test_a_model_that_has_nothing_more_is_idle_in_a_later_session_too(tmp_path: Path) -> None:
    class Exhausted(Named):
        async def complete(self, request: Request) -> Reply:
            raise ExhaustedError("nothing more")

    settings = SETTINGS.replace(samples=4, policy="bandit", max_rounds=1)
    with Store.open(tmp_path / "a.sqlite") as store, Store.open(tmp_path / "b.sqlite") as other:
        stopped = run_team(store, settings.replace(max_cost=0.2), Exhausted("a"), Named("b", 0.02, EASY))
        assert not stopped.finished
        result = run_team(store, settings, Exhausted("a"), Named("b", 0.02, EASY))
        whole = run_team(other, settings, Exhausted("a"), Named("b", 0.02, EASY))
        assert store.read_contents(result.run) == other.read_contents(whole.run)


def test_a_model_that_failed_is_asked_by_a_later_session_while_its_round_is_open(tmp_path: Path) -> None:
    settings = SETTINGS.replace(samples=12, max_rounds=1)
    with Store.open(tmp_path) as store:
        stopped = run_team(store, settings.replace(max_cost=1.0), Named("a", 0.02, EASY), Failing("b"))
        assert (stopped.finished, stopped.end.partition(";")[0]) == (False, "max cost")
        later = Named("b", 0.01, ())
        result = run_team(store, settings, Named("a", 0.02, EASY), later)
        assert [row.samples for row in read_by_model(store, result.run)] == [144, 144]
    assert len(later.asked) == 144


def test_a_task_that_one_model_has_nothing_more_for_is_left_to_the_others(tmp_path: Path) -> None:
    class Exhausted(Named):
        async def complete(self, request: Request) -> Reply:
            if request.attempt > 1:
                raise ExhaustedError("nothing more")
            return await super().complete(request)

    settings = SETTINGS.replace(samples=3, policy="cheapest-first", max_rounds=2, selection="none")
    with Store.open(tmp_path) as store:
        other = Named("other", 0.2, EASY)
        result = run_team(store, settings, Exhausted("few", 0.1, ()), other)
    assert result.end == "max rounds"
    assert len(other.asked) > 6 * len(TASKS), "in the second round too"


def test_a_guardian_of_its_own_is_paid_apart(tmp_path: Path) -> None:
    guardian, by_name = Named("warden", 0.5), {name: Named(name, 0.01, EASY) for name in ("a", "b")}
    settings = SETTINGS.replace(samples=2, max_rounds=1, guardian="llm", models=("a", "b"), guardian_model="warden")
    with Store.open(tmp_path) as store:
        result = improve(
            TASKS, RoleModels(by_name["a"], {GUARDIAN: guardian}, by_name), settings, store, judge=InProcess()
        )
        figures = figures_of(store, result.run)
    assert figures["warden"].roles == ("guardian",)
    assert figures["warden"].usage.cost_usd == pytest.approx(0.5 * len(guardian.asked)) != 0
    for name in ("a", "b"):
        assert figures[name].usage.requests == len(by_name[name].asked) == 24
