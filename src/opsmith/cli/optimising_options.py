"""The options of `opsmith optimise`: one for each setting of how right programs are made better."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.options import ASKED, LEARNING, MODELS, SPENDING

RunOrTasks = Annotated[list[str], typer.Argument(metavar="RUN|TASK...", help="A run's solutions, or tasks.")]
SettingsFile = Annotated[
    Path | None, typer.Option("--settings", metavar="FILE.toml", help="Settings to start from.", rich_help_panel=ASKED)
]
Generator = Annotated[
    str | None, typer.Option(metavar="M", help="The generator; a name of `opsmith models`.", rich_help_panel=MODELS)
]
Analyst = Annotated[
    str | None,
    typer.Option(
        metavar="M|none", help="Who suggests what to change; default: the same model.", rich_help_panel=MODELS
    ),
]
Rounds = Annotated[int, typer.Option("--rounds", metavar="N", min=1, help="At most.", rich_help_panel=LEARNING)]
ObjectiveName = Annotated[
    str | None,
    typer.Option(metavar="O", help="time, cycles, on_chip_bytes, off_chip_bytes or front.", rich_help_panel=LEARNING),
]
BeamSize = Annotated[
    int | None, typer.Option(metavar="N", help="Programs of a task that a round starts from.", rich_help_panel=LEARNING)
]
Attempts = Annotated[
    int | None, typer.Option(metavar="N", help="For each of them in a round.", rich_help_panel=LEARNING)
]
Fixes = Annotated[
    int | None, typer.Option(metavar="N", help="Turns to mend a wrong program.", rich_help_panel=LEARNING)
]
Refines = Annotated[
    bool | None,
    typer.Option(
        "--refine/--resample", help="Start from the best so far, or always from the first.", rich_help_panel=LEARNING
    ),
]
Plateau = Annotated[
    int | None, typer.Option(metavar="N", help="Rounds without a gain that end a task.", rich_help_panel=LEARNING)
]
ProfilerNames = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="What the analyst is shown: auto, none, or profilers.", rich_help_panel=ASKED),
]
ProfileCommand = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="Your own profiler: its text and PNG files are shown.", rich_help_panel=ASKED),
]
MemorySize = Annotated[
    int | None,
    typer.Option(metavar="N", help="Changes of other tasks that a prompt shows; 0: none.", rich_help_panel=ASKED),
]
MemoryRuns = Annotated[
    list[str] | None, typer.Option(metavar="RUN", help="Remember its changes too.", rich_help_panel=ASKED)
]
ExamplePair = Annotated[
    bool | None,
    typer.Option("--example/--no-example", help="Show the language's example of a change.", rich_help_panel=ASKED),
]
ReferencePlace = Annotated[
    str | None,
    typer.Option(metavar="TARGET|RUN|DIR", help="Show a program of another language.", rich_help_panel=ASKED),
]
Instructions = Annotated[
    str | None, typer.Option(metavar="FILE|DIR", help="Your own, for each prompt.", rich_help_panel=ASKED)
]
SourceFiles = Annotated[
    list[str] | None, typer.Option(metavar="FILE", help="Shown to the generator.", rich_help_panel=ASKED)
]
Denied = Annotated[
    list[str] | None, typer.Option(metavar="REGEX", help="No program may match it.", rich_help_panel=LEARNING)
]
Allowed = Annotated[list[str] | None, typer.Option(metavar="REGEX", help="Where it may.", rich_help_panel=LEARNING)]
MaxMeasured = Annotated[
    float | None, typer.Option(metavar="S", help="Of measuring, at most.", rich_help_panel=SPENDING)
]
LastGrade = Annotated[
    str | None,
    typer.Option(
        metavar="screen|full",
        help="How leaders are measured at the end; default: full. A screen alone makes none the best.",
        rich_help_panel=LEARNING,
    ),
]
StartProgram = Annotated[
    Path | None,
    typer.Option(
        "--from", metavar="FILE", help="The program to begin with; default: the task's own.", rich_help_panel=ASKED
    ),
]
