"""What an address asks for: filters and places of a list of samples, read from its query; the way back too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from opsmith.errors import UsageError
from opsmith.records import Outcome, Stage
from opsmith.store.pages import Filter, SamplePlace

T = TypeVar("T")


def read_filter(query: Mapping[str, str]) -> Filter:
    """Raises UsageError that names what cannot be read; an empty value filters nothing."""
    return Filter(
        task=_read_value(query, "task", str, "a task's id"),
        round=_read_value(query, "round", _parse_whole, "a whole number"),
        temperature=_read_value(query, "temperature", float, "a number"),
        stage=_read_value(query, "stage", Stage, " or ".join(Stage.ORDER)),
        outcome=_read_value(query, "outcome", Outcome, " or ".join(Outcome)),
        agent=_read_value(query, "agent", str, "an agent's name"),
        begins=query.get("id", "").strip().lower(),
        words=query.get("words", "").strip(),
    )


def write_filter(sample_filter: Filter) -> dict[str, Any]:
    """The query that `read_filter` reads as this filter."""
    return {
        "task": sample_filter.task,
        "round": sample_filter.round,
        "temperature": None if sample_filter.temperature is None else repr(sample_filter.temperature),
        "stage": sample_filter.stage.name if sample_filter.stage else None,
        "outcome": sample_filter.outcome.value if sample_filter.outcome else None,
        "agent": sample_filter.agent,
        "id": sample_filter.begins or None,
        "words": sample_filter.words or None,
    }


def read_place(text: str | None) -> SamplePlace | None:
    """`2,0.7,15:sample,task`: the task comes last, since its id may hold anything."""
    if not text:
        return None
    try:
        round_, temperature, sample, task = text.split(",", 3)
        number, _, name = sample.partition(":")
        return SamplePlace(_parse_whole(round_), task, float(temperature), _parse_whole(number), name)
    except ValueError as error:
        raise UsageError(f"place {text!r}: expected `round,temperature,number,task`; try: the first page") from error


def write_place(place: SamplePlace) -> str:
    return f"{place.round},{place.temperature!r},{place.number}:{place.id},{place.task}"


def _parse_whole(text: str) -> int:
    """A whole number that the store can compare with."""
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(text)
    return number


def _read_value(query: Mapping[str, str], name: str, convert: Callable[[str], T], expected: str) -> T | None:
    text = query.get(name, "").strip()
    if not text:
        return None
    try:
        return convert(text)
    except (ValueError, KeyError) as error:
        raise UsageError(f"{name}: given {text!r}; expected {expected}; try: no filter") from error
