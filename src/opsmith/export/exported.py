"""What every export of a run's operators tells: where they are, and which of the run's tasks were left out, and why."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsmith.export.solved import SolvedOperator
from opsmith.records import Task


@dataclass(frozen=True)
class ExportedFiles:
    """What was written, and what was not. Each kind of export adds what it wrote."""

    folder: Path
    refused: Sequence[SolvedOperator]  # solved by the run, and not right by today's verifier: left out
    without_form: Mapping[str, str]  # task -> why it cannot be written so: left out
    missing: Sequence[Task]  # not solved by the run

    @abstractmethod
    def describe_written(self) -> dict[str, Any]:
        """The keys of `as_json` that are this kind's own."""

    def as_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            **self.describe_written(),
            "refused": {operator.task.id: operator.verdict.message for operator in self.refused},
            "without_form": dict(self.without_form),
            "missing": [task.id for task in self.missing],
        }
