"""What the shell offers for a word of a command: tasks, runs, models, targets. Nothing here opens a store or torch.

The runs of a folder are read from its SQLite file as it is, without SQLAlchemy, which takes longer to import than a
shell may wait. Of a store on a server nothing is offered.
"""

# ruff: noqa: PLC0415  (imports are inside: the shell waits for them)
from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from opsmith.cli.overview import COMMANDS

ASKED = "_OPSMITH_COMPLETE"  # typer's variable: a shell asks
_FILE = "opsmith.sqlite"  # of a store
_NAMED = "run IN (SELECT run FROM tag WHERE change = 'name' AND name = ?)"  # somebody called it so
_WORDS = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")  # bash's line, and that of other shells


def find_command() -> str:
    """The command on the line that a shell asks about; empty: that is what is being written."""
    line = next((os.environ[name] for name in _WORDS if name in os.environ), "").split()
    return line[1] if len(line) > 1 and line[1] in COMMANDS else ""


def choose_completion(metavar: str) -> Callable[..., list[str]] | None:
    """What completes an option or argument that stands so in the help."""
    words = frozenset(re.findall(r"[A-Z]+", metavar))
    if words & {"TASK", "IDS"}:
        return complete_runs_and_tasks if "RUN" in words else complete_tasks
    return next((complete for word, complete in _BY_WORD.items() if word in words), None)


def complete_tasks(ctx: Any, incomplete: str) -> list[str]:
    """Tasks of the run that the line names; without one ids and suites, of a list with commas the last one."""
    if run := str(ctx.params.get("run") or ""):
        query = f"SELECT DISTINCT id FROM task WHERE (substr(run, 1, ?) = ? OR {_NAMED}) AND substr(id, 1, ?) = ?"
        return _ask_store(ctx, query, (len(run), run, run, len(incomplete), incomplete))
    from opsmith.suites import SUITES, task_files

    before, comma, last = incomplete.rpartition(",")
    names = [*SUITES, *(path.stem for suite in SUITES for path in task_files(suite))]
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


def complete_runs(ctx: Any, incomplete: str) -> list[str]:
    """Ids and names of the runs of the folder that `--out` names."""
    query = "SELECT id FROM run WHERE substr(id, 1, ?) = ?"
    query += " UNION SELECT name FROM tag WHERE change = 'name' AND substr(name, 1, ?) = ?"
    return _ask_store(ctx, query, (len(incomplete), incomplete) * 2)


def complete_runs_and_tasks(ctx: Any, incomplete: str) -> list[str]:
    return [*complete_runs(ctx, incomplete), *complete_tasks(ctx, incomplete)]


def complete_models(incomplete: str) -> list[str]:
    """The names that `opsmith models` lists, up to what a user has to write."""
    from opsmith.models.table import FAMILIES

    return [name for name in FAMILIES if name.startswith(incomplete)]


def complete_languages(incomplete: str) -> list[str]:
    from opsmith.targets.lookup import BUILT_IN

    return sorted(name for name in BUILT_IN if name.startswith(incomplete))


_BY_WORD: dict[str, Callable[..., list[str]]] = {
    "RUN": complete_runs,
    "M": complete_models,
    "LANGUAGE": complete_languages,
}


def _ask_store(ctx: Any, query: str, values: tuple[object, ...]) -> list[str]:
    """The names that the store in the folder answers with; none where there is no store, or it is another one's."""
    out = Path(ctx.params.get("out") or "runs")
    try:
        file = out if out.is_file() else out / _FILE
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as store:
            return sorted(str(name) for (name,) in store.execute(query, values))
    except (sqlite3.Error, OSError):
        return []
