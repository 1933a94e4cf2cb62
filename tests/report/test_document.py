"""The report is one file: it holds everything, asks for nothing, and shows texts from outside as texts."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import pytest
from learn.tiny_run import TASKS
from report.conftest import HOSTILE

from opsmith.report.attempts import task_view
from opsmith.report.document import make_policy, write_document
from opsmith.report.pages import anchor_name, read_script
from opsmith.report.views import run_view
from opsmith.store import Store, rows

VOID = {"meta", "br", "img", "link", "input", "hr"}


@dataclass
class Page(HTMLParser):
    """The elements of a page; every element that was opened is closed in order."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read(html: str) -> Page:
    page = Page()
    page.feed(html)
    assert page.open == []
    return page


def test_it_is_self_contained(store, runs):
    html = write_document(store, runs)
    page = read(html)
    assert ("meta", {"http-equiv": "Content-Security-Policy", "content": make_policy()}) in page.tags
    assert not {"link", "img", "iframe", "object", "form"} & {tag for tag, _ in page.tags}
    assert re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL) == [read_script()]
    assert "url(" not in html
    assert "@import" not in html
    for _, attributes in page.tags:
        places = [attributes[name] for name in ("href", "src", "xlink:href", "action", "data") if name in attributes]
        assert all(place.startswith("#") for place in places)
        assert not [name for name in attributes if name.startswith("on")]


def test_every_link_leads_somewhere_and_every_id_is_given_once(store, runs):
    page = read(write_document(store, runs))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    linked = {attributes["href"][1:] for tag, attributes in page.tags if tag == "a"}
    assert linked <= set(ids)
    assert {anchor_name("task", run, task.id) for run in runs for task in TASKS} <= set(ids)


def test_texts_from_outside_are_shown_and_never_read_as_markup(hostile):
    html = write_document(hostile[0], [hostile[1]])
    page = read(html)
    assert "img" not in {tag for tag, _ in page.tags}
    assert sum(tag == "script" for tag, _ in page.tags) == 1, "ours"
    assert "\u202e" not in html
    assert html.count("&lt;script&gt;alert(1)") > 15
    assert HOSTILE[:-1] in page.text


def test_the_same_run_gives_the_same_file(store, runs):
    assert write_document(store, runs[:1]) == write_document(store, runs[:1])


def test_a_run_that_goes_on_and_its_unjudged_samples_are_said_so(hostile):
    text = read(write_document(hostile[0], [hostile[1]])).text
    assert "Not finished (unfinished)" in text
    assert f"1 of 5 samples have no verdict and count nowhere: 1 × {HOSTILE[:5]}" in text
    assert "(1 unjudged)" in text
    assert "Left unjudged 1 time" in text
    assert "it was copied, not found" in text


def test_a_run_that_has_just_begun_has_a_report(store, runs):
    info = rows.RunInfo("open-s0-1", "1", "tiny", False, "tiny", 0, {}, {})
    store.put(rows.run_rows(info, store.read_tasks(runs[0]))).result()
    text = read(write_document(store, [info.id])).text
    assert "No round has begun." in text
    assert "0 of 6" in text
    assert "No sample of this task has a verdict." in text


def test_a_run_without_any_solution_has_a_report(store, runs):
    task = store.read_tasks(runs[0])[0]
    info = rows.RunInfo("open-s0-2", "2", "tiny", False, "tiny", 0, {}, {})
    store.put(rows.run_rows(info, [task]))
    store.put(
        [rows.round_row(info.id, rows.RoundInfo(0, 0, "none", (), (task.id,), 4)), rows.round_end_row(info.id, 0, ())]
    )
    store.put([rows.run_end_row(info.id, "demonstrations used up")]).result()
    assert "0 of 1" in read(write_document(store, [info.id])).text


def test_what_is_no_language_model_is_marked_and_what_is_one_is_not(store, runs, hostile):
    html = write_document(store, runs[:1])
    assert "tiny-sampler is not a language model" in html
    samples = html.count("Sample ")
    assert html.count('<span class="tag">not a language model</span>') >= samples > 6
    assert html.count("not a language model: tiny-sampler") >= 3  # in each figure
    assert "not a language model" not in write_document(hostile[0], [hostile[1]])


