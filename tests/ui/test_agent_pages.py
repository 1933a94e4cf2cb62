"""The live pages of a run with plans and tools: trees that follow the store, pages of nodes, conversations."""

import time
from pathlib import Path

import pytest
from agents_store import HOSTILE, RUN, find_calling, list_rounds, write_run
from fastapi.testclient import TestClient

from opsmith.store import Store
from opsmith.store.plans import StoredPlan, plan_rows
from opsmith.store.rows import RoundInfo, round_end_row, round_row
from opsmith.ui.app import make_app
from opsmith.ui.guard import Access
from opsmith.ui.site import Site, name_event


@pytest.fixture
def store(tmp_path: Path):
    write_run(tmp_path / "opsmith.sqlite")
    with Store.open(tmp_path / "opsmith.sqlite") as opened:
        yield opened


def test_a_tree_that_changes_is_sent_to_the_pages_that_show_it(store: Store, access: Access) -> None:
    site = Site(store, access)
    before = site.render_parts(RUN).html_by_name
    assert '>left</a><span class="state">open</span>' in before[name_event("sum_2")]
    number = len(list_rounds())
    store.put([round_row(RUN, RoundInfo(number, 0, "none", (), ("sum_2.left", "sum_2.right"), 0))])
    store.put([round_end_row(RUN, number, ())])
    problem = "the reference has no further split"
    store.put(plan_rows(RUN, StoredPlan("sum_2", 3, "static", "left was given up", number + 1, None, problem))).result()
    time.sleep(0.01)
    after = Site(store, access).render_parts(RUN).html_by_name
    assert after[name_event("sum_1")] == before[name_event("sum_1")]
    assert after[name_event("sum_2")] != before[name_event("sum_2")]
    assert "sum_2" in after["plans"]


def test_pages_of_nodes_and_conversations_are_found_from_the_tree(store: Store, access: Access) -> None:
    app, _ = make_app(store, access)
    with TestClient(app, follow_redirects=False) as client:
        run = client.get(f"/runs/{RUN}").text
        assert f"/runs/{RUN}/tasks/sum_1.first" in run
        node = client.get(f"/runs/{RUN}/tasks/sum_2.head").text  # of a split that holds no more
        assert "0 of 2 judged samples are right" in node
        assert HOSTILE not in node
        assert "&lt;b&gt;unsolved" in node
        assert f'sse-swap="{name_event("sum_2")}"' in node
        assert client.get(f"/runs/{RUN}/attempts/sum_1.first").status_code == 200
        sample = client.get(f"/runs/{RUN}/samples/{find_calling().id}").text
        assert sample.index("I check.") < sample.index("now I try it.") < sample.index("This language has no costs.")
