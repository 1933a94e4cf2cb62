"""Models behind the chat protocol of OpenAI, and of the many servers that speak it (vLLM, Ollama, DeepSeek ...).

Tools are offered and called natively (`calls`, `turns`); to a server that refuses them, by text (`textual_tools`). What
a model thought is not sent back with its calls unless the server insists.

`n` is asked for natively; a server may send fewer completions, which is said once. The seed is sent modulo 2^31, which
every known server takes. What a model refuses (temperature and seed on reasoning models, `max_tokens` where it is named
`max_completion_tokens`) is left out, remembered and logged.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from pydantic import BaseModel, Field

from opsmith.models import Reply, Request, ToolCall
from opsmith.models.attempt import Failure
from opsmith.models.calls import THOUGHTS, keep_fields, read_function_calls
from opsmith.models.parts import read_count, read_object, read_word
from opsmith.models.pictures import Picture, estimate_tiles
from opsmith.models.reasoning import REASONING_KEYS, spell_reasoning
from opsmith.models.refusals import TEXTUAL, Lesson
from opsmith.models.retry import Retry
from opsmith.models.sdk import (
    UNCOUNTED,
    Connection,
    Endpoint,
    ServedModel,
    estimate_request,
    fit_reply,
    load_sdk,
    read_completion,
)
from opsmith.models.textual_tools import write_textual
from opsmith.models.turns import build_chat_offers, build_chat_turns
from opsmith.records import Usage


def _insists_on_thoughts(failure: Failure, sent: Mapping[str, Any]) -> bool:
    """Whether a server misses what the model thought before it called tools."""
    has_calls = any(turn.get("tool_calls") for turn in sent.get("messages", ()))
    return has_calls and failure.status in {400, 422} and THOUGHTS[0] in failure.text


INSTEAD = {
    **{"max_tokens": "max_completion_tokens", "temperature": None, "seed": None, "n": None, "tool_choice": None},
    **dict.fromkeys(REASONING_KEYS),
}
UNKNOWN_TO_SDK = ("thinking", "reasoning", "chat_template_kwargs")
THOUGHTS_BACK = Lesson(
    "thoughts back",
    "wants its reasoning back with its calls of tools; it is sent from now on",
    _insists_on_thoughts,
)
CACHING = ("openai", "deepseek")  # keep prompts without being asked
CACHES_FROM = 1024  # tokens: OpenAI's; DeepSeek keeps shorter ones


class _Completion(BaseModel):
    """The part of a reply that is read; other fields are ignored. One choice that is none spoils no other."""

    choices: list[Any] = Field(min_length=1)
    model: Any = None
    usage: Any = None


class OpenAIModel(ServedModel):
    """A chat model behind the OpenAI chat-completions protocol."""

    def __init__(self, endpoint: Endpoint, retry: Retry | None = None) -> None:
        sdk = load_sdk("openai")
        self.caches_from = CACHES_FROM if endpoint.provider in CACHING else None
        channel = Connection(endpoint, sdk, retry or Retry(), INSTEAD, (TEXTUAL, THOUGHTS_BACK))
        super().__init__(endpoint, sdk, "AsyncOpenAI", channel)

    async def complete(self, request: Request) -> Reply:
        reply = await self.channel.ask_model(
            self._create_completion,
            lambda: self.build_body(request),
            self.read_body,
            estimate_request(request, request.n, estimate_tiles),
            request.messages,
        )
        parameters = self.channel.fit_parameters(self.build_body(request))
        if len(reply.texts) < request.n and "n" in parameters:
            self.channel.warn_once("fewer completions come than a request asks for; further requests ask for the rest")
        return fit_reply(request, reply)

    def build_body(self, request: Request, learnt: Set[str] | None = None) -> dict[str, Any]:
        """The body of a request, by what is `learnt`; None: by all that has been learnt so far."""
        learnt = self.channel.learnt if learnt is None else learnt
        if TEXTUAL.name in learnt:
            request = write_textual(request)
        parameters: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": build_chat_turns(request.messages, _build_picture, THOUGHTS_BACK.name in learnt),
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        }
        if request.n > 1:
            parameters["n"] = request.n
        if request.seed is not None:
            parameters["seed"] = request.seed % 2**31
        if request.tools:
            parameters["tools"] = build_chat_offers(request.tools)
        if request.tools and not request.may_call:
            parameters["tool_choice"] = "none"
        return parameters | spell_reasoning(self._endpoint.provider, request.reasoning)

    async def _create_completion(self, parameters: dict[str, Any], seconds: float) -> Any:
        extra = {name: value for name, value in parameters.items() if name in UNKNOWN_TO_SDK}
        accepted = {name: value for name, value in parameters.items() if name not in extra}
        completions = self.client.chat.completions.with_raw_response
        return await completions.create(**accepted, extra_body=extra or None, timeout=seconds)

    def read_body(self, body: Any) -> Reply:
        body_fields = _Completion.model_validate(body)
        model = read_word(body_fields.model)
        choices = [_read_choice(choice) for choice in body_fields.choices]
        texts, endings, calls, raw = zip(*choices, strict=True)
        usage = self._count_usage(read_object(body_fields.usage), model)
        return Reply(texts, usage, model, endings, calls=calls, raw=raw)

    def _count_usage(self, stated: Mapping[str, Any], model: str) -> Usage:
        tokens, output = read_count(stated.get("prompt_tokens")), read_count(stated.get("completion_tokens"))
        if tokens is None or output is None:
            self.channel.warn_once(UNCOUNTED)
            return Usage(1, tokens or 0, output or 0, cost_usd=None)
        details = stated.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else stated.get("prompt_cache_hit_tokens")
        thoughts = read_count(read_object(stated.get("completion_tokens_details")).get("reasoning_tokens")) or 0
        usage = Usage(1, tokens, output, min(read_count(cached) or 0, tokens), reasoning_tokens=min(thoughts, output))
        return self.price_usage(usage, model)


def _build_picture(picture: Picture) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{picture.media};base64,{picture.data}"}}


def _read_choice(choice: object) -> tuple[str, str, tuple[ToolCall, ...], str]:
    """A choice's text, why it ended, its calls of tools, and what goes back with them.

    The ending is in OpenAI's words: a refusal and calls of tools have fields of their own.
    """
    message = read_object(read_object(choice).get("message"))
    text, ending = read_completion(message.get("content"), read_object(choice).get("finish_reason"))
    calls = read_function_calls(message)
    raw = keep_fields(message, calls)
    if message.get("refusal"):
        return text, "content_filter", calls, raw
    called = message.get("tool_calls") or message.get("function_call")
    return text, "tool_calls" if called and not text.strip() else ending, calls, raw
