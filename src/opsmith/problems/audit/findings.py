"""The form of what is found out about a task file itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

SIZES = "sizes"  # the check of what hidden draws can reach; it finds no fault


class State(StrEnum):
    """What a check showed, the best first."""

    FINE = "fine"
    NOTE = "note"  # worth knowing, and right
    UNCHECKED = "not checked"
    FAULTY = "faulty"


@dataclass(frozen=True)
class Finding:
    """What one check of a task file showed."""

    check: str  # one of targets.audit.CHECKS; file: it could not be read
    state: State
    tried: str  # what was done, in few words
    found: str = ""  # what passed that should not, or why it could not be checked; "" when fine
    remedy: str = ""
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict, compare=False)  # for scripts
