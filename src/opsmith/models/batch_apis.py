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


class OpenAIBatchApi:
    """`/files` and `/batches` of the OpenAI protocol."""

    def __init__(self, model: OpenAIModel) -> None:
        self.name, self.context_window = model.name, model.context_window
        self._model, self._channel, self._client = model, model.channel, model.client
        self._built_by: dict[Request, Set[str]] = {}  # what had been learnt when a request was handed in

    async def submit_requests(self, requests: Mapping[str, Request]) -> str:
        self._built_by |= dict.fromkeys(requests.values(), self._channel.learnt)
        lines = [_dump_json(self._build_line(name, request)) for name, request in requests.items()]
        file = ("requests.jsonl", "\n".join(lines).encode())
        files, batches = self._client.files.with_raw_response, self._client.batches.with_raw_response
        uploaded = await self._channel.call_server(
            lambda seconds: files.create(file=file, purpose="batch", timeout=seconds),
            self._channel.read_id,
            unserved=WITHOUT,
        )
        about = {"input_file_id": uploaded, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
        return await self._channel.call_server(
            lambda seconds: batches.create(**about, timeout=seconds), self._channel.read_id, BATCHES, WITHOUT
        )

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

    def learn_refusal(self, failure: Failure, request: Request) -> bool:
        learnt = self._built_by.get(request, frozenset())
        return self._channel.learn_refusal(failure, self._model.build_parameters(request, learnt), learnt)

    async def close(self) -> None:
        await self._model.close()

    def _build_line(self, name: str, request: Request) -> dict[str, Any]:
        body = self._channel.fit_parameters(self._model.build_parameters(request))
        return {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}

    async def _fetch_state(self, batch: str) -> dict[str, Any]:
        batches = self._client.batches.with_raw_response
        return await self._channel.call_server(lambda seconds: batches.retrieve(batch, timeout=seconds), _read_object)

    async def _fetch_file(self, file: str) -> bytes:
        files = self._client.files.with_raw_response
        return await self._channel.call_server(lambda seconds: files.content(file, timeout=seconds), bytes)


class AnthropicBatchApi:
    """`/v1/messages/batches` of the Anthropic protocol."""

    def __init__(self, model: AnthropicModel) -> None:
        self.name, self.context_window = model.name, model.context_window
        self._model, self._channel, self._client = model, model.channel, model.client
        self._built_by: dict[Request, Set[str]] = {}  # what had been learnt when a request was handed in

    async def submit_requests(self, requests: Mapping[str, Request]) -> str:
        self._built_by |= dict.fromkeys(requests.values(), self._channel.learnt)
        entries = [
            {"custom_id": name, "params": self._channel.fit_parameters(self._model.build_body(request))}
            for name, request in requests.items()
        ]
        batches = self._client.messages.batches.with_raw_response
        return await self._channel.call_server(
            lambda seconds: batches.create(requests=entries, timeout=seconds), self._channel.read_id, BATCHES, WITHOUT
        )

    async def has_ended(self, batch: str) -> bool:
        batches = self._client.messages.batches.with_raw_response
        state = await self._channel.call_server(lambda seconds: batches.retrieve(batch, timeout=seconds), _read_object)
        return bool(state.get("processing_status") == "ended")

    async def read_results(self, batch: str) -> AsyncIterator[Result]:
        batches = self._client.messages.batches.with_raw_response
        content = await self._channel.call_server(lambda seconds: batches.results(batch, timeout=seconds), bytes)
        for entry in _read_entries(content):
            yield entry["custom_id"], self._read_entry(entry.get("result"))

    def _read_entry(self, result: object) -> Reply | Failure:
        if not isinstance(result, dict):
            return _make_damaged()
        if result.get("type") == "succeeded":
            return self._channel.read_entry(result.get("message"), 200, self._model.read_body)
        return self._channel.read_entry(result, _read_status(result), self._model.read_body)

    def learn_refusal(self, failure: Failure, request: Request) -> bool:
        learnt = self._built_by.get(request, frozenset())
        return self._channel.learn_refusal(failure, self._model.build_body(request, learnt), learnt)

    async def close(self) -> None:
        await self._model.close()


def _make_damaged() -> Failure:
    return Failure("a line of the batch's results that cannot be read", status=500)


def _read_status(result: Mapping[str, Any]) -> int:
    """400 for an entry that can never succeed as it is, 500 for all others (expired, canceled, the server's own)."""
    error = result.get("error")
    inner = error.get("error", error) if isinstance(error, dict) else {}
    return 400 if isinstance(inner, dict) and inner.get("type") == "invalid_request_error" else 500


def _dump_json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False)


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
