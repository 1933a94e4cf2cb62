"""Many runs in one table and one figure: what each solved, gained, cost and took, at its end and round by round.

Columns say the settings in which the runs differ. Grouped by a setting, or by tags, a figure is the mean over the runs
of a group, its interval over the runs (`results.intervals`: none for fewer than five). Between two rounds a run has
what it had at the end of the first; a run that has ended keeps it, one that goes on is left out beyond its last round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from textwrap import shorten
from typing import Any

from opsmith.errors import UsageError
from opsmith.report.comparison import align_problems, name_columns, tabulate_pairs, tabulate_problems
from opsmith.report.curves import Figure, annotate_figures, draw_pass_at_k, draw_rounds
from opsmith.report.figures import line_chart, place_interval
from opsmith.report.languages import read_languages, tabulate_by_language, tabulate_languages
from opsmith.report.record import COUNT, RATIO, SECONDS, SHARE, TEXT, USD, DataTable, Said, Value
from opsmith.report.run_tables import describe_sampling
from opsmith.report.tables import NOTHING, count_noun, format_duration
from opsmith.report.views import RunView
from opsmith.results.course import find_value
from opsmith.results.intervals import Estimate, bound_mean
from opsmith.results.settings_apart import find_differences
from opsmith.store import Store

TAG = "tag"  # what runs are grouped by beside settings
SHOWN = {  # what a figure shows -> the unit of it, and its axis
    "solved": (COUNT, "tasks solved"),
    "gain": (RATIO, "best gain so far, times as good"),
    "cost": (USD, "USD so far"),
    "tokens": (COUNT, "tokens so far, input and output"),
    "time": (SECONDS, "seconds of work so far"),
}
BY = ("round", "cost", "tokens", "time")  # and over what
_ENDED = Said("ended")  # in place of a value: the run had no such round
_NAMED = 6  # so many lines of a figure are named at their ends
_GRID = 6  # columns of a table over money, tokens or time
_WRITE: dict[str, Callable[[float], str]] = {
    "round": "round {:.0f}".format,
    "solved": "{:.3g}".format,
    "gain": "{:.3f}".format,
    "cost": "${:.4g}".format,
    "tokens": "{:,.0f}".format,
    "time": format_duration,
}


@dataclass(frozen=True)
class ManyRuns:
    """Runs with the settings in which they differ."""

    runs: tuple[RunView, ...]
    differing: Mapping[str, tuple[str, ...]]  # by name the value of each run

    def group_runs(self, group: str) -> dict[str, list[RunView]]:
        """By the value of a setting, or by all tags together. Raises UsageError for what is neither."""
        known = dict.fromkeys(name for run in self.runs for name in run.told)
        if group != TAG and group not in known:
            choices = ", ".join(self.differing)
            expected = f"{TAG} or a setting; of those that differ here: {choices}"
            raise UsageError(f"--group: given {group!r}; expected {expected}")
        groups: dict[str, list[RunView]] = {}
        for run in self.runs:
            tags = " ".join(run.remarks.tags) or "no tag"
            groups.setdefault(tags if group == TAG else run.told.get(group, NOTHING), []).append(run)
        return groups


def gather_runs(views: Sequence[RunView]) -> ManyRuns:
    """The runs of these views, in their order."""
    return ManyRuns(tuple(views), find_differences([view.told for view in views]))


def compare_runs(store: Store, many: ManyRuns, shown: str = "", by: str = "", group: str = "") -> dict[str, DataTable]:
    """All tables of the runs beside each other, by name. Of two the course is left out unless something of it was
    chosen. Raises UsageError."""
    views = many.runs
    tables = {"runs": tabulate_runs(many)}
    tables |= {"groups": tabulate_groups(many, group)} if group else {}
    if len(views) != 2 or shown or by or group:
        tables["course"] = tabulate_course(many, shown or "solved", by or "round", group)
    if (languages := read_languages(store, views)) is not None:
        tables |= {"languages": tabulate_languages(languages), "by language": tabulate_by_language(languages)}
    return {
        **tables,
        **tabulate_pairs(store, views),
        "problems": tabulate_problems(views, align_problems(store, views)),
    }


def turn_pair(many: ManyRuns, tables: Mapping[str, DataTable]) -> dict[str, DataTable]:
    """The tables as people read them: of two runs a column for each."""
    if len(many.runs) > 2:
        return dict(tables)
    names = name_columns(many.runs)
    return {**tables, "runs": tables["runs"].turn(names), "paired": tables["paired"].turn(["both"])}


def tabulate_runs(many: ManyRuns) -> DataTable:
    """A row for each run."""
    has_gain = any(run.gain is not None for run in many.runs)
    is_named = any(run.given_name for run in many.runs)
    tags = [" ".join(run.remarks.all_tags) for run in many.runs]
    notes = [run.remarks.text for run in many.runs]
    settings = {name: values for name, values in many.differing.items() if name != "model"}
    targets = tuple(run.target for run in many.runs)
    settings = {"language": targets, **settings} if len(set(targets)) > 1 else settings
    rows = [
        [
            *([run.label] if is_named else []),
            Said(run.id, link=("run", run.id)),
            Said(run.model + ("" if run.is_language_model else " (no LM)"), run.model),
            *(values[place] for values in settings.values()),
            run.overall.solved,
            run.overall.tasks,
            run.overall.pass_at_1 or run.overall.value_at_1,
            *([run.gain] if has_gain else []),
            run.usage,
            run.usage.input_tokens,
            run.usage.output_tokens,
            Said(format_duration(run.seconds), run.seconds),
            len(run.rounds),
            run.judged,
            Said(shorten(run.end, 60) + ("" if run.finished else " (not finished)"), run.end),
            *([tags[place]] if any(tags) else []),
            *([notes[place]] if any(notes) else []),
        ]
        for place, run in enumerate(many.runs)
    ]
    columns = {
        **dict.fromkeys((*["name"] * is_named, "run", "model", *map(_head_setting, settings)), TEXT),
        "solved": COUNT, "tasks": COUNT, "pass@1": SHARE, **({"gain": RATIO} if has_gain else {}), "cost": USD,
        "input tokens": COUNT, "output tokens": COUNT, "time": SECONDS, "rounds": COUNT, "samples": COUNT,
        "ended": TEXT, **dict.fromkeys((*["tags"] * any(tags), *["note"] * any(notes)), TEXT),
    }  # fmt: skip
    least = ("note", "tags", *["run"] * is_named, "samples", "rounds", "ended", "model", "tasks", "time")
    return DataTable("", columns, rows, least, note=f"pass@1: {describe_sampling(many.runs)}.")


def tabulate_groups(many: ManyRuns, group: str) -> DataTable:
    """A row for each group: means over its runs."""
    figures: dict[str, tuple[str, Callable[[RunView], float | None]]] = {
        "solved": (COUNT, attrgetter("overall.solved")),
        "pass@1": (SHARE, lambda run: _take_value(run.overall.pass_at_1, run.overall.value_at_1)),
        "gain": (RATIO, lambda run: _take_value(run.gain, None)),
        "cost": (USD, attrgetter("usage.cost_usd")),
        "tokens": (COUNT, attrgetter("tokens")),
        "time": (SECONDS, attrgetter("seconds")),
    }
    groups = many.group_runs(group)
    means = {
        name: [_say_mean(_average([read(run) for run in runs], name == "gain"), name) for runs in groups.values()]
        for name, (_, read) in figures.items()
    }
    shown = [name for name, column in means.items() if any(column)]
    rows = [
        [name, len(runs), *(means[figure][place] for figure in shown)]
        for place, (name, runs) in enumerate(groups.items())
    ]
    columns = {_head_setting(group): TEXT, "runs": COUNT, **{name: figures[name][0] for name in shown}}
    return DataTable(f"means over the runs of each {group}; brackets: 95 %, over the runs", columns, rows)


def tabulate_course(many: ManyRuns, shown: str, by: str, group: str = "") -> DataTable:
    """A row for each run, or group of runs: what it had at some places of the way."""
    places = _choose_places(many, by)
    rows: list[list[Value]] = [
        [
            name,
            *(
                _ENDED
                if by == "round" and not group and runs[0].finished and place > max(_list_places(runs, by), default=-1)
                else _say_mean(_mean_at(runs, shown, by, place), shown, is_alone=not group)
                for place in places
            ),
        ]
        for name, runs in _list_series(many, group, is_short=False).items()
    ]
    columns = {group or "run": TEXT, **{_WRITE[by](place): SHOWN[shown][0] for place in places}}
    return DataTable(f"{SHOWN[shown][1]}, by {by}", columns, rows)


def tabulate_steps(many: ManyRuns) -> DataTable:
    """A row for each run and round: the course of every run, for an evaluation of one's own."""
    names = [name for name in many.differing if name != "model"]
    rows: list[Sequence[Value]] = [
        (
            run.id, run.given_name, run.model, "yes" if run.is_language_model else "no",
            " ".join(run.remarks.all_tags), *(run.told.get(name, NOTHING) for name in names),
            run.overall.tasks, step.round, step.phase, step.solved, step.gain, step.cost, step.tokens, step.time,
        )
        for run in many.runs
        for step in run.course
    ]  # fmt: skip
    columns = {
        **dict.fromkeys(("run", "name", "model", "language model", "tags", *map(_head_setting, names)), TEXT),
        "tasks": COUNT, "round": COUNT, "phase": TEXT, "solved": COUNT, "gain": RATIO, "cost": USD, "tokens": COUNT,
        "time": SECONDS,
    }  # fmt: skip
    return DataTable("", columns, rows)


