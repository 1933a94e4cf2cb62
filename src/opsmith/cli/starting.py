"""`opsmith init` and `new-task`: begin work of your own."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """No command yet."""
