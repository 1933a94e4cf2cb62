"""What the samples of a round are asked: a protocol, and the prompts of a round that solves tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from opsmith.agents.prompt import Prompt, PromptStyle
from opsmith.learn.ask import Asking
from opsmith.models import Message
from opsmith.records import Verdict
from opsmith.settings import Settings
from opsmith.store.rows import SampleKey


@dataclass(frozen=True)
class Parent:
    """The program that a sample sets out from."""

    candidate: str  # Candidate.id
    sample: str | None  # None: the task's start program


class Composer(Protocol):
    """What a round's samples are asked, and how often a wrong program goes back."""

    turns: int

    async def compose_messages(self, key: SampleKey, asking: Asking) -> tuple[Message, ...]:
        """What the sample's proposer is asked; other agents may be asked before. Raises UnjudgedError, HaltedError."""

    def find_parent(self, key: SampleKey) -> Parent | None:
        """None: the sample begins with nothing."""

    def refuse_program(self, source: str) -> Verdict | None:
        """Why a program is refused before its target looks at it; None: it is not."""


def choose_style(settings: Settings) -> PromptStyle:
    """How the prompts of a run's proposer are written."""
    teamwork = settings.teamwork
    return PromptStyle(settings.method.prompt, teamwork.thinking.think, teamwork.showing.example)


class SolvingPrompts:
    """One prompt for each task: all samples of it are asked the same. Fits `Composer`."""

    def __init__(self, prompts: Mapping[str, Prompt], turns: int) -> None:
        self.turns = turns
        self._messages = {task: prompt.messages for task, prompt in prompts.items()}

    async def compose_messages(self, key: SampleKey, asking: Asking) -> tuple[Message, ...]:
        return self._messages[key.task]

    def find_parent(self, key: SampleKey) -> Parent | None:
        return None

    def refuse_program(self, source: str) -> Verdict | None:
        return None
