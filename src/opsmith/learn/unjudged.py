"""A round of which nothing could be judged stays open, whichever phase it is of: the same command tries again."""

from __future__ import annotations

from opsmith.errors import OpsmithError, ProviderError, TargetError, TaskError, VerifierError
from opsmith.records import Boundary
from opsmith.store import Store
from opsmith.store.rows import NOBODY, RoundInfo


def require_verdicts(store: Store, run: str, info: RoundInfo) -> None:
    """Raises the error of what failed where a round has not one verdict, unless nobody is at fault."""
    if store.judged_ids(run, info.number):
        return
    if NOBODY not in {whom for number, _, whom in store.read_charges(run) if number == info.number}:
        raise _describe_failure(store, run, info.number)


def _describe_failure(store: Store, run: str, number: int) -> OpsmithError:
    """Why not one sample of a round could be judged."""
    failures = store.read_failures(run, number)
    _, charged, message = failures[-1] if failures else ("", Boundary.OURS.value, "no sample was made")
    kinds: dict[str, type[OpsmithError]] = {
        Boundary.PROVIDER.value: ProviderError,
        Boundary.TASK.value: TaskError,
        Boundary.TARGET.value: TargetError,
    }
    return kinds.get(charged, VerifierError)(f"run {run}, round {number}: no sample could be judged; last: {message}")
