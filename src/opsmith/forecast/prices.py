"""What requests cost by their model's name, before any is sent."""

from __future__ import annotations

from opsmith.models.batch import DISCOUNT
from opsmith.models.price import StatedPrice, price_reply, read_stated_price
from opsmith.models.swarm import list_members
from opsmith.models.table import find_family
from opsmith.records import Usage
from opsmith.settings import Settings


def bill_requests(
    settings: Settings, requests: int, read: int, written: int, model: str | None = None, base_url: str | None = None
) -> Usage:
    """Of as many equal requests, each of so many input and output tokens; to the run's own model, or to that one."""
    own = settings.provider
    where, stated = own.base_url if model is None else base_url, read_stated_price(own)
    usd = price_requests(model or own.model, where, requests, read, written, stated)
    if usd is not None and own.batch:
        usd *= DISCOUNT
    return Usage(requests, requests * read, requests * written, 0, usd)


def price_requests(
    model: str,
    base_url: str | None,
    requests: int,
    input_tokens: int,
    output_tokens: int,
    stated: StatedPrice | None = None,
) -> float | None:
    """USD of as many equal requests; 0 for a model that asks no server, None where no price is listed. `stated`: at a
    server of the user's own.

    Of several models that take turns the dearest counts. Raises UsageError for a name that is no model's: it would look
    free.
    """
    if members := list_members(model):
        prices = [price_requests(member, base_url, requests, input_tokens, output_tokens, stated) for member in members]
        return None if None in prices else max(price for price in prices if price is not None)
    prefix, family = find_family(model)
    server = family.server
    if server is None:
        return 0.0
    if base_url is not None and base_url.rstrip("/") != server.url:
        return None if stated is None else requests * stated.price_tokens(input_tokens, output_tokens)
    cost = price_reply(server.prices, (model.removeprefix(prefix),), Usage(1, input_tokens, output_tokens))
    return None if cost is None else cost * requests
