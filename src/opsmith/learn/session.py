"""What does one process need to work on a run, and may it ask once more? Stops, pauses and money of a session."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from opsmith.errors import OpsmithError, ProviderError
from opsmith.learn.events import OnEvent, Warned
from opsmith.learn.judge import Judge
from opsmith.models import ChatModel
from opsmith.records import Usage
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.targets import Target

REFUSED_BY_PROVIDER = (401, 403)  # no later request can succeed either
WARN_AT = (0.5, 0.8)  # shares of the money
FAILURES = 10  # without a reply in between: the provider is down; at least as many as requests in flight


@dataclass
class Session:
    """One start of a run, and what it has seen so far."""

    run: str
    settings: Settings
    target: Target
    model: ChatModel
    judge: Judge
    store: Store
    on_event: OnEvent
    spent: Usage  # of the whole run, earlier sessions included
    known_usd: float = 0.0  # of it, what is known: replies without a price are left out
    halt: str = ""  # why no further request may start
    error: OpsmithError | None = None  # what the session ends with once the requests in flight are done
    said: set[str] = field(default_factory=set)
    running: asyncio.Event = field(default_factory=asyncio.Event)  # cleared while the run is paused
    _failures: int = 0

    def warn(self, message: str) -> None:
        if message not in self.said:
            self.said.add(message)
            self.on_event(Warned(message))

    def count(self, usage: Usage) -> None:
        self.spent += usage
        self.known_usd += usage.cost_usd or 0.0
        self._failures = 0
        cap = self.settings.max_cost
        if cap is None:
            return
        if usage.cost_usd is None:
            self.warn(self._unknown())
        for share in [share for share in WARN_AT if self.known_usd >= share * cap][-1:]:
            self.warn(f"{share:.0%} of --max-cost {cap:g} USD are spent")

    def _unknown(self) -> str:
        if self.known_usd:
            return "what some replies cost is not known, so --max-cost is kept for the others only"
        return f"model {self.model.name}: its price is not known, so --max-cost cannot be kept"

    def may_ask(self) -> bool:
        """Whether one more request may start."""
        cap = self.settings.max_cost
        if not self.halt and cap is not None and self.known_usd >= cap:
            self.halt = "max cost"
        return not self.halt

    def failed(self, error: ProviderError) -> None:
        self._failures += 1
        down = self._failures >= max(FAILURES, self.settings.concurrency)
        if not self.halt and (down or error.status in REFUSED_BY_PROVIDER):
            self.halt, self.error = "provider", error
