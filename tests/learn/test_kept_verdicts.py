"""A long round holds so many verdicts and no more: its memory does not grow with its samples."""

from pathlib import Path

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.learn import sample
from opsmith.learn.loop import improve
from opsmith.store import Store


def test_a_run_that_keeps_two_verdicts_finds_what_one_does_that_keeps_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, judged = [], []
    for kept in (sample.KEPT, 2):
        monkeypatch.setattr(sample, "KEPT", kept)
        with Store.open(tmp_path / f"{kept}.sqlite") as store:
            judge = InProcess()
            run = improve(TASKS, TinyModel(), SETTINGS, store, judge=judge).run
            found.append(store.read_contents(run))
        judged.append(judge.judged)
    assert found[0] == found[1]
    assert judged[0] < judged[1]  # what is not kept is judged again
