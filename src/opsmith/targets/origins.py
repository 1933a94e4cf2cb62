"""Targets whose tasks state problems, by name: for a language that is asked for problems of others.

A language imports no table of languages. `lookup`, which has it, says here how one is found.
"""

from __future__ import annotations

from collections.abc import Callable

from opsmith.targets.protocols import Stating, Target

_FINDERS: list[Callable[[str], Target]] = []


def find_by(get_target: Callable[[str], Target]) -> None:
    """Called by `lookup` as it is imported, which `opsmith.targets` does before any language is."""
    _FINDERS[:] = [get_target]


def find_stating(name: str) -> Stating | None:
    """The target of that name; None: its tasks state no problems. Raises UsageError and TargetError."""
    target = _FINDERS[0](name)
    return target if isinstance(target, Stating) else None
