"""Tables as records: values with their units, intervals and n. Terminal, pages, Markdown and JSON are written from
them.

Who makes a table decides what it says; a writer decides nothing. The unit of a column says how its numbers are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from opsmith.measuring.intervals import Interval
from opsmith.records import Usage, printable, to_json
from opsmith.report.tables import NOTHING, format_cost, make_table
from opsmith.results.intervals import Estimate

TEXT, CODE = "text", "code"  # units of what is no number; lines of code are cut, not folded
COUNT, SHARE, RATIO, USD, SECONDS = "count", "share", "ratio", "USD", "s"
_FORMS = {SHARE: "z.3f", RATIO: "z.3f", SECONDS: ".1f", USD: ",.2f"}
_MARKUP = re.compile(r"([\\`*_\[\]<>#|~&]|^[-+])")


@dataclass(frozen=True)
class Said:
    """A value in words of its own, with what it leads to."""

    text: str
    value: Any = None  # for machines; None: the text
    link: tuple[str, str] | None = None  # what it is (run, task, node, sample, page) and its whole name
    note: str = ""  # beside it where there is room
    mood: str = ""  # good or bad; the text says it too
    run: str = ""  # the whole id of the run that the link is of; "": that of the whole table
    shade: str = ""  # the class of its cell on pages


Value = str | int | float | None | Usage | Estimate | Interval | Said


@dataclass(frozen=True)
class DataTable:
    """Rows of values under named columns, each of one unit."""

    title: str
    columns: Mapping[str, str]  # the unit of each
    rows: Sequence[Sequence[Value]]
    least: tuple[str, ...] = ()  # columns that a narrow terminal leaves out, these first
    has_total: bool = False  # the last row sums up the others
    note: str = ""  # below it: what its columns mean, or what it shows

    @property
    def said_rows(self) -> list[list[Said]]:
        """Every value as people read it."""
        units = self.columns.values()
        return [[say_value(value, unit) for value, unit in zip(row, units, strict=True)] for row in self.rows]

    def __rich__(self) -> Table:
        return fit_table(self)

    def turn(self, names: Sequence[str]) -> DataTable:
        """With a row for each column but the first, and a column for each row: `names`, what rows are called. What is
        not the same in all of them is marked."""
        columns = {"figure": TEXT, **dict.fromkeys(names, COUNT)}
        lines = [list(cells) for cells in zip(*self.said_rows, strict=True)]
        rows: list[list[Value]] = [
            [name, *(replace(own, shade="differs") if len({one.text for one in cells}) > 1 else own for own in cells)]
            for name, cells in zip(self.columns, lines, strict=True)
        ]
        return DataTable(self.title, columns, rows, note=self.note)

    @property
    def is_number(self) -> list[bool]:
        return [unit not in (TEXT, CODE) for unit in self.columns.values()]


def say_value(value: Value, unit: str) -> Said:
    """
    >>> say_value(1664, COUNT).text, say_value(0.5, SHARE).text, say_value(None, SHARE).text
    ('1,664', '0.500', '–')
    """
    if isinstance(value, Said):
        return value
    if isinstance(value, Usage):
        return Said(format_cost(value), value.cost_usd)
    if isinstance(value, float):  # a mean of counts has one place, if any
        return Said(format(value, _FORMS.get(unit, ",.1f")).removesuffix(".0"), value)
    if isinstance(value, int):
        return Said(f"{value:,}", value)
    return Said(str(value) if value is not None else "unknown" if unit == USD else NOTHING, value)


def fit_table(table: DataTable) -> Table:
    """For a terminal."""
    numbers = [name for name, is_number in zip(table.columns, table.is_number, strict=True) if is_number]
    code = [name for name, unit in table.columns.items() if unit == CODE]
    grid = make_table(*table.columns, right=numbers, code=code, title=table.title or None, least=table.least)
    for number, row in enumerate(table.said_rows, 1):
        if table.has_total and number == len(table.rows):
            grid.add_section()
        grid.add_row(*(printable(cell.text, keep="\n\t") for cell in row))
    grid.caption = f"{printable(table.note, keep=chr(10))}\n" if table.note else None
    return grid


def escape_markup(text: str) -> str:
    """A text on one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\1", printable(" ".join(text.split())))


def write_grid(table: DataTable) -> Iterator[str]:
    """For Markdown, with numbers to the right."""
    marks = ["--:" if is_number else "---" for is_number in table.is_number]
    yield f"| {' | '.join(map(escape_markup, table.columns))} |"
    yield f"|{'|'.join(marks)}|"
    for row in table.said_rows:
        cells = [
            cell.text if is_number else escape_markup(f"{cell.text} {cell.note}".strip())
            for cell, is_number in zip(row, table.is_number, strict=True)
        ]
        links = (cell.link[1] if cell.link and cell.link[0] == "page" else "" for cell in row)
        cells = [f"[{text}]({address})" if address else text for text, address in zip(cells, links, strict=True)]
        yield f"| {' | '.join(cells)} |"
    yield from ("", escape_markup(table.note), "") if table.note else ("",)


def write_tables(tables: Mapping[str, DataTable]) -> dict[str, Any]:
    """For machines: by name the unit of each column, and the rows with their values; the note, where there is one."""
    return {
        name: {"units": dict(table.columns), "rows": list(list_records(table))}
        | ({"note": table.note} if table.note else {})
        for name, table in tables.items()
    }


def list_records(table: DataTable) -> Iterable[dict[str, Any]]:
    """A record for each row; an estimate has value, low, high and n."""
    for row, said in zip(table.rows, table.said_rows, strict=True):
        cells = zip(table.columns, row, said, strict=True)
        yield {name: _write_plain(value, cell) for name, value, cell in cells}


def _write_plain(value: Value, cell: Said) -> Any:
    number = value.value if isinstance(value, Said) else value
    if isinstance(number, Estimate):
        return {"value": number.value, "low": number.low, "high": number.high, "n": number.tasks}
    if isinstance(number, Interval):
        return to_json(number)
    if isinstance(number, Usage):
        return number.cost_usd
    return cell.text if isinstance(value, Said) and number is None else number
