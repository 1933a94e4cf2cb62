"""Runs of programs that commands execute: what is ordered, and what came of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opsmith.records import Diagnostic

if TYPE_CHECKING:
    from opsmith.running.commands import CommandLimits, CommandOrder, CommandResult


@dataclass(frozen=True)
class RunOutputs:
    """What a run gave."""

    data: bytes  # the outputs, or their share of them
    cycles: int | None = None  # that a simulator counted; None: it did not say
    profile: str = ""  # what else it says of the run's time


@dataclass(frozen=True)
class CommandRun:
    """One execution of commands on inputs."""

    order: CommandOrder
    limits: CommandLimits  # its seconds are bound by those of a trial as well
    read_result: Callable[[CommandResult], RunOutputs | Diagnostic]  # the outputs, or the finding against the program