def tabulate_tasks(many: ManyRuns) -> DataTable:
    """A row for each run and task."""
    rows: list[Sequence[Value]] = [
        (run.id, run.given_name, row.id, row.group, row.state, row.round, row.rate, row.right, row.judged)
        for run in many.runs
        for row in run.tasks
    ]
    units = (TEXT, TEXT, TEXT, TEXT, TEXT, COUNT, SHARE, COUNT, COUNT)
    names = ("run", "name", "task", "group", "state", "round", "rate", "right", "judged")
    return DataTable("", dict(zip(names, units, strict=True)), rows)


def draw_course(many: ManyRuns, shown: str, by: str, group: str = "") -> Figure:
    """The figure: a line for each run, or for the mean of each group."""
    labels = {getattr(step, by): step.level for step in many.runs[0].course} if len(many.runs) == 1 else {}
    series = _list_series(many, group)
    points: list[dict[str, Any]] = [
        {"series": name, "x": place, **place_interval(mean), **({"label": labels.get(place, "")} if labels else {})}
        for name, runs in series.items()
        for place in _list_places(runs, by)
        if (mean := _mean_at(runs, shown, by, place)) is not None
    ]
    if 1 < len(series) <= _NAMED:  # each line says at its end whose it is
        ends = {point["series"]: place for place, point in enumerate(points)}
        for place, point in enumerate(points):
            point["label"] = _name_line(series[point["series"]], point["series"]) if place in ends.values() else ""
    has_intervals = any(point["low"] is not None for point in points)
    tasks = sorted({run.overall.tasks for run in many.runs})
    axis = f"{SHOWN[shown][1]}" + (f" of {tasks[0]:,}" if shown == "solved" and len(tasks) == 1 else "")
    title = f"{axis[0].upper()}{axis[1:]}, by {by}"
    caption = "A point for each round that has ended." + " Equal lines are drawn beside each other." * (len(series) > 1)
    if any(labels.values()):
        caption += " Labels: which demonstrations were shown (H hard, M medium, E easy)."
    if group:
        caption = f"Means over the runs of each {group}, at the rounds' ends; a run that has ended keeps what it had."
        caption += " Whiskers or bands: 95 %, over the runs; none for fewer than five." if has_intervals else ""
    if shown == "gain":
        caption += " Gains are as measured by then, many only screened: what may be published stands in the table."
    highest = max((point["high"] or point["y"] for point in points), default=1.0)
    spec = line_chart(
        points,
        title=title,
        x_title="round" if by == "round" else SHOWN[by][1],
        y_title=axis,
        y_domain=(0, 1.06 * max(highest, tasks[-1] if shown == "solved" and len(tasks) == 1 else 0.0) or 1.0),
        empty="it is known of none of the runs",
    )
    return annotate_figures([Figure(f"{shown}-by-{by}", title, caption, spec)], many.runs)[0]


