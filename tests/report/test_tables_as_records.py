"""A table is one record: terminal, page, Markdown and JSON say the same values, in the order and words of its maker."""

import io
import json

from learn.tiny_run import TASKS
from report.test_document import read
from rich.console import Console

from opsmith.records import Usage
from opsmith.report.conversations import ExampleReader
from opsmith.report.document import write_document
from opsmith.report.files import text_of
from opsmith.report.markdown import write_markdown
from opsmith.report.pages import Anchors, make_environment
from opsmith.report.record import COUNT, SHARE, TEXT, USD, DataTable, Said, list_records, write_grid
from opsmith.report.views import run_view
from opsmith.results.intervals import Estimate

TABLE = DataTable(
    "a table",
    {"task": TEXT, "samples": COUNT, "rate": SHARE, "cost": USD},
    [
        (Said("a|b", link=("task", "a|b")), 1664, Estimate(0.5, 0.4, 0.6, 26, 1664), Usage(1, 1, 1, 0, 0.25)),
        (Said("<i>", note="why"), None, 0.25, Usage(1, 1, 1, 0, None)),
    ],
    has_total=True,
)


def test_four_writers_say_one_record():
    out = io.StringIO()
    Console(file=out, width=80, markup=False).print(TABLE)
    page = make_environment().from_string(
        '{% import "_macros.html" as part %}{{ part.table(data, links, "r", "A table") }}'
    )
    html = page.render(data=TABLE, links=Anchors())
    for words in ("1,664", "0.500 [0.400, 0.600]", "$0.2500", "unknown", "0.250", "–"):
        assert words in out.getvalue()
        assert words in html
        assert words in "\n".join(write_grid(TABLE))
    assert "a\\|b" in next(line for line in write_grid(TABLE) if "1,664" in line)
    assert f'<a href="{Anchors().task("r", "a|b")}">a|b</a>' in html
    assert '&lt;i&gt; <span class="muted">why</span>' in html
    assert '<tr class="all">' in html.replace("class=all", 'class="all"')
    first, second = list_records(TABLE)
    assert first == {
        "task": "a|b",
        "samples": 1664,
        "rate": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 26},
        "cost": 0.25,
    }
    assert (second["samples"], second["cost"]) == (None, None)


def test_a_report_in_json_has_the_numbers_of_the_other_formats(store, runs):
    (record,) = json.loads(text_of(store, runs[:1], "json"))["runs"]
    view, tables = run_view(store, runs[0]), record["tables"]
    assert tables["groups"]["rows"][-1]["pass@1"]["value"] == view.overall.pass_at_1.value
    assert tables["groups"]["units"]["pass@1"] == "share"
    assert {row["task"] for row in tables["tasks"]["rows"]} == {task.id for task in TASKS}
    assert str(view.overall.pass_at_1) in write_markdown(store, runs[:1])


def test_a_prompt_names_its_demonstrations_and_where_they_come_from(store, runs):
    run = runs[0]
    info = next(info for info, _ in store.read_rounds(run) if info.demonstrations)
    detail = next(
        store.find_sample(run, row.id)
        for row in store.list_samples(run)
        if row.round == info.number and store.find_sample(run, row.id).calls
    )
    prompt = "\n".join(message.content for message in detail.calls[0].messages)
    shown = list(ExampleReader(store, run).list_shown(info.number, prompt))
    kept = {own.experience.task.id: own for own in store.read_experiences(run)}
    assert shown
    assert {example.task for example in shown} <= {task for task, _ in info.demonstrations}
    for example in shown:
        own = kept[example.task]
        assert (example.round, example.rate, example.sample) == (
            own.experience.round, own.experience.success_rate, own.sample
        )  # fmt: skip
    page = read(write_document(store, [run])).text
    assert f"solved in round {shown[0].round} of this run, rate {shown[0].rate:.3f}" in page
    assert f"{shown[0]}, sample" in "\n".join(ExampleReader(store, run).describe_shown(detail))
