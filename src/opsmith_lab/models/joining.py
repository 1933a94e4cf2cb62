"""The chat model `join`: a program that joins those of a plan's nodes. It costs nothing and is no language model.

All that it knows of a request are its messages; what it does is the target's (`Planned.join_programs`).
"""

from __future__ import annotations

from opsmith.agents.joining import read_join
from opsmith.errors import OpsmithError
from opsmith.models import Reply, Request
from opsmith.records import Usage
from opsmith.targets.protocols import Planned, Target
from opsmith_lab.models.sampling import fence_program
from opsmith_lab.models.workers import describe_fault

NOTHING_TO_JOIN = "I join the programs of a plan, and these messages hold none."


class JoinModel:
    """Stateless: it serves any number of event loops."""

    name = "join"
    context_window: int | None = None
    is_language_model = False

    def __init__(self, target: Target) -> None:
        self._target = target

    async def complete(self, request: Request) -> Reply:
        """The joined program, or in words why there is none: then the sample is refused as one without a program."""
        text = self._join_programs(request)
        return Reply((text,) * request.n, Usage(), self.name, ("stop",) * request.n)

    async def close(self) -> None:
        """Nothing is open."""

    def _join_programs(self, request: Request) -> str:
        prompt = read_join(request.messages)
        if prompt is None or not isinstance(self._target, Planned):
            return NOTHING_TO_JOIN
        try:
            task = self._target.read_task(prompt.task, "prompt")
            return fence_program(self._target.join_programs(task, prompt.split, prompt.programs))
        except OpsmithError as error:
            return f"The programs cannot be joined: {error}"
        except Exception as error:  # of a target that is not built in; any other is a mistake of ours, and raised
            return f"The programs cannot be joined: {describe_fault(error)}"
