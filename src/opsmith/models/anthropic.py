"""Models behind the messages protocol of Anthropic, and of servers that speak it.

The system prompt travels apart. The protocol has no `n` and no seed: a call brings one completion, however many are
asked for, and a seed is not sent. Temperatures above 1.0 are sent as 1.0, and none where the model thinks. How much it
thinks is told as new models take it, and else as older ones do, by a budget. Blocks of thought go back with the calls
that followed them, unchanged. Two marks ask the provider to keep a prompt:
the system prompt, which all requests share, and the whole, which all samples of a task share in a round. (Examples
alone, shared by a round's tasks, would save some 5 % more of the input, and the user's message would no longer be one
block.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from opsmith.models import Reply, Request
from opsmith.models.attempt import Failure
from opsmith.models.calls import keep_blocks, read_tool_uses
from opsmith.models.parts import read_count, read_object, read_word, replace_surrogates
from opsmith.models.pictures import Picture, estimate_area
from opsmith.models.reasoning import LEAST_ANSWER, LEAST_BUDGET, spell_adaptive, spell_budget
from opsmith.models.refusals import TEXTUAL, Lesson, refuses
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
from opsmith.models.turns import build_block_offers, build_block_turns
from opsmith.records import Usage

INSTEAD = {"temperature": None, "cache_control": None, "output_config": None, "tool_choice": None}
MAX_TEMPERATURE = 1.0
FINISH = {  # in the words that `Reply.finish` uses
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


def _refuses_thinking(kind: str, failure: Failure, sent: Mapping[str, Any]) -> bool:
    """Whether a model takes no thinking of that kind: "adaptive", or "enabled" with a budget."""
    is_named = re.search(r"thinking|adaptive|budget_tokens", failure.text, re.IGNORECASE) is not None
    is_refused = refuses(failure) or (failure.status in {400, 422} and "does not match any of" in failure.text)
    return is_named and is_refused and sent.get("thinking", {}).get("type") == kind


def _refuses_effort(failure: Failure, sent: Mapping[str, Any]) -> bool:
    is_named = re.search(r"\beffort\b", failure.text, re.IGNORECASE) is not None
    return "output_config" in sent and is_named and refuses(failure)


BUDGET = Lesson(
    "budget", "takes no adaptive thinking; it is given a budget from now on", partial(_refuses_thinking, "adaptive")
)
THOUGHTLESS = Lesson(
    "thoughtless", "takes no thinking; it is left out from now on", partial(_refuses_thinking, "enabled")
)
EFFORTLESS = Lesson("effortless", "takes no effort; it is left out from now on", _refuses_effort)
LESSONS = (TEXTUAL, BUDGET, THOUGHTLESS, EFFORTLESS)


class _Message(BaseModel):
    """The part of a reply that is read; other fields are ignored."""

    content: list[Any] | None
    stop_reason: Any = None
    model: Any = None
    usage: Any = None


class AnthropicModel(ServedModel):
    """A chat model behind the Anthropic messages protocol."""

    caches_from: int | None = 1024  # tokens; more for some models, which then keep nothing and charge nothing for it

    def __init__(self, endpoint: Endpoint, retry: Retry | None = None) -> None:
        sdk = load_sdk("anthropic")
        channel = Connection(endpoint, sdk, retry or Retry(), INSTEAD, LESSONS)
        super().__init__(endpoint, sdk, "AsyncAnthropic", channel)

    async def complete(self, request: Request) -> Reply:
        reply = await self.channel.ask_model(
            self._create_message,
            lambda: self._build_parameters(request, self.channel.learnt),
            self.read_body,
            estimate_request(request, 1, estimate_area),
            request.messages,
        )
        return fit_reply(replace(request, n=1), reply)

    def _build_parameters(self, request: Request, learnt: Set[str]) -> dict[str, Any]:
        if TEXTUAL.name in learnt:
            request = write_textual(request)
        system = "\n\n".join(replace_surrogates(m.content) for m in request.messages if m.role == "system")
        parameters: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": build_block_turns(request.messages, _build_picture),
            "max_tokens": request.max_tokens,
            "temperature": min(request.temperature, MAX_TEMPERATURE),
            "cache_control": {"type": "ephemeral"},
        }
        parameters |= {"system": system} if system else {}
        parameters |= {"tools": build_block_offers(request.tools)} if request.tools else {}
        parameters |= {} if request.may_call or not request.tools else {"tool_choice": {"type": "none"}}
        return self._add_thinking(parameters, request, learnt)

    def _add_thinking(self, parameters: dict[str, Any], request: Request, learnt: Set[str]) -> dict[str, Any]:
        """How much the model shall think, as it takes it; a temperature may not be told it then."""
        if request.reasoning is None or THOUGHTLESS.name in learnt:
            return parameters
        if BUDGET.name in learnt:
            thinking = spell_budget(request.reasoning, request.max_tokens)
        else:
            thinking = spell_adaptive(request.reasoning)
        if not thinking:
            self.channel.warn_once(
                f"no thinking is asked for: {request.max_tokens} max_tokens leave no room for {LEAST_BUDGET} tokens of "
                f"thought beside {LEAST_ANSWER} of answer; set more of them"
            )
            return parameters
        left_out = {"temperature", *({"output_config"} if EFFORTLESS.name in learnt else ())}
        return {name: value for name, value in (parameters | thinking).items() if name not in left_out}

    def build_body(self, request: Request, learnt: Set[str] | None = None) -> dict[str, Any]:
        """A request as the protocol has it, by what is `learnt`; None: by all that has been learnt so far."""
        return _mark_cached(self._build_parameters(request, self.channel.learnt if learnt is None else learnt))

    async def _create_message(self, parameters: dict[str, Any], seconds: float) -> Any:
        parameters = _mark_cached(parameters)
        # the SDK's signature no longer has a temperature, the protocol does
        extra = {"temperature": parameters.pop("temperature")} if "temperature" in parameters else None
        return await self.client.messages.with_raw_response.create(**parameters, extra_body=extra, timeout=seconds)

    def read_body(self, body: Any) -> Reply:
        message = _Message.model_validate(body)
        model, stopped = read_word(message.model), read_word(message.stop_reason)
        text, ending = read_completion(message.content, FINISH.get(stopped, stopped))
        calls = read_tool_uses(message.content)
        raw = keep_blocks(message.content, calls)
        usage = self._count_usage(read_object(message.usage), model)
        return Reply((text,), usage, model, (ending,), calls=(calls,), raw=(raw,))

    def _count_usage(self, stated: Mapping[str, Any], model: str) -> Usage:
        """The protocol counts what was read from and written to the cache apart from the other input tokens."""
        cached = read_count(stated.get("cache_read_input_tokens")) or 0
        written = read_count(stated.get("cache_creation_input_tokens")) or 0
        uncached, output = read_count(stated.get("input_tokens")), read_count(stated.get("output_tokens"))
        if uncached is None or output is None:
            self.channel.warn_once(UNCOUNTED)
            return Usage(1, (uncached or 0) + cached + written, output or 0, cached, cost_usd=None)
        thoughts = read_count(read_object(stated.get("output_tokens_details")).get("thinking_tokens")) or 0
        usage = Usage(1, uncached + cached + written, output, cached, reasoning_tokens=min(thoughts, output))
        return self.price_usage(usage, model, written)


def _build_picture(picture: Picture) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": picture.media, "data": picture.data}}


def _mark_cached(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The system prompt as the part that the provider's prompt cache keeps."""
    if "system" not in parameters or "cache_control" not in parameters:
        return dict(parameters)
    cached_system = {"type": "text", "text": parameters["system"], "cache_control": parameters["cache_control"]}
    return dict(parameters) | {"system": [cached_system]}
