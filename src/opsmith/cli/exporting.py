"""`opsmith export` and `reverify`: take a run's results away; judge them again."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """No command yet."""
