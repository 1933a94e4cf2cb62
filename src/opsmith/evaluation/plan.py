"""Which runs does an experiment stand for? One per model, seed and arm, with the settings that hold for it.

Later ones win: the experiment's settings, [embedded] where the model is no language model, the model's, the arm's, and
what the command line gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opsmith.config import resolve_settings
from opsmith.errors import UsageError
from opsmith.evaluation.experiment import BY_ARM, EMBEDDED, SEARCH, Arm, Experiment
from opsmith.settings import Settings


@dataclass(frozen=True)
class Asked:
    """What the command line gives; nothing: as the file says."""

    models: tuple[str, ...] = ()
    samples: int | None = None
    tasks: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    trust_tasks: bool = False
    base_url: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)  # settings of where the work is done; None: not given


@dataclass(frozen=True)
class Planned:
    """One run. `series`: the model it is compared under, which is the one it asks unless the arm has its own."""

    arm: Arm
    series: str
    settings: Settings  # BY_ARM ones still name an arm

    @property
    def measure(self) -> str | None:
        """The arm whose run says how much this one may spend."""
        return next((value for name in BY_ARM if (value := getattr(self.settings, name)) is not None), None)


def plan(experiment: Experiment, asked: Asked) -> tuple[Planned, ...]:
    """The runs in the order in which they are made."""
    models = asked.models or tuple(series.name for series in experiment.models)
    return tuple(
        Planned(arm, model, _settings(experiment, arm, model, seed, asked))
        for model in dict.fromkeys(models)
        for seed in _seeds(experiment, model, asked)
        for arm in experiment.arms
        if arm.first_round_of is None
    )


def tasks_of(experiment: Experiment, asked: Asked) -> tuple[str, ...]:
    """The names of the tasks."""
    return asked.tasks or experiment.tasks


def command(experiment: Experiment, asked: Asked) -> str:
    """The command that makes these results again."""
    words = ["opsmith experiment", experiment.name]
    words += [f"--model {model}" for model in asked.models]
    words += [f"--samples {asked.samples}"] if asked.samples is not None else []
    words += [f"--tasks {','.join(asked.tasks)}"] if asked.tasks else []
    words += [f"--seed {seed}" for seed in asked.seeds]
    return " ".join(words)


def _seeds(experiment: Experiment, model: str, asked: Asked) -> Iterable[int]:
    own = experiment.embedded.seeds if model in EMBEDDED else experiment.series(model).seeds
    return dict.fromkeys(asked.seeds or own or experiment.seeds)


def _settings(experiment: Experiment, arm: Arm, series: str, seed: int, asked: Asked) -> Settings:
    model = arm.model or series
    seed = 0 if model == SEARCH else seed  # it has no chance in it: one run for all seeds
    stated: dict[str, Any] = dict(experiment.settings)
    stated |= experiment.embedded.settings if model in EMBEDDED else {}
    stated |= {**experiment.series(series).settings, **arm.settings}
    stated |= {"model": model, "seed": seed, "tasks": tasks_of(experiment, asked), "trust_tasks": asked.trust_tasks}
    if model not in EMBEDDED and asked.base_url is not None:
        stated["base_url"] = asked.base_url
    if asked.samples is not None:
        if asked.samples < 1:
            raise UsageError(f"--samples: given {asked.samples}; expected at least 1")
        stated["samples"] = asked.samples
    return resolve_settings(None, stated | {name: given for name, given in asked.where.items() if given is not None})
