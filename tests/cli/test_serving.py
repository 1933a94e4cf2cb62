"""`opsmith ui`, `pause` and `resume` on the command line."""

import sys
from pathlib import Path

import pytest
from tiny_target import tiny_task

from opsmith.store import Store, rows
from opsmith.store.rows import RunInfo

pytestmark = pytest.mark.usefixtures("warm_runs")

RUN = RunInfo("tiny-s0-0123", "0123", "tiny", False, "tiny", 0, {}, {})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A store with one run that is not finished."""
    folder = tmp_path / "runs"
    with Store.open(folder) as store:
        store.put(rows.run_rows(RUN, [tiny_task("sum_0", "x y +")])).result()
    return folder


def test_a_run_is_paused_and_resumed_from_another_process(opsmith, out: Path) -> None:
    with Store.open(out) as store:
        with store.lock(RUN.id):
            assert "pauses; `opsmith resume` lets it go on" in opsmith("pause", "tiny", "--out", out).err
        assert store.is_paused(RUN.id)
        assert "no process works on it now; it will not wait" in opsmith("resume", "tiny", "--out", out).err
        assert not store.is_paused(RUN.id)


def test_a_run_that_is_finished_or_unknown_cannot_be_paused(opsmith, out: Path) -> None:
    unknown = opsmith("pause", "other", "--out", out)
    assert (unknown.code, "known: tiny-s0-0123" in unknown.err) == (2, True)
    with Store.open(out) as store:
        store.put([rows.run_end_row(RUN.id, "all solved")]).result()
    ended = opsmith("pause", RUN.id, "--out", out)
    assert (ended.code, "it is finished (all solved)" in ended.err) == (2, True)


def test_the_pages_need_a_store_that_is_there(opsmith, tmp_path: Path) -> None:
    done = opsmith("ui", tmp_path / "nothing")
    assert (done.code, "no runs here" in done.err, "--out DIR" in done.err) == (2, True, True)
    assert not (tmp_path / "nothing").exists()


def test_without_the_extra_one_is_told_which(opsmith, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("opsmith.ui", "uvicorn"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = opsmith("ui", out)
    assert (done.code, "pip install" in done.err and "[ui]'" in done.err) == (2, True)


def test_without_its_extra_agents_are_not_served_and_one_is_told_which(
    opsmith, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = opsmith("mcp")
    assert (done.code, "pip install" in done.err and "[mcp]'" in done.err) == (2, True)
