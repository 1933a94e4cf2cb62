"""How each provider is told how much a model shall think before it answers (`--reasoning`). Pure.

What a model does not take of it is learnt from its refusal and left out, as any parameter is (`sdk.Refusals`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Level = Literal["low", "medium", "high"]

SHARES: Mapping[Level, float] = {"low": 0.25, "medium": 0.5, "high": 0.75}  # of `max_tokens` that thoughts may take
LEAST_BUDGET = 1024  # tokens of thought that Anthropic takes
LEAST_ANSWER = 1024  # tokens that are left for the answer
REASONING_KEYS = ("reasoning_effort", "thinking", "reasoning", "chat_template_kwargs")  # in OpenAI's protocol


def spell_reasoning(provider: str | None, level: Level | None) -> dict[str, Any]:
    """The parameters in OpenAI's protocol; `provider` None: a server of the user's own.

    >>> spell_reasoning("openai", "low"), spell_reasoning("openai", None)
    ({'reasoning_effort': 'low'}, {})
    """
    if level is None:
        return {}
    return {"reasoning_effort": level, **_spell_switch(provider, level)}


def _spell_switch(provider: str | None, level: Level) -> dict[str, Any]:
    """What turns thinking on in models that may answer without."""
    if provider == "deepseek":
        return {"thinking": {"type": "enabled"}}
    if provider == "together":
        return {"reasoning": {"enabled": True}}
    if provider is None:  # vLLM, SGLang and llama.cpp hand these to the template of the prompt, which may read them
        return {"chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": level}}
    return {}


def spell_adaptive(level: Level) -> dict[str, Any]:
    """The parameters in Anthropic's protocol for models that choose by themselves how much to think."""
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}


def spell_budget(level: Level, max_tokens: int) -> dict[str, Any]:
    """... and for older ones, whose thoughts have a budget; {}: `max_tokens` leaves no room for them.

    >>> spell_budget("high", 8192), spell_budget("high", 2047)
    ({'thinking': {'type': 'enabled', 'budget_tokens': 6144}}, {})
    """
    room = max_tokens - LEAST_ANSWER
    if room < LEAST_BUDGET:
        return {}
    budget = max(LEAST_BUDGET, min(int(max_tokens * SHARES[level]), room))
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}
