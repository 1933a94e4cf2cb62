"""Tables for a terminal, from what the store, the models and the suites list. Nothing is computed here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from opsmith.records import Task, Usage, printable
from opsmith.report.fitting import LEAST, LINES, Column, FittedTable, PlainConsole
from opsmith.terminal import has_wide_tables

if TYPE_CHECKING:  # a list of tasks needs neither models nor a store
    from opsmith.models.table import ModelInfo
    from opsmith.results.settings_apart import OneSetting
    from opsmith.store.notes import Remarks
    from opsmith.store.queries import RunSummary

DESCRIPTION = 6  # lines of a cell that describes something
_NOTE = 60  # characters of a note, or of a reason, in a list of runs
NOTHING = "–"  # in place of a figure that there is not
NOT_A_MODEL = "the embedded model is a program sampler of the target language, not a language model"
NO_MODEL = "the search enumerates programs of the target language; no model is asked"
_STRATA = {"H": "hard", "M": "medium", "E": "easy"}  # by the share of right samples that found them
_IS_SET = {True: "set", False: "not set"}


def open_console(stderr: bool = False) -> PlainConsole:
    """The console of stdout or stderr; into a file or pipe, and with `--wide`, lines are long and nothing is cut."""
    console = PlainConsole(stderr, is_whole=has_wide_tables.get())
    return console if console.is_terminal else PlainConsole(stderr, is_whole=True, width=200)


def make_table(
    *columns: str,
    right: Sequence[str] = (),
    title: str | None = None,
    code: Sequence[str] = (),
    least: Sequence[str] = (),
    lines: int = LINES,
    room: int = LEAST,
) -> FittedTable:
    """An empty table in the one style of all. Columns named in `right` hold numbers, those in `code` lines of programs
    or messages, which are cut and not folded; those in `least` are left out first where lines are short, in that order,
    so that each text keeps `room`.
    """
    drops = {name: len(least) - place for place, name in enumerate(least)}
    described = [Column(name, name in right, name in code, room, drops.get(name)) for name in columns]
    return FittedTable(described, title, lines)


def explain_level(level: str) -> str:
    """Which demonstrations a level shows.

    >>> explain_level("HM"), explain_level("random")
    ('HM: hard, medium', 'random')
    """
    words = [_STRATA.get(letter, "") for letter in level]
    return f"{level}: {', '.join(words)}" if all(words) else level


def not_a_model(name: str) -> str:
    """What must stand beside results that no language model made.

    >>> not_a_model("tuner")
    'tuner is not a language model'
    """
    if "search" in name:
        return NO_MODEL
    return NOT_A_MODEL if "embedded" in name else f"{name} is not a language model"


def tasks_table(tasks: Iterable[tuple[str, Task, str, Sequence[str]]]) -> Table:
    """A row for each (suite, task, description, languages of its own programs), under one for the suite."""
    least = ("own programs", "target", "group")
    rows = make_table(
        "task", "what it is", "group", "target", "own programs", code=("what it is",), least=least, room=40
    )
    for place, (suite, members) in enumerate(groupby(tasks, itemgetter(0))):
        if place:
            rows.add_section()
        rows.add_row(f"{suite}:")
        for _, task, description, languages in members:
            rows.add_row(f"  {task.id}", description, task.group, task.target, ", ".join(languages) or NOTHING)
    return rows


def models_table(models: Iterable[ModelInfo]) -> Table:
    rows = make_table("model", "key", "what", lines=DESCRIPTION)
    for model in models:
        state = "not needed" if model.variable is None else f"{model.variable}: {_IS_SET[bool(model.key_present)]}"
        rows.add_row(model.pattern, state, model.what)
    return rows


def runs_table(
    runs: Iterable[RunSummary],
    speeds: Mapping[str, str] | None = None,
    gains: Mapping[str, str] | None = None,
    remarks: Mapping[str, Remarks] | None = None,
    differing: Mapping[str, OneSetting] | None = None,
) -> Table:
    """A row for each run, by its name or else its id, with its language where they differ. `speeds`: by run, how much
    faster its programs are than their partners; `gains`: what its optimisation gained; where any is known. `remarks`:
    tags and notes, of which the first line is shown. `differing`: from which other run it differs in one setting."""
    runs = list(runs)
    tags, notes = _name_remarks(remarks or {}, {run.info.id for run in runs})
    targets = {run.info.id: printable(run.info.target) for run in runs}
    numbers = ("solved", "cost", "time", "samples", "rounds", "tokens")
    languages = targets if len(set(targets.values())) > 1 else None
    names = [run.info.name for run in runs if run.info.name]
    apart = {run: str(single) for run, single in (differing or {}).items()}
    beside = {
        "speed": speeds, "gain": gains, "language": languages, "tags": tags, "differs from": apart, "note": notes
    }  # fmt: skip
    columns = {name: cells for name, cells in beside.items() if cells}
    named, least = ("id",) if names else (), ("id", "language", "tokens", "rounds", "samples", "model", "note", "time")
    rows = make_table(
        "run", *named, "started (UTC)", "state", *numbers, "model", *columns, right=numbers, code=("state",),
        least=(*least, "differs from", "gain", "speed", "tags", "started (UTC)"), room=24,
    )  # fmt: skip
    for run in runs:
        rows.add_row(
            run.info.label,
            *([run.info.id] if names else []),
            format_date(run.started),
            shorten_end(run.end or "runs, or was killed"),
            f"{run.solved}/{run.tasks}" if run.tasks else "–",
            format_cost(run.usage),
            format_duration(run.seconds),
            str(run.samples),
            str(run.rounds),
            f"{run.usage.input_tokens + run.usage.output_tokens:,}",
            run.info.model,
            *(cells.get(run.info.id, "") for cells in columns.values()),
        )
    return rows


def shorten_end(end: str) -> str:
    """Why a run ended, or its note, as a cell of a table has it: the beginning.

    >>> shorten_end("max rounds"), len(shorten_end("ProviderError: " + "words " * 60))
    ('max rounds', 60)
    """
    line = " ".join(end.split())
    return line if len(line) <= _NOTE else f"{line[: _NOTE - 2]} …"


def _name_remarks(remarks: Mapping[str, Remarks], runs: Set[str]) -> tuple[dict[str, str], dict[str, str]]:
    """By run its tags, and the first line of its note; of those runs that have any."""
    own = {run: remark for run, remark in remarks.items() if run in runs}
    tags = {run: " ".join(remark.all_tags) for run, remark in own.items() if remark.all_tags}
    lines = {run: remark.text.splitlines()[0] for run, remark in own.items() if remark.text}
    return tags, {run: shorten_end(printable(line)) for run, line in lines.items()}


def figures_tables(figures: Mapping[str, Any], title: str) -> Iterator[Table]:
    """A target's cost figures: lists of records as tables of their own, then all others, one per row."""
    tables = {name: value for name, value in figures.items() if isinstance(value, list) and value}
    for name, rows in tables.items():
        yield records_table(rows, name)
    grid = make_table("figure", "value", right=("value",), title=title)
    for name, value in figures.items():
        if name not in tables:
            grid.add_row(name, _format_cell(value))
    yield grid


