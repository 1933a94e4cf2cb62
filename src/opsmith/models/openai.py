"""Models behind the chat protocol of OpenAI, and of the many servers that speak it (vLLM, Ollama, DeepSeek ...).

`n` is asked for natively; a server may send fewer completions, which is said once. The seed is sent modulo 2^31, which
every known server takes. What a model refuses (temperature and seed on reasoning models, `max_tokens` where it is named
`max_completion_tokens`) is left out, remembered and logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from opsmith.models import Reply, Request
from opsmith.models.parts import build_content
from opsmith.models.pictures import Picture, estimate_tiles
from opsmith.models.price import estimate_token_price, price_reply
from opsmith.models.retry import Retry
from opsmith.models.sdk import (
    UNCOUNTED,
    Connection,
    Endpoint,
    estimate_request,
    limit_completions,
    load_sdk,
    make_client,
    read_completion,
    read_count,
    read_object,
    read_word,
)
from opsmith.models.windows import find_context_window
from opsmith.records import Usage

INSTEAD = {"max_tokens": "max_completion_tokens", "temperature": None, "seed": None, "n": None}
CACHING = ("openai", "deepseek")  # keep prompts without being asked
CACHES_FROM = 1024  # tokens: OpenAI's; DeepSeek keeps shorter ones


class _Completion(BaseModel):
    """The part of a reply that is read; other fields are ignored. One choice that is none spoils no other."""

    choices: list[Any] = Field(min_length=1)
    model: Any = None
    usage: Any = None


class OpenAIModel:
    """A chat model behind the OpenAI chat-completions protocol."""

    is_language_model = True

    def __init__(self, endpoint: Endpoint, retry: Retry | None = None) -> None:
        sdk = load_sdk("openai")
        self.name = endpoint.name
        self.context_window = find_context_window(endpoint.provider, endpoint.model)
        self.caches_from = CACHES_FROM if endpoint.provider in CACHING else None
        self._endpoint = endpoint
        self.channel = Connection(endpoint, sdk, retry or Retry(), INSTEAD)
        self.client = sdk.AsyncOpenAI(
            api_key=endpoint.key, base_url=endpoint.url, max_retries=0, http_client=make_client(sdk)
        )

    async def complete(self, request: Request) -> Reply:
        parameters = self.build_parameters(request)
        reply = await self.channel.ask_model(
            self._create_completion, parameters, self.read_body, estimate_request(request, request.n, estimate_tiles)
        )
        if len(reply.texts) < request.n and "n" in self.channel.fit_parameters(parameters):
            self.channel.warn_once("fewer completions come than a request asks for; further requests ask for the rest")
        return limit_completions(request.n, reply)

    @property
    def token_price(self) -> float | None:
        return estimate_token_price(self._endpoint.provider, self._endpoint.model)

    async def close(self) -> None:
        await self.client.close()

    def build_parameters(self, request: Request) -> dict[str, Any]:
        """The body of a request."""
        parameters: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": [{"role": m.role, "content": build_content(m, _build_picture)} for m in request.messages],
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        }
        if request.n > 1:
            parameters["n"] = request.n
        if request.seed is not None:
            parameters["seed"] = request.seed % 2**31
        return parameters

    async def _create_completion(self, parameters: dict[str, Any], seconds: float) -> Any:
        return await self.client.chat.completions.with_raw_response.create(**parameters, timeout=seconds)

    def read_body(self, body: Any) -> Reply:
        body_fields = _Completion.model_validate(body)
        model = read_word(body_fields.model)
        texts, endings = zip(*map(_read_choice, body_fields.choices), strict=True)
        return Reply(texts, self._count_usage(read_object(body_fields.usage), model), model, endings)

    def _count_usage(self, stated: Mapping[str, Any], model: str) -> Usage:
        tokens, output = read_count(stated.get("prompt_tokens")), read_count(stated.get("completion_tokens"))
        if tokens is None or output is None:
            self.channel.warn_once(UNCOUNTED)
            return Usage(1, tokens or 0, output or 0, cost_usd=None)
        details = stated.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else stated.get("prompt_cache_hit_tokens")
        usage = Usage(1, tokens, output, min(read_count(cached) or 0, tokens))
        cost = price_reply(self._endpoint.provider, (model, self._endpoint.model), usage)
        return replace(usage, cost_usd=cost)


def _build_picture(picture: Picture) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{picture.media};base64,{picture.data}"}}


def _read_choice(choice: object) -> tuple[str, str]:
    """A choice's text, and why it ended, in OpenAI's words: a refusal and calls of tools have fields of their own."""
    message = read_object(read_object(choice).get("message"))
    text, ending = read_completion(message.get("content"), read_object(choice).get("finish_reason"))
    if message.get("refusal"):
        return text, "content_filter"
    called = message.get("tool_calls") or message.get("function_call")
    return text, "tool_calls" if called and not text.strip() else ending
