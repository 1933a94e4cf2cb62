"""The repair baseline: a refused candidate's errors go back to the proposer, k times at most, and all of it is stored."""

import asyncio
import contextlib
from collections import Counter
from pathlib import Path

import pytest
from tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.learn.loop import improve, improve_async
from opsmith.models import Request
from opsmith.records import Stage
from opsmith.results.result import RunResult
from opsmith.store import Store
from opsmith.store.rows import REPAIR

RULES = {"repair": 2, "samples": 3, "max_rounds": 1, "agents": "single"}


class Mending(TinyModel):
    """Answers without a program, then with a double use, then rightly: as it is told what is wrong."""

    ANSWERS = ("Let me think.", "impl: |\n  x x *\n", "impl: |\n  copy x a b\n  a b *\n")

    def answer(self, request: Request) -> str:
        return self.ANSWERS[(len(request.messages) - 2) // 2]


def run(store: Store, model: TinyModel, **changes: object) -> RunResult:
    settings = SETTINGS.replace(**{**RULES, **changes})
    return improve([TASKS[3]], model, settings, store, judge=InProcess())


def test_a_refused_candidate_is_mended_turn_by_turn(tmp_path: Path) -> None:
    model = Mending()
    with Store.open(tmp_path) as store:
        result = run(store, model)
        samples = list(store.list_samples(result.run))
        assert result.solved == 1
        assert len(samples) == 6
        assert {row.outcome.value for row in samples if row.outcome} == {"passed"}
        detail = store.find_sample(result.run, samples[0].id)
    assert [call.agent for call in detail.calls] == ["proposer", "repair-1", "repair-2"]
    assert [found.agent for found in detail.candidates] == ["proposer", "repair-1", "repair-2"]
    assert [found.verdict.stage for found in detail.candidates] == [Stage.FORMAT, Stage("AFFINE"), Stage.MATCH]
    assert [found.final for found in detail.candidates] == [False, False, True]
    conversation = detail.calls[2].messages
    assert [message.role for message in conversation] == ["system", "user", *["assistant", "user"] * 2]
    assert conversation[4].content == Mending.ANSWERS[1]
    assert "refused at AFFINE" in conversation[5].content
    assert len({call.seed for call in detail.calls}) == 3
    assert (result.usage.requests, len(model.asked)) == (18, 18)


@pytest.mark.parametrize(("turns", "passed"), [(0, 0), (1, 0), (2, 6), (5, 6)])
def test_as_many_turns_as_it_takes_but_no_more_than_allowed(tmp_path: Path, turns: int, passed: int) -> None:
    with Store.open(tmp_path) as store:
        result = run(store, Mending(), repair=turns)
        assert sum(tally.right for tally in store.read_tallies(result.run)) == passed
        assert result.usage.requests == 6 * (1 + min(turns, 2))
        assert store.sum_usage(result.run, REPAIR).requests == 6 * min(turns, 2)
        assert store.spent_before(result.run, 1)[0] == 6


@pytest.mark.parametrize("guardian", ["static", "llm"])
def test_the_guardian_acts_on_every_candidate(tmp_path: Path, guardian: str) -> None:
    with Store.open(tmp_path) as store:
        result = (
            run(store, Mending(), agents="agent", guardian=guardian)
            if guardian == "static"
            else improve(
                TASKS[:4],
                TinyModel(),
                SETTINGS.replace(repair=2, guardian="llm", max_rounds=1),
                store,
                judge=InProcess(),
            )
        )
        agents = Counter(
            found.agent
            for row in store.list_samples(result.run)
            for found in store.find_sample(result.run, row.id).candidates
        )
        assert sum(result.guardian.values()) >= sum(agents[name] for name in agents if name.startswith("guardian"))
    if guardian == "static":
        assert agents == {"proposer": 6, "repair-1": 6, "guardian-1": 6}
        assert result.guardian["repaired"] == 6
    else:
        assert {"guardian", "guardian-1", "repair-1", "repair-2"} <= set(agents)
        assert result.guardian_usage.requests > 0


def test_the_same_wrong_program_again_is_one_candidate_and_the_samples_last(tmp_path: Path) -> None:
    class Stubborn(TinyModel):
        def answer(self, request: Request) -> str:
            return "impl: |\n  x x +\n" if len(request.messages) != 4 else "impl: |\n  x\n"

    with Store.open(tmp_path) as store:
        result = run(store, Stubborn())
        assert sum(tally.judged for tally in store.read_tallies(result.run)) == 6
        detail = store.find_sample(result.run, next(store.list_samples(result.run)).id)
    assert [(found.agent, found.final) for found in detail.candidates] == [("repair-1", False), ("proposer", True)]


def test_a_run_with_repairs_that_is_stopped_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    settings = SETTINGS.replace(repair=2, samples=4, guardian="llm")
    with Store.open(tmp_path / "whole.sqlite") as store:
        whole = improve(TASKS, TinyModel(), settings, store, judge=InProcess())
        expected = store.read_contents(whole.run)
    asked: Counter[int | None] = Counter()
    with Store.open(tmp_path / "stopped.sqlite") as store:
        for pause in (0.15, 0.3, 0.5):
            model = TinyModel(0.004)
            with contextlib.suppress(TimeoutError):
                asyncio.run(asyncio.wait_for(improve_async(TASKS, model, settings, store, InProcess()), pause))
            asked.update(request.seed for request in model.asked)
        model = TinyModel()
        result = improve(TASKS, model, settings, store, judge=InProcess())
        asked.update(request.seed for request in model.asked)
        assert store.read_contents(result.run) == expected
    assert sum(asked.values()) - len(asked) <= 3 * settings.provider.concurrency, (
        "only what was in flight is asked again"
    )
