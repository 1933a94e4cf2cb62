"""What would be kept is judged at the full level: refused there, its samples are refused, and the next one is tried."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.judging.verifier import verify
from opsmith.learn.loop import improve
from opsmith.records import Candidate, Diagnostic, Level, Outcome, Stage, Task, Verdict, content_hash
from opsmith.store import Store
from opsmith.store.overruling import find_full_verdict
from opsmith.targets.hidden import veil_findings

FINDING = Diagnostic("DATA", "out", "3", "4")


class Thorough(InProcess):
    """Refuses half of the programs at the full level; `dies_after`: so many verdicts there."""

    def __init__(self, dies_after: int | None = None) -> None:
        super().__init__()
        self.fully: list[str] = []
        self.secrets: list[str] = []
        self.dies_after = dies_after

    def with_secret(self, secret: str) -> "Thorough":
        self.secrets.append(secret)
        return self

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        verdict = verify(task, source)
        if level is Level.CHEAP:
            return verdict
        if len(self.fully) == self.dies_after:
            raise KeyboardInterrupt
        self.fully.append(f"{task.id} {source}")
        await asyncio.sleep(0)
        if int(content_hash(source)[:2], 16) % 2:
            return replace(verdict, outcome=Outcome.REFUSED, errors=veil_findings([FINDING], ""), stage=Stage.MATCH)
        return verdict


def run_thoroughly(path: Path, judge: Thorough) -> str:
    with Store.open(path) as store:
        return improve(TASKS, TinyModel(), SETTINGS, store, judge=judge).run


def test_what_is_refused_there_is_not_kept_and_counts_as_refused(tmp_path: Path) -> None:
    judge = Thorough()
    run = run_thoroughly(tmp_path, judge)
    with Store.open(tmp_path) as store:
        kept = [entry.experience for entry in store.read_experiences(run)]
        assert kept
        assert len(set(judge.fully)) == len(judge.fully), "no program is judged there twice"
        overruled = 0
        for experience in kept:
            full = find_full_verdict(store, run, experience.task.id, Candidate(experience.source).id)
            assert full is not None
            assert full.passed
        for row in store.list_samples(run):
            for line in store.find_sample(run, row.id).candidates:
                full = find_full_verdict(store, run, row.task, line.verdict.candidate)
                if full is not None and full.outcome is Outcome.REFUSED and line.final:
                    assert (row.outcome, line.verdict.errors) == (Outcome.REFUSED, full.errors)
                    overruled += 1
        assert overruled
        for experience in kept:
            tallies = [t for t in store.read_tallies(run, experience.round) if t.task == experience.task.id]
            assert experience.success_rate == max(tally.right / tally.judged for tally in tallies)


def test_a_run_that_was_killed_over_it_ends_as_one_that_was_not(tmp_path: Path) -> None:
    whole = run_thoroughly(tmp_path / "whole", Thorough())
    judges = [Thorough(dies_after=2), Thorough(dies_after=1), Thorough()]
    for judge in judges[:2]:
        with pytest.raises(KeyboardInterrupt):
            run_thoroughly(tmp_path / "killed", judge)
    assert run_thoroughly(tmp_path / "killed", judges[2]) == whole
    assert len({secret for judge in judges for secret in judge.secrets}) == 1, "the run's own, as it was made"
    with Store.open(tmp_path / "whole") as first, Store.open(tmp_path / "killed") as second:
        assert first.read_contents(whole) == second.read_contents(whole)
        assert first.read_secret(whole) != second.read_secret(whole)
