"""How much a run may spend: as many samples, or as many tokens, as another run did: the matched controls."""

from __future__ import annotations

from dataclasses import dataclass

from opsmith.errors import UsageError
from opsmith.settings import Settings
from opsmith.store import Store


@dataclass(frozen=True)
class Budget:
    """`tokens` count input and output of all agents; what is None is not limited."""

    samples: int | None = None
    tokens: int | None = None
    first: float = 0.0  # tokens of one sample of the other run's first round: what this run's first round is cut by

    def samples_left(self, planned: int, answered: int, spent: int) -> int | None:
        """How many samples the next round may make, after rounds of `planned` samples, of which `answered` had a
        reply, at `spent` tokens; None: any number. A round is cut at the mean tokens of the samples so far.

        >>> Budget(tokens=1000).samples_left(planned=10, answered=8, spent=400)
        12
        """
        if self.samples is not None:
            return max(0, self.samples - planned)
        if self.tokens is None:
            return None
        mean = spent / answered if answered else self.first
        return max(0, int((self.tokens - spent) / mean)) if mean else 0


def budget_of(settings: Settings, store: Store) -> Budget | None:
    """The run's budget; None: it has none. Raises UsageError when there are two, or the run would never end."""
    if settings.spending.budget_from is not None and settings.spending.tokens_from is not None:
        raise UsageError("--budget-from: given with --tokens-from; expected one of them, since a run has one budget")
    if settings.spending.budget_from is not None:
        return Budget(samples=store.sample_count(store.find_run(settings.spending.budget_from)))
    if settings.spending.tokens_from is not None:
        return _tokens_of(store, store.find_run(settings.spending.tokens_from))
    if settings.method.selection == "none" and settings.method.max_rounds is None:
        raise UsageError(
            "selection none: it would sample for ever; give --budget-from RUN, --tokens-from RUN or --max-rounds N"
        )
    return None


def _tokens_of(store: Store, run: str) -> Budget:
    answered, spent = store.spent_before(run, 1)
    if not spent:
        raise UsageError(f"--tokens-from {run}: given a run that used no tokens; expected one with samples")
    usage = store.sum_usage(run)
    return Budget(tokens=usage.input_tokens + usage.output_tokens, first=spent / answered)
