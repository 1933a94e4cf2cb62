"""Models behind the messages protocol of Anthropic, and of servers that speak it.

The system prompt travels apart. The protocol has no `n` and no seed: a call brings one completion, however many are
asked for, and a seed is not sent. Temperatures above 1.0 are sent as 1.0. Two marks ask the provider to keep a prompt:
the system prompt, which all requests share, and the whole, which all samples of a task share in a round. (Examples
alone, shared by a round's tasks, would save some 5 % more of the input, and the user's message would no longer be one
block.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from opsmith.models import Reply, Request
from opsmith.models.parts import build_content, replace_surrogates
from opsmith.models.pictures import Picture, estimate_area
from opsmith.models.price import estimate_token_price, price_reply
from opsmith.models.retry import Retry
from opsmith.models.sdk import (
    UNCOUNTED,
    Connection,
    Endpoint,
    estimate_request,
    load_sdk,
    make_client,
    read_completion,
    read_count,
    read_object,
    read_word,
)
from opsmith.models.windows import find_context_window
from opsmith.records import Usage

INSTEAD = {"temperature": None, "cache_control": None}
MAX_TEMPERATURE = 1.0
FINISH = {  # in the words that `Reply.finish` uses
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class _Message(BaseModel):
    """The part of a reply that is read; other fields are ignored."""

    content: list[Any] | None
    stop_reason: Any = None
    model: Any = None
    usage: Any = None


class AnthropicModel:
    """A chat model behind the Anthropic messages protocol."""

    is_language_model = True
    caches_from: int | None = 1024  # tokens; more for some models, which then keep nothing and charge nothing for it

    def __init__(self, endpoint: Endpoint, retry: Retry | None = None) -> None:
        sdk = load_sdk("anthropic")
        self.name = endpoint.name
        self.context_window = find_context_window(endpoint.provider, endpoint.model)
        self._endpoint = endpoint
        self.channel = Connection(endpoint, sdk, retry or Retry(), INSTEAD)
        self.client = sdk.AsyncAnthropic(
            api_key=endpoint.key, base_url=endpoint.url, max_retries=0, http_client=make_client(sdk)
        )

    async def complete(self, request: Request) -> Reply:
        return await self.channel.ask_model(
            self._create_message,
            self._build_parameters(request),
            self.read_body,
            estimate_request(request, 1, estimate_area),
        )

    @property
    def token_price(self) -> float | None:
        return estimate_token_price(self._endpoint.provider, self._endpoint.model)

    async def close(self) -> None:
        await self.client.close()

    def _build_parameters(self, request: Request) -> dict[str, Any]:
        system = "\n\n".join(replace_surrogates(m.content) for m in request.messages if m.role == "system")
        turns = [
            {"role": m.role, "content": build_content(m, _build_picture)}
            for m in request.messages
            if m.role != "system"
        ]
        parameters: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": turns,
            "max_tokens": request.max_tokens,
            "temperature": min(request.temperature, MAX_TEMPERATURE),
            "cache_control": {"type": "ephemeral"},
        }
        return parameters | ({"system": system} if system else {})

    def build_body(self, request: Request) -> dict[str, Any]:
        """A request as the protocol has it."""
        return _mark_cached(self._build_parameters(request))

    async def _create_message(self, parameters: dict[str, Any], seconds: float) -> Any:
        parameters = _mark_cached(parameters)
        # the SDK's signature no longer has a temperature, the protocol does
        extra = {"temperature": parameters.pop("temperature")} if "temperature" in parameters else None
        return await self.client.messages.with_raw_response.create(**parameters, extra_body=extra, timeout=seconds)

    def read_body(self, body: Any) -> Reply:
        message = _Message.model_validate(body)
        model, stopped = read_word(message.model), read_word(message.stop_reason)
        text, ending = read_completion(message.content, FINISH.get(stopped, stopped))
        return Reply((text,), self._count_usage(read_object(message.usage), model), model, (ending,))

    def _count_usage(self, stated: Mapping[str, Any], model: str) -> Usage:
        """The protocol counts what was read from and written to the cache apart from the other input tokens."""
        cached = read_count(stated.get("cache_read_input_tokens")) or 0
        written = read_count(stated.get("cache_creation_input_tokens")) or 0
        uncached, output = read_count(stated.get("input_tokens")), read_count(stated.get("output_tokens"))
        if uncached is None or output is None:
            self.channel.warn_once(UNCOUNTED)
            return Usage(1, (uncached or 0) + cached + written, output or 0, cached, cost_usd=None)
        usage = Usage(1, uncached + cached + written, output, cached)
        cost = price_reply(self._endpoint.provider, (model, self._endpoint.model), usage, written)
        return replace(usage, cost_usd=cost)


def _build_picture(picture: Picture) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": picture.media, "data": picture.data}}


def _mark_cached(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The system prompt as the part that the provider's prompt cache keeps."""
    if "system" not in parameters or "cache_control" not in parameters:
        return dict(parameters)
    cached_system = {"type": "text", "text": parameters["system"], "cache_control": parameters["cache_control"]}
    return dict(parameters) | {"system": [cached_system]}