def records_table(rows: Sequence[Any], title: str) -> Table:
    records = [row if isinstance(row, Mapping) else {title: row} for row in rows]
    columns = list(dict.fromkeys(key for record in records for key in record))
    numbers = [key for key in columns if all(isinstance(record.get(key), (int, float, NoneType)) for record in records)]
    grid = make_table(*columns, right=numbers, title=title)
    for record in records:
        grid.add_row(*(_format_cell(record.get(key)) for key in columns))
    return grid


def _format_cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


def print_fact(console: Console, line: str) -> None:
    """A line that begins with its label, such as `cost    $0`; what does not fit stands below its beginning."""
    label = re.match(r"\S+ {2,}", line)
    if getattr(console, "is_whole", False) or label is None:
        console.print(line, markup=False, soft_wrap=label is not None)
        return
    for number, folded in enumerate(Text(line[label.end() :]).wrap(console, max(console.width - label.end(), 1))):
        folded.rstrip()
        console.print(Text(label[0] if number == 0 else " " * label.end()) + folded)


def count_noun(number: int, noun: str) -> str:
    """`1 task`, `2,000 tasks`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def format_cost(usage: Usage) -> str:
    return "unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}" if usage.cost_usd else "$0"


def format_date(seconds: float) -> str:
    """In UTC: of this year with the time of day, of another with the year."""
    date = datetime.fromtimestamp(seconds, UTC)
    return f"{date:%m-%d %H:%M}" if date.year == datetime.now(UTC).year else f"{date:%Y-%m-%d}"


def format_duration(seconds: float) -> str:
    """
    >>> format_duration(7.24), format_duration(754), format_duration(7540)
    ('7.2 s', '12:34', '2:05:40')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, remainder = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remainder:02}" if hours else f"{minutes}:{remainder:02}"


def list_names(names: Sequence[str], limit: int = 12) -> str:
    """Names with commas; a long list is cut, and says so."""
    hidden = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {hidden} more" if hidden > 0 else "")
