"""A sample in which a model calls tools: what it is told, what is stored, what it counts by, and how it goes on."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tool_run import (
    RIGHT,
    SETTINGS,
    TASKS,
    WRONG,
    CallingModel,
    CountingJudge,
    Script,
    broken,
    call,
    endless,
    in_turn,
    list_results,
    without_words,
    write_answer,
)

from opsmith.errors import StoreError, UsageError
from opsmith.learn.loop import improve
from opsmith.models import Message, ToolCall
from opsmith.models.table import make_models
from opsmith.records import Outcome, Stage
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.queries import SampleDetail
from opsmith.store.rows import ToolCallEntry, prompt_rows, read_prompt_names


def hold(
    script: Script, where: Path, settings: Settings = SETTINGS
) -> tuple[CallingModel, CountingJudge, SampleDetail, list[ToolCallEntry]]:
    """One sample: its model, its judge, and what is stored of it."""
    model, judge = CallingModel(script), CountingJudge()
    with Store.open(where) as store:
        run = improve(TASKS, model, settings, store, judge=judge).run
        [row] = store.list_samples(run)
        detail = store.find_sample(run, row.id)
        return model, judge, detail, store.read_tool_calls([row.id]).get(row.id, [])


def test_a_model_that_calls_in_turn_is_told_and_counts_by_its_last_program(tmp_path: Path) -> None:
    model, judge, detail, calls = hold(in_turn, tmp_path / "a.sqlite")
    assert [asked.agent for asked in detail.calls] == ["proposer", "tools-1", "tools-2"]
    assert [asked.messages for asked in detail.calls] == [request.messages for request in model.asked]
    assert [offer.name for offer in model.asked[0].tools][:3] == ["language", "check", "try"]
    assert "stage: MATCH" in list_results(model.asked[2].messages)[1]
    assert [(entry.turn, entry.name, entry.outcome) for entry in calls] == [
        ("proposer", "check", "ok"),
        ("tools-1", "try", "ok"),
    ]
    assert detail.row.outcome is Outcome.PASSED
    assert [candidate.agent for candidate in detail.candidates] == ["tools-2"], "a tried program is no candidate"
    assert [source.strip() for source in judge.sources] == [WRONG, RIGHT], "the answer was judged once, as any other"
    assert sum(asked.reply.usage.output_tokens for asked in detail.calls) == 30


def test_a_last_reply_without_a_program_counts_by_the_program_called_with_last(tmp_path: Path) -> None:
    _, judge, detail, calls = hold(without_words, tmp_path / "a.sqlite")
    assert len(calls) == 2
    assert detail.row.outcome is Outcome.PASSED
    assert [source.strip() for source in judge.sources] == [WRONG, RIGHT], "what was tried is not judged again"
    _, _, detail, _ = hold([("What now?", [])], tmp_path / "b.sqlite")
    assert detail.row.stage == Stage.FORMAT


def test_a_model_that_calls_for_ever_is_told_to_answer_and_ends_there(tmp_path: Path) -> None:
    model, _, detail, calls = hold(endless, tmp_path / "a.sqlite")
    assert Counter(entry.outcome for entry in calls) == {"ok": 4, "limit": 1}
    assert [request.may_call for request in model.asked] == [True, True, True, True, False]
    assert model.asked[-1].messages[-1].role == "user"
    assert "Answer now" in model.asked[-1].messages[-1].content
    assert detail.row.outcome is Outcome.PASSED, "by the program that it checked last"


@pytest.mark.parametrize(
    ("limits", "replies"), [({"tool_calls": 2}, 2), ({"tool_tokens": 1}, 2), ({"tool_seconds": 1e-9}, 2)]
)
def test_what_goes_beyond_a_limit_is_not_run_and_says_so(tmp_path: Path, limits: dict[str, Any], replies: int) -> None:
    script = [("", [call("try", WRONG, str(place)) for place in range(3)]), (write_answer(RIGHT), [])]
    model, _, detail, calls = hold(script, tmp_path / "a.sqlite", SETTINGS.replace(**limits))
    assert len(model.asked) == replies
    assert [entry.outcome for entry in calls][-1] == "limit"
    assert len(list_results(model.asked[-1].messages)) == 3, "each call has its answer"
    assert detail.row.outcome is Outcome.PASSED


def test_broken_calls_are_answered_in_words_and_nothing_of_them_is_lost(tmp_path: Path) -> None:
    model, judge, detail, calls = hold(broken, tmp_path / "a.sqlite", SETTINGS.replace(tool_calls=8))
    sent = model.asked[1].messages[-5:]
    assert [entry.outcome for entry in calls] == ["refused"] * 4
    assert [len(entry.arguments) for entry in calls][-1] == 2**20, "stored as it came"
    assert max(len(made.arguments) for made in sent[0].calls) < 2**18, "and not paid for again"
    ids = [made.id for made in sent[0].calls]
    assert len(set(ids)) == 4
    assert [message.call for message in sent[1:]] == ids
    words = ["no JSON", "another call", "no tool 'sing'", "characters"]
    assert all(word in message.content for word, message in zip(words, sent[1:], strict=True))
    assert sent[0].raw == "", "its provider's form names ids that are not sent"
    assert len(judge.sources) == 1
    assert detail.row.outcome is Outcome.PASSED


def test_repairs_and_a_guardian_follow_a_conversation(tmp_path: Path) -> None:
    script: Script = [("", [call("check", "x x +")]), (write_answer("x x + z +"), []), (write_answer(RIGHT), [])]
    settings = SETTINGS.replace(repair=1, agents="agent", guardian="static")
    model, _, detail, _ = hold(script, tmp_path / "a.sqlite", settings)
    assert [asked.agent for asked in detail.calls] == ["proposer", "tools-1", "repair-1"]
    assert [candidate.agent for candidate in detail.candidates] == ["tools-1", "guardian", "repair-1"]
    assert not model.asked[2].may_call
    assert model.asked[2].tools == model.asked[0].tools, "some servers want those named that were called"
    assert detail.row.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("script", "is_committed"), [(in_turn, False), (broken, True)], ids=["before it is written", "after"]
)
def test_killed_at_any_row_it_goes_on_as_if_it_had_not_been(tmp_path: Path, script: Script, is_committed: bool) -> None:
    settings, empty = SETTINGS.replace(tool_calls=3), tmp_path / "empty.sqlite"
    Store.open(empty).close()
    with Store.open(tmp_path / "whole.sqlite") as store:
        model, judge = CallingModel(script), CountingJudge()
        whole = store.read_contents(improve(TASKS, model, settings, store, judge=judge).run)
        asked, tried = len(model.asked), len(judge.sources)
    for row in range(1, 100):
        model, judge = CallingModel(script), CountingJudge()
        shutil.copy(empty, tmp_path / f"{row}.sqlite")
        if not interrupt_run(tmp_path / f"{row}.sqlite", model, judge, settings, row, is_committed):
            break
        with Store.open(tmp_path / f"{row}.sqlite") as store:
            run = improve(TASKS, model, settings, store, judge=judge).run
            assert store.read_contents(run) == whole
        lost = 0 if is_committed else 1  # what was in flight when it was killed
        assert len(model.asked) <= asked + lost
        assert len(judge.sources) <= tried + 1  # verdicts are kept in memory: a try and its answer are judged twice
    assert row > asked + 3, "every row of the run was a place to be killed at"


def interrupt_run(
    path: Path, model: CallingModel, judge: CountingJudge, settings: Settings, row: int, is_committed: bool
) -> bool:
    """A session that ends at its n-th writing, before it or after; False: it ended by itself."""
    written = 0
    with Store.open(path) as store:
        put = store.put

        def put_or_die(rows: Any) -> Any:
            nonlocal written
            written += 1
            if written == row and is_committed:
                put(rows).result()
            if written >= row:
                raise StoreError("killed")
            return put(rows)

        store.put = put_or_die  # type: ignore[method-assign]
        try:
            improve(TASKS, model, settings, store, judge=judge)
        except StoreError:
            return True
    return False


def test_a_limit_on_the_money_holds_between_turns_and_the_sample_goes_on_later(tmp_path: Path) -> None:
    model, judge = CallingModel(in_turn, price=1.0), CountingJudge()
    with Store.open(tmp_path / "a.sqlite") as store:
        result = improve(TASKS, model, SETTINGS.replace(max_cost=1.5), store, judge=judge)
        assert (result.end, len(model.asked)) == ("max cost", 2)
        assert not store.judged_ids(result.run, 0)
        result = improve(TASKS, model, SETTINGS.replace(max_cost=9.0), store, judge=judge)
        assert (len(model.asked), result.usage.cost_usd) == (3, 3.0)
        assert len(store.judged_ids(result.run, 0)) == 1


def test_a_prompt_with_calls_is_stored_exactly_and_one_without_as_ever() -> None:
    messages = [
        Message("system", "s"),
        Message("assistant", "", calls=(ToolCall("a", "check", '{"program": "é"}'), ToolCall("b", "", "")), raw="[1]"),
        Message("tool", "r", call="a"),
    ]
    _, rows = prompt_rows(messages)
    bodies = {str(values["hash"]): str(values["body"]) for _, values in rows}
    index = str(rows[-1][1]["body"])
    assert [message.read_message(bodies) for message in read_prompt_names(index)] == messages
    assert {name for message in read_prompt_names(index) for name in message.names} <= bodies.keys()
    plain, _ = prompt_rows([Message("system", "s"), Message("user", "u")])
    assert plain == "7be1a7a582e58ed8233946fa3022e3f52b7eacd83ed687cd0c0a064282777f58"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(model="embedded", tools="check"), "calls no tools"),
        (Settings(model="tuner", tools="all"), "calls no tools"),
        (Settings(model="swarm:openai/a,search", tools="all"), "'search'"),
        (Settings(model="openai/a", tools="all", completions=4), "--completions 4"),
        (Settings(model="openai/a", tools="all", batch=True), "--batch"),
    ],
)
def test_what_calls_no_tools_is_refused_before_anything_starts(settings: Settings, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_models(settings)
