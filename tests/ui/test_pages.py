"""Every page over HTTP: what it shows, what it does with addresses that lead nowhere, and with hostile texts."""

import re
from collections import Counter

import pytest
from fastapi.testclient import TestClient

from opsmith.models import Message, Reply, Request
from opsmith.records import Boundary, Diagnostic, Outcome, Stage, Task, Usage, Verdict
from opsmith.store import Store, rows
from opsmith.store.rows import Judged, RoundInfo, RunInfo, SampleKey
from opsmith.ui.render import make_url

EVIL = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>"


def only_run(store: Store) -> str:
    [summary] = store.list_runs()
    return summary.info.id


def samples_of(html: str) -> list[str]:
    """The ids of the samples that a list links, in order."""
    return re.findall(r'/samples/([0-9a-f]{32})"><code>', html)


def test_the_first_page_lists_every_run(client: TestClient, store: Store) -> None:
    html = client.get("/").text
    assert make_url(only_run(store)) in html
    assert "finished" in html
    assert "not a language model" in html


def test_a_run_shows_where_it_stands(client: TestClient, store: Store) -> None:
    run = only_run(store)
    html = client.get(make_url(run)).text
    summary = store.summarise_run(run)
    assert f"{summary.solved} of {summary.tasks} tasks" in html
    assert all(task.id in html for task in store.read_tasks(run))
    assert 'id="wish"' not in html, "a run that is finished cannot be paused"
    assert "sse-connect" not in html, "nothing more comes"


def test_no_page_of_another_sampler_looks_like_one_of_a_language_model(client: TestClient, store: Store) -> None:
    run = only_run(store)
    sample = next(store.list_samples(run)).id
    for parts in ((), ("samples",), ("samples", sample), ("tasks", "sum_0"), ("attempts", "sum_0"), ("results",)):
        assert "not a language model" in client.get(make_url(run, *parts)).text, parts


def test_the_state_follows_who_works_on_the_run(client: TestClient, store: Store, going_on: str) -> None:
    def state() -> str:
        found = re.search(r'class="status (\w+)"', client.get(make_url(going_on)).text)
        assert found is not None
        return found[1]

    assert state() == "stopped"
    with store.lock(going_on):
        assert state() == "running"
        store.put([rows.control_row(going_on, "pause")]).result()
        assert state() == "paused"
    assert state() == "stopped"
    store.put([rows.run_end_row(going_on, "all solved")]).result()
    assert state() == "finished"


def test_the_beginning_of_a_runs_id_leads_to_it(client: TestClient, store: Store) -> None:
    run = only_run(store)
    answer = client.get(f"/runs/{run[:-3]}")
    assert (answer.status_code, answer.headers["location"]) == (307, make_url(run))


def test_pages_of_samples_follow_each_other_there_and_back(client: TestClient, store: Store) -> None:
    run = only_run(store)
    everything = [row.id for row in store.list_samples(run)]
    found, address, pages = [], make_url(run, "samples"), 0
    while address:
        html = client.get(address).text
        found += samples_of(html)
        later = re.search(r'rel="next" href="([^"]+)"', html)
        last, address, pages = address, later and later[1].replace("&amp;", "&"), pages + 1
    assert found == everything
    assert pages > 2
    while earlier := re.search(r'rel="prev" href="([^"]+)"', html):
        html = client.get(earlier[1].replace("&amp;", "&")).text
        pages -= 1
    assert samples_of(html) == everything[:50]
    assert pages == 1, f"back from {last}"


@pytest.mark.parametrize("name", ["task", "round", "temperature", "stage", "outcome", "agent", "id", "words"])
def test_each_filter_lets_through_what_it_says(client: TestClient, store: Store, name: str) -> None:
    run = only_run(store)
    listed = list(store.list_samples(run))
    chosen = listed[-1]
    value = {
        "task": chosen.task,
        "round": chosen.round,
        "temperature": chosen.temperature,
        "stage": chosen.stage.name,
        "outcome": chosen.outcome.value,
        "agent": "guardian",
        "id": chosen.id[:2],
        "words": next(one.source for one in store.find_sample(run, chosen.id).candidates if one.final),
    }[name]
    wanted = {
        "task": lambda row: row.task == value,
        "round": lambda row: row.round == value,
        "temperature": lambda row: row.temperature == value,
        "stage": lambda row: row.stage == chosen.stage,
        "outcome": lambda row: row.outcome is chosen.outcome,
        "agent": lambda row: any(found.agent == value for found in store.find_sample(run, row.id).candidates),
        "id": lambda row: row.id.startswith(value),
        "words": lambda row: any(
            found.final and value in (found.source or "") for found in store.find_sample(run, row.id).candidates
        ),
    }[name]
    expected = [row.id for row in listed if wanted(row)]
    assert 0 < len(expected) < len(listed)
    html = client.get(make_url(run, "samples", **{name: value})).text
    assert samples_of(html) == expected[:50]
    if name not in ("id", "words"):
        assert f"{len(expected):,} sample" in html


def test_filters_are_joined_and_a_filter_may_let_nothing_through(client: TestClient, store: Store) -> None:
    run = only_run(store)
    counts = Counter((row.task, row.outcome) for row in store.list_samples(run))
    html = client.get(make_url(run, "samples", task="sum_0", outcome="passed")).text
    assert f"{counts['sum_0', Outcome.PASSED]:,} sample" in html
    assert "No sample passes" in client.get(make_url(run, "samples", task="nothing")).text


