"""A recording is played back exactly, and a wrong file is refused with the line."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from opsmith.errors import ProviderError, TaskError, UsageError
from opsmith.models import Message, Reply, Request, ToolCall, ToolOffer
from opsmith.models import replay as replay_module
from opsmith.models.replay import EARLIER, ReplayModel, hash_request, record
from opsmith.models.table import get_model
from opsmith.records import Usage
from opsmith.settings import Settings

from .common import ASKED

REPLY = Reply(("impl: x\n\u2028Ж\0",), Usage(1, 10, 5, 2, 0.25), "m-2024", ("stop",))
HEADER = json.dumps({"replay": 1, "model": "openai/m", "is_language_model": True})
LINE = json.dumps({"key": hash_request(ASKED), "texts": ["ok"]})


def test_what_is_recorded_is_played_back():
    other = replace(ASKED, n=2, seed=5)
    unknown = Reply(("a", ""), Usage(1, cost_usd=None))
    stingy, fewer = replace(ASKED, n=3), Reply(("a",), Usage(1))
    record(
        "r.jsonl",
        [(ASKED, REPLY), (other, unknown), (stingy, fewer)],
        model="embedded",
        is_language_model=False,
        context_window=9,
    )
    model = get_model(Settings(model="replay:r.jsonl"))
    assert asyncio.run(model.complete(ASKED)) == REPLY
    assert asyncio.run(model.complete(other)) == unknown
    assert asyncio.run(model.complete(stingy)) == fewer
    assert (model.name, model.is_language_model, model.context_window) == ("replay:r.jsonl", False, 9)
    asyncio.run(model.close())


def test_calls_and_thoughts_are_played_back():
    calls = ((ToolCall("a", "check", '{"x": 1}'), ToolCall("b", "try", "{")), ())
    reply = Reply(("", "x"), Usage(1, 10, 5, 0, None, 3), calls=calls, raw=("[]", ""))
    asked = replace(ASKED, n=2, tools=(ToolOffer("check", "", "{}"),), reasoning="low")
    record("r.jsonl", [(asked, reply)], model="m", is_language_model=True)
    assert asyncio.run(ReplayModel("r.jsonl").complete(asked)) == reply
    with pytest.raises(ProviderError, match="no reply to it"):
        asyncio.run(ReplayModel("r.jsonl").complete(replace(ASKED, n=2)))


def test_recording_again_replaces_the_file_whole():
    record("r.jsonl", [(ASKED, REPLY)], model="m", is_language_model=True)

    def breaking():
        yield ASKED, REPLY
        raise RuntimeError

    with pytest.raises(RuntimeError):
        record("r.jsonl", breaking(), model="m", is_language_model=True)
    assert asyncio.run(ReplayModel("r.jsonl").complete(ASKED)) == REPLY


def test_the_key_tells_requests_apart_and_does_not_depend_on_how_a_number_is_written():
    changed = [
        replace(ASKED, n=2),
        replace(ASKED, temperature=0.4),
        replace(ASKED, max_tokens=9),
        replace(ASKED, seed=0),
        replace(ASKED, messages=(Message("user", ""),)),
    ]
    assert len({hash_request(request) for request in [ASKED, *changed]}) == 6
    assert hash_request(Request(ASKED.messages, temperature=1)) == hash_request(
        Request(ASKED.messages, temperature=1.0)
    )


def test_the_first_of_two_replies_counts_and_blank_lines_do_not():
    second = LINE.replace('"ok"', '"later"')
    Path("r.jsonl").write_text(f"\n{HEADER}\n\n{LINE}\n{second}")
    assert asyncio.run(ReplayModel("r.jsonl").complete(ASKED)).texts == ("ok",)


def test_a_request_that_was_not_recorded_is_an_error_with_a_remedy():
    Path("r.jsonl").write_text(f"{HEADER}\n{LINE}\n")
    with pytest.raises(ProviderError, match=r"seed 9.*hold no reply to it.*try: ") as caught:
        asyncio.run(ReplayModel("r.jsonl").complete(replace(ASKED, seed=9)))
    assert not caught.value.retryable


def test_a_reply_of_the_wrong_length_is_not_served():
    Path("r.jsonl").write_text(f"{HEADER}\n" + LINE.replace('["ok"]', '["a", "b"]'))
    with pytest.raises(ProviderError, match="a reply of 2 texts"):
        asyncio.run(ReplayModel("r.jsonl").complete(ASKED))


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("", 1, "expected a header"),
        (LINE, 1, "expected a header"),
        (HEADER.replace('"replay": 1', '"replay": 2'), 1, "replay: Input should be 1"),
        (f"{HEADER}\n{LINE}\n{{torn", 3, "Invalid JSON"),
        (f"{HEADER}\n{LINE[:-9]}", 2, "Invalid JSON"),
        (f"{HEADER}\n[]", 2, "expected a recorded reply"),
        (f"{HEADER}\n" + LINE.replace("ok", "\\ud800"), 2, "Invalid JSON"),
        (f"{HEADER}\n" + LINE.replace('"ok"', "null"), 2, "texts.0: Input should be a valid string"),
        (f"{HEADER}\n" + LINE.replace("}", ', "usage": {"input_tokens": -1}}'), 2, "usage.input_tokens"),
        (f"{HEADER}\n" + LINE.replace("}", ', "usage": {"cost_usd": NaN}}'), 2, "usage.cost_usd"),
        (f"{HEADER}\n" + LINE.replace("}", ', "surprise": 1}'), 2, "surprise: Extra inputs"),
        (f"{HEADER}\n" + "[" * 100_000, 2, "Invalid JSON"),
        (f"{HEADER}\n\n" + "x" * 2000, 3, "more than 1000 bytes"),
    ],
)
def test_a_broken_file_is_refused_at_its_line(monkeypatch, content, line, words):
    if "x" * 2000 in content:
        monkeypatch.setattr(replay_module, "MAX_LINE", 1000)
    Path("r.jsonl").write_text(content)
    with pytest.raises(TaskError) as caught:
        ReplayModel("r.jsonl")
    assert caught.value.diagnostics[0].line == line
    assert str(caught.value).startswith(f"TASK line {line}: replay:r.jsonl: given ")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500


def test_bytes_that_are_no_text_are_refused():
    Path("r.jsonl").write_bytes(HEADER.encode() + b"\n\xff\xfe\n")
    with pytest.raises(TaskError, match="line 2"):
        ReplayModel("r.jsonl")


def test_a_huge_file_is_not_read(monkeypatch):
    monkeypatch.setattr(replay_module, "MAX_FILE", 10)
    Path("r.jsonl").write_text(HEADER)
    with pytest.raises(TaskError, match="expected at most 10"):
        ReplayModel("r.jsonl")


@pytest.mark.parametrize("path", ["missing.jsonl", ".", "a\0b"])
def test_no_file_is_a_usage_error(path):
    with pytest.raises(UsageError, match="does not exist"):
        ReplayModel(path)


def test_a_recording_has_the_secret_of_its_run_and_older_ones_a_fixed_one(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, [], model="m", is_language_model=True, secret="of the run")
    assert ReplayModel(path).secret == "of the run"
    assert json.loads(path.read_text().splitlines()[0])["secret"] == "of the run"
    record(path, [], model="m", is_language_model=True)
    assert "secret" not in path.read_text()
    assert ReplayModel(path).secret == EARLIER
