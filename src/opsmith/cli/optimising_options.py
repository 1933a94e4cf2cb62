"""The options of `opsmith optimise`: one for each setting of how right programs are made better."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunOrTasks = Annotated[list[str], typer.Argument(metavar="RUN|TASK...", help="A run's solutions, or tasks.")]
SettingsFile = Annotated[Path | None, typer.Option("--settings", metavar="FILE.toml", help="Settings to start from.")]
Generator = Annotated[str | None, typer.Option(metavar="M", help="The generator; a name of `opsmith models`.")]
Analyst = Annotated[
    str | None, typer.Option(metavar="M|none", help="Who suggests what to change; default: the same model.")
]
Rounds = Annotated[int, typer.Option("--rounds", metavar="N", min=1, help="At most.")]
ObjectiveName = Annotated[
    str | None, typer.Option(metavar="O", help="time, cycles, on_chip_bytes, off_chip_bytes or front.")
]
BeamSize = Annotated[int | None, typer.Option(metavar="N", help="Programs of a task that a round starts from.")]
Attempts = Annotated[int | None, typer.Option(metavar="N", help="For each of them in a round.")]
Fixes = Annotated[int | None, typer.Option(metavar="N", help="Turns to mend a wrong program.")]
Refines = Annotated[
    bool | None, typer.Option("--refine/--resample", help="Start from the best so far, or always from the first.")
]
Plateau = Annotated[int | None, typer.Option(metavar="N", help="Rounds without a gain that end a task.")]
ProfilerNames = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="What the analyst is shown: auto, none, or profilers.")
]
ProfileCommand = Annotated[
    str | None, typer.Option(metavar="COMMAND", help="Your own profiler: its text and PNG files are shown.")
]
MemorySize = Annotated[
    int | None, typer.Option(metavar="N", help="Changes of other tasks that a prompt shows; 0: none.")
]
MemoryRuns = Annotated[list[str] | None, typer.Option(metavar="RUN", help="Remember its changes too.")]
ExamplePair = Annotated[
    bool | None, typer.Option("--example/--no-example", help="Show the language's example of a change.")
]
ReferencePlace = Annotated[
    str | None, typer.Option(metavar="TARGET|RUN|DIR", help="Show a program of another language.")
]
Instructions = Annotated[str | None, typer.Option(metavar="FILE|DIR", help="Your own, for each prompt.")]
SourceFiles = Annotated[list[str] | None, typer.Option(metavar="FILE", help="Shown to the generator.")]
Denied = Annotated[list[str] | None, typer.Option(metavar="REGEX", help="No program may match it.")]
Allowed = Annotated[list[str] | None, typer.Option(metavar="REGEX", help="Where it may.")]
MaxMeasured = Annotated[float | None, typer.Option(metavar="S", help="Of measuring, at most.")]
LastGrade = Annotated[str | None, typer.Option(metavar="screen|full", help="What is best at the end; default: full.")]
StartProgram = Annotated[
    Path | None, typer.Option("--from", metavar="FILE", help="The program to begin with; default: the task's own.")
]
