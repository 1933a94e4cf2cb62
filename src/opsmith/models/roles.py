"""Which model a sample's agent asks where a run has several: proposers by name, and models of roles.

The run's own model is the first proposer. A sample that names a proposer asks that one for all that no role has a model
of its own for: its program, its repairs, its tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from opsmith.models import ChatModel

ANALYST = "analyst"  # the role that suggests what to change in a right program
GUARDIAN = "guardian"  # ... that rewrites a candidate
PLANNER = "planner"  # ... that splits a task
PROPOSER = "proposer"
TOGETHER = " + "  # between the names of several models in the name of all
NO_MODEL = "none"  # instead of a model's name: nobody has the role


def shorten_model(name: str) -> str:
    """A model's name without its provider."""
    return name.rstrip("/").rpartition("/")[2]


@dataclass(frozen=True)
class RoleModels:
    """The models of a run. Who makes them closes them, all at once."""

    own: ChatModel
    by_role: Mapping[str, ChatModel] = field(default_factory=dict)  # of the roles that do not ask the run's own
    by_name: Mapping[str, ChatModel] = field(default_factory=dict)  # proposers, in their order; empty: the run's own
    programs: Mapping[str, ChatModel] = field(default_factory=dict)  # that samples name too, and that propose nothing

    @property
    def name(self) -> str:
        """What the run is said to ask."""
        return TOGETHER.join(self.proposers) if self.by_name else self.own.name

    @property
    def proposers(self) -> tuple[str, ...]:
        """What samples are named by; "": the run's own, which has no name in them."""
        return tuple(self.by_name) or ("",)

    @property
    def is_language_model(self) -> bool:
        return any(model.is_language_model for model in self.list_models())

    @property
    def context_window(self) -> int | None:
        """Of the proposer that takes least: all are shown the same. None: not known of any."""
        models = list(self.by_name.values()) or [self.own]
        return min((model.context_window for model in models if model.context_window is not None), default=None)

    def model_for(self, agent: str, name: str = "") -> ChatModel:
        """The model of an agent as the store names it (`repair-2` has the role `repair`), in a sample of that model."""
        if agent == PROPOSER and name in self.programs:
            return self.programs[name]
        return self.by_role.get(agent.partition("-")[0]) or self.by_name.get(name, self.own)

    def name_of_role(self, agent: str) -> str | None:
        """The model of the agent's role, as the store names it beside a request; None: it is the sample's, or an
        analyst, whose requests are known by their agent."""
        role = agent.partition("-")[0]
        return self.by_role[role].name if role in self.by_role and role != ANALYST else None

    def list_models(self) -> tuple[ChatModel, ...]:
        """Each model once, the run's own first."""
        every = (self.own, *self.by_name.values(), *self.by_role.values(), *self.programs.values())
        return tuple({id(model): model for model in every}.values())

    async def close(self) -> None:
        """Close all of them, also where one fails to."""
        results = await asyncio.gather(*(model.close() for model in self.list_models()), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result


def gather_models(model: ChatModel | RoleModels) -> RoleModels:
    """A model alone has every role."""
    return model if isinstance(model, RoleModels) else RoleModels(model)
