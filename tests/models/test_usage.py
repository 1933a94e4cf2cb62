"""Token counts as servers state them: what is missing or absurd is said and never guessed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from opsmith.models import MOST_TOKENS
from opsmith.models.parts import read_count
from opsmith.models.table import FAMILIES, ProviderServer
from opsmith.records import Usage

from .common import ask
from .servers import AnthropicServer, OpenAIServer


@pytest.mark.parametrize(
    ("value", "found"),
    [(0, 0), (7, 7), (MOST_TOKENS, MOST_TOKENS), (MOST_TOKENS + 1, None), (10**30, None), (-1, None)]
    + [(value, None) for value in (None, True, "7", 7.0, [7], float("inf"))],
)
def test_a_count_is_a_whole_number_of_a_possible_size(value: object, found: int | None) -> None:
    assert read_count(value) == found


def at_provider(monkeypatch: pytest.MonkeyPatch, name: str, url: str) -> None:
    """The server on loopback is the provider itself, whose prices hold."""
    prefix = name.partition("/")[0]
    server = ProviderServer(url, f"{prefix.upper()}_API_KEY", prefix)
    family = FAMILIES[f"{prefix}/"]
    monkeypatch.setitem(FAMILIES, f"{prefix}/", type(family)(family.suffix, family.what, family.maker, server))


@pytest.mark.parametrize("stated", [None, {}, {"prompt_tokens": 10**30, "completion_tokens": 5}, {"prompt_tokens": 9}])
def test_counts_that_are_missing_leave_the_cost_unknown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, stated: Any
) -> None:
    body = {"model": "gpt-4o", "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": stated}
    with OpenAIServer(body) as server:
        at_provider(monkeypatch, "openai/gpt-4o", server.url)
        usage = ask("openai/gpt-4o", None, times=2).usage
    assert (usage.requests, usage.cost_usd) == (1, None)
    assert usage.input_tokens in {0, 9}
    assert caplog.text.count("openai/gpt-4o: given no token counts") == 1


def test_the_same_holds_for_anthropic(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    stated = {"input_tokens": 10**30, "output_tokens": 3, "cache_read_input_tokens": 10**30}
    body = {"model": "claude-3-5-sonnet", "content": [{"type": "text", "text": "x"}], "usage": stated}
    with AnthropicServer(body) as server:
        at_provider(monkeypatch, "anthropic/claude-3-5-sonnet", server.url)
        usage = ask("anthropic/claude-3-5-sonnet", None).usage
    assert usage == Usage(1, 0, 3, 0, None)
    assert caplog.text.count("given no token counts") == 1


@pytest.mark.parametrize("name", ["openai/gpt-4o", "anthropic/claude-3-5-sonnet"])
def test_thoughts_are_part_of_the_output_and_cost_what_it_costs(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    server_type = OpenAIServer if name.startswith("openai") else AnthropicServer

    def bill(stated: object) -> Usage:
        usage = {"prompt_tokens": 9, "completion_tokens": 40, "input_tokens": 9, "output_tokens": 40}
        details = {"completion_tokens_details": {"reasoning_tokens": stated}}
        details |= {"output_tokens_details": {"thinking_tokens": stated}}
        choices = [{"message": {"content": "x"}, "finish_reason": "stop"}]
        body = {"model": name.partition("/")[2], "choices": choices, "content": [{"type": "text", "text": "x"}]}
        with server_type({**body, "usage": {**usage, **details}}) as server:
            at_provider(monkeypatch, name, server.url)
            return ask(name, None).usage

    plain, told, absurd, odd = map(bill, (None, 30, 41, "30"))
    assert plain.cost_usd
    assert (plain.output_tokens, plain.reasoning_tokens) == (40, 0)
    assert told == replace(plain, reasoning_tokens=30)
    assert absurd == replace(plain, reasoning_tokens=40), "never more than the output"
    assert odd == plain
    assert Usage.total([plain, told, told]).reasoning_tokens == 60