def draw_courses(many: ManyRuns) -> Iterator[Figure]:
    """The figures where nobody chose: what was solved, and what was gained, by round and by cost; pass@k."""
    by_cost = "cost" if any(step.cost for run in many.runs for step in run.course) else "tokens"
    has = {"solved": any(run.is_solving for run in many.runs), "gain": any(run.optimised for run in many.runs)}
    for shown in (name for name, is_there in has.items() if is_there):
        yield from (draw_course(many, shown, "round"), draw_course(many, shown, by_cost))
    if any(run.pass_at_k for run in many.runs):
        yield from annotate_figures([draw_pass_at_k(many.runs)], many.runs)


def _list_series(many: ManyRuns, group: str, is_short: bool = True) -> dict[str, list[RunView]]:
    if group:
        return {f"{name} ({count_noun(len(runs), 'run')})": runs for name, runs in many.group_runs(group).items()}
    names = [run.name if is_short else run.label for run in many.runs]
    return {name if names.count(name) == 1 else run.id: [run] for name, run in zip(names, many.runs, strict=True)}


def _name_line(runs: Sequence[RunView], series: str) -> str:
    """Short, for the end of a line: what the legend says, without what all names share."""
    return series if len(runs) > 1 else runs[0].given_name or runs[0].id.rpartition("-")[2][:6]


