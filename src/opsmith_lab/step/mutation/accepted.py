"""The table of accepted changes that no law of the normal form proves right: each with the reason why it is.

`accepted.yaml` is a list of entries with `why`, `tasks` and `changes`: every change of an entry is accepted in every
one of its tasks. A change that is not accepted any more is stale, and a full score says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml


def read_explanations(task: str) -> Mapping[str, str]:
    """Change -> why the changed program is right, for one task."""
    return {change: entry["why"] for entry in read_entries() if task in entry["tasks"] for change in entry["changes"]}


@lru_cache(maxsize=1)
def read_entries() -> tuple[Mapping[str, Any], ...]:
    """The table as it is written."""
    text = files("opsmith_lab.step.mutation").joinpath("accepted.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text) or ())
