"""The options of plans: one for each setting of how a task that stays unsolved is split."""

from __future__ import annotations

from typing import Annotated

import typer

PlanKind = Annotated[str | None, typer.Option(metavar="none|static|llm", help="Split what stays unsolved.")]
PlannerName = Annotated[str | None, typer.Option(metavar="M", help="Who plans, with --plan llm; default: the model.")]
PlanAfter = Annotated[int | None, typer.Option(metavar="N", help="Rounds unsolved before a task is split.")]
SplitCount = Annotated[int | None, typer.Option(metavar="N", help="Different splits of a task that are tried.")]
TreeDepth = Annotated[int | None, typer.Option(metavar="N", help="How deep a plan may be.")]
ContractRounds = Annotated[int | None, typer.Option(metavar="N", help="Rounds before a contract is changed.")]
