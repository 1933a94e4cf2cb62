"""What was measured of a run's programs stands in `show`, the report and its Markdown: with units, claims, reasons."""

import io
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from report.test_document import read
from rich.console import Console
from speed_store import REASON, SCREEN, make_report, write_run

from opsmith.measuring.claims import Claim
from opsmith.measuring.record import SpeedReport
from opsmith.records import CYCLES
from opsmith.report.attempts import sample_view, task_view
from opsmith.report.curves import draw_speeds
from opsmith.report.document import write_document
from opsmith.report.markdown import write_markdown
from opsmith.report.speeds import choose_kept, print_speeds, summarise_runs, summarise_speeds
from opsmith.report.tables import runs_table
from opsmith.report.views import run_view
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed

HEADLINE = "2.449 [2.425, 2.474] times as fast as the partner, geometric mean of 4 measurements"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    path = tmp_path_factory.mktemp("measured") / "opsmith.sqlite"
    return path, write_run(path)


@pytest.fixture
def measured(written: tuple[Path, str], tmp_path: Path) -> Iterator[tuple[Store, str]]:
    path, run = written
    with Store.open(shutil.copy(path, tmp_path / "opsmith.sqlite")) as store:
        yield store, run


def test_the_headline_holds_full_grades_only_and_counts_what_it_leaves_out(measured):
    view = run_view(*measured)
    assert str(view.speed_summary) == f"{HEADLINE}; 1 without a ratio; 2 screened only, in no headline"


def test_what_the_outer_clock_does_not_confirm_is_in_no_headline():
    reports = [make_report("p", "small", 1.0, 2.0), make_report("p", "large", 1.0, 50.0, claim=Claim.IN_PROCESS)]
    summary = summarise_speeds(StoredSpeed("t", None, report) for report in reports)
    assert summary.gain is not None
    assert round(summary.gain.value, 9) == 2.0
    assert (summary.ratios, summary.withheld) == (1, 1)


def test_simulated_cycles_are_never_called_speed():
    cycles = replace(make_report("p", "base", 1.0, 2.0, claim=None).measurement, objective=CYCLES)
    summary = summarise_speeds([StoredSpeed("t", None, SpeedReport(cycles, None))])
    assert (
        str(summary) == "the partner's simulated cycles are 2.000 times the program's, geometric mean of 1 measurements"
    )


def test_a_later_full_grade_stands_for_the_screen_before_it(measured):
    store, run = measured
    solution = store.read_experiences(run)[0]
    program = next(speed for speed in store.read_speeds(run) if speed.task == solution.experience.task.id)
    name = program.report.measurement.program
    reports = [make_report(name, "small", 1.0, 3.0, SCREEN, None), make_report(name, "small", 1.0, 2.0)]
    other = make_report("another program", "small", 1.0, 9.0)
    for order in (reports, reports[::-1]):
        speeds = [StoredSpeed(solution.experience.task.id, None, report) for report in [*order, other]]
        assert [speed.report for speed in choose_kept(speeds, [solution])] == [reports[1]]


def test_a_report_shows_them_with_reasons_as_text(measured):
    store, run = measured
    html = write_document(store, [run])
    text = read(html).text
    assert HEADLINE in text
    assert "12.500 [12.255, 12.750] µs" in text
    assert "4.000 [3.922, 4.080] to plain" in text
    assert "none: a screen" in text
    assert f"huge: {REASON}" in text
    assert "<b>y</b>" not in html
    assert "a processor, protocol pairs/1, 100 pairs in 5 processes, a compiler, some flags" in text


def test_markdown_says_the_same(measured):
    text = write_markdown(measured[0], [measured[1]])
    assert f"## Speed\n\n{HEADLINE}" in text
    assert "| 4.000 [3.922, 4.080] to plain | faster | full |" in text


def test_show_prints_a_row_for_each_and_nothing_without_any(measured):
    store, run = measured
    out = io.StringIO()
    print_speeds(Console(file=out, width=200), store.read_speeds(run))
    assert out.getvalue().count(" to plain ") == 6
    assert "without a ratio" in out.getvalue()
    out = io.StringIO()
    print_speeds(Console(file=out, width=200), [])
    assert out.getvalue() == ""


def test_the_list_of_runs_says_it_in_a_column_where_any_run_was_measured(measured):
    store, run = measured
    assert summarise_runs(store) == {run: "2.449 [2.425, 2.474] of 4"}
    columns = [column.header for column in runs_table(store.list_runs(), summarise_runs(store)).columns]
    assert columns == [*(column.header for column in runs_table(store.list_runs(), {}).columns), "speed"]


def test_a_task_has_a_picture_over_sizes_and_its_sample_a_table(measured):
    store, run = measured
    solution = store.read_experiences(run)[0]
    row = next(row for row in run_view(store, run).tasks if row.id == solution.experience.task.id)
    view = task_view(store, run, row)
    assert [row.shape_set for row in view.speeds] == ["small", "large", "huge"]
    assert view.speed_picture is not None
    assert "limit of the device" in view.speed_picture.svg
    assert [row.figures for row in sample_view(store, run, solution.sample).speeds] == [
        row.figures for row in view.speeds
    ]


def test_the_picture_has_the_partner_and_the_limit_at_each_size_smallest_first():
    figure = draw_speeds("t", [make_report("p", "large", 900.0, 9.0), make_report("p", "small", 12.5, 4.0)])
    points = [(row["x"], row["series"], round(row["y"], 3)) for row in figure.spec["data"]["values"]]
    assert points == [
        ("small", "program", 12.5),
        ("small", "plain", 50.0),
        ("small", "limit of the device", 3.125),
        ("large", "program", 900.0),
        ("large", "plain", 8100.0),
        ("large", "limit of the device", 225.0),
    ]


def test_there_is_no_picture_of_what_has_no_time():
    assert draw_speeds("t", []) is None
