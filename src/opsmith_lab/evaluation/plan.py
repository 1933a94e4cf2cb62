"""The runs that an experiment stands for: one per model, seed and arm, with the settings that hold for it.

Later ones win: the experiment's settings, [embedded] where the model is no language model, the model's, the arm's, and
what the command line gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from opsmith.config import resolve_settings
from opsmith.errors import UsageError
from opsmith.judging.judge import Solution
from opsmith.records import Task
from opsmith.settings import Settings
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith_lab.evaluation.experiment import BY_ARM, EMBEDDED, MEASURES, SEARCH, Arm, Experiment
from opsmith_lab.evaluation.showing import ALL_RENAMED, RENAMED, has_named_operators


@dataclass(frozen=True)
class ExperimentOptions:
    """What the command line gives; nothing: as the file says."""

    models: tuple[str, ...] = ()
    samples: int | None = None
    tasks: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    trust_tasks: bool = False
    base_url: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)  # settings of where and how fast the work is done


@dataclass(frozen=True)
class PlannedRun:
    """One run. `series`: the model it is compared under, which is the one it asks unless the arm has its own; where an
    experiment has several languages, with the language."""

    arm: Arm
    series: str
    settings: Settings  # BY_ARM ones still name an arm
    is_plain: bool = False  # it begins with the plain programs of its tasks

    @property
    def begins_right(self) -> bool:
        """Whether there is nothing to solve."""
        return self.is_plain or self.settings.method.from_run is not None

    @property
    def named_arms(self) -> Mapping[str, str]:
        """The arms whose runs it needs, by the setting that names them."""
        flat = self.settings.as_flat()
        return {name: flat[name] for name in BY_ARM if flat[name] is not None}

    @property
    def measure_arm(self) -> str | None:
        """The arm whose run says how much this one may spend."""
        return next((arm for name, arm in self.named_arms.items() if name in MEASURES), None)

    def name_model(self, model: str) -> str:
        """A model's name, with the language where it is told apart by that."""
        return self.series if self.series.startswith(model) else model


def plan_runs(experiment: Experiment, options: ExperimentOptions) -> tuple[PlannedRun, ...]:
    """The runs in the order in which they are made."""
    models = options.models or tuple(series.name for series in experiment.models if not series.by_name)
    runs = []
    for model in dict.fromkeys(models):
        languages = _choose_languages(experiment, model, options)
        is_plain = (experiment.find_series(model).start or experiment.start) == "plain"
        cells = product(languages, _choose_seeds(experiment, model, options), experiment.arms)
        for language, seed, arm in cells:
            if arm.first_round_of is not None or not _can_show(experiment, arm, options):
                continue
            settings = _resolve_settings(experiment, arm, model, seed, options, language)
            if is_plain:
                settings = settings.replace(from_run=None)
            if not is_plain or settings.optimisation.optimise:  # else there is nothing to do
                series = model if language is None else f"{model} in {language}"
                runs.append(PlannedRun(arm, series, settings, is_plain))
    return tuple(runs)


def _choose_languages(experiment: Experiment, model: str, options: ExperimentOptions) -> Sequence[str | None]:
    """None: an experiment without languages of its own. Raises UsageError where nothing is left of them."""
    target, own = options.where.get("target"), experiment.find_series(model).languages or experiment.languages
    if not experiment.languages:
        return (None,)
    if target is not None and target not in own and own != experiment.languages:
        raise UsageError(f"--target {target}: given with model {model}, which writes {', '.join(own)}")
    return own if target is None else (target,)


def _can_show(experiment: Experiment, arm: Arm, options: ExperimentOptions) -> bool:
    """Operators are renamed where they are names."""
    if arm.shows not in {RENAMED, ALL_RENAMED}:
        return True
    tasks = load_tasks(name_tasks(experiment, options), options.where.get("target"))
    return has_named_operators(get_target(tasks[0].target))


def name_tasks(experiment: Experiment, options: ExperimentOptions) -> tuple[str, ...]:
    """The names of the tasks."""
    return options.tasks or experiment.tasks


def load_run_tasks(settings: Settings) -> tuple[Task, ...]:
    """The tasks of a planned run, in the language that its settings ask for. Raises UsageError and TaskError."""
    return load_tasks(settings.tasks, settings.target, settings.target_options)


def list_start(experiment: Experiment, tasks: Sequence[Task]) -> tuple[Solution, ...]:
    """The tasks' own programs. Raises UsageError for a task that brings none."""
    lacking = [task.id for task in tasks if task.impl is None]
    if lacking:
        raise UsageError(f"experiment {experiment.name}: {lacking[0]}: it has no plain program to start from")
    return tuple(Solution(task, task.impl) for task in tasks if task.impl is not None)


def format_command(experiment: Experiment, options: ExperimentOptions) -> str:
    """The command that makes these results again."""
    words = ["opsmith experiment", experiment.name]
    words += [f"--model {model}" for model in options.models]
    words += ["--base-url URL"] if options.base_url is not None else []
    words += [f"--samples {options.samples}"] if options.samples is not None else []
    words += [f"--tasks {','.join(options.tasks)}"] if options.tasks else []
    words += [f"--seed {seed}" for seed in options.seeds]
    deciding = {name: options.where.get(name) for name in ("context_window", "target")}  # these have a say in results
    words += [f"--{name.replace('_', '-')} {value}" for name, value in deciding.items() if value is not None]
    return " ".join(words)


def _choose_seeds(experiment: Experiment, model: str, options: ExperimentOptions) -> Iterable[int]:
    """Each once."""
    own = experiment.embedded.seeds if model in EMBEDDED else experiment.find_series(model).seeds
    return dict.fromkeys(options.seeds or own or experiment.seeds)


def _resolve_settings(
    experiment: Experiment, arm: Arm, series: str, seed: int, options: ExperimentOptions, language: str | None
) -> Settings:
    model = arm.model or series
    seed = 0 if model == SEARCH else seed  # it has no chance in it: one run for all seeds
    stated: dict[str, Any] = dict(experiment.settings)
    stated |= experiment.embedded.settings if model in EMBEDDED else {}
    stated |= {**experiment.find_series(series).settings, **arm.settings}
    stated |= {"target": language} if language is not None else {}
    stated |= {
        "model": model,
        "seed": seed,
        "tasks": name_tasks(experiment, options),
        "trust_tasks": options.trust_tasks,
    }
    if model not in EMBEDDED and options.base_url is not None:
        models = stated.get("models", ())
        url = options.base_url  # of a server of the user's own, which is asked for each of several models
        stated |= {"servers": tuple(f"{name}={url}" for name in models)} if models else {"base_url": url}
    if options.samples is not None:
        if options.samples < 1:
            raise UsageError(f"--samples: given {options.samples}; expected at least 1")
        stated["attempts" if stated.get("optimise") else "samples"] = options.samples
    return resolve_settings(None, {**stated, **options.where})
