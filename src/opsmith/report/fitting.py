"""A table that fits the terminal it is shown on. Into files and pipes, and with `--wide`, it is whole.

Where lines are too short for it, in this order: columns without a value and those that tell the least are left out,
texts are folded between words and cut after three lines, and as the last resort each row becomes a block of lines of
its own. A number or an id is never cut or broken, unless the terminal is narrower than the id alone. What was left out
or cut is said below it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderHook, RenderResult
from rich.file_proxy import FileProxy
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from opsmith.records import printable
from opsmith.terminal import PlainStream, own_stream

INDENT = 1  # before every line
GAPS = (3, 2)  # between columns: where there is room, and where there is not
VOID = ("", "–", "-")  # cells in place of a value
LINES = 3  # of a cell that is folded
LEAST = 16  # columns that a text keeps, unless a table says more
_MARGIN = 2  # before the values of a row that is a block
_BETWEEN = "  "  # two of them on a line
_WORD = re.compile(r"[^\W\d_]{4}")
HINT = "--wide shows all"


@dataclass(frozen=True)
class Column:
    """A heading, and how its cells may be made narrower."""

    name: str
    is_number: bool  # on the right, never narrower
    is_code: bool  # texts whose lines are cut at their end, not folded
    least: int  # columns that a text keeps before another column is left out for it
    drop: int | None  # columns are left out by this number, the largest first; None: never

    def measure_least(self, cells: Sequence[Text]) -> int:
        """The narrowest that it can be shown."""
        natural = self.measure_natural(cells)
        if self.is_number:
            return max([*map(_measure_figure, cells), _longest_word(Text(self.name))])
        words = 0 if self.is_code else max([*map(_longest_word, cells), 0])
        return max(min(natural, self.least), words, _longest_word(Text(self.name)))

    def measure_natural(self, cells: Sequence[Text]) -> int:
        return max([Text(self.name).cell_len, *map(measure_lines, cells)])


@dataclass(frozen=True)
class TableLayout:
    """Which columns are shown, how wide, and how far apart."""

    places: tuple[int, ...]
    widths: tuple[int, ...]
    gap: int


class FittedTable(Table):
    """rich's table, laid out by the width that there is. Cells are strings or `Text`."""

    def __init__(self, columns: Sequence[Column], title: str | None, lines: int = LINES) -> None:
        super().__init__(*(column.name for column in columns), title=title)
        self._fitted = tuple(columns)
        self._lines = lines
        self._cells: list[tuple[str | Text, ...] | None] = []  # None: a section ends

    def add_row(self, *cells: str | Text, **_: object) -> None:  # type: ignore[override]  # rich takes any renderable
        """A row; cells that are missing at its end are empty."""
        self._cells.append((*cells, *("" for _ in range(len(self._fitted) - len(cells)))))

    def add_section(self) -> None:
        self._cells.append(None)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [cells if cells is None else [_make_text(console, cell) for cell in cells] for cells in self._cells]
        is_whole = getattr(console, "is_whole", False)
        if self.title:
            yield from _fold_lines(console, _make_text(console, str(self.title), "table.title"), options.max_width)
        layout = choose_layout(self._fitted, rows, None if is_whole else options.max_width)
        if layout is None:
            yield from self._stack_rows(console, rows, options.max_width)
        else:
            yield from self._lay_out(console, rows, layout)
        if self.caption:
            yield from _fold_lines(console, _make_text(console, str(self.caption), "table.caption"), options.max_width)

    def _lay_out(self, console: Console, rows: Sequence[Sequence[Text] | None], layout: TableLayout) -> Iterator[Text]:
        heads = [_make_text(console, self._fitted[place].name, "table.header") for place in layout.places]
        folded = [
            list(head.wrap(console, width)) if width else [head]
            for head, width in zip(heads, layout.widths, strict=True)
        ]
        yield from self._join_cells(folded, layout, at_bottom=True)
        yield Text(" " * INDENT + "─" * (sum(layout.widths) + layout.gap * (len(layout.widths) - 1)))
        is_cut = False
        for cells in rows:
            if cells is None:
                yield Text("")
                continue
            cut = [
                self._fit_cell(console, cells[place], self._fitted[place], width)
                for place, width in zip(layout.places, layout.widths, strict=True)
            ]
            is_cut = is_cut or any(has_lost for _, has_lost in cut)
            yield from self._join_cells([lines for lines, _ in cut], layout)
        yield Text("")
        lost = set(range(len(self._fitted))) - {*layout.places, *list_void(rows)}
        yield from self._say_lost(console, [self._fitted[place].name for place in sorted(lost)], is_cut)

    def _fit_cell(self, console: Console, cell: Text, column: Column, width: int) -> tuple[list[Text], bool]:
        """The lines of a cell, and whether any of it is lost."""
        if measure_lines(cell) <= width and (
            getattr(console, "is_whole", False) or cell.plain.count("\n") < self._lines
        ):
            return list(cell.split("\n", allow_blank=True)), False
        lines = list(cell.split("\n", allow_blank=True)) if column.is_code else list(cell.wrap(console, max(width, 1)))
        has_lost = len(lines) > self._lines or any(line.cell_len > width for line in lines)
        if len(lines) > self._lines:
            lines = lines[: self._lines]
            lines[-1].rstrip()
            lines[-1] = Text.assemble(lines[-1], " …")
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return lines, has_lost

    def _join_cells(
        self, cells: Sequence[Sequence[Text]], layout: TableLayout, at_bottom: bool = False
    ) -> Iterator[Text]:
        height = max(map(len, cells))
        for number in range(height):
            row = Text(" " * INDENT)
            for place, width, lines in zip(layout.places, layout.widths, cells, strict=True):
                row_number = number - (height - len(lines) if at_bottom else 0)
                line = lines[row_number].copy() if 0 <= row_number < len(lines) else Text("")
                line.rstrip()
                room = " " * max(width - line.cell_len, 0)
                row.append_text(
                    Text.assemble(room, line) if self._fitted[place].is_number else Text.assemble(line, room)
                )
                row.append(" " * layout.gap)
            row.rstrip()
            yield row

    def _stack_rows(self, console: Console, rows: Iterable[Sequence[Text] | None], width: int) -> Iterator[Text]:
        """Each row as a block: its first cell, then the others with their headings before them."""
        is_cut = False
        for cells in rows:
            if cells is None:
                continue
            is_bare = self._fitted[0].is_number or cells[0].plain.isdigit()
            name = f"{self._fitted[0].name} " if is_bare else ""
            yield from _fold_lines(console, Text.assemble(name, cells[0], style="bold"), width, INDENT)
            room, pairs = max(width - INDENT - _MARGIN, 1), list[Text]()
            for column, cell in zip(self._fitted[1:], cells[1:], strict=True):
                if cell.plain.strip():
                    named = Text.assemble((f"{column.name}: ", "dim"), cell) if column.name else cell
                    lines, has_lost = self._fit_cell(console, named, replace(column, is_code="\n" in cell.plain), room)
                    is_cut = is_cut or has_lost
                    pairs += lines
            yield from _indent_lines(_pack_lines(pairs, room), INDENT + _MARGIN)
        yield Text("")
        yield from self._say_lost(console, [], is_cut)

    @staticmethod
    def _say_lost(console: Console, names: Sequence[str], is_cut: bool) -> Iterator[Text]:
        if names or is_cut:
            lost = [f"not shown: {', '.join(names)}"] if names else []
            words = "; ".join([*lost, *(["… is cut"] if is_cut else []), HINT])
            yield from _fold_lines(console, Text(words, "dim"), console.width, INDENT)


