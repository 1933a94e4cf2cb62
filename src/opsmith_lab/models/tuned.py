"""The chat models `tuner` and `analyst`: programs that rewrite programs, offline. They are no language models.

What they do is `tuning`, in processes of their own (`workers`); all that they know of a request are its messages.
"""

from __future__ import annotations

from functools import partial

from opsmith.models.order import Order
from opsmith.targets import Target
from opsmith_lab.models.tuning import answer_request, make_writer
from opsmith_lab.models.workers import ProgramModel


class TuningModel(ProgramModel):
    """One of the two, by its role."""

    def __init__(self, target: Target, role: str, workers: int | None = None) -> None:
        answer = partial(answer_request, make_writer(target, role))
        super().__init__(role, target, answer, ("opsmith_lab.models.tuning", target.name, role), workers)


def make_tuning(order: Order) -> TuningModel:
    """The one of the two that the settings of a run ask for. Raises UsageError."""
    order.refuse_base_url()
    return TuningModel(order.require_target("rewrite"), order.settings.provider.model, order.settings.place.workers)
