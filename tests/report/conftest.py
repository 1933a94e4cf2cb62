"""Stores to report on: two finished tiny runs, and one written by hand whose every text is hostile."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.learn.loop import improve
from opsmith.models import Message, Reply, Request
from opsmith.records import Boundary, Candidate, Diagnostic, Experience, Outcome, Stage, Usage, Verdict
from opsmith.store import Store, rows
from opsmith.store.rows import GUARDIAN, PROPOSER, Judged, SampleKey
from opsmith.suites import load_tasks

HOSTILE = "</pre><script>alert(1)</script><img src='http://example.org/x' onerror=alert(1)>\u202e"


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store file; nobody changes it."""
    path = tmp_path_factory.mktemp("finished") / "opsmith.sqlite"
    with Store.open(path) as store:
        for seed in (1, 2):
            settings = SETTINGS.replace(seed=seed, samples=6)
            improve(TASKS, TinyModel(price=0.001), settings, store, judge=InProcess())
    return path


@pytest.fixture
def store(finished: Path, tmp_path: Path) -> Iterator[Store]:
    with Store.open(shutil.copy(finished, tmp_path / "opsmith.sqlite")) as opened:
        yield opened


@pytest.fixture
def runs(store: Store) -> list[str]:
    return [summary.info.id for summary in store.list_runs()]


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[tuple[Store, str]]:
    """A store with one unfinished run of a language model, and that run."""
    with Store.open(tmp_path / "hostile" / "opsmith.sqlite") as opened:
        yield opened, _written(opened)


def _written(store: Store) -> str:
    """attn_0: a right program, a rewritten one, a reply without a program, one without a verdict; and a hostile task."""
    good = load_tasks(["attn_0"])[0]
    bad = replace(good, id=HOSTILE, target="nowhere", text=HOSTILE, shown="", impl=None, group=HOSTILE)
    info = rows.RunInfo("model-s0-1", "1", HOSTILE, True, "step", 0, {"samples": 4, "note": HOSTILE}, {"opsmith": "0"})
    store.put(rows.run_rows(info, [good, bad]))
    store.put([rows.round_row(info.id, rows.RoundInfo(0, 0, "none", (), (good.id, bad.id), 8))])
    right = good.impl or ""
    twice = right.replace("E3 = ", "E9 = step.Streamify().apply(E1)\nE3 = ")
    answers = {
        (good.id, 0): [Judged(right, _verdict(right, None))],
        (good.id, 1): [Judged(twice, _verdict(twice, Stage("AFFINE"))), Judged(right, _verdict(right, None), GUARDIAN, Candidate(twice).id)],
        (good.id, 2): [Judged(None, _verdict("", Stage.FORMAT))],
        (good.id, 3): [],
        (bad.id, 0): [Judged(HOSTILE, _verdict(HOSTILE, Stage("PARSE")))],
    }  # fmt: skip
    for (task, number), judged in answers.items():
        key = SampleKey(info.id, 0, task, 1.0, number)
        for agent in dict.fromkeys((PROPOSER, *(item.agent for item in judged))):
            answer(store, key, agent)
        store.put(rows.judged_rows(key, judged) if judged else [rows.failure_row(key, Boundary.SANDBOX, HOSTILE)])
    kept = Experience(good, right, 0.5, 0, info.id)
    store.put(rows.experience_rows(info.id, kept, SampleKey(info.id, 0, good.id, 1.0, 0).id, True))
    store.flush()
    return info.id


def answer(store: Store, key: SampleKey, agent: str) -> None:
    messages = (Message("system", "The base prompt."), Message("user", f"{key.task}: {HOSTILE}"))
    prompt, texts = rows.prompt_rows(messages)
    reply = Reply((HOSTILE,), Usage(1, 10, 5, 0, None), HOSTILE, (HOSTILE,))
    store.put([*texts, *rows.reply_rows(key, agent, prompt, Request(messages, 1.0, seed=7), reply, 0.1)])


def _verdict(source: str, refused: Stage | None) -> Verdict:
    name = Candidate(source).id if source else ""
    if refused is None:
        return Verdict(name, Stage.MATCH, Outcome.PASSED, Boundary.CANDIDATE, trials=3, max_abs_error=0.0)
    found = Diagnostic("LANG", HOSTILE, HOSTILE, HOSTILE, HOSTILE, 1, None, HOSTILE)
    return Verdict(name, refused, Outcome.REFUSED, Boundary.CANDIDATE, (found,), (HOSTILE,))
