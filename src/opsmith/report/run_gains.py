"""What each run of a store gained, for the list of runs. Most stores hold no optimisation, and load nothing of it."""

from __future__ import annotations

from opsmith.store import Store


def summarise_gains(store: Store) -> dict[str, str]:
    """By run, in a few words, what its optimisation rounds gained; runs without such rounds are left out."""
    if not (optimised := store.list_optimised_runs()):
        return {}
    from opsmith.report.optimised import summarise_gain  # noqa: PLC0415 - as above
    from opsmith.results.optimisation import read_optimisation  # noqa: PLC0415 - as above

    results = {run: read_optimisation(store, run) for run in optimised}
    return {run: summarise_gain(result) for run, result in results.items() if result is not None}
