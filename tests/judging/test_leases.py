"""Verdicts beside leases: none is reached while somebody has the processor alone, and nobody pays for the wait."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import wait

import pytest

from opsmith.devices.lease import lease_device
from opsmith.judging.pool import Pool
from opsmith.running.turnstile import CPU
from opsmith.suites import load_tasks

WAIT_S = 60.0
CANDIDATE_S = 1.5  # more than a verdict takes in a warm worker


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, CANDIDATE_S) as shared:
        yield shared


def test_a_verdict_waits_and_the_wait_is_not_the_candidates_time(pool: Pool) -> None:
    (task,) = load_tasks(("attn_0",))
    assert task.impl is not None
    assert pool.verify(task, task.impl).passed
    with lease_device(CPU, "measure gemm", WAIT_S):
        future = pool.submit(task, task.impl)
        time.sleep(CANDIDATE_S + 0.1)
        assert not future.done()
    assert future.result(WAIT_S).passed


def test_a_pool_is_closed_though_its_work_waits() -> None:
    (task,) = load_tasks(("attn_0",))
    assert task.impl is not None
    with lease_device(CPU, "measure gemm", WAIT_S):
        with Pool(1) as pool:
            future = pool.submit(task, task.impl)
        assert wait([future], 0).done
