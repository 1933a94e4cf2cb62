"""`opsmith report` and `compare`: what came of runs, for people and for papers."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """No command yet."""