def choose_layout(
    columns: Sequence[Column], rows: Sequence[Sequence[Text] | None], width: int | None
) -> TableLayout | None:
    """How the rows are shown on lines of that width, None for any; no layout: not beside each other."""
    cells = [[row[place] for row in rows if row is not None] for place in range(len(columns))]
    natural = [column.measure_natural(texts) for column, texts in zip(columns, cells, strict=True)]
    least = [column.measure_least(texts) for column, texts in zip(columns, cells, strict=True)]
    visible = list(range(len(columns)))
    if width is None or _span(natural, GAPS[0]) <= width:
        return TableLayout(tuple(visible), tuple(natural), GAPS[0])
    visible = [place for place in visible if place not in list_void(rows)]
    to_drop = sorted(
        (place for place in visible if columns[place].drop is not None), key=lambda place: columns[place].drop or 0
    )
    while _span([least[place] for place in visible], GAPS[1]) > width:
        if not to_drop:
            return None
        visible.remove(to_drop.pop())
    if _span([natural[place] for place in visible], GAPS[0]) <= width:
        return TableLayout(tuple(visible), tuple(natural[place] for place in visible), GAPS[0])
    room = width - _span([least[place] for place in visible], GAPS[1])
    widths = share_room([least[place] for place in visible], [natural[place] for place in visible], room)
    gap = next(gap for gap in GAPS if _span(widths, gap) <= width)
    return TableLayout(tuple(visible), tuple(widths), gap)


