"""The words that stand wherever results are no language model's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from opsmith.evaluation.experiment import SEARCH, TUNER
from opsmith.evaluation.study import Study

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


def mark_figure(study: Study, figure: Mapping[str, Any]) -> dict[str, Any]:
    """The figure with the mark under its title."""
    subtitle = describe_mark(study)
    return {**figure, "title": {"text": figure["title"], "subtitle": subtitle}} if subtitle else dict(figure)
