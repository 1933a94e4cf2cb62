"""The embedded model: a chat model that needs no key, no network and no weights. It is no language model.

What is built in is a target's program sampler (grammar, types, a cost prior); everything else it learns from the text
of one prompt, by `sampling`. Sampling is computing, so it runs in processes of its own (`workers`).
"""

from __future__ import annotations

from opsmith.models.order import Order
from opsmith.targets import Target
from opsmith_lab.models.sampling import PromptSampler
from opsmith_lab.models.workers import ProgramModel


class EmbeddedModel(ProgramModel):
    """`workers` processes, started when first needed."""

    def __init__(self, target: Target, noise: float = 0.0, workers: int | None = None) -> None:
        arguments = ("opsmith_lab.models.sampling", target.name, str(noise))
        super().__init__("embedded", target, PromptSampler(target, noise).answer_request, arguments, workers)


def make_embedded(order: Order) -> EmbeddedModel:
    """The model that the settings of a run ask for. Raises UsageError."""
    order.refuse_base_url()
    return EmbeddedModel(order.require_target("sample"), order.settings.method.noise, order.settings.place.workers)
