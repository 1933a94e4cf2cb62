"""Who may read a page, and who may change something."""

import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from test_pages import only_run

from opsmith.errors import UsageError
from opsmith.store import Store
from opsmith.ui.app import make_app
from opsmith.ui.guard import LOOPBACK, Access
from opsmith.ui.listening import is_loopback
from opsmith.ui.render import make_url
from opsmith.ui.serve import choose_access

TOKEN = "a-token-of-some-length"


@pytest.fixture
def guarded(store: Store) -> Iterator[TestClient]:
    """Pages that need the token."""
    app, _ = make_app(store, Access(TOKEN, 8741))
    with TestClient(app, follow_redirects=False) as made:
        yield made


def test_every_answer_says_that_nothing_comes_from_elsewhere(client: TestClient, store: Store) -> None:
    for path in ("/", make_url(only_run(store)), "/static/htmx.min.js", "/static/style.css", "/nowhere"):
        headers = client.get(path).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    assert client.get("/").headers["cache-control"] == "no-store"


def test_no_page_holds_what_the_policy_forbids(client: TestClient, store: Store) -> None:
    run = only_run(store)
    sample = next(store.list_samples(run)).id
    for path in ("/", make_url(run), make_url(run, "samples"), make_url(run, "samples", sample), make_url(run, "tasks", "sum_0"),
                 make_url(run, "attempts", "sum_0"), make_url(run, "results", now=1), "/nowhere"):  # fmt: skip
        html = client.get(path).text
        assert not re.search(r"<[^>]+ (style|on\w+)=", html), path
        assert "<style" not in html, path
        assert not re.search(r"<script(?! src=\"/static/)", html), path
        assert not re.search(r"(src|href)=\"(https?:)?//", html), path


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8741", "127.0.0.1.evil.example", "", "[::2]:8741", "[bad"]
)
def test_another_sites_name_for_this_machine_is_refused(store: Store, host: str) -> None:
    app, _ = make_app(store, Access())
    with TestClient(app) as client:
        assert client.get("/", headers={"Host": host}).status_code == 421
        for own in ("127.0.0.1:8741", "localhost", "[::1]:8741"):
            assert client.get("/", headers={"Host": own}).status_code == 200


def test_the_token_is_taken_out_of_the_address_and_kept_in_a_cookie(guarded: TestClient) -> None:
    assert guarded.get("/").status_code == 401
    answer = guarded.get(f"/runs/x/samples?round=1&token={TOKEN}&task=a%20b")
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs/x/samples?round=1&task=a+b")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert guarded.get("/").status_code == 200, "the client sends its cookie"
    assert TOKEN not in guarded.get("/").text


@pytest.mark.parametrize("wrong", ["", "a-token", TOKEN + "x", TOKEN.upper(), "é" * 22, "\x00"])
def test_a_wrong_token_opens_nothing(guarded: TestClient, wrong: str) -> None:
    assert guarded.get("/", params={"token": wrong}).status_code == 401
    guarded.cookies.set("opsmith_8741", wrong.encode("ascii", "ignore").decode() or "x")
    for path in ("/", "/events", "/static/ui.css", "/nowhere"):
        answer = guarded.get(path)
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False), path


def test_the_first_visit_leads_nowhere_else(guarded: TestClient) -> None:
    for path in ("//evil.example/x", "/%5Cevil.example", "/\\evil.example"):
        location = guarded.get(f"http://testserver{path}?token={TOKEN}").headers["location"]
        assert location.startswith("/")
        assert location[1:2] not in ("/", "\\")


def secret_of(client: TestClient, run: str) -> str:
    found = re.search(r'name="secret" value="([^"]+)"', client.get(make_url(run)).text)
    assert found is not None
    return found[1]


def test_a_run_is_paused_and_resumed_by_its_page(client: TestClient, store: Store, going_on: str) -> None:
    secret = secret_of(client, going_on)
    answer = client.post(make_url(going_on, "pause"), data={"secret": secret})
    assert (answer.status_code, answer.headers["location"]) == (303, make_url(going_on))
    assert store.is_paused(going_on)
    part = client.post(make_url(going_on, "resume"), data={"secret": secret}, headers={"HX-Request": "true"})
    assert not store.is_paused(going_on)
    assert "Pause</button>" in part.text
    assert "<html" not in part.text


@pytest.mark.parametrize(
    ("headers", "change"),
    [
        ({"Origin": "http://evil.example"}, {}),
        ({"Origin": "null"}, {}),
        ({"Origin": "https://testserver.evil.example"}, {}),
        ({"Sec-Fetch-Site": "cross-site"}, {}),
        ({"Sec-Fetch-Site": "same-site"}, {}),
        ({}, {"secret": ""}),
        ({}, {"secret": "x" * 32}),
        ({}, {"more": "x" * 70_000}),
    ],
)
def test_another_sites_form_changes_nothing(
    client: TestClient, store: Store, going_on: str, headers: dict[str, str], change: dict[str, str]
) -> None:
    data = {"secret": secret_of(client, going_on)} | change
    answer = client.post(make_url(going_on, "pause"), data=data, headers=headers)
    assert answer.status_code == (413 if "more" in change else 403)
    assert not store.is_paused(going_on)


def test_only_post_changes_something(client: TestClient, store: Store, going_on: str) -> None:
    assert client.get(make_url(going_on, "pause")).status_code in (404, 405)
    assert client.put(make_url(going_on, "pause")).status_code == 405
    assert not store.is_paused(going_on)


def test_a_finished_run_cannot_be_paused(client: TestClient, store: Store, going_on: str) -> None:
    data = {"secret": secret_of(client, going_on)}
    answer = client.post(make_url(only_run_finished(store), "pause"), data=data)
    assert answer.status_code == 400
    assert "it is finished" in answer.text


def only_run_finished(store: Store) -> str:
    return next(run.info.id for run in store.list_runs() if run.finished)


def test_a_token_is_needed_unless_only_this_machine_can_ask() -> None:
    assert choose_access("127.0.0.1", 1, None).token is None
    assert choose_access("localhost", 1, None).token is None
    assert len(choose_access("0.0.0.0", 1, None).token or "") > 20
    assert choose_access("0.0.0.0", 1, None).token != choose_access("0.0.0.0", 1, None).token
    assert choose_access("127.0.0.1", 1, TOKEN).token == TOKEN
    assert choose_access("127.0.0.1", 1, None).hosts == LOOPBACK
    with pytest.raises(UsageError, match="16 to 200"):
        choose_access("0.0.0.0", 1, "short")
    assert [is_loopback(host) for host in ("127.0.0.2", "::1", "192.168.1.2", "::", "example.org")] == [
        True,
        True,
        False,
        False,
        False,
    ]
