"""Tables fit the lines of a terminal: nothing is longer, no id or number is broken, and what is lost is said."""

from __future__ import annotations

import io
from itertools import zip_longest

import pytest
from agents_store import write_run
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from opsmith.report.closing import print_run
from opsmith.report.fitting import HINT, FittedTable, PlainConsole
from opsmith.report.many_runs import gather_runs, tabulate_runs
from opsmith.report.samples import samples_table, tabulate_refusals
from opsmith.report.spent import spent_of, spent_table
from opsmith.report.tables import make_table, runs_table
from opsmith.report.views import run_view
from opsmith.results.refusals import read_refusals
from opsmith.results.result import result_of
from opsmith.store import Store

IDS = st.from_regex(r"[a-z]{1,8}(_[a-z0-9]{1,8}){0,2}-s[0-9]-[0-9a-f]{4,10}", fullmatch=True)  # 40 characters at most
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
@example([("aaaaaaaa_00000000_00000000-s8-0000000000", "4.9 s", "0.667 [0.619, 0.726]", "", " zx")], 40, False)
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


@pytest.mark.parametrize("width", [40, 80])
def test_all_that_is_shown_of_a_run_fits(tmp_path, width):
    run = write_run(tmp_path / "opsmith.sqlite")
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False)
    with Store.open(tmp_path / "opsmith.sqlite") as store:
        console.print(runs_table(store.list_runs(), {run: "1.2 [1.1, 1.3] to plain of 2"}, {run: "2.0 of 3 tasks"}))
        view = run_view(store, run)
        print_run(console, store, result_of(store, run))
        console.print(tabulate_runs(gather_runs([view, view])).turn(["first", "second"]))
        console.print(spent_table(spent_of(store, run, ("agent",)), "agent"))
        task = store.read_tasks(run)[0].id
        console.print(tabulate_refusals(read_refusals(store, run)), samples_table(store.list_samples(run, task)))
    lines = out.getvalue().splitlines()
    assert [line for line in lines if len(line) > width] == []
    words = " ".join(lines).replace(":", " ").split()
    assert words.count(run) >= 2, "its id is whole wherever it stands"
