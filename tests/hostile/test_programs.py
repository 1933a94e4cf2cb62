"""A hostile program is refused at its stage, at little cost; its worker lives on and judges the next one right."""

import unicodedata

import pytest

from hostile.corpus import Attack, attacks, params, task_of
from hostile.measure import MAX_BYTES, cost_of, worker_pids
from opsmith.judging.pool import Pool
from opsmith.records import Level, Outcome, Stage, dumps
from opsmith.targets import get_target

PROGRAMS = attacks("programs.yaml", "program")
MAX_VERDICT = 64 * 1024  # characters of a verdict, which is stored and goes into the next prompt
WRONG = "E1 = step.Repeat(n=D).apply(E0)\nreturn step.Scan(fn=fn_mul, b=1).apply(step.Scan(fn=fn_mul, b=1).apply(E1))"


@pytest.mark.parametrize("attack", params(PROGRAMS))
def test_a_hostile_program_is_refused_where_it_goes_wrong_and_costs_little(warm: Pool, attack: Attack) -> None:
    workers = worker_pids()
    cost = cost_of(lambda: warm.verify(task_of(attack.task), attack.text, Level.FULL), workers)
    verdict = cost.answer
    assert verdict.outcome is Outcome.REFUSED, verdict.message[:500]
    assert verdict.stage in attack.stages, verdict.message[:500]
    assert attack.word in verdict.message, verdict.message[:500]
    assert len(dumps(verdict)) <= MAX_VERDICT
    assert cost.is_quick(), cost
    assert cost.extra_bytes <= MAX_BYTES
    next_verdicts_are_right(warm)
    assert worker_pids() == workers


def next_verdicts_are_right(warm: Pool) -> None:
    task = task_of("powers_0")
    right, wrong = warm.verify(task, task.impl or ""), warm.verify(task, WRONG)
    assert right.passed
    assert (wrong.outcome, wrong.stage) == (Outcome.REFUSED, Stage.MATCH)


def test_no_message_holds_characters_that_steer_a_terminal() -> None:
    target = get_target("step")
    strange = [attack for attack in PROGRAMS if len(attack.text) < 500 and any(map(steers, attack.text))]
    errors = [error for attack in strange for error in target.check_program(task_of(attack.task), attack.text).errors]
    assert len(strange) >= 5
    assert not [error for error in errors if any(map(steers, error.block()))]


def steers(char: str) -> bool:
    """Whether it is a control or format character (terminal sequences, direction of reading) and no layout."""
    return unicodedata.category(char) in ("Cc", "Cf") and char not in "\n\t"


def test_the_corpus_is_large_and_most_of_it_parses() -> None:
    replies = attacks("replies.yaml", "reply")
    for found in (PROGRAMS, replies):
        assert len({attack.text for attack in found}) == len({attack.name for attack in found}) == len(found)
    assert len(PROGRAMS) + len(replies) >= 90
    assert sum(attack.parses for attack in PROGRAMS) >= 40
