"""Whole runs: which there are, what each was asked to do, what it ended with, and all that it left."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from sqlalchemy import Row, Table, exists, func, select, true

from opsmith.errors import RunNameError, UsageError
from opsmith.records import KNOWN, Experience, KnownProgram, Task, Usage, Verdict, verdict_from_json
from opsmith.store import schema
from opsmith.store.requests import RequestQueries
from opsmith.store.rows import RunInfo, task_from_body
from opsmith.store.schema import run_end, session_end, text

_KNOWN, _SETTINGS = 8, 3  # runs, and settings of each, that a message names
EARLIER = "a run without a secret"  # of all runs that were begun before runs had one


@dataclass(frozen=True)
class RunSummary:
    info: RunInfo
    started: float  # seconds since 1970
    tasks: int  # that it was to solve: what it was given at the start apart
    solved: int  # of these
    rounds: int  # that have ended
    samples: int  # replies of the proposer
    usage: Usage
    end: str | None  # why it ended, or why it stopped for now; None: it runs, or was killed
    finished: bool
    seconds: float  # of all sessions that ended in an orderly way


@dataclass(frozen=True)
class KeptExperience:
    """An experience as the store has it; `sample` None: it was given to the run, when that began or later."""

    experience: Experience
    sample: str | None
    contaminated: bool

    @property
    def is_earlier(self) -> bool:
        """Whether it was there before any round: nobody was asked for its task."""
        return self.sample is None and not (self.experience.is_known and self.experience.round >= 0)


@dataclass(frozen=True)
class StoredKnown:
    """A program that was given to a run, with its verdict at the full level."""

    program: KnownProgram
    verdict: Verdict

    @property
    def key(self) -> tuple[str, str]:
        """What no two that are judged share: the digest of the task, and the program."""
        return self.program.task.digest, self.program.source


class RunQueries(RequestQueries):
    """Questions about runs. Raises RunNameError for a run that does not exist."""

    def list_runs(self) -> list[RunSummary]:
        """Oldest first."""
        return self._summarise_rows(self.fetch_rows(select(schema.run).order_by(schema.run.c.at)))

    def find_run(self, name: str | None) -> str:
        """The id of the run whose id or name this is, or else whose id begins so; None: the newest run."""
        ids, names = self.list_ids(), self.read_names()
        if name is None and ids:
            return ids[-1]
        named = [run for run, own in names.items() if own == name]
        matches = [name] if name in ids else named[-1:] or [run for run in ids if run.startswith(name or "")]
        if name and len(matches) == 1:
            return matches[0]
        if name is None:
            raise UsageError(f"{self.path}: no runs here; expected some, made by `opsmith run`; try: --out DIR")
        problem = "no such run" if not matches else "more than one run begins so"
        meant = [run for run in reversed(self.list_runs()) if run.info.id in (matches or ids)]
        known = _tell_apart(meant) or "none; try: opsmith run"
        raise RunNameError(f"run {name!r}: {problem} in {self.path}", known, [run.info.id for run in meant])

    def read_info(self, run: str) -> RunInfo | None:
        rows = self.fetch_rows(select(schema.run).where(schema.run.c.id == run))
        return _run_info(rows[0], self.read_names()) if rows else None

    def read_secret(self, run: str) -> str:
        """What the run's hidden sizes are drawn from; it is for judges, and shown nowhere."""
        rows = self.fetch_rows(select(schema.run.c.secret).where(schema.run.c.id == run))
        return (rows[0].secret if rows else None) or EARLIER

    def summarise_run(self, run: str) -> RunSummary:
        rows = self.fetch_rows(select(schema.run).where(schema.run.c.id == run))
        rows = rows or self.fetch_rows(select(schema.run).where(schema.run.c.id == self.find_run(run)))
        return self._summarise_rows(rows, rows[0].id)[0]

    def _summarise_rows(self, rows: Sequence[Row[Any]], only: str | None = None) -> list[RunSummary]:
        """Of all runs, or one. What is small is counted for all at once; samples and bills, run by run, by an index."""
        own, solved, names = _is_of(run_end, only), schema.experience, self.read_names()
        tasks, rounds = self._count_by_run(schema.task, only), self._count_by_run(schema.round_end, only)
        is_own = exists().where(schema.task.c.run == solved.c.run, schema.task.c.body == solved.c.body)
        is_late = solved.c.origin.startswith(KNOWN) & (solved.c.round >= 0)  # it was asked for before it was given
        given = self._count_by_run(solved, only, solved.c.sample.is_(None), is_own, ~is_late)
        node = schema.plan_node  # a task that a plan of the run has made is none of its own
        is_child = exists().where(node.c.run == solved.c.run, node.c.id == solved.c.task)
        right = self._count_by_run(solved, only, solved.c.sample.is_not(None), ~is_child)
        reasons = {row.run: row.reason for row in self.fetch_rows(select(run_end.c.run, run_end.c.reason).where(own))}
        ends: dict[str, list[Row[Any]]] = defaultdict(list)
        for end in self.fetch_rows(select(session_end).where(_is_of(session_end, only)).order_by("id_number")):
            ends[end.run].append(end)
        return [
            RunSummary(
                info=_run_info(row, names),
                started=row.at,
                tasks=tasks[row.id] - given[row.id],
                solved=right[row.id],
                rounds=rounds[row.id],
                samples=self.sample_count(row.id),
                usage=self.sum_usage(row.id),
                end=reasons.get(row.id) or (ends[row.id][-1].reason if ends[row.id] else None),
                finished=row.id in reasons,
                seconds=sum(end.seconds for end in ends[row.id]),
            )
            for row in rows
        ]

    def _count_by_run(self, table: Table, only: str | None, *conditions: Any) -> Counter[str]:
        """How many rows each run has in a table."""
        query = select(table.c.run, func.count().label("number")).where(_is_of(table, only), *conditions)
        return Counter({row.run: row.number for row in self.fetch_rows(query.group_by(table.c.run))})

    def end_reason(self, run: str) -> str | None:
        """Why the run is finished; None when it is not."""
        rows = self.fetch_rows(select(run_end.c.reason).where(run_end.c.run == run))
        return rows[0].reason if rows else None

    def session_count(self, run: str) -> int:
        """How many processes have begun to work on a run."""
        return self.count_rows(schema.session, run)

    def is_paused(self, run: str) -> bool:
        """Whether the last wish for the run is that it pauses."""
        control = schema.control
        query = select(control.c.wish).where(control.c.run == run).order_by(control.c.id_number.desc()).limit(1)
        return [row.wish for row in self.fetch_rows(query)] == ["pause"]

    def read_tasks(self, run: str) -> list[Task]:
        query = select(text.c.body).join(schema.task, schema.task.c.body == text.c.hash)
        return [task_from_body(row.body) for row in self.fetch_rows(query.where(schema.task.c.run == run))]

    def read_problems(self, run: str) -> dict[str, str]:
        """By task, the digest of the problem that it asks for in any language; left out where it is not known."""
        query = select(schema.task.c.id, schema.task.c.problem).where(schema.task.c.run == run)
        return {row.id: row.problem for row in self.fetch_rows(query.where(schema.task.c.problem.is_not(None)))}

    def target_name(self, run: str) -> str:
        """The name by which the run's tasks find their target; `RunInfo.target` is what that calls itself."""
        tasks = self.read_tasks(run)
        return tasks[0].target if tasks else self.summarise_run(run).info.target

    def read_experiences(self, run: str, with_children: bool = False) -> list[KeptExperience]:
        """By round, then task; `with_children`: what solved those of plans too."""
        experience, body = schema.experience, text.alias("task_text")
        query = (
            select(experience, text.c.body.label("program"), body.c.body.label("task_body"))
            .join(text, text.c.hash == experience.c.source)
            .join(body, body.c.hash == experience.c.body)
            .where(experience.c.run == run)
            .order_by(experience.c.round, experience.c.task)
        )
        children = frozenset() if with_children else self.list_children(run)
        return [_read_experience(row) for row in self.fetch_rows(query) if row.task not in children]

    def read_known(self, run: str) -> list[StoredKnown]:
        """The programs that were given to a run, right or not, in the order in which they came."""
        known, body, verdict = schema.known, text.alias("task_text"), text.alias("verdict_text")
        query = (
            select(known, text.c.body.label("program"), body.c.body.label("task_body"), verdict.c.body.label("judged"))
            .join(text, text.c.hash == known.c.source)
            .join(body, body.c.hash == known.c.body)
            .join(verdict, verdict.c.hash == known.c.verdict)
            .where(known.c.run == run)
            .order_by(known.c.id_number)
        )
        return [
            StoredKnown(
                KnownProgram(task_from_body(row.task_body), row.program, row.author, row.place),
                verdict_from_json(json.loads(row.judged)),
            )
            for row in self.fetch_rows(query)
        ]

    def read_contents(self, run: str) -> frozenset[tuple[str, str]]:
        """Every record of a run as (table, JSON), clock times left out: equal runs have equal contents.

        Sessions, notes, tags, measurements and profiles are no part of it; texts are there by their hash.
        """
        contents: set[tuple[str, str]] = set()
        for table in schema.metadata.tables.values():
            if table.name in _NO_RECORDS:
                continue
            owner = table.c.id if table is schema.run else table.c.run
            rows = self.fetch_rows(select(table).where(owner == run))
            for row in rows:
                values = {key: value for key, value in row._asdict().items() if key not in schema.CLOCK}
                contents.add((table.name, json.dumps(values, sort_keys=True)))
        return frozenset(contents)


