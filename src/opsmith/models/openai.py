"""How is text got from OpenAI and from the many servers that speak its chat protocol (vLLM, Ollama, DeepSeek ...)?

`n` is asked for natively; a server may send fewer completions, which is said once. The seed is sent modulo 2^31, which
every known server takes. What a model refuses (temperature and seed on reasoning
models, `max_tokens` where it is named `max_completion_tokens`) is left out, remembered and logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from opsmith.models import Reply, Request
from opsmith.models.price import cost_usd
from opsmith.models.retry import Retry
from opsmith.models.sdk import UNCOUNTED, Channel, Endpoint, at_most, client_of, count, encodable, load, size, text_of
from opsmith.models.windows import context_window
from opsmith.records import Usage

INSTEAD = {"max_tokens": "max_completion_tokens", "temperature": None, "seed": None, "n": None}
CACHING = ("openai", "deepseek")  # keep prompts without being asked
CACHES_FROM = 1024  # tokens: OpenAI's; DeepSeek keeps shorter ones


class _Message(BaseModel):
    content: Any = None
    refusal: Any = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    """The part of a reply that is read; other fields are ignored."""

    choices: list[_Choice] = Field(min_length=1)
    model: str | None = None
    usage: dict[str, Any] | None = None


class OpenAIModel:
    """A chat model behind the OpenAI chat-completions protocol."""

    is_language_model = True

    def __init__(self, endpoint: Endpoint, retry: Retry | None = None) -> None:
        sdk = load("openai")
        self.name = endpoint.name
        self.context_window = context_window(endpoint.provider, endpoint.model)
        self.caches_from = CACHES_FROM if endpoint.provider in CACHING else None
        self._endpoint = endpoint
        self.channel = Channel(endpoint, sdk, retry or Retry(), INSTEAD)
        self.client = sdk.AsyncOpenAI(
            api_key=endpoint.key, base_url=endpoint.url, max_retries=0, http_client=client_of(sdk)
        )

    async def complete(self, request: Request) -> Reply:
        parameters = self.parameters(request)
        reply = await self.channel.ask(self._create, parameters, self.read, size(request, request.n))
        if len(reply.texts) < request.n and "n" in self.channel.fit(parameters):
            self.channel.say("fewer completions come than a request asks for; further requests ask for the rest")
        return at_most(request.n, reply)

    async def close(self) -> None:
        await self.client.close()

    def parameters(self, request: Request) -> dict[str, Any]:
        """The body of a request."""
        parameters: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": [{"role": m.role, "content": encodable(m.content)} for m in request.messages],
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        }
        if request.n > 1:
            parameters["n"] = request.n
        if request.seed is not None:
            parameters["seed"] = request.seed % 2**31
        return parameters

    async def _create(self, parameters: dict[str, Any], seconds: float) -> Any:
        return await self.client.chat.completions.with_raw_response.create(**parameters, timeout=seconds)

    def read(self, body: Any) -> Reply:
        completion = _Completion.model_validate(body)
        model = encodable(completion.model or "")
        return Reply(
            texts=tuple(text_of(choice.message.content) for choice in completion.choices),
            usage=self._usage(completion.usage, model),
            model=model,
            finish=tuple(_finish(choice) for choice in completion.choices),
        )

    def _usage(self, stated: Mapping[str, Any] | None, model: str) -> Usage:
        stated = stated or {}  # some servers send none
        tokens, output = count(stated.get("prompt_tokens")), count(stated.get("completion_tokens"))
        if tokens is None or output is None:
            self.channel.say(UNCOUNTED)
            return Usage(1, tokens or 0, output or 0, cost_usd=None)
        details = stated.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else stated.get("prompt_cache_hit_tokens")
        usage = Usage(1, tokens, output, min(count(cached) or 0, tokens))
        cost = cost_usd(self._endpoint.provider, (model, self._endpoint.model), usage)
        return replace(usage, cost_usd=cost)


def _finish(choice: _Choice) -> str:
    """Why a completion ended, in OpenAI's words; a refusal in its own field counts as "content_filter"."""
    return "content_filter" if choice.message.refusal else choice.finish_reason or ""
