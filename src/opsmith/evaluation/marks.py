"""Which results are no language model's? The words that stand wherever such results do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opsmith.evaluation.study import Study

EMBEDDED = "embedded model: a program sampler, not a language model"
SEARCH = "search without a model, not a language model"


def is_language_model(study: Study, series: str) -> bool:
    """Whether every run of the series asked a language model."""
    return all(item.result.is_language_model for item in study.observed if item.series == series)


def mark(study: Study) -> str:
    """What is said of a whole experiment; "" where every result is a language model's."""
    models = {item.result.model for item in study.observed if not item.result.is_language_model}
    words = [SEARCH] if models == {"search"} else [EMBEDDED] if models else []
    rest = any(item.result.is_language_model for item in study.observed)
    return ("in part: " if rest and words else "") + "".join(words)


def marked(study: Study, figure: Mapping[str, Any]) -> dict[str, Any]:
    """The figure with the mark under its title."""
    said = mark(study)
    return {**figure, "title": {"text": figure["title"], "subtitle": said}} if said else dict(figure)