def list_void(rows: Sequence[Sequence[Text] | None]) -> set[int]:
    """The places of columns that hold no value in any row, but the first, which names the row."""
    cells = [row for row in rows if row is not None]
    return {
        place
        for place in range(1, len(cells[0]) if cells else 0)
        if all(row[place].plain.strip() in VOID for row in cells)
    }


def share_room(least: Sequence[int], natural: Sequence[int], room: int) -> list[int]:
    """The widths, with what there is of room for those that want more: alike, none more than it wants.

    >>> share_room([4, 4, 4], [4, 6, 20], 10)
    [4, 6, 12]
    """
    widths = list(least)
    while room > 0 and (wanting := [place for place, width in enumerate(widths) if width < natural[place]]):
        each = max(room // len(wanting), 1)
        for place in wanting[: room // each]:
            more = min(each, natural[place] - widths[place])
            widths[place] += more
            room -= more
    return widths


def measure_lines(text: Text) -> int:
    """The width of the widest line."""
    return max((Text(line).cell_len for line in text.plain.split("\n")), default=0)


def _pack_lines(texts: Iterable[Text], width: int) -> Iterator[Text]:
    """As many texts on a line as it has room for."""
    line: Text | None = None
    for text in texts:
        if line is not None and line.cell_len + len(_BETWEEN) + text.cell_len <= width:
            line = Text.assemble(line, _BETWEEN, text)
            continue
        if line is not None:
            yield line
        line = text
    if line is not None:
        yield line


def _measure_figure(cell: Text) -> int:
    """A figure stays on one line; words behind it, or in its place, do not."""
    words = _WORD.search(cell.plain)
    if words is None:
        return measure_lines(cell)
    return max(_longest_word(cell), Text(cell.plain[: words.start()].rstrip()).cell_len)


def _span(widths: Sequence[int], gap: int) -> int:
    return INDENT * 2 + sum(widths) + gap * (len(widths) - 1)


def _longest_word(text: Text) -> int:
    return max((Text(word).cell_len for word in text.plain.split()), default=0)


def _make_text(console: Console, cell: str | Text, style: str = "") -> Text:
    text = console.render_str(cell) if isinstance(cell, str) else cell.copy()
    text.expand_tabs()
    text.end = "\n"
    if style:
        text.stylize(style)
    return text


def _fold_lines(console: Console, text: Text, width: int, indent: int = 0) -> Iterator[Text]:
    """Its lines; they stand further left where a word, such as an id, would be broken by the indent alone."""
    longest = max((cell_len(word) for word in text.plain.split()), default=0)
    indent = max(min(indent, width - longest), 0)
    yield from _indent_lines(text.wrap(console, max(width - indent, 1)), indent)


def _indent_lines(lines: Iterable[Text], indent: int) -> Iterator[Text]:
    for line in lines:
        folded = Text(" " * indent) + line
        folded.rstrip()
        yield folded


class PlainConsole(Console):
    """A console on stdout or stderr that takes text as text: no markup, no emoji codes, no control characters."""

    def __init__(self, stderr: bool = False, is_whole: bool = False, **options: Any) -> None:
        """`is_whole`: lines are as long as what is on them, and no table is cut."""
        file = own_stream(sys.stderr if stderr else sys.stdout)
        super().__init__(file=file, highlight=False, markup=False, emoji=False, soft_wrap=is_whole, **options)
        self.is_whole = is_whole

    def render_str(self, text: str, **options: Any) -> Text:
        """Before it is laid out, so that the widths are those of what is shown."""
        return super().render_str(printable(text, keep="\n\t"), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Whatever is shown passes here, also what was no string; only rich's own segments steer the terminal."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, keep="\n\t"), segment.style)

    def push_render_hook(self, hook: RenderHook) -> None:
        """A live display begins. It shows above itself what is printed meanwhile, and obeys escape sequences in it."""
        super().push_render_hook(hook)
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if isinstance(stream, FileProxy):
                setattr(sys, name, PlainStream(stream))
