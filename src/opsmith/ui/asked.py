"""What does an address ask for? Filters and places of a list of samples, read from its query; the way back too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from opsmith.errors import UsageError
from opsmith.records import Outcome, Stage
from opsmith.store.pages import Filter, Place

T = TypeVar("T")


def read_filter(query: Mapping[str, str]) -> Filter:
    """Raises UsageError that names what cannot be read; an empty value filters nothing."""
    return Filter(
        task=_read(query, "task", str, "a task's id"),
        round=_read(query, "round", _whole, "a whole number"),
        temperature=_read(query, "temperature", float, "a number"),
        stage=_read(query, "stage", Stage.__getitem__, " or ".join(stage.name for stage in Stage)),
        outcome=_read(query, "outcome", Outcome, " or ".join(Outcome)),
        agent=_read(query, "agent", str, "an agent's name"),
        begins=query.get("id", "").strip().lower(),
    )


def filter_query(wanted: Filter) -> dict[str, Any]:
    """The query that `read_filter` reads as this filter."""
    return {
        "task": wanted.task,
        "round": wanted.round,
        "temperature": None if wanted.temperature is None else repr(wanted.temperature),
        "stage": wanted.stage.name if wanted.stage else None,
        "outcome": wanted.outcome.value if wanted.outcome else None,
        "agent": wanted.agent,
        "id": wanted.begins or None,
    }


def read_place(text: str | None) -> Place | None:
    """`2,0.7,15,task`: the task comes last, since its id may hold anything."""
    if not text:
        return None
    try:
        round_, temperature, number, task = text.split(",", 3)
        return Place(_whole(round_), task, float(temperature), _whole(number))
    except ValueError as error:
        raise UsageError(f"place {text!r}: expected `round,temperature,number,task`; try: the first page") from error


def write_place(place: Place) -> str:
    return f"{place.round},{place.temperature!r},{place.number},{place.task}"


def _whole(text: str) -> int:
    """A whole number that the store can compare with."""
    found = int(text)
    if not -(2**63) <= found < 2**63:
        raise ValueError(text)
    return found


def _read(query: Mapping[str, str], name: str, convert: Callable[[str], T], expected: str) -> T | None:
    given = query.get(name, "").strip()
    if not given:
        return None
    try:
        return convert(given)
    except (ValueError, KeyError) as error:
        raise UsageError(f"{name}: given {given!r}; expected {expected}; try: no filter") from error
