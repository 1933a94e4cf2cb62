"""The settings in which runs differ: of some runs beside each other, and of a list the run that differs in one alone.

What a run was told is what its id is made of: settings, versions, language, model. A setting that a run does not state
is at its default, which stands for itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from opsmith.settings import Settings
from opsmith.store.rows import RunInfo

MODEL = "model"


@dataclass(frozen=True)
class OneSetting:
    """A run is as another one but for this."""

    other: RunInfo
    setting: str
    values: tuple[str, str]  # of this run, and of the other

    def __str__(self) -> str:
        return f"{self.other.label} in {self.setting}: {self.values[0]}, not {self.values[1]}"


def write_setting(value: Any) -> str:
    """A value as people write it.

    >>> write_setting("none"), write_setting(["a", "b"]), write_setting(None), write_setting(0.5)
    ('none', 'a b', '–', '0.5')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return " ".join(map(write_setting, value)) or "–"
    return "–" if value is None else json.dumps(value, ensure_ascii=False)


def list_settings(info: RunInfo) -> dict[str, str]:
    """All that a run was told, by name."""
    told = {**info.settings, **info.versions, MODEL: info.model}
    return {**_list_defaults(), **{name: write_setting(value) for name, value in told.items()}}


def find_differences(settings: Sequence[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """By name the value of each run, where they are not all the same; a dash where it is none of a run's."""
    names = dict.fromkeys(name for own in settings for name in own)
    values = {name: tuple(own.get(name, "–") for own in settings) for name in names}
    differing = {name: own for name, own in values.items() if len(set(own)) > 1}
    return {name: own for name, own in differing.items() if name != "verifier" or "target" not in differing}


def find_single(runs: Iterable[RunInfo]) -> dict[str, OneSetting]:
    """By run, of those that differ in exactly one setting from one that stands before them, the first such one."""
    seen: dict[tuple[str, int], tuple[RunInfo, str]] = {}  # by a setting, and a hash of all others
    differing: dict[str, OneSetting] = {}
    for info in runs:
        told = list_settings(info)
        if told.get("target"):
            told.pop("verifier", None)  # each language has its own
        hashes = {name: hash((name, value)) for name, value in told.items()}
        whole = 0
        for own in hashes.values():
            whole ^= own
        for name, value in told.items():
            other, other_value = seen.setdefault((name, whole ^ hashes[name]), (info, value))
            if other_value != value and info.id not in differing:
                differing[info.id] = OneSetting(other, name, (value, other_value))
    return differing


@lru_cache(maxsize=1)
def _list_defaults() -> dict[str, str]:
    return {name: write_setting(value) for name, value in Settings().as_flat("json").items() if name != "name"}
