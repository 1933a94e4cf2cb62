"""`opsmith ui`, `pause` and `resume`: look at runs while they go on."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """No command yet."""
