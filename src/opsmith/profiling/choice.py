"""Which profilers a program is shown to: all quick ones that can say something of it here, or those that are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opsmith.errors import UsageError
from opsmith.profiling.cachegrind import CachegrindProfiler
from opsmith.profiling.cost import CostProfiler, CountFigures, OutputProfiler
from opsmith.profiling.mca import McaProfiler
from opsmith.profiling.profiler import Profiler
from opsmith.profiling.remarks import RemarksProfiler
from opsmith.profiling.roofline import RooflineProfiler
from opsmith.profiling.user_command import CommandProfiler
from opsmith.records import Task

AUTO, NOBODY = "auto", "none"  # in place of names: all that can, none at all
Profilers = tuple[Profiler, ...]


def make_profilers(count_figures: CountFigures, command: str | None) -> Mapping[str, Profiler]:
    """All that there are, by name; that of the user's own where he names a command."""
    profilers: Profilers = (
        RemarksProfiler(),
        RooflineProfiler(),
        CostProfiler(count_figures),
        OutputProfiler(count_figures),
        McaProfiler(),
        CachegrindProfiler(),
    )
    own: Profilers = (CommandProfiler(command),) if command else ()
    return {profiler.name: profiler for profiler in (*profilers, *own)}


def choose_profilers(
    task: Task, names: Sequence[str], count_figures: CountFigures, command: str | None = None
) -> tuple[Profilers, tuple[str, ...]]:
    """Those that have something to say of programs for the task, and what the others lack here, in sentences.

    A command of the user's own is always among them. Raises UsageError for a name that there is not,
    and for a profiler that is made for other targets.
    """
    profilers = make_profilers(count_figures, command)
    if unknown := [name for name in names if name not in (AUTO, NOBODY, *profilers)]:
        raise UsageError(f"profile {unknown[0]!r}: no such profiler; known: {', '.join((AUTO, NOBODY, *profilers))}")
    fitting = {name: profiler for name, profiler in profilers.items() if profiler.fits_task(task)}
    if misplaced := [name for name in names if name in profilers and name not in fitting]:
        raise UsageError(f"profile {misplaced[0]!r}: not made for programs of target {task.target}")
    own = (CommandProfiler.name,) if command else ()
    quick = [name for name, profiler in fitting.items() if profiler.is_quick]
    chosen = () if NOBODY in names else [entry for name in names for entry in (quick if name == AUTO else [name])]
    named = dict.fromkeys((*chosen, *own))
    lacks = {name: fitting[name].explain_lack(task) for name in named}
    return tuple(fitting[name] for name in named if not lacks[name]), tuple(filter(None, lacks.values()))
