"""The live pages of a run whose programs were measured say how fast they are."""

import pytest
from fastapi.testclient import TestClient
from speed_store import write_run

from opsmith.store import Store
from opsmith.ui.app import make_app


@pytest.fixture
def pages(tmp_path, access):
    run = write_run(tmp_path / "opsmith.sqlite")
    with Store.open(tmp_path / "opsmith.sqlite") as store:
        solution = store.read_experiences(run)[0]
        app, _ = make_app(store, access)
        with TestClient(app, follow_redirects=False) as client:
            yield client, run, solution


@pytest.mark.parametrize("page", ["tasks", "samples", "results", "attempts"])
def test_a_page_shows_times_ratios_and_reasons(pages, page):
    client, run, solution = pages
    places = {
        "tasks": f"tasks/{solution.experience.task.id}",
        "samples": f"samples/{solution.sample}",
        "results": "results?now=1",
        "attempts": f"attempts/{solution.experience.task.id}",
    }
    text = client.get(f"/runs/{run}/{places[page]}").text
    assert "12.500 [12.255, 12.750] µs" in text
    assert "4.000 [3.922, 4.080] to plain" in text
    assert "&lt;b&gt;y&lt;/b&gt;" in text
    assert "Speed of" in text
    assert "<svg" in text or page != "tasks"
