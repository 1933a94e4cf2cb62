"""The embedded model: a chat model that needs no key, no network and no weights. It is no language model.

What is built in is a target's program sampler (grammar, types, a cost prior); everything else it learns from the text
of one prompt, by `sampling`. Sampling is computing, so it runs in processes of its own (`workers`).
"""

from __future__ import annotations

from dataclasses import dataclass

from opsmith.errors import UsageError
from opsmith.models import ChatModel, Reply, Request
from opsmith.models.order import Order
from opsmith.targets import Target
from opsmith_lab.models.sampling import PromptSampler
from opsmith_lab.models.workers import ProgramModel


class EmbeddedModel(ProgramModel):
    """`workers` processes, started when first needed."""

    def __init__(self, target: Target, noise: float = 0.0, workers: int | None = None) -> None:
        arguments = ("opsmith_lab.models.sampling", target.name, str(noise))
        super().__init__("embedded", target, PromptSampler(target, noise).answer_request, arguments, workers)


@dataclass
class SilentModel:
    """In its place where known programs may leave nothing to ask: it refuses what it is asked."""

    refusal: UsageError
    name: str = "embedded"
    context_window: int | None = None
    is_language_model: bool = False

    async def complete(self, _: Request) -> Reply:
        raise self.refusal

    async def close(self) -> None:
        """Nothing runs."""


def make_embedded(order: Order) -> ChatModel:
    """The model that the settings of a run ask for. Raises UsageError."""
    order.refuse_base_url()
    target, settings = order.require_target("sample"), order.settings
    try:
        return EmbeddedModel(target, settings.method.noise, settings.place.workers)
    except UsageError as refusal:
        if settings.teamwork.showing.known is None:
            raise
        return SilentModel(refusal)
