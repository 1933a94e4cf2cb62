"""Replies through a batch API: half the price, handed in once, found again by a later session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from opsmith.errors import ProviderError
from opsmith.learn.loop import improve, improve_async
from opsmith.models import Ledger, Reply, Request
from opsmith.models.anthropic import AnthropicModel
from opsmith.models.batch import BatchModel, Pace
from opsmith.models.batch_apis import AnthropicBatchApi, OpenAIBatchApi
from opsmith.models.openai import OpenAIModel
from opsmith.models.sdk import Endpoint
from opsmith.records import Usage
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.batches import StoreLedger

from .batch_servers import AnthropicBatchServer, OpenAIBatchServer
from .common import ASKED, CANARY, FakeTime
from .servers import HTML, INVALID_JSON, OVERLOADED, RESET, SERVER_ERROR, Fault, OpenAIServer, refused, too_many

QUICK = Pace(linger_s=0.05, poll_s=0.05)
BOTH = pytest.mark.parametrize("server_type", [OpenAIBatchServer, AnthropicBatchServer])


def model_of(server: OpenAIBatchServer | AnthropicBatchServer, **policy: float) -> BatchModel:
    retry = FakeTime().retry(**policy)
    if isinstance(server, OpenAIBatchServer):
        endpoint = Endpoint("openai/gpt-4o", "gpt-4o", server.url, CANARY, "openai")
        return BatchModel(OpenAIBatchApi(OpenAIModel(endpoint, retry)), QUICK)
    name = "claude-3-5-sonnet"
    endpoint = Endpoint(f"anthropic/{name}", name, server.url, CANARY, "anthropic")
    return BatchModel(AnthropicBatchApi(AnthropicModel(endpoint, retry)), QUICK)


@dataclass
class Notes:
    """A ledger in memory."""

    lies_in: dict[str, str] = field(default_factory=dict)

    def list_batches(self, model: str) -> dict[str, str]:
        return dict(self.lies_in)

    async def note_submitted(self, model: str, batch: str, names: Sequence[str]) -> None:
        self.lies_in |= dict.fromkeys(names, batch)

    async def note_failed(self, batch: str, names: Sequence[str]) -> None:
        for name in names:
            self.lies_in.pop(name, None)


async def asked(
    model: BatchModel, requests: int, ledger: Ledger | None = None, request: Request = ASKED
) -> list[Reply | BaseException]:
    if ledger is not None:
        model.use_ledger(ledger)
    try:
        calls = [model.complete(replace(request, seed=seed)) for seed in range(requests)]
        return list(await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 20))
    finally:
        await model.close()


@BOTH
def test_what_is_asked_together_is_one_batch_at_half_the_price(server_type: type) -> None:
    with server_type("impl: x") as server:
        found = asyncio.run(asked(model_of(server), 50))
    assert [reply.texts for reply in found if isinstance(reply, Reply)] == [("impl: x",)] * 50
    assert [len(batch) for batch in server.batches] == [50]
    assert len({entry["custom_id"] for entry in server.batches[0]}) == 50
    usage = found[0].usage  # type: ignore[union-attr]
    assert isinstance(usage, Usage)
    whole = OpenAIPrice if server_type is OpenAIBatchServer else AnthropicPrice
    assert usage.cost_usd == pytest.approx(whole / 2)


OpenAIPrice = (40 * 2.5 + 60 * 1.25 + 10 * 10) / 1e6  # USD, gpt-4o-2024-11-20: the tokens that the server states
AnthropicPrice = (10 * 3 + 60 * 0.3 + 30 * 3.75 + 10 * 15) / 1e6


@BOTH
def test_a_session_that_was_stopped_finds_its_batch_again(server_type: type) -> None:
    notes = Notes()
    with server_type("impl: x") as server:
        server.looks = 10**6

        async def stopped() -> None:
            work = asyncio.create_task(asked(model_of(server), 8, notes))
            while not server.batches or not notes.lies_in:
                await asyncio.sleep(0.02)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

        asyncio.run(stopped())
        server.looks = 1
        found = asyncio.run(asked(model_of(server), 10, notes))
    assert all(isinstance(reply, Reply) for reply in found)
    assert [len(batch) for batch in server.batches] == [8, 2]


@BOTH
def test_a_request_that_failed_is_handed_in_again_by_the_next_session_only(server_type: type) -> None:
    notes, bad = Notes(), [True]

    def answer(body: dict[str, object]) -> object:
        return SERVER_ERROR if bad[0] and len(server.requests) == 3 else "impl: x"

    with server_type(answer) as server:
        found = asyncio.run(asked(model_of(server), 4, notes))
        assert [type(reply) for reply in found].count(ProviderError) == 1
        bad[0] = False
        again = asyncio.run(asked(model_of(server), 4, notes))
    assert all(isinstance(reply, Reply) for reply in again)
    assert [len(batch) for batch in server.batches] == [4, 1]


@BOTH
def test_an_entry_that_never_came_is_a_failure_of_the_provider(server_type: type) -> None:
    with server_type(lambda body: None) as server:
        found = asyncio.run(asked(model_of(server), 2))
    assert all(isinstance(error, ProviderError) and "without a reply" in str(error) for error in found)


@BOTH
def test_a_parameter_that_the_model_refuses_is_left_out_at_once(server_type: type) -> None:
    def answer(body: dict[str, object]) -> object:
        if "temperature" in body:
            return refused("Unsupported parameter: 'temperature' is not supported with this model.", "temperature")
        return "impl: x"

    with server_type(answer) as server:
        found = asyncio.run(asked(model_of(server), 3))
    assert all(isinstance(reply, Reply) for reply in found)
    assert [len(batch) for batch in server.batches] == [3, 3]
    assert not any("temperature" in (entry.get("body") or entry.get("params")) for entry in server.batches[1])


def test_what_a_model_takes_of_thinking_is_learnt_from_batch_to_batch() -> None:
    def answer(body: dict[str, object]) -> object:
        kind = dict(body.get("thinking", {})).get("type")  # type: ignore[call-overload]
        return refused(f"thinking: {kind} is not supported; use another") if kind else "impl: x"

    thinking = replace(ASKED, reasoning="low", max_tokens=4096)
    with AnthropicBatchServer(answer) as server:
        replies = asyncio.run(asked(model_of(server), 2, request=thinking))
    assert all(isinstance(reply, Reply) for reply in replies)
    kinds = [[entry["params"].get("thinking", {}).get("type") for entry in batch] for batch in server.batches]
    assert kinds == [["adaptive"] * 2, ["enabled"] * 2, [None] * 2]


def test_calls_that_nobody_offered_are_no_answer_in_a_batch_either() -> None:
    body = {"content": None, "tool_calls": [{"id": "a", "function": {"name": "f"}}]}
    ledger = Notes()
    with OpenAIBatchServer(lambda _: {"choices": [{"message": body, "finish_reason": "tool_calls"}]}) as server:
        [reply] = asyncio.run(asked(model_of(server), 1, ledger))
    assert isinstance(reply, Reply)
    assert reply.calls == ()
    assert ledger.lies_in == {}, "the next session asks again"


def test_a_provider_that_takes_no_batch_is_named() -> None:
    with OpenAIBatchServer("x") as server:
        gone = server.url
    model = model_of_url(gone)
    found = asyncio.run(asked(model, 2))
    assert all(isinstance(error, ProviderError) and gone in str(error) for error in found)


UNSERVED = [404, 405, 501]


@BOTH
@pytest.mark.parametrize("status", UNSERVED)
def test_a_server_without_batches_is_asked_once_and_the_error_names_the_option(server_type: type, status: int) -> None:
    with server_type("x") as server:
        server.busy = Fault(status, {"error": {"message": "Not here"}})
        found = asyncio.run(asked(model_of(server), 3))
    assert server.batches == [], "it was not handed in a second time, which this server would take"
    assert all(f"HTTP {status}: Not here, after 1 attempt; " in str(error) for error in found)
    assert all("try: leave out --batch" in str(error) and not error.retryable for error in found)  # type: ignore[union-attr]


def test_a_server_without_files_is_asked_once_too() -> None:
    with OpenAIServer("x") as server:  # completions alone
        found = asyncio.run(asked(model_of_url(server.url), 2))
    assert all("HTTP 404: 404: Not Found, after 1 attempt" in str(error) for error in found)
    assert all("try: leave out --batch" in str(error) for error in found)


def test_a_run_that_found_no_batches_goes_on_without_them(tmp_path: Path) -> None:
    from learn.tiny_run import TASKS, InProcess

    settings = Settings(samples=6, temperatures=(1.0,), agents="single", batch=True, max_rounds=1)
    with OpenAIServer("impl: x y + z +") as server, Store.open(tmp_path) as store:
        model = model_of_url(server.url)
        with pytest.raises(ProviderError, match="leave out --batch"):
            improve(TASKS[:2], model, settings, store, judge=InProcess())
        plain = settings.replace(batch=False)
        single = OpenAIModel(Endpoint("openai/gpt-4o", "gpt-4o", server.url, CANARY, None))
        result = improve(TASKS[:2], single, plain, store, judge=InProcess())
        assert [found.info.id for found in store.list_runs()] == [result.run]
        assert (server.count, store.sample_count(result.run), result.solved) == (12, 12, 1)


@BOTH
def test_a_reply_of_a_batch_without_an_answer_is_delivered_and_handed_in_again_later(server_type: type) -> None:
    notes = Notes()
    nothing: list[str | None] = [None] if server_type is OpenAIBatchServer else []
    with server_type(lambda body: nothing if len(server.requests) == 2 else "impl: x") as server:
        found = asyncio.run(asked(model_of(server), 4, notes))
        assert [type(reply) for reply in found] == [Reply] * 4
        assert sorted(reply.texts for reply in found if isinstance(reply, Reply)) == [("",), *[("impl: x",)] * 3]
        again = asyncio.run(asked(model_of(server), 4, notes))
    assert [reply.texts for reply in again if isinstance(reply, Reply)] == [("impl: x",)] * 4
    assert [len(batch) for batch in server.batches] == [4, 1]


def model_of_url(url: str) -> BatchModel:
    endpoint = Endpoint("openai/gpt-4o", "gpt-4o", url, CANARY, None)
    return BatchModel(OpenAIBatchApi(OpenAIModel(endpoint, FakeTime().retry())), QUICK)


def test_a_whole_run_through_batches_keeps_them_in_its_store(tmp_path: Path) -> None:
    from learn.tiny_run import InProcess
    from tiny_target import tiny_task

    settings = Settings(samples=6, temperatures=(0.4, 1.0), agents="single", batch=True, max_rounds=1, concurrency=2)
    with OpenAIBatchServer("impl: x y +") as server, Store.open(tmp_path) as store:
        model = model_of(server)
        result = improve(
            [tiny_task("sum_0", "x y +"), tiny_task("sum_1", "x y + z +")], model, settings, store, judge=InProcess()
        )
        assert [len(batch) for batch in server.batches] == [24]
        assert len(StoreLedger(store).list_batches(model.name)) == 24
    assert result.solved == 1
    assert result.usage.requests == 24


@pytest.mark.parametrize("generous", [True, False], ids=["sends n", "ignores n"])
def test_a_batched_request_for_several_completions_is_one_entry(generous: bool) -> None:
    with OpenAIBatchServer("impl: x" if generous else ["impl: x"]) as server:

        async def go() -> list[Reply]:
            model = model_of(server)
            try:
                calls = [model.complete(replace(ASKED, n=3, seed=10 * at)) for at in range(4)]
                return list(await asyncio.wait_for(asyncio.gather(*calls), 20))
            finally:
                await model.close()

        replies = asyncio.run(go())
    came = 3 if generous else 1
    assert [reply.texts for reply in replies] == [("impl: x",) * came] * 4
    assert [len(batch) for batch in server.batches] == [4]
    assert {entry["body"]["n"] for entry in server.batches[0]} == {3}
    whole = 40 * 2.5 + 60 * 1.25 + came * 10 * 10
    assert all(reply.usage.cost_usd == pytest.approx(whole / 2e6) for reply in replies)


def test_a_run_with_several_completions_and_batches_finds_its_batch_again(tmp_path: Path) -> None:
    from learn.tiny_run import TASKS, InProcess

    settings = Settings(
        samples=6, temperatures=(0.4, 1.0), agents="single", batch=True, max_rounds=1, completions=4, max_cost=100.0
    )
    with OpenAIBatchServer("impl: x y +") as server, Store.open(tmp_path) as store:
        server.looks = 10**6

        async def stopped() -> None:
            work = improve_async(TASKS[:2], model_of(server), settings, store, InProcess())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(work, 2.0)

        asyncio.run(stopped())
        server.looks = 1
        result = improve(TASKS[:2], model_of(server), settings, store, judge=InProcess())
        assert [len(batch) for batch in server.batches] == [2 * 2 * 2], "blocks of 4 and 2 samples, handed in once"
        assert store.sample_count(result.run) == 2 * 2 * 6
        assert result.usage.requests == 8


def test_a_batch_server_that_ignores_n_gets_the_rest_in_the_next_batches(tmp_path: Path) -> None:
    from learn.tiny_run import TASKS, InProcess

    settings = Settings(samples=3, temperatures=(0.4, 1.0), agents="single", batch=True, max_rounds=1, completions=3)
    with OpenAIBatchServer(["impl: x y +"]) as server, Store.open(tmp_path) as store:
        result = improve(TASKS[:2], model_of(server), settings, store, judge=InProcess())
        assert [len(batch) for batch in server.batches] == [4, 4, 4]
        assert (store.sample_count(result.run), result.usage.requests) == (12, 12)


DOUBTS = [RESET, SERVER_ERROR, INVALID_JSON, HTML, Fault(body={"id": None}), Fault(503, {}), Fault(delay_s=0.7)]


@BOTH
@pytest.mark.parametrize("fault", DOUBTS, ids=["reset", "500", "cut", "html", "no id", "503", "late"])
def test_a_batch_that_may_have_been_accepted_is_not_handed_in_again(server_type: type, fault: Fault) -> None:
    with server_type("impl: x") as server:
        server.doubt = fault
        found = asyncio.run(asked(model_of(server, timeout_s=0.3), 3))
    assert len(server.batches) == 1, "accepted once, paid for once"
    assert all(isinstance(error, ProviderError) and not error.retryable for error in found)
    assert all("look at the provider's list of batches" in str(error) for error in found)


@BOTH
@pytest.mark.parametrize("fault", [too_many(), OVERLOADED], ids=["429", "529"])
def test_a_batch_that_was_surely_not_accepted_is_handed_in_again(server_type: type, fault: Fault) -> None:
    with server_type("impl: x") as server:
        server.busy = fault
        found = asyncio.run(asked(model_of(server), 3))
    assert [type(reply) for reply in found] == [Reply] * 3
    assert len(server.batches) == 1


def test_a_server_that_takes_no_connection_is_tried_again() -> None:
    with AnthropicBatchServer("x") as server:
        pass
    [error] = asyncio.run(asked(model_of(server), 1))
    assert isinstance(error, ProviderError)
    assert "after 7 attempts" in str(error)
    assert error.retryable


DAMAGED = [
    "text",
    7,
    [],
    {"status_code": None, "body": {}},
    {"body": {}},
    {"status_code": "x"},
    {"type": 5},
    {"error": 3},
]


@BOTH
@pytest.mark.parametrize("value", [*DAMAGED, None], ids=str)
def test_a_damaged_line_of_the_results_is_a_failure_of_its_request_alone(server_type: type, value: object) -> None:
    with server_type(lambda body: None if len(server.requests) == 1 else "impl: x") as server:
        server.looks = 10**6

        async def go() -> list[Reply | BaseException]:
            work = asyncio.create_task(asked(model_of(server), 3))
            while not server.batches:
                await asyncio.sleep(0.01)
            name = server.batches[0][0]["custom_id"]
            line = {"custom_id": name, "response": value, "result": value}
            server.damaged = [json.dumps(line), json.dumps({"custom_id": 5}), "[" * 100_000, "null"]
            server.looks = 1
            return await work

        found = asyncio.run(go())
    assert [type(reply) for reply in found] == [ProviderError, Reply, Reply]
