"""Why things fail, as pages and tables say it: no sample is lost between them, and nothing is said where nothing failed."""

import pytest
from learn.tiny_run import SETTINGS, TASKS, FaultyModel, InProcess
from tiny_target import tiny_task

from opsmith.learn.loop import improve
from opsmith.report.document import write_document
from opsmith.report.failures import FailureReader
from opsmith.report.markdown import write_markdown
from opsmith.store import Store

HARD = tiny_task("hard_0", "x y * z * u * v * x + y + z + u +")


class PlainModel(FaultyModel):
    """Knows one program."""

    def answer(self, request):
        return "impl: |\n  x y + z +"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    with Store.open(tmp_path_factory.mktemp("failures") / "opsmith.sqlite") as store:
        settings = SETTINGS.replace(samples=8, max_rounds=2)
        run = improve([*TASKS[:3], HARD], FaultyModel(share=0.1), settings, store, judge=InProcess()).run
        easy = improve(TASKS[:1], PlainModel(), settings, store, judge=InProcess()).run
        yield store, run, easy


def test_rows_of_tasks_and_of_rounds_hold_every_sample(ran):
    store, run, _ = ran
    view = FailureReader(store, run).view_failures()
    planned = sum(info.planned for info, _ in store.read_rounds(run))
    for rows in (view.ends.tasks, view.ends.rounds):
        assert sum(row.total for row in rows) == planned == view.judged + view.unjudged
        assert sum(row.passed for row in rows) == view.right
        assert all(sum(row.causes) + row.rarer + row.passed + row.unjudged == row.total for row in rows)
    assert sum(view.ends.totals) == planned
    assert sum(samples for _, _, samples in view.charges) == view.refused + view.unjudged > view.unjudged > 0


def test_each_unsolved_task_has_its_nearest_miss_with_the_whole_finding(ran):
    store, run, _ = ran
    reader = FailureReader(store, run)
    view = reader.view_failures()
    assert HARD.id in {miss.miss.task for miss in view.misses}
    for miss in view.misses:
        final = store.find_sample(run, miss.miss.sample).candidates[-1]
        assert (miss.source, miss.error) == (final.source, final.verdict.errors[0].block())
    own = reader.view_failures(HARD.id)
    assert own.misses == tuple(miss for miss in view.misses if miss.miss.task == HARD.id)
    assert own.causes[0].view == own.misses[0]
    assert own.judged + own.unjudged == next(row.total for row in view.ends.tasks if row.name == HARD.id)


def test_groups_of_rounds_that_ended_are_read_once(ran):
    store, run, _ = ran
    ended = {}
    first = FailureReader(store, run, ended).view_failures()
    assert sorted(ended) == [info.number for info, _ in store.read_rounds(run)]
    assert FailureReader(store, run, ended).view_failures() == first


def test_report_and_markdown_have_the_same_causes(ran):
    store, run, _ = ran
    view, html, text = (
        FailureReader(store, run).view_failures(),
        write_document(store, [run]),
        write_markdown(store, [run]),
    )
    assert view.headline in html
    assert view.headline in text
    assert text.count(f"| {HARD.id.replace('_', chr(92) + '_')} |") == 3  # where it ended, its nearest miss, the task
    assert FailureReader(store, run).write_headline() == view.headline, "counted without reading a verdict"
    for cause in view.causes:
        assert f"| {cause.group.samples:,} | {cause.group.programs:,} | {len(cause.group.tasks)} |" in text


def test_where_nothing_failed_a_sentence_says_so(ran):
    store, _, easy = ran
    view = FailureReader(store, easy).view_failures()
    assert FailureReader(store, easy).write_headline() == view.headline
    assert view.headline == "Nothing failed: 16 samples, all right."
    assert "| cause |" not in write_markdown(store, [easy])
    assert view.causes == ()
