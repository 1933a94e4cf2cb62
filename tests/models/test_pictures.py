"""Pictures reach both protocols byte for byte, are counted, and are left out where a model takes none."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from learn.tiny_run import TASKS, InProcess
from tiny_target import TINY

from opsmith.learn.ask import Asking, group_samples
from opsmith.learn.session import RunSession
from opsmith.models import Message, Reply, Request
from opsmith.models.parts import refuses_pictures
from opsmith.models.pictures import LARGEST_PICTURE, Picture, encode_picture, estimate_area, estimate_tiles
from opsmith.models.replay import ReplayModel, hash_request, record
from opsmith.models.roles import RoleModels
from opsmith.models.sdk import estimate_request
from opsmith.models.table import get_model
from opsmith.records import Usage
from opsmith.report.spent import spent_lines, spent_of
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.rows import PROPOSER, RunInfo, SampleKey, prompt_rows, run_rows

from .batch_servers import AnthropicBatchServer, OpenAIBatchServer
from .common import ASKED, FakeTime, ask
from .drawings import JPEG, WEBP, draw_png, write_png
from .servers import AnthropicServer, Fault, OpenAIServer, refused
from .test_batch import BOTH, Notes, model_of

FIRST, SECOND = draw_png(shade=10), encode_picture("image/jpeg", JPEG)
SHOWN = Request((ASKED.messages[0], Message("user", "task: {}", (FIRST, SECOND))))
NO_EYES = refused("Invalid content type. image_url is only supported by certain models.", "messages.[1].content")


def pictures_of(body: dict[str, Any]) -> list[tuple[str, bytes]]:
    """(media, content) of all pictures of a request, as a server of either protocol reads them."""
    content = body["messages"][-1]["content"]
    pieces = content if isinstance(content, list) else []
    urls = [piece["image_url"]["url"] for piece in pieces if piece["type"] == "image_url"]
    sources = [piece["source"] for piece in pieces if piece["type"] == "image"]
    coded = [(url.partition(";")[0].removeprefix("data:"), url.partition("base64,")[2]) for url in urls]
    coded += [(source["media_type"], source["data"]) for source in sources if source["type"] == "base64"]
    return [(media, base64.b64decode(data, validate=True)) for media, data in coded]


def sightless(body: dict[str, Any]) -> str | Fault:
    """A model without eyes, which reads texts."""
    return NO_EYES if pictures_of(body) else "ok"


SERVERS = pytest.mark.parametrize(
    ("server_type", "name"), [(OpenAIServer, "openai/m"), (AnthropicServer, "anthropic/m")]
)


@SERVERS
def test_pictures_arrive_byte_for_byte_before_the_text(server_type: type, name: str) -> None:
    with server_type() as server:
        reply = ask(name, server.url, SHOWN)
    assert pictures_of(server.requests[0]) == [("image/png", write_png(40, 30, 10)), ("image/jpeg", JPEG)]
    assert server.requests[0]["messages"][-1]["content"][-1] == {"type": "text", "text": "task: {}"}
    assert not reply.blind


@SERVERS
def test_a_text_without_pictures_is_sent_as_ever(server_type: type, name: str) -> None:
    with server_type() as server:
        ask(name, server.url)
    assert server.requests[0]["messages"][-1] == {"role": "user", "content": "task: {}"}


@SERVERS
def test_a_model_without_eyes_reads_the_text_and_that_is_said_once(
    server_type: type, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with server_type(sightless) as server:
        reply = ask(name, server.url, SHOWN, times=3)
    assert [len(pictures_of(body)) for body in server.requests] == [2, 0, 0, 0]
    assert {body["messages"][-1]["content"] for body in server.requests[1:]} == {"task: {}"}
    assert reply.blind
    assert reply.texts == ("ok",)
    assert caplog.text.count("takes no pictures") == 1


@BOTH
def test_a_batch_brings_pictures_too_and_is_handed_in_again_without_them(server_type: type) -> None:
    with server_type(sightless) as server:

        async def go() -> Reply:
            model = model_of(server)
            model.use_ledger(Notes())
            try:
                return await asyncio.wait_for(model.complete(SHOWN), 20)
            finally:
                await model.close()

        reply = asyncio.run(go())
    assert [len(pictures_of(body)) for body in server.requests] == [2, 0]
    assert reply.blind
    assert isinstance(server, (OpenAIBatchServer, AnthropicBatchServer))
    assert len(server.batches) == 2


@pytest.mark.parametrize(
    "words",
    [
        "Invalid content type. image_url is only supported by certain models.",  # OpenAI
        "messages.1.content.0: image content is not supported by this model",
        "Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text`",  # DeepSeek
        "No endpoints found that support image input",  # OpenRouter
        "meta-llama/Llama-3.1-8B is not a multimodal model",  # vLLM
        "At most 0 image(s) may be provided in one request.",  # vLLM
        "image input is not supported - hint: you may need to provide the mmproj",  # llama.cpp
        "this model is missing data required for image input",  # Ollama
        "This model does not support images.",
    ],
)
def test_the_words_of_models_without_eyes_are_understood(words: str) -> None:
    assert refuses_pictures(words)


@pytest.mark.parametrize(
    "words",
    [
        "Could not process image",
        "image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes",
        "The image format is invalid: expected one of png, jpeg, gif, webp",
        "We do not support image format image/tiff",
        "max_tokens is not supported by this model",
        "The model is overloaded",
    ],
)
def test_words_about_one_picture_or_something_else_blind_no_model(words: str) -> None:
    assert not refuses_pictures(words)


@pytest.mark.parametrize(
    ("media", "data", "words"),
    [
        ("image/gif", FIRST.data, "expected one of image/png"),
        ("image/png", SECOND.data, "no image/png"),
        ("image/png", "not base64!", "no image/png"),
        ("image/png", base64.b64encode(write_png(40, 30)[:18]).decode(), "no image/png"),
        ("image/png", base64.b64encode(write_png(9000, 1)).decode(), "at most 8000"),
        ("image/png", "A" * (LARGEST_PICTURE + 4), "at most 5242880"),
    ],
)
def test_what_no_provider_takes_is_no_picture(media: str, data: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Picture(media, data)


def test_only_a_users_message_holds_pictures() -> None:
    with pytest.raises(ValueError, match="user's message only"):
        Message("system", "text", (FIRST,))


def test_tokens_follow_the_rule_that_each_provider_states() -> None:
    large = draw_png(2048, 4096)  # OpenAI's own example: 1105 tokens
    assert (estimate_tiles(large), estimate_tiles(draw_png(512, 512))) == (1105, 255)
    assert estimate_area(draw_png(750, 100)) == 100
    assert estimate_area(draw_png(3136, 3136)) == estimate_area(draw_png(1568, 1568)) == 1600
    assert estimate_tiles(encode_picture("image/webp", WEBP)) == estimate_tiles(SECOND) == 255
    text = estimate_request(replace(SHOWN, messages=ASKED.messages), 1, estimate_tiles)
    assert estimate_request(SHOWN, 1, estimate_tiles) == text + 2 * 255


def test_texts_without_pictures_have_the_hashes_that_they_ever_had() -> None:
    assert hash_request(ASKED) == "5f3cd8a01d7c0b2476d16abba145e0ff3aa77e54a9d48c021b98d37b943bee22"
    assert prompt_rows(ASKED.messages)[0] == "b670fae929e49a77f7869ee497905c74d6556d724669271a7243c35fe3326322"
    assert hash_request(SHOWN) != hash_request(ASKED)


def test_a_replay_knows_pictures(tmp_path: Path) -> None:
    path, reply = tmp_path / "r.jsonl", Reply(("ok",), Usage(1), "m", ("stop",))
    other = replace(SHOWN, messages=(ASKED.messages[0], Message("user", "task: {}", (FIRST,))))
    record(path, [(SHOWN, reply), (other, replace(reply, blind=True))], model="m", is_language_model=True)
    model = ReplayModel(path)
    assert asyncio.run(model.complete(SHOWN)) == reply
    assert asyncio.run(model.complete(other)).blind
    assert ["blind" in json.loads(line) for line in path.read_text().splitlines()[1:]] == [False, True]


@pytest.mark.parametrize(("answer", "pictures"), [("ok", 2), (sightless, 0)], ids=["sees", "takes none"])
def test_a_store_holds_the_pictures_that_were_sent_and_counts_them(tmp_path: Path, answer: Any, pictures: int) -> None:
    key, settings = SampleKey("r", 0, "sum_0", 1.0, 0), Settings(model="openai/m")
    info = RunInfo("r", "identity", "openai/m", True, "tiny", 0, {}, {})
    prompt, rows = prompt_rows(SHOWN.messages)
    with OpenAIServer(answer) as server, Store.open(tmp_path) as store:
        store.put([*run_rows(info, TASKS[:1]), *rows]).result()

        async def go() -> str:
            model = get_model(settings.replace(base_url=server.url), retry=FakeTime().retry())
            session = RunSession("r", settings, TINY, RoleModels(model), InProcess(), store, lambda _: None, Usage())
            session.running.set()
            try:
                return await Asking(session, group_samples([key], 1), {}, {key: 0}, 1).request_text(
                    key, PROPOSER, SHOWN.messages, prompt
                )
            finally:
                await model.close()

        assert asyncio.run(go()) == "ok"
        [call] = store.find_sample("r", key.id).calls
        bill = spent_of(store, "r")
    shown = SHOWN.messages if pictures else (SHOWN.messages[0], Message("user", "task: {}"))
    assert call.messages == shown
    assert bill.pictures == pictures
    assert list(bill.by) == ["round", "agent", "task"]
    assert any("2 pictures sent with the requests" in line for line in spent_lines(bill)) == bool(pictures)
