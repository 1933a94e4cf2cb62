"""The search model: a chat model without a model. The n-th request of a task in a run gets the task's n-th program.

Programs come from the target's own best-first search (`Searched`), which learns from nothing: prompts, demonstrations,
seeds and temperatures have no say. One worker process does it all, since a task's programs come one after another.
When a task has no more programs, the request is answered by ExhaustedError: the sample counts nowhere, and the task is
not tried further in that run.
"""

from __future__ import annotations

from opsmith.errors import UsageError
from opsmith.models.order import Order
from opsmith.targets import Target
from opsmith_lab.models.searching import Searcher
from opsmith_lab.models.workers import ProgramModel


class SearchModel(ProgramModel):
    """One worker, started when first needed."""

    def __init__(self, target: Target) -> None:
        arguments = ("opsmith_lab.models.searching", target.name)
        super().__init__("search", target, Searcher(target).answer_request, arguments, 1)


def make_search(order: Order) -> SearchModel:
    """The model that the settings of a run ask for. Raises UsageError."""
    order.refuse_base_url()
    if order.settings.method.repair:
        raise UsageError("--repair: given with model 'search', which reads no errors; expected 0; try: leave it out")
    return SearchModel(order.require_target("search"))
