"""Which files does an experiment leave behind? NAME.md, NAME.json, NAME.csv, and its figures as SVG and PNG."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opsmith.evaluation.found import Analysis, Row
from opsmith.evaluation.marks import is_language_model, mark, marked
from opsmith.evaluation.page import Made, page
from opsmith.evaluation.study import Study
from opsmith.records import to_json
from opsmith.report.figures import png, svg

COLUMNS = (
    "experiment", "model", "is_language_model", "arm", "measure", "of", "value", "low", "high", "seeds", "tasks",
    "samples", "paper", "paper_model", "paper_place",
)  # fmt: skip


def write(folder: Path, study: Study, analysis: Analysis, made: Made) -> tuple[Path, ...]:
    """Write all files; returns their paths."""
    name = study.experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {f"{name}{suffix}": marked(study, figure) for suffix, figure in analysis.figures.items()}
    texts = {f"{stem}.svg": svg(spec, "paper") for stem, spec in pictures.items()}
    texts |= {
        f"{name}.md": page(study, analysis, made, tuple(texts)) + "\n",
        f"{name}.json": json.dumps(as_json(study, analysis, made), indent=1) + "\n",
        f"{name}.csv": as_csv(study, analysis),
    }
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
    for stem, spec in pictures.items():
        (folder / f"{stem}.png").write_bytes(png(spec, scale=1.5))
    return tuple(folder / file for file in (*texts, *(f"{stem}.png" for stem in pictures)))


def as_json(study: Study, analysis: Analysis, made: Made) -> dict[str, Any]:
    """What `opsmith experiment --json` prints."""
    seeds = sorted({item.seed for item in study.observed})
    return {
        "experiment": study.experiment.name,
        "title": study.experiment.title,
        "headline": analysis.headline,
        "mark": mark(study),
        "complete": not study.stopped,
        "stopped": study.stopped,
        "made": to_json(made),
        "tasks": [task.id for task in study.tasks],
        "models": list(study.series),
        "seeds": seeds,
        "samples": sum(tally.judged for o in study.observed if not o.arm.first_round_of for tally in o.tallies),
        "rows": [_row(study, row) for row in analysis.rows],
        "runs": [
            {"arm": o.arm.name, "model": o.result.model, "seed": o.seed, "run": o.result.run, "end": o.result.end}
            for o in study.observed
        ],
        "notes": [*study.experiment.notes, *analysis.notes],
    }


def as_csv(study: Study, analysis: Analysis) -> str:
    """One line per estimate; a cell that a spreadsheet would take for a formula is quoted as text."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in analysis.rows:
        writer.writerow(dict(_cells(study, row)))
    return out.getvalue()


def _row(study: Study, row: Row) -> dict[str, Any]:
    paper = [{"value": value, "model": said.model, "place": said.place} for value, said in row.paper]
    place = {"model": row.model, "is_language_model": is_language_model(study, row.model), "arm": row.arm}
    return {**place, "measure": row.measure, "of": row.of, "found": to_json(row.found), "paper": paper}


def _cells(study: Study, row: Row) -> Iterator[tuple[str, object]]:
    flat = _row(study, row)
    found = flat["found"] or {}
    yield "experiment", study.experiment.name
    for name in ("model", "is_language_model", "arm", "measure", "of"):
        yield name, _harmless(flat[name])
    for name in ("value", "low", "high", "tasks", "samples"):
        yield name, found.get(name, "")
    yield "seeds", " ".join(map(str, found.get("seeds", ())))
    for name, key in (("paper", "value"), ("paper_model", "model"), ("paper_place", "place")):
        yield name, "; ".join(str(item[key]) for item in flat["paper"])


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value
