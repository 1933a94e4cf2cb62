"""What a request costs, and that nothing is fetched and nothing crashes to find out."""

from __future__ import annotations

import socket
import sys

import pytest

from opsmith.models.price import price_reply
from opsmith.models.windows import find_context_window
from opsmith.records import Usage

USAGE = Usage(1, input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a network call")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_a_listed_model_has_a_price_and_cached_tokens_are_cheaper():
    # 2.50 USD per million input tokens, 1.25 cached, 10.00 output
    assert price_reply("openai", ("gpt-4o-2024-11-20",), USAGE) == pytest.approx(0.6 * 2.5 + 0.4 * 1.25 + 0.1 * 10)


def test_writing_to_the_cache_costs_more():
    plain = price_reply("anthropic", ("claude-sonnet-4-20250514",), USAGE)
    written = price_reply("anthropic", ("claude-sonnet-4-20250514",), USAGE, cache_written=600_000)
    assert plain is not None
    assert written == pytest.approx(plain + 0.6 * 3.0 * 0.25)


def test_the_name_asked_for_serves_when_the_reported_one_is_not_listed():
    assert price_reply("openai", ("", "internal-7", "gpt-4o"), USAGE) == price_reply("openai", ("gpt-4o",), USAGE)


@pytest.mark.parametrize(
    ("provider", "model", "usage"),
    [
        (None, "gpt-4o", USAGE),
        ("openai", "no-such-model", USAGE),
        ("no-such-provider", "gpt-4o", USAGE),
        ("openai", "gpt-4o", Usage(1, input_tokens=1, cached_tokens=2)),
        ("openai", "", USAGE),
    ],
)
def test_what_is_not_known_is_none(provider, model, usage):
    assert price_reply(provider, (model,), usage) is None


def test_without_the_package_prices_are_not_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    assert price_reply("openai", ("gpt-4o",), USAGE) is None
    assert find_context_window("openai", "gpt-5.4") is None


@pytest.mark.parametrize(
    ("provider", "model", "tokens"),
    [
        ("openai", "gpt-4o-2024-11-20", 128_000),
        ("openai", "gpt-4-0613", 8_192),
        ("openai", "gpt-4-0125-preview", 128_000),
        ("openai", "o1-mini-2024-09-12", 128_000),
        ("anthropic", "claude-3-5-sonnet-20241022", 200_000),
        ("anthropic", "claude-opus-4-1", 200_000),  # from the price list
        ("together", "deepseek-ai/DeepSeek-V3", 131_072),
        ("openai", "gpt-4x-unheard-of", None),
        ("openai", "", None),
        (None, "gpt-4o", None),
    ],
)
def test_the_context_window_of_known_models(provider, model, tokens):
    assert find_context_window(provider, model) == tokens