_NO_RECORDS = {
    *("meta", "alembic_version", "session", "session_end", "control", "batched", "batch_failure", "text"),
    *("note", "tag"),  # what people say of a run
    *("measurement", "profile"),  # a clock's readings, and what was read beside them
}


def _is_of(table: Table, run: str | None) -> Any:
    """A condition: a row of that run; None: of any."""
    return true() if run is None else table.c.run == run


def _tell_apart(runs: Sequence[RunSummary]) -> str:
    """When each began, what it came to, and the settings in which they differ."""
    told = [{"model": run.info.model, "seed": run.info.seed, **run.info.settings} for run in runs]
    differing = [name for name in dict.fromkeys(chain(*told)) if len({str(own.get(name)) for own in told}) > 1]
    texts = []
    for run, own in zip(runs[:_KNOWN], told, strict=False):
        began = f"{datetime.fromtimestamp(run.started, UTC):%Y-%m-%d %H:%M} UTC"
        marks = [run.info.id] * bool(run.info.name) + [began, f"solved {run.solved} of {run.tasks}"]
        marks += [f"{name} {own.get(name)}" for name in differing[:_SETTINGS] if own.get(name) is not None]
        texts.append(f"{run.info.label} ({', '.join(marks)})")
    rest = f"; and {len(runs) - _KNOWN} earlier ones: opsmith runs" if len(runs) > _KNOWN else ""
    return "; ".join(texts) + rest


def _run_info(row: Row[Any], names: Mapping[str, str]) -> RunInfo:
    deciders = json.loads(row.settings), json.loads(row.versions)
    about = (row.model, row.is_language_model, row.target, row.seed)
    return RunInfo(row.id, row.identity, *about, *deciders, names.get(row.id, ""))


def _read_experience(row: Row[Any]) -> KeptExperience:
    experience = Experience(
        task_from_body(row.task_body), row.program, row.success_rate, row.round, row.origin, row.gain
    )
    return KeptExperience(experience, row.sample, row.contaminated)