def test_a_change_of_a_filter_is_answered_with_the_list_alone(client: TestClient, store: Store) -> None:
    part = client.get(make_url(only_run(store), "samples"), headers={"HX-Request": "true", "HX-Target": "list"})
    assert "<html" not in part.text
    assert len(samples_of(part.text)) == 50


def test_a_sample_shows_prompt_reply_program_and_verdict(client: TestClient, store: Store) -> None:
    run = only_run(store)
    solved = {kept.experience.task.id for kept in store.read_experiences(run)}
    row = next(
        row
        for row in store.list_samples(run)
        if row.stage == Stage.MATCH and row.outcome is Outcome.REFUSED and row.task in solved
    )
    html = client.get(make_url(run, "samples", row.id)).text
    detail = store.find_sample(run, row.id)
    shown = detail.candidates[0].verdict.errors[0]
    assert "Postfix notation" in html, "the prompt's system message"
    assert "Here it is." in html, "the reply"
    assert f"given:    {shown.given}" in html
    assert "Difference from the kept solution" in html
    assert client.get(make_url(run, "samples", row.id[:12])).text == html


def test_a_task_shows_its_file_its_program_and_what_was_tried(client: TestClient, store: Store) -> None:
    run = only_run(store)
    kept = next(kept for kept in store.read_experiences(run) if kept.experience.task.id == "sum_0")
    html = client.get(make_url(run, "tasks", "sum_0")).text
    assert kept.experience.source.strip() in html
    assert kept.sample is not None
    assert kept.sample[:12] in html
    assert "want:" in html
    attempts = client.get(make_url(run, "attempts", "sum_0")).text
    assert "kept" in attempts
    assert "isomorphic" in attempts


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/runs/nobody", "no such run"),
        ("/runs/nobody/samples", "no such run"),
        ("/runs/nobody/events", "no such run"),
        ("/runs/RUN/samples/zz", "no sample of"),
        ("/runs/RUN/tasks/zz", "known: max_0"),
        ("/runs/RUN/attempts/zz", "known: max_0"),
        ("/runs/RUN/samples?round=two", "round: given &#39;two&#39;; expected a whole number"),
        ("/runs/RUN/samples?stage=too-late", "FORMAT or PARSE"),
        (f"/runs/RUN/samples?round={10**30}", "whole number"),
        ("/runs/RUN/samples?after=here", "try: the first page"),
        ("/nowhere", "Not Found"),
        ("/static/../app.py", "Not Found"),
        ("/static/%2e%2e/app.py", "Not Found"),
    ],
)
def test_what_does_not_exist_is_answered_with_a_page_that_says_so(
    client: TestClient, store: Store, path: str, words: str
) -> None:
    answer = client.get(path.replace("RUN", only_run(store)))
    assert answer.status_code == 404
    assert words in answer.text
    assert 'href="/"' in answer.text


def test_texts_from_outside_are_shown_as_texts(client: TestClient, store: Store) -> None:
    store.put(hostile_run()).result()
    run = "evil-s0-1"
    sample = next(store.list_samples(run)).id
    for address in ("/", make_url(run), make_url(run, "samples"), make_url(run, "samples", sample),
                    make_url(run, "tasks", EVIL), make_url(run, "attempts", EVIL),
                    make_url(run, "samples", task=EVIL), make_url(run, "samples", id=EVIL)):  # fmt: skip
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert "<script>alert" not in answer.text, address
        assert "<img" not in answer.text, address
    assert "&lt;script&gt;alert(1)" in client.get(make_url(run, "samples", sample)).text
    assert "\u202e" not in client.get(make_url(run, "samples", sample)).text, "it turns the direction of reading"
    missing = client.get("/runs/" + EVIL.replace("/", "%2F"))
    assert missing.status_code == 404
    assert "<script>alert" not in missing.text


def hostile_run() -> list[rows.Row]:
    """A run in which every text that may come from outside tries to become part of the page."""
    task = Task(EVIL, "tiny", f"inputs: {EVIL}\nwant: []\n", group=EVIL)
    info = RunInfo("evil-s0-1", "1", EVIL, True, "tiny", 0, {"note": EVIL}, {})
    key = SampleKey(info.id, 0, task.id, 0.4, 0)
    prompt, texts = rows.prompt_rows((Message("system", EVIL), Message("user", EVIL)))
    request = Request((), 1, 0.4, 64, 1)
    reply = Reply((EVIL + "\u202e",), Usage(1, 10, 10, 0, None), EVIL, (EVIL,))
    found = Diagnostic("TYPE", EVIL, EVIL, EVIL, EVIL, text=EVIL)
    verdict = Verdict("", Stage("TYPE"), Outcome.REFUSED, Boundary.CANDIDATE, (found,), (EVIL,), verifier=EVIL)
    return [
        *rows.run_rows(info, [task]),
        rows.round_row(info.id, RoundInfo(0, 0, EVIL, (), (task.id,), 2)),
        *texts,
        *rows.reply_rows(key, rows.PROPOSER, prompt, request, reply, 0.1),
        *rows.judged_rows(key, [Judged(EVIL, verdict)]),
        rows.failure_row(SampleKey(info.id, 0, task.id, 0.4, 1), Boundary.PROVIDER, EVIL),
    ]
