"""A run's experiences as data for training: JSONL by kind, and Parquet by kind and split with a card.

`datasets.load_dataset(DIR, "sft")` and `load_dataset(DIR, "preferences")` read the Parquet; the JSONL holds the same
rows of all splits. Equal runs give equal bytes, with the same version of pyarrow.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata, util
from itertools import islice
from pathlib import Path
from typing import Any

from opsmith.errors import UsageError
from opsmith.export import folder as folders
from opsmith.export.card import write_card
from opsmith.export.examples import SPLITS, examples_of
from opsmith.export.manifest import content_digest
from opsmith.export.rows import COLUMNS, ExampleRows, Row, parquet_schema
from opsmith.store import Store
from opsmith.store.rows import RunInfo

FILE = "dataset.json"
FORMAT = "opsmith dataset"
VERSION = 1
_AT_ONCE = 500  # rows that are in memory

Counts = dict[str, dict[str, int]]  # kind -> split -> rows, of the splits that have some


@dataclass(frozen=True)
class ExportedData:
    """What was written."""

    folder: Path
    rows: Counts
    tasks: Mapping[str, int]  # split -> tasks with a row

    def as_json(self) -> dict[str, Any]:
        return {"folder": str(self.folder), "rows": self.rows, "tasks": dict(self.tasks)}


def export_dataset(store: Store, run: str, folder: Path, every: bool) -> ExportedData:
    """Write the data sets; `every`: with isomorphic right replies.

    Raises UsageError where the folder holds something else, pyarrow is missing, or no reply of the run is right.
    """
    if util.find_spec("pyarrow") is None:
        raise UsageError("export --dataset: it needs pyarrow, which is not installed; try: pip install 'opsmith[data]'")
    folders.check_free(folder, FILE, FORMAT)
    info = store.summarise_run(store.find_run(run)).info
    rows = ExampleRows(store, info, examples_of(store, info.id, every))
    counts, tasks = _count_rows(rows)
    if not counts:
        raise UsageError(f"run {info.id}: none of its replies is right; expected at least one to learn from")
    folders.write_folder(folder, partial(_fill_folder, rows=rows, info=info, counts=counts, tasks=tasks, every=every))
    return ExportedData(folder, counts, {split: len(names) for split, names in tasks.items()})


def _count_rows(rows: ExampleRows) -> tuple[Counts, dict[str, set[str]]]:
    """Rows by kind and split, and the tasks of each split."""
    counts: Counts = {}
    tasks: dict[str, set[str]] = {}
    for kind in COLUMNS:
        counted: Counter[str] = Counter()
        for row in rows.list_rows(kind):
            counted[row["split"]] += 1
            tasks.setdefault(row["split"], set()).add(row["task_digest"])
        if counted:
            counts[kind] = {split: counted[split] for split in SPLITS if counted[split]}
    return counts, {split: tasks[split] for split in SPLITS if split in tasks}


def _fill_folder(
    folder: Path, *, rows: ExampleRows, info: RunInfo, counts: Counts, tasks: Mapping[str, set[str]], every: bool
) -> None:
    for kind, splits in counts.items():
        _write_lines(folder / f"{kind}.jsonl", rows.list_rows(kind))
        for split in splits:
            _write_table(folder / "data" / kind / f"{split}.parquet", kind, rows.list_rows(kind, split))
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "opsmith": metadata.version("opsmith"),
        "run": info.id,
        "model": info.model,
        "is_language_model": info.is_language_model,
        "isomorphic_replies": "all" if every else "one of each",
        "rows": counts,
        "tasks": {split: len(names) for split, names in tasks.items()},
    }
    folders.write_texts(folder, {"README.md": write_card(info, facts)})
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    hashes = {path: content_digest((folder / path).read_bytes()) for path in files}
    folders.write_texts(folder, {FILE: json.dumps({**facts, "files": hashes}, indent=1) + "\n"})


def _write_lines(file: Path, rows: Iterable[Row]) -> None:
    with file.open("w", encoding="utf-8", newline="\n") as lines:
        for row in rows:
            lines.write(json.dumps(row) + "\n")


def _write_table(file: Path, kind: str, rows: Iterator[Row]) -> None:
    import pyarrow as pa  # noqa: PLC0415  (the extra `data`)
    from pyarrow import parquet  # noqa: PLC0415

    file.parent.mkdir(parents=True, exist_ok=True)
    with parquet.ParquetWriter(file, parquet_schema(kind), compression="zstd") as writer:
        while chunk := list(islice(rows, _AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(chunk, parquet_schema(kind)))
