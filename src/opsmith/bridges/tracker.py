"""Trackers: places beside the store where runs are logged."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Protocol


class Status(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"  # the same command goes on from here
    FAILED = "failed"


class Tracker(Protocol):
    """A place where runs are logged."""

    def update_run(self, run: str, status: Status, files: tuple[Path, ...]) -> None:
        """Show the run as the store has it, with these files beside it. Doing so twice changes nothing."""