def _mean_at(runs: Sequence[RunView], shown: str, by: str, place: float) -> Estimate | None:
    return _average([find_value(run.course, run.finished, shown, by, place) for run in runs], shown == "gain")


def _average(values: Sequence[float | None], is_geometric: bool = False) -> Estimate | None:
    """Over the runs that have a value."""
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    return Estimate(*bound_mean([known], is_geometric), len(known), len(known))


def _say_mean(mean: Estimate | None, figure: str, is_alone: bool = False) -> Value:
    """A mean over runs in the words of its figure; `is_alone`: it is one run's own value."""
    if mean is None:
        return None
    write = _WRITE.get(figure, "{:.3f}".format)
    if is_alone:
        return Said(write(mean.value), mean.value)
    if mean.low is None or mean.high is None:
        return Said(f"{write(mean.value)} (n = {mean.tasks})", mean)
    return Said(f"{write(mean.value)} [{write(mean.low)}, {write(mean.high)}]", mean)


def _take_value(estimate: Estimate | None, otherwise: float | None) -> float | None:
    return otherwise if estimate is None else estimate.value


def _list_places(runs: Sequence[RunView], by: str) -> list[float]:
    """Where the rounds of these runs ended."""
    ends = [getattr(step, by) for run in runs for step in run.course]
    return sorted({end for end in ends if end is not None})


def _choose_places(many: ManyRuns, by: str) -> list[float]:
    """All rounds where they are few, else some of them; of what goes on evenly, some steps up to the largest."""
    values = _list_places(many.runs, by)
    if by == "round":
        step = -(-len(values) // (2 * _GRID)) or 1
        return [*values[:-1:step], *values[-1:]]
    largest = values[-1] if values else 0.0
    return [largest * number / _GRID for number in range(1, _GRID + 1)] if largest else []


def _head_setting(name: str) -> str:
    """A setting as a column's name, told from what a run came to under the same name."""
    return f"setting {name}" if name in ("model", "tasks", "samples") else name


def list_figures(run: RunView) -> list[Figure]:
    """All figures of a run; one of a single value, or of none, is left out."""
    solved = [draw_course(gather_runs([run]), "solved", "tokens")] * run.is_solving
    return [figure for figure in (*solved, *draw_rounds(run)) if len(figure.spec["data"]["values"]) > 1]
