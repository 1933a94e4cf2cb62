"""Files of columns, CSV for spreadsheets and Parquet for data frames: every sample as one row, and any other table.

Of samples Parquet has the programs too. Of a table a column that says USD or seconds has the unit in its name; an
estimate has columns for its ends and n beside its value.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from opsmith.errors import UsageError
from opsmith.records import Outcome
from opsmith.report.record import SECONDS, TEXT, USD, DataTable, list_records
from opsmith.results.counting import group_of
from opsmith.store import Store
from opsmith.store.attempts import rows_of_run
from opsmith.store.tool_calls import count_tools, count_turns

COLUMNS = {
    "run": str, "model": str, "is_language_model": bool, "task": str, "group": str, "round": int, "level": str,
    "demonstrations": int, "temperature": float, "number": int, "sample": str, "stage": str, "outcome": str,
    "passed": bool, "candidate": str, "input_tokens": int, "output_tokens": int, "cached_tokens": int,
    "cost_usd": float, "program": str,
}  # fmt: skip
GROUP = 10_000  # rows that are held at once
_UNITS = {USD: "_usd", SECONDS: "_s"}
_ENDS = ("low", "high", "n")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute


def sample_rows(store: Store, runs: Sequence[str]) -> Iterator[dict[str, Any]]:
    """By run, round, task, temperature and number. None: there is no verdict, no program, or no known price."""
    columns = choose_columns(store, runs)
    for run in runs:
        origins, turns = store.find_origins(run), count_turns(store, run) if "turns" in columns else {}
        info, groups = store.read_info(run), {task.id: group_of(task) for task in store.read_tasks(run)}
        rounds = {info_of_round.number: info_of_round for info_of_round, _ in store.read_rounds(run)}
        for row in rows_of_run(store, run):
            info_of_round, asked = rounds[row["round"]], row.pop("asked")
            yield {
                "run": run,
                "model": asked or (info.model if info else ""),
                "is_language_model": bool(info and info.is_language_model),
                "group": groups.get(row["task"], ""),
                "level": info_of_round.level,
                "demonstrations": len(info_of_round.demonstrations),
                **({"phase": info_of_round.phase} if "phase" in columns else {}),
                **({"split_from": origins.get(row["task"], "")} if "split_from" in columns else {}),
                **({"turns": turns.get(row["sample"], 1)} if "turns" in columns else {}),
                "passed": None if row["outcome"] is None else row["outcome"] == Outcome.PASSED.value,
                **row,
            }


def choose_columns(store: Store, runs: Sequence[str]) -> dict[str, type]:
    """With the phase of each sample where any of the runs has optimisation rounds, with the task that a node was split
    off from where any has plans, and with the turns of conversations where any has tools."""
    has_phases = any(store.find_optimisation(run) is not None for run in runs)
    columns = {**COLUMNS, **({"phase": str} if has_phases else {})}
    columns |= {"split_from": str} if any(store.has_plans(run) for run in runs) else {}
    return columns | ({"turns": int} if any(count_tools(store, run) for run in runs) else {})


def to_csv(store: Store, runs: Sequence[str]) -> str:
    """As `write_csv` writes it."""
    out = io.StringIO()
    write_csv(store, runs, out)
    return out.getvalue()


def write_csv(store: Store, runs: Sequence[str], out: IO[str]) -> None:
    """Without the programs; texts that a spreadsheet would compute begin with an apostrophe."""
    names = [name for name in choose_columns(store, runs) if name != "program"]
    writer = csv.DictWriter(out, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: escape_formula(row[name]) for name in names} for row in sample_rows(store, runs))


def write_parquet(store: Store, runs: Sequence[str], path: Path) -> None:
    """Raises UsageError where pyarrow is not installed."""
    arrow, parquet = load_arrow()
    kinds = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    schema = arrow.schema([(name, kinds[kind]) for name, kind in choose_columns(store, runs).items()])
    rows = sample_rows(store, runs)
    with parquet.ParquetWriter(path, schema) as out:
        while some := list(itertools.islice(rows, GROUP)):
            out.write_table(arrow.Table.from_pylist(some, schema=schema))


def load_arrow() -> tuple[Any, Any]:
    """pyarrow, and its part for Parquet. Raises UsageError where it is not installed."""
    try:
        import pyarrow as arrow  # noqa: PLC0415  (an extra)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        message = "--format parquet: needs pyarrow, which is not installed; try: pip install 'opsmith[data]'"
        raise UsageError(message) from error
    return arrow, parquet


def escape_formula(value: Any) -> Any:
    """A text that a spreadsheet would compute begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def list_columns(table: DataTable) -> dict[str, list[Any]]:
    """The values by names that programs like: no spaces, and `pass_at_1`."""
    columns: dict[str, list[Any]] = {}
    records = list(list_records(table))
    for heading, unit in table.columns.items():
        name = heading.replace("@", "_at_").replace(" ", "_") + _UNITS.get(unit, "")
        cells = [record[heading] for record in records]
        columns[name] = [cell["value"] if isinstance(cell, Mapping) else cell for cell in cells]
        if any(isinstance(cell, Mapping) for cell in cells):
            for end in _ENDS:
                columns[f"{name}_{end}"] = [cell[end] if isinstance(cell, Mapping) else None for cell in cells]
    return columns


def write_table_csv(table: DataTable, path: Path) -> None:
    """With a line of names; what is not known is empty."""
    columns = list_columns(table)
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(map(escape_formula, row) for row in zip(*columns.values(), strict=True))


def write_table_parquet(table: DataTable, path: Path) -> None:
    """Raises UsageError where pyarrow is not installed."""
    arrow, parquet = load_arrow()
    texts = {heading.replace(" ", "_") for heading, unit in table.columns.items() if unit == TEXT}

    def choose_kind(name: str, values: list[Any]) -> Any:
        if name in texts:
            return arrow.string()
        return arrow.int64() if all(isinstance(value, int | None) for value in values) else arrow.float64()

    columns = list_columns(table)
    arrays = {name: arrow.array(values, choose_kind(name, values)) for name, values in columns.items()}
    parquet.write_table(arrow.table(arrays), path)


TABLE_FILES: dict[str, Callable[[DataTable, Path], None]] = {"csv": write_table_csv, "parquet": write_table_parquet}
