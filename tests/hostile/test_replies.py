"""Of a hostile reply nothing but its program reaches the verifier; reading it costs the caller little."""

import os

import pytest

from hostile.corpus import Attack, attacks, params, task_of
from hostile.measure import cost_of, worker_pids
from hostile.test_programs import next_verdicts_are_right
from opsmith.judging.pool import Pool
from opsmith.judging.verifier import verify_reply
from opsmith.records import Outcome


@pytest.mark.parametrize("attack", params(attacks("replies.yaml", "reply")))
def test_a_hostile_reply_has_no_effect_but_that_of_its_program(warm: Pool, attack: Attack) -> None:
    workers = worker_pids()
    cost = cost_of(lambda: verify_reply(task_of(attack.task), attack.text, warm.verify), {os.getpid(), *workers})
    verdict = cost.answer
    said = "\n".join((verdict.message, *verdict.warnings))
    assert verdict.outcome is (Outcome.PASSED if attack.passes else Outcome.REFUSED), said[:500]
    assert attack.passes or verdict.stage in attack.stages, (verdict.stage, said[:500])
    assert attack.word in said
    assert cost.is_small(), cost
    next_verdicts_are_right(warm)
    assert worker_pids() == workers
