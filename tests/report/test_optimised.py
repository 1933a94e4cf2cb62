"""What optimisation rounds brought stands in `show`, `runs` and the report: timelines, suggestions, profiles, changes."""

import csv
import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from optimised_store import OPTIMISED, PIXEL, add_optimisation, write_functional
from report.test_document import read
from report.test_story_picture import assert_all_is_inside, read_text
from rich.console import Console

from opsmith.report.attempts import find_improvement, sample_view, task_view
from opsmith.report.closing import print_run
from opsmith.report.document import write_document
from opsmith.report.many_runs import list_figures
from opsmith.report.markdown import write_markdown
from opsmith.report.optimised import read_picture, summarise_gains, tabulate_steps
from opsmith.report.record import list_records
from opsmith.report.rows import to_csv
from opsmith.report.samples import list_improvement
from opsmith.report.story_picture import draw_story, tell_story
from opsmith.report.tables import runs_table
from opsmith.report.views import run_view
from opsmith.results.optimisation import read_optimisation
from opsmith.results.result import result_of
from opsmith.store import Store

FIGURES = ("fast_p", "limit", "within")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """A run without optimisation, the same with it, and its name."""
    folder = tmp_path_factory.mktemp("optimised")
    run = write_functional(folder / "before.sqlite")
    shutil.copy(folder / "before.sqlite", folder / "after.sqlite")
    with Store.open(folder / "after.sqlite") as store:
        add_optimisation(store, run)
    return folder / "before.sqlite", folder / "after.sqlite", run


@pytest.fixture
def optimised(written) -> Iterator[tuple[Store, str]]:
    with Store.open(written[1]) as store:
        yield store, written[2]


@pytest.fixture
def functional(written) -> Iterator[tuple[Store, str]]:
    with Store.open(written[0]) as store:
        yield store, written[2]


def printed(store: Store, run: str, task: str | None = None) -> str:
    out = io.StringIO()
    console = Console(file=out, width=240, markup=False)
    if task is None:
        print_run(console, store, result_of(store, run))
    elif (improved := find_improvement(read_optimisation(store, run), task)) is not None:
        console.print(tabulate_steps([improved], is_of_run=True))
    return out.getvalue()


def fixed_sample(store: Store, run: str) -> str:
    """The sample that a fix made right."""
    first = store.find_optimisation(run)
    return next(
        row.id
        for row in store.list_samples(run, OPTIMISED[0])
        if row.round > first and len(store.find_sample(run, row.id).candidates) == 2
    )


def test_show_prints_a_timeline_with_suggestion_state_ratio_and_what_was_kept(optimised):
    text = printed(*optimised)
    row = next(line for line in text.splitlines() if {"sum_0", "correct", "1.200"} <= {*line.split()})
    assert "1.200 [1.176, 1.224]" in row
    assert "1.750 [1.716, 1.785]" in row
    assert " kept " in row
    assert "Use <b>one</b> addition less." in row
    assert text.count("generation failure") == 1 + len(OPTIMISED)  # the column of states, and a row of each task
    assert "one per cent of the mean gain took 50 tokens" in text


def test_show_of_a_task_has_its_timeline_alone(optimised):
    text = printed(*optimised, "sum_0")
    assert "mul_0" not in text
    assert text.count(" sum_0 ") == 8


def test_show_of_a_sample_has_suggestion_profiles_and_what_it_changed(optimised):
    store, run = optimised
    text = "\n".join(list_improvement(store, run, store.find_sample(run, fixed_sample(store, run))))
    assert "--- suggestion ---\nUse <b>one</b> addition less.; where: the second line; why: it waits" in text
    assert "--- profile: remarks ---\nline 2: <i>not</i> vectorised" in text
    assert "a picture (image/png, " in text
    assert "-  # faster\n+  # best" in text


def test_a_run_without_optimisation_is_shown_as_ever(functional):
    store, run = functional
    assert "suggestion" not in printed(store, run)
    assert list(list_improvement(store, run, store.find_sample(run, next(store.list_samples(run)).id))) == []
    assert summarise_gains(store) == {}
    html = write_document(store, [run])
    assert "Optimisation" not in html
    assert "img-src" not in html


def test_the_list_of_runs_says_what_was_gained(optimised):
    store, run = optimised
    assert summarise_gains(store) == {run: "1.750 over 2 tasks"}
    assert runs_table(store.list_runs(), {}, summarise_gains(store)).columns[-1].header == "gain"


def test_the_report_holds_timelines_gains_states_profiles_and_differences_as_text(optimised):
    store, run = optimised
    html = write_document(store, [run])
    text = read(html).text
    assert "1.750 (n = 2) times as fast as the start program" in text
    assert "Use <b>one</b> addition less." in text
    assert "<b>one</b>" not in html
    assert "<i>not</i>" not in html
    assert f"data:image/png;base64,{PIXEL}" in html
    assert "img-src data:" in html
    assert "Difference from the program that it set out from" in text
    assert "line 2: <i>not</i> vectorised" in text


