"""What one process needs to work on a run, and whether it may ask once more. Stops, pauses and money of a session."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from opsmith.agents.manual import Manual
from opsmith.agents.prompt import ReferenceProgram
from opsmith.errors import OpsmithError, ProviderError
from opsmith.judging.judge import Judge
from opsmith.learn.events import ModelLeftOut, OnEvent, Warned
from opsmith.measuring.orders import Measurer
from opsmith.models import ChatModel
from opsmith.models.roles import RoleModels
from opsmith.profiling.profiler import ProfileSource
from opsmith.records import Usage
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.targets import Target

REFUSED_BY_PROVIDER = (401, 403)  # no later request can succeed either
WARN_AT = (0.5, 0.8)  # shares of the money
FAILURES = 10  # without a reply in between: the provider is down; at least as many as requests in flight


@dataclass
class RunSession:
    """One start of a run, and what it has seen so far."""

    run: str
    settings: Settings
    target: Target
    models: RoleModels
    judge: Judge
    store: Store
    on_event: OnEvent
    spent: Usage  # of the whole run, earlier sessions included
    measurer: Measurer | None = None  # None: nothing is measured
    profiler: ProfileSource | None = None  # None: an analyst is shown no profile
    known_usd: float = 0.0  # of it, what is known: replies without a price are left out
    number: int = 1  # of the run's sessions
    halt: str = ""  # why no further request may start
    left_out: dict[str, str] = field(default_factory=dict)  # by proposer, of several, why it is asked no more
    references: Mapping[str, ReferenceProgram] = field(default_factory=dict)  # by task, what proposers are shown
    manual: Manual | None = None  # of the language: what prompts quote
    error: OpsmithError | None = None  # what the session ends with once the requests in flight are done
    warned: set[str] = field(default_factory=set)
    running: asyncio.Event = field(default_factory=asyncio.Event)  # cleared while the run is paused
    asking: int = 0  # requests in flight
    judging: int = 0  # samples whose candidate is being judged
    _failures: Counter[str] = field(default_factory=Counter)  # by model, without a reply of its in between
    _unanswered: Counter[str] = field(default_factory=Counter)  # by model: its first replies, none of them an answer
    _answering: set[str] = field(default_factory=set)  # the models that have answered

    def __post_init__(self) -> None:
        if self.spent.requests:
            self._answering = {model.name for model in self.models.list_models()}

    @property
    def model(self) -> ChatModel:
        """The run's own."""
        return self.models.own

    def model_for(self, agent: str, name: str = "") -> ChatModel:
        """The model that an agent asks in a sample of the model `name` (`SampleKey.model`)."""
        return self.models.model_for(agent, name)

    @property
    def has_analyst(self) -> bool:
        """Whether somebody suggests how a right program is made better."""
        return self.settings.optimisation.analyst != "none"

    def warn_once(self, message: str) -> None:
        if message not in self.warned:
            self.warned.add(message)
            self.on_event(Warned(message))

    def count_usage(self, usage: Usage, model: ChatModel) -> None:
        self.spent += usage
        self.known_usd += usage.cost_usd or 0.0
        self._failures[model.name] = 0
        cap = self.settings.spending.max_cost
        if cap is None:
            return
        if usage.cost_usd is None:
            self.warn_once(self._explain_missing_price(model))
        for share in [share for share in WARN_AT if self.known_usd >= share * cap][-1:]:
            self.warn_once(f"{share:.0%} of --max-cost {cap:g} USD are spent")

    def _explain_missing_price(self, model: ChatModel) -> str:
        if self.known_usd:
            return "what some replies cost is not known, so --max-cost is kept for the others only"
        remedy = "; try: --price-in and --price-out" if self.settings.provider.base_url else ""
        return f"model {model.name}: its price is not known, so --max-cost cannot be kept{remedy}"

    def may_ask(self, proposer: str = "") -> bool:
        """Whether one more request may start, for a sample of that proposer where there are several."""
        cap = self.settings.spending.max_cost
        if not self.halt and cap is not None and self.known_usd >= cap:
            self.halt = "max cost"
        return not self.halt and proposer not in self.left_out

    def note_reply(self, missing: str, model: ChatModel) -> None:
        """A reply is stored; `missing`: why it holds no answer.

        When none of a model's first replies in a new run holds one, the session ends: whoever starts it again wants to
        go on.
        """
        if not missing:
            self._answering.add(model.name)
        if model.name in self._answering:
            return
        self._unanswered[model.name] += 1
        count = self._unanswered[model.name]
        if not self.halt and count >= self._patience:
            problem = f"{model.name}: none of the first {count} replies holds an answer, and each is paid for"
            self._give_up(model, ProviderError(f"{problem}; the last: {missing}"))

    def note_failure(self, error: ProviderError, model: ChatModel) -> None:
        self._failures[model.name] += 1
        down = self._failures[model.name] >= self._patience
        if not self.halt and (down or error.status in REFUSED_BY_PROVIDER):
            self._give_up(model, error)

    def _give_up(self, model: ChatModel, error: ProviderError) -> None:
        """Of several proposers the others go on; without them, or with a role that only this model has, nobody does."""
        names = [name for name, proposer in self.models.by_name.items() if proposer is model]
        if not names or any(model is of_role for of_role in self.models.by_role.values()):
            self.halt, self.error = "provider", error
        for name in names:
            self.leave_out(name, error)

    def leave_out(self, proposer: str, error: ProviderError) -> None:
        """Ask one of several proposers no more; the next session asks it again. With the last of them it ends."""
        if proposer not in self.left_out:
            self.left_out[proposer] = str(error)
            self.on_event(ModelLeftOut(proposer, str(error)))
            self.warn_once(f"model {proposer}: left out from here on, the others go on: {error}")
        if self.left_out.keys() >= self.models.by_name.keys():
            self.halt, self.error = self.halt or "provider", self.error or error

    @property
    def end(self) -> str:
        """Why the session ends, in words that are stored."""
        reasons = [f"without {name}: {reason}" for name, reason in self.left_out.items()]
        return "; ".join([self.halt or "finished", *reasons])

    @property
    def _patience(self) -> int:
        """How many failures of a model in a row there may be."""
        return max(FAILURES, self.settings.provider.concurrency)
