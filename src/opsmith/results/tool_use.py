"""What tools a run's models called, and how the samples that called any ended beside those that did not.

The samples chose for themselves whether to call: the two rates are no effect of the tools.
"""

from __future__ import annotations

from dataclasses import dataclass

from opsmith.results.intervals import Estimate, estimate_pass_at_k
from opsmith.store.queries import Reader
from opsmith.store.tool_calls import ToolCount, UserCount, count_tools, count_users


@dataclass(frozen=True)
class CallingSamples:
    """Samples that called tools, or that did not."""

    samples: int
    verdicts: int
    right: int

    @property
    def rate(self) -> Estimate | None:
        """The share that is right, with an interval over the samples; None: none has a verdict."""
        return estimate_pass_at_k([(self.verdicts, self.right)], 1) if self.verdicts else None


@dataclass(frozen=True)
class ToolUse:
    """The tools of one run."""

    tools: tuple[ToolCount, ...]
    callers: CallingSamples
    silent: CallingSamples  # that called none

    @property
    def calls(self) -> int:
        return sum(tool.calls for tool in self.tools)

    @property
    def seconds(self) -> float:
        """That tools were at work."""
        return sum(tool.seconds for tool in self.tools)


def read_tool_use(reader: Reader, run: str) -> ToolUse | None:
    """None for a run without any call."""
    tools = tuple(count_tools(reader, run))
    if not tools:
        return None
    users = count_users(reader, run)
    return ToolUse(tools, _read_samples(users, True), _read_samples(users, False))


def _read_samples(users: dict[bool, UserCount], is_user: bool) -> CallingSamples:
    count = users.get(is_user, UserCount(0, 0, 0))
    return CallingSamples(count.answered, count.verdicts, count.right)
