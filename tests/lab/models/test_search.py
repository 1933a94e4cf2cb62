"""The search model: a task's n-th program for its n-th request, the same every time, and a clean end."""

import asyncio
from itertools import islice
from pathlib import Path

import pytest
from tiny_target import TINY, Tiny, read_yaml, tiny_task

from opsmith.agents.prompt import compose_prompt
from opsmith.agents.reply import read_reply
from opsmith.errors import UsageError
from opsmith.judging.verifier import verify
from opsmith.learn.loop import improve, improve_async
from opsmith.models import ExhaustedError, Message, Request
from opsmith.models.replay import hash_request
from opsmith.models.table import get_model
from opsmith.records import Level, Outcome
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith.targets import TARGETS
from opsmith.targets.protocols import Searched
from opsmith.targets.step import STEP
from opsmith_lab.models.search import SearchModel

(INDEX,) = load_tasks(("index_2",))
ALONE = Settings(model="search", selection="none", samples=4, temperatures=(0.7, 1.0), agents="single", max_rounds=4)


class Orderly(Tiny):
    """The tiny language with an enumeration: every pair of inputs under + and *."""

    name = "orderly"

    def read_task(self, text, task_id, path=""):
        task = super().read_task(text, task_id, path)
        return type(task)(task.id, self.name, task.text, task.impl, path=path)

    def enumerate_programs(self, task):
        names = list(read_yaml(task.text)["inputs"])
        return (f"{one} {two} {op}" for op in "+*" for one in names for two in names if one < two)


ORDERLY = Orderly()
TARGETS["orderly"] = lambda: ORDERLY
SUM, DIFFERENCE, PRODUCT = (
    ORDERLY.read_task(tiny_task(name, program).text, name)
    for name, program in (("sum_0", "x y + z + w +"), ("dif_0", "x y -"), ("mul_0", "x y *"))
)


class Here:
    """The verifier in this process, which takes its time now and then, so that requests come in any order."""

    async def judge(self, task, source, level=Level.CHEAP):
        await asyncio.sleep(0.002 * (len(source) % 3))
        return verify(task, source)


def ask(model: SearchModel, *attempts: int, task=INDEX) -> list[str | None]:
    messages = compose_prompt(task, [], STEP, None, 0).messages

    async def all_of_them() -> list[str | None]:
        asked = [model.complete(Request(messages, seed=1, attempt=attempt)) for attempt in attempts]
        replies = await asyncio.gather(*asked, return_exceptions=True)
        await model.close()
        return [None if isinstance(reply, ExhaustedError) else reply.texts[0] for reply in replies]  # type: ignore[union-attr]

    return asyncio.run(all_of_them())


def test_the_nth_request_gets_the_nth_program_in_any_order() -> None:
    in_order = ask(SearchModel(STEP), 0, 1, 2)
    assert None not in in_order
    assert ask(SearchModel(STEP), 2, 0, 1) == [in_order[2], in_order[0], in_order[1]]
    programs = [read_reply(STEP, INDEX, text or "").source for text in in_order]
    assert programs == [program.rstrip("\n") for program in islice(STEP.enumerate_programs(INDEX), 3)]


def test_it_is_no_language_model_and_needs_a_target_that_can_be_searched() -> None:
    model = get_model(Settings(model="search"), STEP)
    assert (model.name, model.is_language_model) == ("search", False)
    with pytest.raises(UsageError, match="target 'tiny' has no search"):
        get_model(Settings(model="search"), TINY)
    with pytest.raises(UsageError, match="--repair: given with model 'search'"):
        get_model(Settings(model="search", repair=1), STEP)
    assert isinstance(STEP, Searched)


def test_a_prompt_without_a_task_gets_words() -> None:
    model = SearchModel(ORDERLY)
    reply = asyncio.run(model.complete(Request((Message("user", "hello"),))))
    assert "no" in reply.texts[0]


def test_a_recorded_request_keeps_its_name() -> None:
    one, other = (Request((Message("user", "x"),), seed=3, attempt=attempt) for attempt in (0, 5))
    assert hash_request(one) == hash_request(other)


def run(path: Path, tasks, **changes):
    with Store.open(path) as store:
        result = improve(tasks, SearchModel(ORDERLY), ALONE.replace(**changes), store, judge=Here())
        rows = list(store.list_samples(result.run))
        sources = [store.find_sample(result.run, row.id).candidates[-1].source for row in rows]
        return result, list(zip(rows, sources, strict=True)), store.read_contents(result.run)


def test_over_rounds_and_temperatures_every_program_is_asked_for_once(tmp_path: Path) -> None:
    result, samples, _ = run(tmp_path, [SUM])
    found = [source for _, source in samples]
    assert [source.strip() for source in found if source] == list(ORDERLY.enumerate_programs(SUM))
    assert (result.end, result.solved, result.finished) == ("nothing left to try", 0, True)
    assert [item.round for item in result.rounds] == [0, 1]  # 12 programs, 8 samples a round


def test_what_is_exhausted_counts_nowhere_and_the_others_go_on(tmp_path: Path) -> None:
    result, samples, _ = run(tmp_path, [DIFFERENCE, PRODUCT])
    assert result.per_task["mul_0"].solved
    assert result.per_task["dif_0"].samples == 2  # its two programs, though 8 samples were planned
    assert all(row.outcome is not None for row, _ in samples)
    assert result.overall.solved == 1
    assert {row.outcome for row, _ in samples if row.task == "mul_0"} == {Outcome.PASSED, Outcome.REFUSED}


def test_a_task_without_any_program_ends_a_run_in_good_order(tmp_path: Path) -> None:
    nothing = ORDERLY.read_task(tiny_task("one_0", "x").text, "one_0")
    result, samples, _ = run(tmp_path, [nothing])
    assert (result.end, samples) == ("nothing left to try", [])


def test_a_run_that_is_stopped_and_started_again_asks_for_the_same_programs(tmp_path: Path) -> None:
    _, _, whole = run(tmp_path / "whole", [SUM, PRODUCT])

    stop = asyncio.Event()

    class Stopping(SearchModel):
        left = 5

        async def complete(self, request):
            self.left -= 1
            if self.left == 0:
                stop.set()
            return await super().complete(request)

    with Store.open(tmp_path / "stopped") as store:
        model = Stopping(ORDERLY)
        settings = ALONE.replace(concurrency=2)
        result = asyncio.run(improve_async([SUM, PRODUCT], model, settings, store, Here(), stop=stop))
        assert (result.finished, result.end) == (False, "interrupted")
    assert run(tmp_path / "stopped", [SUM, PRODUCT])[2] == whole
