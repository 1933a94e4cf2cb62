"""Pages of samples, counts and last verdicts agree with what a scan of the whole run finds."""

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_target import tiny_task

from opsmith.models import Message, Reply, Request
from opsmith.records import Boundary, Candidate, Outcome, Stage, Usage, Verdict, dumps
from opsmith.store import Row, Store, rows
from opsmith.store.pages import (
    Filter,
    Page,
    SampleKind,
    SamplePlace,
    count_kinds,
    judged_since,
    last_failures,
    last_verdicts,
    page_of,
)
from opsmith.store.rows import GUARDIAN, PROPOSER, Judged, RunInfo, SampleKey

RUN = RunInfo("tiny-s0-0123", "0123", "tiny", False, "tiny", 0, {}, {})
TASKS = [tiny_task("b_0", "x y +"), tiny_task("a_0", "x y +")]
ROUNDS = (0, 1)


def whole_sample(key: SampleKey, rng: random.Random) -> list[Row]:
    """A reply: without a verdict yet, without a program, refused, passed, or rewritten by the guardian."""
    prompt, texts = rows.prompt_rows((Message("user", "task"),))
    reply = Reply(("x",), Usage(1, 10, 1, 0, 0.1), "tiny", ("stop",))
    made = [*texts, *rows.reply_rows(key, PROPOSER, prompt, Request((), 1, key.temperature, 64, 1), reply, 0.1)]
    source, blame = f"x {rng.randrange(3)}", Boundary.CANDIDATE
    refused = Verdict(Candidate(source).id, Stage("TYPE"), Outcome.REFUSED, blame)
    passed = Verdict(Candidate("x y").id, Stage.MATCH, Outcome.PASSED, blame)
    kinds: list[list[Judged]] = [
        [],
        [Judged(None, Verdict("", Stage.FORMAT, Outcome.REFUSED, blame))],
        [Judged(source, refused)],
        [Judged("x y", passed)],
        [Judged(source, refused), Judged("x y", passed, GUARDIAN, Candidate(source).id)],
    ]
    judged = rng.choice(kinds)
    return made + (rows.judged_rows(key, judged) if judged else [])


@pytest.fixture(scope="module")
def store(where_all: Path | str) -> Iterator[Store]:
    rng = random.Random(0)
    places = itertools.product(ROUNDS, TASKS, (0.4, 1.0), range(9))
    keys = [SampleKey(RUN.id, number, task.id, warm, at) for number, task, warm, at in places]
    rng.shuffle(keys)
    with Store.open(where_all) as opened:
        opened.put([*rows.run_rows(RUN, TASKS), *(row for key in keys for row in whole_sample(key, rng))])
        opened.put([rows.failure_row(keys[0], Boundary.PROVIDER, "HTTP 500")]).result()
        yield opened


@pytest.fixture(scope="module")
def counts(store: Store) -> Counter[SampleKind]:
    return sum((count_kinds(store, RUN.id, number) for number in ROUNDS), Counter())


def test_the_counts_are_those_of_a_scan(store: Store, counts: Counter[SampleKind]) -> None:
    scanned = Counter(
        (row.round, row.task, row.temperature, row.stage, row.outcome) for row in store.list_samples(RUN.id)
    )
    merged: Counter[tuple[object, ...]] = Counter()
    for kind, samples in counts.items():
        merged[kind[:5]] += samples
    assert merged == scanned
    assert {kind.agent for kind in counts} == {None, PROPOSER, GUARDIAN}


def filters() -> list[Filter]:
    parts = (
        ({}, {"task": "a_0"}, {"round": 1}, {"temperature": 0.4}, {"begins": "a"}),
        ({}, {"stage": Stage("TYPE")}, {"stage": Stage.FORMAT}, {"agent": GUARDIAN}, {"agent": "nobody"}),
        ({}, {"outcome": Outcome.PASSED}, {"outcome": Outcome.REFUSED}, {"outcome": Outcome.UNJUDGED}),
    )
    return [Filter(**one, **two, **three) for one, two, three in itertools.product(*parts)]  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_pages_hold_every_sample_that_passes_once_in_order(
    store: Store, counts: Counter[SampleKind], size: int
) -> None:
    everything = list(store.list_samples(RUN.id))
    made_by = {
        row.id: next((c.agent for c in store.find_sample(RUN.id, row.id).candidates if c.final), None)
        for row in everything
    }
    for wanted in filters():
        expected = [
            row.id
            for row in everything
            if wanted.task in (None, row.task)
            and wanted.round in (None, row.round)
            and wanted.temperature in (None, row.temperature)
            and wanted.stage in (None, row.stage)
            and wanted.outcome in (None, row.outcome or Outcome.UNJUDGED)
            and (wanted.agent is None or (wanted.agent == made_by[row.id] and row.stage != Stage.FORMAT))
            and row.id.startswith(wanted.begins)
        ]
        pages = list(walk(store, wanted, counts, size))
        assert [line.id for page in pages for line in page.lines] == expected, wanted
        if len(pages) > 1:
            assert pages[0].before is None
            assert pages[-1].before is not None
            back = page_of(store, RUN.id, wanted, counts, before=pages[-1].before, size=size)
            assert back.lines == pages[-2].lines, wanted


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_words_are_looked_for_in_programs_and_verdicts(
    store: Store, counts: Counter[SampleKind], seconds: float
) -> None:
    texts = {}
    for row in store.list_samples(RUN.id):
        one = next((one for one in store.find_sample(RUN.id, row.id).candidates if one.final), None)
        texts[row.id] = f"{one.source} {dumps(one.verdict)}".lower() if one is not None else ""
    for words in ("X 1", '"stage":"TYPE"', "%", "_ 1"):
        expected = [sample for sample, told in texts.items() if words.lower() in told]
        wanted = Filter(words=words if "stage" not in words else "TYPE")
        pages = list(walk(store, wanted, counts, 3, seconds))
        assert [line.id for page in pages for line in page.lines] == expected, words
        assert any(page.unsearched for page in pages) == (seconds == 0)
        back = page_of(store, RUN.id, wanted, counts, before=SamplePlace(9, "", 0.0, 0), size=99, seconds=60)
        assert [line.id for line in back.lines] == expected, words


def walk(store: Store, wanted: Filter, counts: Counter[SampleKind], size: int, seconds: float = 60) -> Iterator[Page]:
    page = page_of(store, RUN.id, wanted, counts, size=size, seconds=seconds)
    yield page
    while page.after is not None:
        page = page_of(store, RUN.id, wanted, counts, after=page.after, size=size, seconds=seconds)
        yield page


def test_the_last_verdicts_come_newest_first_one_for_each_sample(store: Store) -> None:
    lines = last_verdicts(store, RUN.id, 1000)
    assert [line.at for line in lines] == sorted((line.at or 0 for line in lines), reverse=True)
    assert len({line.id for line in lines}) == len(lines)
    assert len(lines) == sum(row.outcome is not None for row in store.list_samples(RUN.id))
    assert judged_since(store, RUN.id, 0) == (len(lines), min(line.at for line in lines if line.at))
    assert judged_since(store, RUN.id, 1e12) == (0, None)
    assert [problem[2:] for problem in last_failures(store, RUN.id, 5)] == [("provider", "HTTP 500")]
