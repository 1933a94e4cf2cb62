"""Which results are no language model's? The words that stand wherever such results do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opsmith.evaluation.experiment import SEARCH
from opsmith.evaluation.study import Study

EMBEDDED = "embedded model: a program sampler, not a language model"
SEARCHED = "search without a model: not a language model"
BOTH = "embedded model (a program sampler) and search without a model: neither is a language model"


def is_language_model(study: Study, series: str) -> bool:
    """Whether every run of the series asked a language model."""
    return all(item.result.is_language_model for item in study.observed if item.series == series)


def mark(study: Study) -> str:
    """What is said of a whole experiment; "" where every result is a language model's."""
    models = {item.result.model for item in study.observed if not item.result.is_language_model}
    if not models:
        return ""
    rest = any(item.result.is_language_model for item in study.observed)
    words = SEARCHED if models == {SEARCH} else BOTH if SEARCH in models else EMBEDDED
    return ("in part: " if rest else "") + words


def marked(study: Study, figure: Mapping[str, Any]) -> dict[str, Any]:
    """The figure with the mark under its title."""
    said = mark(study)
    return {**figure, "title": {"text": figure["title"], "subtitle": said}} if said else dict(figure)
