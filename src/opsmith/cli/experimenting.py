"""`opsmith experiment`: the evaluation of the paper, one command each."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """No command yet."""