def test_markdown_has_gains_and_states_and_nothing_of_a_run_without(optimised, functional):
    text = write_markdown(optimised[0], [optimised[1]])
    assert (
        "| sum\\_0 | 1.750 [1.716, 1.785] | 17.500 µs → 10.000 µs at small | faster | 2.000 | 1.250 | 1.250 | 2 | 8 | 3 | 0.365 |"
        in text
    )
    assert "| 3 | optimisation | 0 | 2 | 2 | 0 | 2 | 2 |" in text
    assert "Optimisation" not in write_markdown(functional[0], [functional[1]])


def test_a_table_of_samples_tells_the_phases_apart_where_there_are_two(optimised, functional):
    rows = list(csv.DictReader(io.StringIO(to_csv(optimised[0], [optimised[1]]))))
    assert sum(row["phase"] == "optimisation" for row in rows) == 8 * len(OPTIMISED)
    assert {row["phase"] for row in rows} == {"functional", "optimisation"}
    assert "phase" not in to_csv(functional[0], [functional[1]])


def test_the_figures_of_a_run_have_fast_p_and_the_limit(optimised):
    figures = {figure.name: figure for figure in list_figures(run_view(*optimised))}
    assert set(FIGURES) <= set(figures)
    limits = figures["limit"].spec["data"]["values"]
    assert {row["series"] for row in limits} == {"start program", "best program"}
    assert {round(row["y"], 2) for row in limits} == {25.0, round(25 / 1.75, 2)}
    assert all("not a language model" in figures[name].spec["title"]["subtitle"][0] for name in FIGURES)


def test_a_task_has_a_picture_of_its_ratios_and_its_kept_samples_in_full(optimised):
    store, run = optimised
    view = run_view(store, run)
    row = next(row for row in view.tasks if row.id == OPTIMISED[0])
    task = task_view(store, run, row, optimised=view.optimised.result)
    assert [row["kept"] for row in list_records(task.steps)] == ["kept", "", "", "", "kept", "", "", ""]
    assert task.steps_picture is not None
    assert len(task.shown_steps) == 2
    improvement = task.shown_steps[1].improvement
    assert improvement.origin == task.shown_steps[0].id
    assert improvement.suggestion.effect == "1.5 times as fast"
    assert [profile.kind for profile in improvement.profiles] == ["remarks", "roofline"]


def test_the_picture_of_a_task_has_each_right_attempt_with_its_ratio(optimised):
    picture = draw_story(tell_story(*optimised, OPTIMISED[0]))
    words = read_text(picture)
    assert_all_is_inside(picture)
    assert "1.750[1.716,1.785],kept:Use<b>oneadditionless." in words.replace("</b>", "")
    assert "withoutaratio:" in words


def test_fast_p_falls_by_steps_from_all_right_programs_to_none(optimised):
    figure = next(figure for figure in list_figures(run_view(*optimised)) if figure.name == "fast_p")
    points = [row for row in figure.spec["data"]["values"] if row["series"] == "the start program"]
    shares = [row["y"] for row in points]
    assert shares == sorted(shares, reverse=True)
    assert (shares[0], shares[-1]) == (len(OPTIMISED) / 6, 0.0)


def test_a_sample_of_solving_was_given_nothing(optimised):
    store, run = optimised
    assert sample_view(store, run, next(store.list_samples(run)).id).improvement is None


def test_the_pictures_of_a_prompt_stand_beside_it(optimised):
    store, run = optimised
    calls = {call.agent: call for call in sample_view(store, run, fixed_sample(store, run)).calls}
    assert calls["analyst"].pictures == (f"data:image/png;base64,{PIXEL}",)
    assert calls["proposer"].pictures == ()


@pytest.mark.parametrize("body", ["no base64 <at all>", "R0lGODlhAQABAAAAACw=", "data:text/html,<script>"])
def test_what_is_no_png_is_not_shown_as_one(body):
    assert read_picture("image/png", body) is None
    assert read_picture("text/html", PIXEL) is None


def test_a_step_whose_reply_held_no_program_says_what_it_set_out_from(optimised):
    store, run = optimised
    rounds = store.find_optimisation(run), store.find_optimisation(run) + 1
    of_task = [row for row in store.list_samples(run, "sum_0") if row.round in rounds]
    first, second = ([row for row in of_task if row.round == number] for number in rounds)
    unjudged = next(row for row in second if row.outcome is None)
    assert sample_view(store, run, unjudged.id).improvement.origin == first[0].id
    assert sample_view(store, run, first[3].id).improvement.origin is None
