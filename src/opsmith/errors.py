"""What can go wrong outside a candidate, as one small tree; a candidate's own mistakes are `Diagnostic`s in a verdict.

OpsmithError            one message for a person: where, given, expected, what to try
|-- UsageError          a name or option that does not exist                            (exit 2)
|   |-- RunNameError    no run of that name, or several
|   `-- OptionError     an option of a target that it does not have, or a value that is none
|-- TaskError           a task file, prompt, settings or experiment file is wrong       (exit 2)
|-- TargetError         code of a target that is not built in failed                    (exit 2)
|-- ProviderError       a model server refused or failed after all retries              (exit 3)
|-- StoreError          the experience store cannot be read or written                  (exit 4)
`-- VerifierError       the verifier itself failed: the candidate stays unjudged        (exit 5)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opsmith.records import Diagnostic


class OpsmithError(Exception):
    """The root: `str(error)` is the whole message, `exit_code` what the command ends with."""

    exit_code = 1


class UsageError(OpsmithError):
    """An unknown task, model, option or run; the message lists what exists."""

    exit_code = 2


class RunNameError(UsageError):
    """No run is called so, or several are. `problem` is the message without the list of those that there are."""

    def __init__(self, problem: str, known: str, runs: Sequence[str]) -> None:
        super().__init__(f"{problem}; known: {known}")
        self.problem = problem
        self.runs = runs  # ids: the one that is meant is among them


class OptionError(UsageError):
    """What the user asked for of a target is not to be had, whatever the task."""


class TaskError(OpsmithError):
    """A file an author wrote is wrong. `diagnostics` holds every finding, with line and column where known."""

    exit_code = 2

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class UnaskableError(TaskError):
    """A right problem that a language cannot be asked for: it lacks what the problem needs."""


class TargetError(OpsmithError):
    """A target that is not built in broke its promises; the message names the file and line of its code."""

    exit_code = 2


class ProviderError(OpsmithError):
    """A model server failed. `status` is its HTTP status (None: no answer); `retryable`: a later try may succeed."""

    exit_code = 3

    def __init__(self, message: str, *, status: int | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = retryable


class StoreError(OpsmithError):
    """The store is locked, full, foreign or newer than this version."""

    exit_code = 4


class VerifierError(OpsmithError):
    """A worker died or a limit of ours struck; never counted against a candidate."""

    exit_code = 5
