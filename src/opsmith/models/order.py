"""What a model is made from, for those who make one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from opsmith.errors import UsageError
from opsmith.models.keys import redact_secrets
from opsmith.settings import Settings

if TYPE_CHECKING:  # who only lists models sends nothing
    from opsmith.models.retry import Retry
    from opsmith.targets import Target


@dataclass(frozen=True)
class ProviderServer:
    """Where a provider serves its models and what opens its door."""

    url: str
    variable: str  # the environment variable of the key
    prices: str  # the provider's name in the price list


@dataclass(frozen=True)
class Order:
    """What a model is made from."""

    settings: Settings
    model: str  # the model's name after the family's prefix
    server: ProviderServer | None = None
    target: Target | None = None
    retry: Retry | None = None

    def refuse_base_url(self) -> None:
        """Raises UsageError where a server is named for a model that asks none."""
        if self.settings.provider.base_url is not None:
            raise UsageError(
                f"--base-url: given with model {self.settings.provider.model!r}, which asks no server; expected a "
                "model on a server; try: --model openai/NAME"
            )

    def require_target(self, use: str) -> Target:
        """The language, for a model that cannot do without one. Raises UsageError."""
        if self.target is None:
            raise UsageError(
                f"model {self.settings.provider.model!r}: given no target; expected the language to {use}; "
                "try: get_model(s, target)"
            )
        return self.target


def check_url(url: str, option: str = "--base-url") -> str:
    """A base URL that a request can be sent to. A password or query in it, which may hold a key, would be shown."""
    try:
        address = urlsplit(url)
        fits = address.scheme in {"http", "https"} and bool(address.hostname) and address.port != 0
    except ValueError:  # a port that is no number, a broken IPv6 address
        fits = False
    if "@" in url:
        raise UsageError(f"{option}: given a user or password; expected an address; try: the key in its variable")
    if fits and (address.query or address.fragment):
        raise UsageError(
            f"{option}: given more than host and path; expected no `?` or `#`; try: the key in its variable"
        )
    if not fits:
        raise UsageError(
            f"{option}: given {redact_secrets(url)!r}; expected http(s)://host[:port]/path; try: http://localhost:8000/v1"
        )
    return url
