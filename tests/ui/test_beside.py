"""Two samples and two runs beside each other: reached by ticks, with what differs between them."""

import re

import pytest
from fastapi.testclient import TestClient
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel
from ui.test_pages import only_run

from opsmith.learn.loop import improve
from opsmith.records import Outcome
from opsmith.report.comparison import tabulate_pairs
from opsmith.report.differences import pair_programs
from opsmith.report.views import run_view
from opsmith.store import Store
from opsmith.ui.render import make_url


def test_lines_are_paired_and_what_changed_in_a_line_is_marked() -> None:
    pairs = pair_programs("a = f(x)\nb = 2\nreturn b", "a = g(x)\nreturn b\n# end")
    assert [(pair.kind, pair.numbers) for pair in pairs.lines] == [
        ("changed", (1, 1)),
        ("removed", (2, None)),
        ("same", (3, 2)),
        ("added", (None, 3)),
    ]
    assert pairs.lines[0].sides[0] == (("a = ", False), ("f", True), ("(x)", False))
    assert (pairs.removed, pairs.added, pairs.left_out) == (2, 2, 0)
    assert pair_programs("x\n" * 500, "x\n" * 401).left_out == 101
    assert pair_programs("x", " x\n").is_same


def test_two_samples_that_are_ticked_stand_side_by_side(client: TestClient, store: Store) -> None:
    run = only_run(store)
    rows = list(store.list_samples(run))
    refused = next(row for row in rows if row.stage and row.stage.name == "MATCH" and row.outcome is Outcome.REFUSED)
    later = next(row for row in rows if row.round > 0)
    ticks = re.findall(r'name="sample" value="([^"]+)"', client.get(make_url(run, "samples", task=refused.task)).text)
    assert f"{run}/{refused.id}" in ticks
    html = client.get("/compare", params={"sample": [f"{run}/{refused.id}", later.id[:12]]}).text
    for row in (later, refused):
        assert make_url(run, "samples", row.id) in html
    assert store.find_sample(run, refused.id).candidates[-1].verdict.message.splitlines()[0][:20] in html
    rounds = {info.number: info for info, _ in store.read_rounds(run)}
    shown = {task for task, _ in rounds[later.round].demonstrations} - {
        task for task, _ in rounds[refused.round].demonstrations
    }
    assert f"of B only ({len(shown)})" in html


def test_two_runs_show_the_numbers_of_the_command(client: TestClient, store: Store) -> None:
    first = only_run(store)
    settings = SETTINGS.replace(seed=7, max_rounds=1)
    second = improve(TASKS[:3], TinyModel(), settings, store, judge=InProcess()).run
    tables = tabulate_pairs(store, [run_view(store, first), run_view(store, second)])
    shell = client.get("/compare", params={"run": [first, second]}).text
    assert 'hx-trigger="load"' in shell
    html = client.get("/compare", params={"run": [first, second], "now": 1}).text
    assert all(cell.text in html for table in tables.values() for row in table.said_rows for cell in row)
    assert "p = " in html
    assert "seed" in html, "the setting that differs"
    assert html.count("<figure>") >= 2


@pytest.mark.parametrize(
    ("query", "status"), [("", 400), ("run=a", 400), ("run=a&run=b&sample=c", 400), ("sample=x&sample=y", 404)]
)
def test_what_cannot_be_compared_is_told(client: TestClient, query: str, status: int) -> None:
    answer = client.get(f"/compare?{query}")
    assert answer.status_code == status
    assert "try" in answer.text


def test_three_runs_stand_in_one_table_and_one_figure(client: TestClient, store: Store) -> None:
    for seed in (11, 12):
        improve(TASKS[:2], TinyModel(price=0.5), SETTINGS.replace(seed=seed, samples=2), store, judge=InProcess())
    runs = store.list_ids()[-3:]
    assert 'hx-get="/compare?run=' in client.get("/compare", params={"run": runs}).text
    html = client.get("/compare", params={"run": runs, "by": "cost", "group": "seed", "now": 1}).text
    assert all(f'<a href="/runs/{run}">' in html for run in runs)
    assert (html.count("<figure>"), "by cost" in html, '<option value="seed" selected>' in html) == (1, True, True)
    assert client.get("/compare", params={"run": [*runs, runs[0]]}).status_code == 404
    refused = client.get("/compare", params={"run": runs, "by": "moon", "now": 1})
    assert (refused.status_code, "solved, gain" in refused.text) == (404, True)
