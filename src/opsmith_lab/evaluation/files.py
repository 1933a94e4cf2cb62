"""The files that an experiment leaves behind: NAME.md, NAME.json, NAME.csv, and its figures as SVG and PNG."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from opsmith.errors import UsageError
from opsmith.records import to_json
from opsmith.report.rendering import render_png, render_svg
from opsmith.report.rows import escape_formula
from opsmith_lab.evaluation.analysis import Analysis, Chart, ExperimentReport, Row
from opsmith_lab.evaluation.charts import draw_chart, mark_chart, read_chart
from opsmith_lab.evaluation.index import write_index
from opsmith_lab.evaluation.page import ResultsOrigin, write_page

COLUMNS = (
    "experiment", "model", "is_language_model", "arm", "measure", "of", "value", "low", "high", "seeds", "tasks",
    "samples", "paper", "paper_model", "paper_place",
)  # fmt: skip


@dataclass(frozen=True)
class ConductedExperiment:
    """What is told of an experiment that was run."""

    name: str
    stopped: str  # "": it is complete
    cost: float  # USD of its runs, as far as known
    lines: tuple[str, ...]
    data: dict[str, Any]


def publish_results(
    folder: Path, report: ExperimentReport, analysis: Analysis, command: str, cost: float
) -> ConductedExperiment:
    """Write what came of an experiment, and the index of the folder anew."""
    provenance = ResultsOrigin(command, date.today().isoformat(), metadata.version("opsmith"))
    written = write_results(folder, report, analysis, provenance)
    write_index(folder)
    mark = [f"  {report.mark}"] if report.mark else []
    lines = (f"{report.name}: {analysis.headline}", *mark, f"  {', '.join(map(str, written))}")
    return ConductedExperiment(report.name, report.stopped, cost, lines, as_json(report, analysis, provenance))


def write_results(
    folder: Path, report: ExperimentReport, analysis: Analysis, provenance: ResultsOrigin
) -> tuple[Path, ...]:
    """Write all files; returns their paths."""
    name = report.name
    folder.mkdir(parents=True, exist_ok=True)
    charts = make_charts(report, analysis)
    texts = {
        f"{name}.md": write_page(report, analysis, provenance, [f"{name}{suffix}.svg" for suffix in charts]) + "\n",
        f"{name}.json": json.dumps(as_json(report, analysis, provenance), indent=1) + "\n",
        f"{name}.csv": as_csv(report, analysis),
    }
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
    return (*draw_figures(folder, name, charts), *(folder / file for file in texts))


def make_charts(report: ExperimentReport, analysis: Analysis) -> dict[str, Chart]:
    """The figures before they are drawn, by what is added to the experiment's name."""
    return {suffix: mark_chart(report, chart) for suffix, chart in analysis.figures.items()}


def redraw_results(folder: Path, name: str) -> tuple[Path, ...]:
    """Draw the figures of a result again from NAME.json, in today's look; no run is read or made. Raises UsageError."""
    file = folder / f"{name}.json"
    try:
        charts = json.loads(file.read_text(encoding="utf-8"))["figures"]
        return draw_figures(folder, name, {suffix: read_chart(chart) for suffix, chart in charts.items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"--redraw: {file}: expected a result with its figures; run the experiment first") from None


def draw_figures(folder: Path, name: str, charts: Mapping[str, Chart]) -> tuple[Path, ...]:
    """The pictures of charts, as SVG and PNG; their paths."""
    paths: list[Path] = []
    for suffix, chart in charts.items():
        spec = draw_chart(chart)
        paths += [folder / f"{name}{suffix}.svg", folder / f"{name}{suffix}.png"]
        paths[-2].write_text(render_svg(spec, "paper"), encoding="utf-8")
        paths[-1].write_bytes(render_png(spec))
    return tuple(paths)


def as_json(report: ExperimentReport, analysis: Analysis, provenance: ResultsOrigin) -> dict[str, Any]:
    """What `opsmith experiment --json` prints."""
    return {
        "experiment": report.name,
        "title": report.title,
        "headline": analysis.headline,
        "mark": report.mark,
        "complete": not report.stopped,
        "stopped": report.stopped,
        "made": to_json(provenance),
        "tasks": list(report.tasks),
        "models": list(report.models),
        "seeds": list(report.seeds),
        "samples": report.samples,
        "rows": [_flatten_row(report, row) for row in analysis.rows],
        "runs": list(report.runs),
        "notes": [*report.notes, *analysis.notes],
        "figures": to_json(make_charts(report, analysis)),
    }


def as_csv(report: ExperimentReport, analysis: Analysis) -> str:
    """One line per estimate; a cell that a spreadsheet would take for a formula is quoted as text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in map(partial(_flatten_row, report), analysis.rows):
        found, papers = row["found"] or {}, row["paper"]
        names = (report.name, *(escape_formula(row[name]) for name in COLUMNS[1:6]))
        numbers = (found.get(name) for name in ("value", "low", "high"))
        seeds = " ".join(map(str, found.get("seeds", ())))
        stated = ("; ".join(str(paper[key]) for paper in papers) for key in ("value", "model", "place"))
        writer.writerow((*names, *numbers, seeds, found.get("tasks"), found.get("samples"), *stated))
    return out.getvalue()


def _flatten_row(report: ExperimentReport, row: Row) -> dict[str, Any]:
    paper = [{"value": value, "model": statement.model, "place": statement.place} for value, statement in row.paper]
    place = {"model": row.model, "is_language_model": row.model not in report.not_language_models, "arm": row.arm}
    return {**place, "measure": row.measure, "of": row.of, "found": to_json(row.estimate), "paper": paper}
