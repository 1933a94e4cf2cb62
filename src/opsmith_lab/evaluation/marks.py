"""The words that stand wherever results are no language model's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from opsmith_lab.evaluation.charts import Chart
from opsmith_lab.evaluation.experiment import SEARCH, TUNER
from opsmith_lab.evaluation.study import Study

EMBEDDED = "embedded model: a program sampler, not a language model"
SEARCHED = "search without a model: not a language model"
TUNED = "embedded tuner and analyst: they rewrite programs by rules and are no language models"
BOTH = "embedded model (a program sampler) and search without a model: neither is a language model"


def is_language_model(study: Study, series: str) -> bool:
    """Whether every run of the series asked a language model."""
    return all(run.result.is_language_model for run in study.observed if run.series == series)


def describe_mark(study: Study) -> str:
    """What is said of a whole experiment; "" where every result is a language model's."""
    models = {run.result.model for run in study.observed if not run.result.is_language_model}
    if not models:
        return ""
    has_language_model = any(run.result.is_language_model for run in study.observed)
    return ("in part: " if has_language_model else "") + _describe_models(models)


def _describe_models(models: Collection[str]) -> str:
    if any(TUNER in model for model in models):  # a swarm with it too
        return TUNED
    return SEARCHED if set(models) == {SEARCH} else BOTH if SEARCH in models else EMBEDDED


def describe_size(study: Study) -> str:
    """`26 tasks, 12,864 judged samples; seeds 0, 1, 2`."""
    seeds = sorted({run.seed for run in study.observed})
    samples = sum(run.judged for run in study.observed if not run.arm.first_round_of)
    words = f"{'seeds' if len(seeds) > 1 else 'seed'} {', '.join(map(str, seeds))}"
    return f"{len(study.tasks)} tasks, {samples:,} judged samples; {words}"


def mark_chart(study: Study, chart: Chart) -> Chart:
    """The chart with what made it, how much it shows, and what its whiskers are."""
    size = f"n = {describe_size(study)}"
    if any(point.get("low") is not None for point in chart.points):
        size += f"; whiskers: 95 %, {', '.join(chart.lines)}"
    if chart.options.get("paper"):
        size += "; hollow: the paper's, of its 26 tasks"
    return replace(chart, lines=tuple(filter(None, (describe_mark(study), size))))
