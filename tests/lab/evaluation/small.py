"""The experiments at a small size: 6 tasks of 4 groups, 8 samples, one seed, one store for all of them.

The embedded model samples in this process and verdicts come from one pool: starting processes anew for each of some
twenty runs would take longer than all their samples.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import pytest
from warm_pools import SharedPool

from opsmith.executors import local
from opsmith.judging.pool import Pool
from opsmith.store import Store
from opsmith.targets import Target
from opsmith_lab.evaluation.catalogue import ALL, find_experiments
from opsmith_lab.evaluation.conduct import ConductedExperiment, conduct_experiment
from opsmith_lab.evaluation.plan import ExperimentOptions, plan_runs
from opsmith_lab.models import embedded, workers
from opsmith_lab.models.sampling import PromptSampler

TASKS = ("attn_0", "gemm_1", "index_0", "index_2", "index_3", "expert_1")  # quick to sample; one needs a second round
ASKED = ExperimentOptions(("embedded",), samples=8, tasks=TASKS, seeds=(0,))
NAMES = tuple(experiment.name for experiment in find_experiments(ALL))  # those of the paper


@dataclass
class Small:
    """All experiments, done."""

    folder: Path
    store: Store

    @cached_property
    def done(self) -> dict[str, ConductedExperiment]:
        return {name: conduct_experiment(find_experiments(name)[0], ASKED, self.store, self.folder) for name in NAMES}

    def runs(self, name: str) -> dict[str, str]:
        """The runs of an experiment by arm."""
        return {run["arm"]: run["run"] for run in self.done[name].data["runs"]}

    def value(self, name: str, arm: str, measure: str, of: str = "all") -> float:
        (found,) = [
            row["found"]["value"]
            for row in self.done[name].data["rows"]
            if (row["arm"], row["measure"], row["of"]) == (arm, measure, of)
        ]
        return float(found)

    def planned(self, name: str) -> int:
        return len(plan_runs(find_experiments(name)[0], ASKED))


@lru_cache
def session(target: Target, noise: float) -> PromptSampler:
    """One sampler for all runs; what it learned from a prompt is kept for the next run with that prompt."""
    made = PromptSampler(target, noise)
    made._policy = lru_cache(maxsize=None)(made._fit_policy) if noise == 0 else session(target, 0.0)._policy
    return made


@contextlib.contextmanager
def small(folder: Path) -> Iterator[Small]:
    with pytest.MonkeyPatch.context() as patch, Pool(2) as pool, Store.open(folder / "runs") as store:
        patch.setattr(workers, "is_known_elsewhere", lambda target: False)
        patch.setattr(embedded, "PromptSampler", session)
        patch.setattr(local, "Pool", lambda *_, **__: SharedPool(pool))
        yield Small(folder / "results", store)
