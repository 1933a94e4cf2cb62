"""What a request costs: USD for the tokens of one reply, by the price list of the package `genai-prices`.

The list ships with the package (an offline copy of that version; a price may hold from a date on, and the day of the
request counts): nothing is fetched. Unknown stays unknown: a server of the user's own of which no price is stated, a
model that is not listed, or a missing package give None, never 0 and never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

from opsmith.models import ChatModel, Priced
from opsmith.records import Usage
from opsmith.settings import Provider

NOMINAL = (3000, 1000)  # tokens read and written, by which prices of models are compared
PRICE_LIST = "genai-prices"  # the package; each session of a run notes its version


class StatedPrice(NamedTuple):
    """What the user says that tokens cost at a server of his own, in USD for a million."""

    read: float
    written: float

    def price_tokens(self, read: int, written: int) -> float:
        """USD of so many tokens, cached ones too."""
        return (read * self.read + written * self.written) / 1e6


def read_stated_price(provider: Provider) -> StatedPrice | None:
    """That of the settings; None: it is not stated."""
    if provider.price_in is None or provider.price_out is None:
        return None
    return StatedPrice(provider.price_in, provider.price_out)


def price_reply(provider: str | None, models: tuple[str, ...], usage: Usage, cache_written: int = 0) -> float | None:
    """The cost of `usage` at `provider` for the first of `models` that is listed.

    provider: "openai", "anthropic", "deepseek", "together"; None: not a priced server
    models: the dated name the server reported, then the name that was asked for
    cache_written: the part of the input tokens that was written to the provider's prompt cache, in tokens
    """
    if provider is None:
        return None
    costs = (_price_usage(provider, model, usage, cache_written) for model in models if model)
    return next((cost for cost in costs if cost is not None), None)


def _price_usage(provider: str, model: str, usage: Usage, cache_written: int) -> float | None:
    try:
        from genai_prices import Usage as Tokens  # noqa: PLC0415 - optional, and 0.2 s to import
        from genai_prices import calc_price  # noqa: PLC0415

        tokens = Tokens(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=cache_written,
        )
        return float(calc_price(tokens, model, provider_id=provider).total_price)
    except Exception:  # whatever a price list does, a run goes on with "not known"
        return None


def estimate_token_price(provider: str | None, model: str) -> float | None:
    """USD of a token of that model, of which three are read for each that is written; None: not listed."""
    cost = price_reply(provider, (model,), Usage(1, *NOMINAL))
    return None if cost is None else cost / sum(NOMINAL)


def list_by_price(models: Mapping[str, ChatModel]) -> list[str]:
    """The models' names, the cheapest first: what is no language model costs nothing; a price that is not known comes
    last. Equal ones stay in their order."""
    return sorted(models, key=lambda name: _rank_price(models[name]))


def _rank_price(model: ChatModel) -> float:
    if not model.is_language_model:
        return 0.0
    price = model.token_price if isinstance(model, Priced) else None
    return inf if price is None else price


def find_listed(provider: str, model: str) -> Any:
    """The price list's entry of a model (`.context_window` and more), or None."""
    try:
        from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

        return get_snapshot().find_provider_model(model, None, provider, None)[1]
    except Exception:  # as above
        return None
