"""What a page may change: notes, tags, the archive, and a run that goes; each only by a form of ours."""

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from ui.test_pages import EVIL, only_run

from opsmith.store import Store
from opsmith.store.notes import add_to_note, change_tags
from opsmith.store.rows import RunInfo, run_rows
from opsmith.ui.changes import CHANGES
from opsmith.ui.guard import Access
from opsmith.ui.render import make_url


def send(client: TestClient, access: Access, run: str, what: str, **fields: Any) -> Response:
    return client.post(make_url(run, what), data={"secret": access.form_secret} | fields)


def test_a_note_is_written_in_place_and_nothing_of_it_is_markup(
    client: TestClient, store: Store, access: Access
) -> None:
    run = only_run(store)
    answer = send(client, access, run, "note", note=EVIL + "é" * 3000, number="0")
    assert (answer.status_code, answer.headers["location"]) == (303, make_url(run))
    for path in ("/", make_url(run)):
        html = client.get(path).text
        assert "<script>alert" not in html
        assert "&lt;script&gt;" in html
    assert store.read_remarks(run).text == EVIL + "é" * 3000
    refusal = send(client, access, run, "note", note="x" * 4001, number="1")
    assert refusal.status_code == 400
    assert "Nothing was changed" in refusal.text
    assert send(client, access, run, "note", note="x" * 70_000, number="1").status_code == 413


def test_whoever_writes_second_sees_both_notes_and_decides(client: TestClient, store: Store, access: Access) -> None:
    run = only_run(store)
    add_to_note(store, run, "theirs")
    answer = send(client, access, run, "note", note="mine", number="0")
    assert answer.status_code == 409
    assert "theirs" in answer.text
    assert ">\nmine</textarea>" in answer.text
    assert store.read_remarks(run).text == "theirs"
    number = re.search(r'name="number" value="(\d+)"', answer.text)
    assert number is not None
    send(client, access, run, "note", note="both", number=number[1])
    assert store.read_remarks(run).text == "both"
    assert "theirs" in client.get(make_url(run)).text, "an earlier note can be read again"


def test_tags_narrow_the_list_and_an_archived_run_leaves_it(client: TestClient, store: Store, access: Access) -> None:
    run = only_run(store)
    send(client, access, run, "tags", add="good, paper/fig-2")
    send(client, access, run, "tags", remove="good")
    assert store.read_remarks(run).tags == ("paper/fig-2",)
    assert run in client.get("/?tag=paper/fig-2").text
    assert run not in client.get("/?tag=good").text
    assert "No run has this tag" in client.get("/?tag=good").text
    assert send(client, access, run, "tags", add="<b>").status_code == 400
    send(client, access, run, "archive")
    assert run not in client.get("/").text
    assert run in client.get("/?tag=archived").text
    send(client, access, run, "unarchive")
    assert run in client.get("/").text


def test_a_run_goes_after_a_question_and_not_while_somebody_works_on_it(
    client: TestClient, store: Store, access: Access, going_on: str
) -> None:
    run = next(summary.info.id for summary in store.list_runs() if summary.finished)
    question = client.get(make_url(run, "delete")).text
    assert f"{store.summarise_run(run).samples:,} samples" in question
    with store.lock(run):
        assert client.get(make_url(run, "delete")).status_code == 503
        assert "is being worked on" in send(client, access, run, "delete").text
    assert client.get(make_url(run)).status_code == 200, "to look at the question changes nothing"
    user = RunInfo("user-s0-1", "1", "tiny", False, "tiny", 0, {"from_run": run}, {})
    store.put(run_rows(user, store.read_tasks(run))).result()
    assert make_url(user.id) in client.get(make_url(run, "delete")).text, "the page leads to the run that is in the way"
    assert send(client, access, run, "delete").status_code == 400
    store.delete_run(user.id)
    assert send(client, access, run, "delete").headers["location"] == "/"
    assert [summary.info.id for summary in store.list_runs()] == [going_on]
    assert client.get(make_url(run)).status_code == 404


@pytest.mark.parametrize("what", ["note", "tags", "archive", "unarchive", "delete"])
def test_no_form_of_another_site_changes_a_run(client: TestClient, store: Store, access: Access, what: str) -> None:
    run = only_run(store)
    fields = {"note": "x", "number": "0", "add": "x"}
    elsewhere = {"Origin": "http://evil.example"}
    secret = {"secret": access.form_secret}
    for data, headers in ((fields | secret, elsewhere), (fields, {}), (fields | {"secret": "x"}, {})):
        assert client.post(make_url(run, what), data=data, headers=headers).status_code == 403
    assert client.put(make_url(run, what)).status_code == 405
    assert store.list_remarks() == {}
    assert only_run(store) == run


def test_a_program_that_sends_forms_without_end_is_stopped(client: TestClient, store: Store, access: Access) -> None:
    run = only_run(store)
    answers = [send(client, access, run, "tags", add="x").status_code for _ in range(CHANGES + 1)]
    assert answers == [303] * CHANGES + [429]


def test_what_is_said_of_a_run_comes_to_its_open_page(client: TestClient, store: Store, going_on: str) -> None:
    add_to_note(store, going_on, "look at round 2")
    change_tags(store, going_on, ["good"])
    html = client.get(make_url(going_on)).text
    assert 'sse-swap="remarks"' in html
    assert "look at round 2" in html
