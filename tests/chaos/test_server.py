"""Each fault alone, seen by each official SDK: it is no reply, it is tried again, and then the reply arrives."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from models.common import ASKED, FakeTime

from chaos.faults import ENDLESS, QUICK
from chaos.faulty_server import FaultyAnthropic, FaultyOpenAI, Said
from chaos.plan import Constant, LogNormal, Plan, Uniform
from opsmith.models import Reply
from opsmith.models.table import get_model
from opsmith.settings import Settings

ALONE = (*QUICK, *ENDLESS)
SERVERS = {"openai/served": FaultyOpenAI, "anthropic/served": FaultyAnthropic}


class Once:
    """A plan of every kind once, in order, each followed by a reply."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._left = iter([turn for kind in kinds for turn in (kind, None)])

    def fault(self, key: str, attempt: int) -> str | None:
        return next(self._left)

    def delay_s(self, key: str, attempt: int) -> float:
        return 0.0


@pytest.mark.parametrize("model", SERVERS)
def test_after_each_fault_the_request_is_sent_again_and_its_reply_arrives(model: str, monkeypatch) -> None:
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", "sk-none")
    with SERVERS[model](lambda key: Said("whole"), Once(ALONE)) as server:
        time = FakeTime()

        async def go() -> list[Reply]:
            asked = get_model(Settings(model=model, base_url=server.url), retry=time.retry())
            try:
                return [await asked.complete(ASKED) for _ in ALONE]
            finally:
                await asked.close()

        replies = asyncio.run(go())
        assert [reply.texts for reply in replies] == [("whole",)] * len(ALONE)
        assert server.faults == Counter(ALONE)
        assert sum(server.sent.values()) == len(ALONE)
    print(f"{model}: {len(ALONE)} faults, waits of {sum(time.slept):.0f} s in all, {max(time.slept):.1f} s at most")
    assert max(time.slept) < 10, "no provider's clock makes a client wait for hours"


def test_a_plan_fails_its_share_of_the_requests_and_gives_each_the_same_fault_again() -> None:
    plan = Plan(seed=3, share=0.3, kinds=QUICK, latency=LogNormal(0.02, 1.0, most=0.5))
    drawn = [plan.fault(str(key), 0) for key in range(2000)]
    assert drawn == [plan.fault(str(key), 0) for key in range(2000)]
    assert 0.27 < sum(kind is not None for kind in drawn) / 2000 < 0.33
    assert set(drawn) == {None, *QUICK}
    waits = sorted(plan.delay_s(str(key), 0) for key in range(2000))
    assert 0.017 < waits[1000] < 0.023
    assert 0.2 < waits[-1] <= 0.5
    assert Plan(latency=Constant(0.1)).delay_s("a", 0) == 0.1
    assert 0.1 <= Plan(latency=Uniform(0.1, 0.2)).delay_s("a", 0) <= 0.2
