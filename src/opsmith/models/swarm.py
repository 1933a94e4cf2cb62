"""Several models as one: `swarm:NAME,NAME` gives the attempts of each task to its members in turn.

The first attempt of a task goes to the first member, the next one to the second, and so on; whatever else a sample asks
for goes to the member that wrote its program. That depends on the attempt's number alone, so that a resumed run asks
the same members. A member of several counts its own attempts: a search goes on where its last turn ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from opsmith.errors import UsageError
from opsmith.models import ChatModel, ExhaustedError, Reply, Request

PREFIX = "swarm:"


def list_members(name: str) -> tuple[str, ...]:
    """The models that `swarm:...` names; (): it names no swarm. Raises UsageError for one of fewer than two.

    >>> list_members("swarm:openai/a,tuner"), list_members("tuner")
    (('openai/a', 'tuner'), ())
    """
    if not name.startswith(PREFIX):
        return ()
    members = tuple(member.strip() for member in name.removeprefix(PREFIX).split(","))
    if len(members) < 2 or not all(members) or any(member.startswith(PREFIX) for member in members):
        raise UsageError(f"model {name!r}: expected two models or more, with commas; try: swarm:openai/NAME,tuner")
    return members


class SwarmModel:
    """Its members, by turns. One instance serves one event loop."""

    def __init__(self, members: Sequence[ChatModel]) -> None:
        self._members = tuple(members)
        self.name = PREFIX + ",".join(member.name for member in members)
        self.is_language_model = all(member.is_language_model for member in members)
        windows = [member.context_window for member in members if member.context_window is not None]
        self.context_window = min(windows, default=None)

    async def complete(self, request: Request) -> Reply:
        """A member that has nothing more for the task leaves its turn to the next one. Raises what the member raises
        whose turn it is, and ExhaustedError where nobody has more."""
        turn, place = divmod(request.attempt, len(self._members))
        counted = replace(request, attempt=turn)
        for member in (*self._members[place:], *self._members[:place]):
            with contextlib.suppress(ExhaustedError):
                return await member.complete(counted)
        raise ExhaustedError(f"model {self.name!r}: no member has a program number {turn} for this task")

    async def close(self) -> None:
        """Close all of them."""
        for member in self._members:
            await member.close()