def test_a_rewritten_program_is_shown_beside_what_it_was_rewritten_from(hostile):
    page = read(write_document(hostile[0], [hostile[1]]))
    assert "Difference from what it was rewritten from" not in page.text  # the kept sample stands for the group
    store, run = hostile
    row = next(row for row in run_view(store, run).tasks if row.id == "attn_0")
    group = task_view(store, run, row).groups[0]
    assert (group.is_kept, group.samples, group.passed) == (True, 2, True)
    assert group.sample.candidates[0].drawing is not None
    assert "The program in the bundled task's file" in page.text


def test_more_attempts_than_fit_are_counted(store, runs):
    view = run_view(store, runs[0])
    row = max(view.tasks, key=lambda row: row.judged - row.right)
    whole, cut = task_view(store, runs[0], row, 1000), task_view(store, runs[0], row, 2)
    assert (len(cut.groups), cut.groups_left) == (2, len(whole.groups) - 2)
    assert sum(group.samples for group in whole.groups) == row.judged
    assert cut.samples_left == row.judged - sum(group.samples for group in cut.groups)
    assert f"Not shown: {cut.samples_left} samples of {cut.groups_left} more groups" in write_document(
        store, runs[:1], groups=2
    )
    few = task_view(store, runs[0], row, 1000, programs=3)
    assert few.uncompared == row.judged - sum(group.samples for group in few.groups) > 0


def test_a_task_that_was_solved_before_shows_what_it_was_solved_with(store, runs):
    given = store.read_experiences(runs[0])[0].experience
    info = rows.RunInfo("open-s0-3", "3", "tiny", False, "tiny", 0, {}, {})
    store.put([*rows.run_rows(info, [given.task]), *rows.experience_rows(info.id, given, None, False)]).result()
    page = read(write_document(store, [info.id]))
    assert f"Solved before this run and not counted: {given.task.id}." in page.text
    assert f"The program that the run was given for it {' '.join(given.source.split())}" in page.text


def test_right_and_refused_attempts_share_the_room(store, runs):
    for row in run_view(store, runs[0]).tasks:
        whole, cut = task_view(store, runs[0], row, 1000), task_view(store, runs[0], row, 4)
        right = sum(group.passed for group in whole.groups)
        assert sum(group.passed for group in cut.groups) == min(right, max(2, 4 - (len(whole.groups) - right)))
        assert [group.is_kept for group in cut.groups].count(True) == (row.state == "solved")
        assert not any(group.is_kept for group in cut.groups[1:])


def test_a_message_that_prompts_share_is_there_once(store, runs):
    html = write_document(store, runs)
    assert html.count("Postfix notation. Words") == 1
    titles = re.findall(r"<summary>(\w+), round (\d+) of", html)
    assert len(titles) >= len(TASKS)


def test_several_runs_stand_side_by_side(store, runs):
    page = read(write_document(store, runs))
    assert "All runs" in page.text
    assert page.text.count("Tasks by rounds") == 2
    for run in runs:
        assert f"Run {run}" in page.text


def test_a_store_without_bundled_targets_is_reported_all_the_same(hostile):
    """The task's target `nowhere` is not installed: no drawing, and each program is a group of its own."""
    store, run = hostile
    row = next(row for row in run_view(store, run).tasks if row.id == HOSTILE)
    group = task_view(store, run, row).groups[0]
    assert group.sample.candidates[0].drawing is None
    assert group.label == "PARSE"


@pytest.mark.parametrize("number", [0, 1])
def test_a_view_agrees_with_the_store(store: Store, runs, number):
    view, run = run_view(store, runs[number]), runs[number]
    assert view.usage == store.sum_usage(run)
    assert (
        sum(row.spent.usage.input_tokens for row in view.rounds)
        == view.usage.input_tokens
        == view.rounds[-1].input_tokens
    )
    assert view.judged == sum(tally.judged for tally in store.read_tallies(run))
    assert view.overall.pass_at_1 is not None
    assert view.overall.pass_at_1.value == pytest.approx(view.overall.value_at_1)
    assert view.overall.pass_at_n is not None
    assert view.overall.pass_at_n.value == pytest.approx(view.overall.solved / view.overall.tasks)
