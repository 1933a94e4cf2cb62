"""The live pages of a run whose programs were measured say how fast they are."""

from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from optimised_store import add_optimisation, write_functional
from speed_store import spread, write_run

from opsmith.measuring.record import MeasuringGrade
from opsmith.store import Store
from opsmith.store.measurements import speed_rows
from opsmith.ui.app import make_app
from opsmith.ui.site import Site


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


def test_the_gain_of_a_finished_run_is_that_of_what_was_measured_since(tmp_path, access):
    run = write_functional(tmp_path / "opsmith.sqlite")
    with Store.open(tmp_path / "opsmith.sqlite") as store:
        add_optimisation(store, run)
        site = Site(store, access)
        [before] = [line.gain for line in site.list_lines()]
        again = next(speed for speed in store.read_speeds(run) if speed.report.measurement.grade is MeasuringGrade.FULL)
        ratio = replace(again.report.measurement.ratio, precise=spread(3.5))
        report = replace(again.report, measurement=replace(again.report.measurement, ratio=ratio))
        store.put(speed_rows(run, replace(again, report=report))).result()
        [after] = [line.gain for line in Site(store, access).list_lines()]
        assert (before, after) == ("1.750 over 2 tasks", "2.475 over 2 tasks")
        assert [line.gain for line in site._make_lines("")] == [after]
