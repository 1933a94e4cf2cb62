"""Models that ask a server, a program of the user's own or a file: made from what the settings say."""

from __future__ import annotations

from opsmith.errors import UsageError
from opsmith.models import ChatModel
from opsmith.models.anthropic import AnthropicModel
from opsmith.models.batch import BatchModel
from opsmith.models.batch_apis import AnthropicBatchApi, OpenAIBatchApi
from opsmith.models.command import CommandModel
from opsmith.models.keys import read_key
from opsmith.models.limits import RateLimits
from opsmith.models.openai import OpenAIModel
from opsmith.models.order import Order, check_url
from opsmith.models.price import read_stated_price
from opsmith.models.replay import ReplayModel
from opsmith.models.retry import Retry
from opsmith.models.sdk import Endpoint
from opsmith.settings import Provider

NO_KEY = "none"  # what a server of the user's own is sent when there is no key: the SDKs insist on one


def make_openai(order: Order) -> ChatModel:
    model = OpenAIModel(_make_endpoint(order), _make_retry(order))
    return BatchModel(OpenAIBatchApi(model)) if order.settings.provider.batch else model


def make_anthropic(order: Order) -> ChatModel:
    model = AnthropicModel(_make_endpoint(order), _make_retry(order))
    return BatchModel(AnthropicBatchApi(model)) if order.settings.provider.batch else model


def make_command(order: Order) -> ChatModel:
    provider = order.settings.provider
    order.refuse_base_url()
    pass_env = order.settings.teamwork.team.pass_env
    return CommandModel(provider.model, _make_limits(provider), _make_retry(order), pass_env)


def make_replay(order: Order) -> ChatModel:
    order.refuse_base_url()
    return ReplayModel(order.model)


def _make_endpoint(order: Order) -> Endpoint:
    """Where the model is: at its provider, or at --base-url, where a key is sent if there is one."""
    assert order.server is not None
    provider, server = order.settings.provider, order.server
    url = server.url if provider.base_url is None else check_url(provider.base_url)
    own = url.rstrip("/") != server.url
    key = read_key(server.variable)
    if key is None and not own:
        raise UsageError(
            f"model {provider.model!r}: given no key; expected {server.variable} in the environment or in .env; "
            f"try: export {server.variable}=..., or --base-url for a server of your own, or --model embedded"
        )
    prices = None if own else server.prices
    stated = read_stated_price(provider) if own else None
    return Endpoint(provider.model, order.model, url, key or NO_KEY, prices, _make_limits(provider), stated)


def _make_limits(provider: Provider) -> RateLimits:
    return RateLimits(provider.concurrency, provider.requests_per_minute, provider.tokens_per_minute)


def _make_retry(order: Order) -> Retry:
    provider = order.settings.provider
    return order.retry or Retry(timeout_s=provider.request_timeout, deadline_s=provider.request_deadline)
