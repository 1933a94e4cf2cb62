"""Hostile texts in Triton end in a refusal or a clean kill, and the next program is judged as before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from languages.triton.test_triton_verdicts import ROW_SUM, TASKS
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome

STATEMENTS = {
    "imports": "import os; os.system('touch /tmp/opsmith-was-here')",
    "builtin import": "__import__('os').system('id')",
    "class walk": "a = N.__class__.__mro__",
    "function globals": "a = row_sum.fn",
    "frame": "a = tl.arange.__globals__",
    "evaluates": "eval('1')",
    "opens": "a = open('/etc/passwd')",
    "formats": "a = '{0.__class__}'.format(N)",
    "f-string": "a = f'{N.__class__}'",
    "lambda": "a = (lambda v: v)(N)",
    "comprehension": "a = [v for v in range(N)]",
    "class": "class A: pass",
    "nested function": "def g(): pass",
    "walrus": "(a := N)",
    "decorated": "a = tl.extra.cuda.libdevice.tanh(N)",
    "assembly": "a = tl.inline_asm_elementwise('', '', [N], tl.int32, True, 1)",
    "prints": "tl.static_print(N)",
    "try": "try:\n        a = N\n    except: pass",
    "deletes": "del N",
    "writes a module": "tl.load = N",
    "star": "a = tl.load(*x)",
    "huge number": f"a = {'9' * 400}",
    "huge shape": "a = tl.zeros((1048576, 1048576), dtype=tl.float32)",
    "huge range": "a = tl.arange(0, 1073741824)",
    "calls itself": "row_sum(x, y, N, BLOCK)",
    "far address": "tl.store(y + 1152921504606846976, 1.0)",
    "address of a number": "tl.store(N.to(tl.int64).to(tl.pointer_type(tl.float32)), 1.0)",
    "deep": f"a = {'(' * 90}N{')' * 90}{' + N' * 300}",
    "endless": "while N > -1:\n        tl.store(y, 0.0)",
}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=3.0) as shared:
        yield shared


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_hostile_text_is_the_candidate_s_refusal(pool: Pool, name: str) -> None:
    head = "    row = tl.program_id(0).to(tl.int64)\n"
    verdict = pool.verify(TASKS["row_sum"], ROW_SUM.replace(head, f"{head}    {STATEMENTS[name]}\n"))
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message


def test_a_right_program_passes_behind_them(pool: Pool) -> None:
    assert pool.verify(TASKS["row_sum"], ROW_SUM).passed
