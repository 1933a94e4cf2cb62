"""Tables fit the lines of a terminal: nothing is longer, no id or number is broken, and what is lost is said."""

from __future__ import annotations

import io
from itertools import zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from opsmith.report.console import PlainConsole
from opsmith.report.fitting import HINT, FittedTable
from opsmith.report.tables import make_table

IDS = st.from_regex(r"[a-z]{1,8}(_[a-z0-9]{1,9}){0,2}-s[0-9]-[0-9a-f]{4,10}", fullmatch=True)
NUMBERS = st.one_of(st.integers(0, 10**9).map("{:,}".format), st.just("0.667 [0.619, 0.726]"), st.just("4.9 s"))
PROSE = st.lists(st.text("abcdefgh", min_size=1, max_size=9), max_size=30).map(" ".join)
CODE = st.lists(st.text("xyz=(), ", max_size=60), min_size=1, max_size=6).map("\n".join)
COLUMNS = ("run", "solved in all", "tokens", "why it ended", "program")
ROWS = st.lists(st.tuples(IDS, NUMBERS, NUMBERS, PROSE, CODE), min_size=1, max_size=4)


def show(table: FittedTable, width: int, is_whole: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, soft_wrap=is_whole)
    console.is_whole = is_whole  # type: ignore[attr-defined]  # as a PlainConsole has it
    console.print(table)
    return out.getvalue().splitlines()


def fill(rows, **options) -> FittedTable:
    table = make_table(*COLUMNS, right=COLUMNS[1:3], code=COLUMNS[4:], **options)
    for row in rows:
        table.add_row(*row)
    return table


@settings(max_examples=30, deadline=None)
@given(ROWS, st.integers(40, 200), st.booleans())
def test_no_line_is_too_long_and_no_id_or_number_is_broken(rows, width, drops):
    lines = show(fill(rows, least=("tokens",) if drops else ()), width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for run, solved, tokens, _, _ in rows:
        assert run in text
        assert solved in text
        assert tokens in text or "not shown: tokens" in text
    if any("…" in line for line in lines) or "not shown" in text:
        assert HINT in " ".join(text.split())


@settings(max_examples=10, deadline=None)
@given(ROWS)
def test_a_whole_table_has_every_line_of_every_cell(rows):
    text = "\n".join(show(fill(rows, least=("tokens",)), 40, is_whole=True))
    assert all(line.strip() in text for row in rows for cell in row for line in cell.splitlines())
    assert HINT not in text
    assert "…" not in text


@pytest.mark.parametrize(
    ("width", "words"), [(58, "not shown: tokens"), (40, "solved in all: 12,345 tokens: 1 why it ended: all")]
)
def test_columns_go_first_then_rows_become_blocks(width, words):
    row = ("a_0-s0-1234", "12,345", "1", "all solved " * 12, "E1 = step.Zip().apply((E0, E1)) and so on\n" * 5)
    lines = show(fill([row], least=("tokens",)), width)
    assert words in " ".join(" ".join(lines).split()), lines


def test_numbers_stand_below_each_other_and_texts_of_others_steer_nothing(capsys):
    table = make_table("task", "count", right=("count",))
    for name, count in zip_longest(("a\x1b[31m", "b\u202e"), ("7", "1,234")):
        table.add_row(name, count)
    PlainConsole(width=40).print(table)
    lines = capsys.readouterr().out.splitlines()
    assert [line.rstrip()[-5:].strip() for line in lines[2:4]] == ["7", "1,234"]
    assert len({len(line) for line in lines[2:4]}) == 1
    assert "\x1b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)
