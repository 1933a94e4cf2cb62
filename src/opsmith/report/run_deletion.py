"""Before a run is deleted: what goes with it, in words, and whether anything stands in the way."""

from __future__ import annotations

from dataclasses import replace

from opsmith.errors import StoreError, UsageError
from opsmith.report.tables import count_noun, format_cost
from opsmith.store import Store
from opsmith.store.deletion import referring_runs
from opsmith.store.spending import known_usd


def refuse_needed_run(store: Store, run: str) -> None:
    """Raises StoreError when some process works on the run, UsageError when another run needs it."""
    if store.is_held(run):
        raise StoreError(
            f"store {store.path}: run {run} is being worked on; try: end that process first, or wait for it"
        )
    if users := referring_runs(store, run):
        raise UsageError(
            f"delete {run}: given a run that others began with or were measured by: {', '.join(users)}; "
            f"expected one that no other needs; try: delete those first"
        )


def describe_run_contents(store: Store, run: str) -> str:
    """What goes with a run, on one line."""
    summary = store.summarise_run(run)
    usage = summary.usage
    least = (
        ""
        if usage.cost_usd is not None
        else f", at least {format_cost(replace(usage, cost_usd=known_usd(store, run)))}"
    )
    tokens = f"{usage.input_tokens + usage.output_tokens:,} tokens"
    replies = f"{usage.requests:,} {'reply' if usage.requests == 1 else 'replies'} of {tokens}"
    solved = f"{summary.solved} of {summary.tasks} tasks solved"
    about = f"run {run} ({summary.end or 'no end told'}): {count_noun(summary.samples, 'sample')}"
    return f"{about}, {replies}, cost {format_cost(usage)}{least}, {solved}"
