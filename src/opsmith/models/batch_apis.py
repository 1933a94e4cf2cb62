"""The providers' batch APIs: one class for each protocol; the models know how a request and a reply look.

OpenAI: a file of JSON lines is handed in and another one fetched. Anthropic: the requests travel in one call, and the
results are JSON lines.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Set
from typing import Any

from opsmith.models import Reply, Request
from opsmith.models.anthropic import AnthropicModel
from opsmith.models.attempt import Failure
from opsmith.models.batch import Result
from opsmith.models.openai import OpenAIModel

BATCHES = "the provider's list of batches"
WITHOUT = (
    "leave out --batch, since this server seems to take no batches: the same command without it goes on with this run"
)
_OVER = {"completed", "failed", "expired", "cancelled"}  # OpenAI: nothing more will come


class _SdkBatchApi:
    """What both have in common. `batches`: the SDK's resource of that name."""

    def __init__(self, model: OpenAIModel | AnthropicModel, batches: Any) -> None:
        self.name, self.context_window = model.name, model.context_window
        self._model, self._channel, self._batches = model, model.channel, batches.with_raw_response
        self._built_by: dict[Request, Set[str]] = {}  # what had been learnt when a request was handed in

    def learn_refusal(self, failure: Failure, request: Request) -> bool:
        learnt = self._built_by.get(request, frozenset())
        return self._channel.learn_refusal(failure, self._model.build_body(request, learnt), learnt)

    async def close(self) -> None:
        await self._model.close()

    def _build_bodies(self, requests: Mapping[str, Request]) -> dict[str, dict[str, Any]]:
        self._built_by |= dict.fromkeys(requests.values(), self._channel.learnt)
        bodies = {name: self._model.build_body(request) for name, request in requests.items()}
        return {name: self._channel.fit_parameters(body) for name, body in bodies.items()}

    async def _create_batch(self, **about: Any) -> str:
        return await self._channel.call_server(
            lambda seconds: self._batches.create(**about, timeout=seconds), self._channel.read_id, BATCHES, WITHOUT
        )

    async def _fetch_state(self, batch: str) -> dict[str, Any]:
        return await self._channel.call_server(
            lambda seconds: self._batches.retrieve(batch, timeout=seconds), _read_object
        )


class OpenAIBatchApi(_SdkBatchApi):
    """`/files` and `/batches` of the OpenAI protocol."""

    def __init__(self, model: OpenAIModel) -> None:
        super().__init__(model, model.client.batches)
        self._files = model.client.files.with_raw_response

    async def submit_requests(self, requests: Mapping[str, Request]) -> str:
        call = {"method": "POST", "url": "/v1/chat/completions"}
        bodies = self._build_bodies(requests).items()
        lines = [json.dumps({"custom_id": name, **call, "body": body}, ensure_ascii=False) for name, body in bodies]
        file = ("requests.jsonl", "\n".join(lines).encode())
        uploaded = await self._channel.call_server(
            lambda seconds: self._files.create(file=file, purpose="batch", timeout=seconds),
            self._channel.read_id,
            unserved=WITHOUT,
        )
        return await self._create_batch(input_file_id=uploaded, endpoint=call["url"], completion_window="24h")

    async def has_ended(self, batch: str) -> bool:
        return (await self._fetch_state(batch)).get("status") in _OVER

    async def read_results(self, batch: str) -> AsyncIterator[Result]:
        state = await self._fetch_state(batch)
        for file in (state.get("output_file_id"), state.get("error_file_id")):
            for entry in _read_entries(await self._fetch_file(file)) if isinstance(file, str) else ():
                yield entry["custom_id"], self._read_entry(entry)

    def _read_entry(self, entry: Mapping[str, Any]) -> Reply | Failure:
        response = entry.get("response") or {"status_code": 500, "body": entry.get("error")}
        if not isinstance(response, dict) or not isinstance(response.get("status_code"), int):
            return _make_damaged()
        return self._channel.read_entry(response.get("body"), response["status_code"], self._model.read_body)

    async def _fetch_file(self, file: str) -> bytes:
        return await self._channel.call_server(lambda seconds: self._files.content(file, timeout=seconds), bytes)


class AnthropicBatchApi(_SdkBatchApi):
    """`/v1/messages/batches` of the Anthropic protocol."""

    def __init__(self, model: AnthropicModel) -> None:
        super().__init__(model, model.client.messages.batches)

    async def submit_requests(self, requests: Mapping[str, Request]) -> str:
        bodies = self._build_bodies(requests).items()
        return await self._create_batch(requests=[{"custom_id": name, "params": body} for name, body in bodies])

    async def has_ended(self, batch: str) -> bool:
        return bool((await self._fetch_state(batch)).get("processing_status") == "ended")

    async def read_results(self, batch: str) -> AsyncIterator[Result]:
        content = await self._channel.call_server(lambda seconds: self._batches.results(batch, timeout=seconds), bytes)
        for entry in _read_entries(content):
            yield entry["custom_id"], self._read_entry(entry.get("result"))

    def _read_entry(self, result: object) -> Reply | Failure:
        if not isinstance(result, dict):
            return _make_damaged()
        if result.get("type") == "succeeded":
            return self._channel.read_entry(result.get("message"), 200, self._model.read_body)
        return self._channel.read_entry(result, _read_status(result), self._model.read_body)


def _make_damaged() -> Failure:
    return Failure("a line of the batch's results that cannot be read", status=500)


def _read_status(result: Mapping[str, Any]) -> int:
    """400 for an entry that can never succeed as it is, 500 for all others (expired, canceled, the server's own)."""
    error = result.get("error")
    inner = error.get("error", error) if isinstance(error, dict) else {}
    return 400 if isinstance(inner, dict) and inner.get("type") == "invalid_request_error" else 500


def _read_object(content: bytes) -> dict[str, Any]:
    data = json.loads(content)
    if not isinstance(data, dict):
        raise Failure("no JSON object")
    return data


def _read_entries(content: bytes) -> Iterator[dict[str, Any]]:
    """The entries of JSON lines that say whose they are; a line that cannot be read is nobody's."""
    for line in content.splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and isinstance(entry.get("custom_id"), str):
            yield entry
