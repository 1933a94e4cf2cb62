"""Of thirty definitions of FlashInfer Trace, how many become problem files, and why not the others: the table is
`tests/golden/flashinfer_thirty.md`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from imports.definitions import write_dataset
from imports.thirty_definitions import THIRTY

from opsmith.imports.flashinfer.folder import import_definitions
from opsmith.imports.worker import ImportWorkers
from opsmith.imports.writing import ProblemFolder
from opsmith.problems.files.reading import read_problem
from opsmith.running import sandbox

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=f"no isolation: {sandbox.missing()}")


def test_the_table_of_thirty_definitions(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    place = write_dataset(tmp_path / "data", THIRTY)
    with ImportWorkers() as workers:
        rows = list(import_definitions(place, ProblemFolder(tmp_path / "out"), workers, 1 << 20, lambda _: None))
    imported = [row for row in rows if row.problem]
    lines = [
        f"{len(imported)} of {len(rows)} definitions are imported.",
        "",
        "| definition | types | result |",
        "|---|---|---|",
    ]
    for row in rows:
        definition = next(each for each in THIRTY if row.file.endswith(f"/{each['name']}.json"))
        types = dict.fromkeys(spec["dtype"] for part in ("inputs", "outputs") for spec in definition[part].values())
        said = "; ".join(
            warning.partition(", the largest")[0] for warning in row.warnings if "no workload" not in warning
        )
        result = f"refused: {row.refusal}" if row.refusal else f"imported{f'; {said}' if said else ''}"
        lines.append(f"| {definition['op_type']}/{definition['name']} | {', '.join(types)} | {result} |")
    golden("flashinfer_thirty.md", "\n".join(lines) + "\n")
    assert all(read_problem(Path(row.written).read_text("utf-8")).problem.reference for row in imported)
