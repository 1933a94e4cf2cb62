"""A member finds what the local executor finds, says what it computes with, and raises nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from opsmith.agents.prompt import compose
from opsmith.benchmarks import load_tasks
from opsmith.errors import ProviderError
from opsmith.executors.local import LocalExecutor
from opsmith.executors.member import Member
from opsmith.executors.on_ray import FleetModel
from opsmith.executors.versions import _digest, differences, versions
from opsmith.executors.wire import found_in, pack, read, unpack
from opsmith.models import Reply, Request
from opsmith.models.embedded import EmbeddedModel
from opsmith.records import to_json
from opsmith.settings import Settings
from opsmith.targets import get_target
from opsmith.verification import sandbox
from opsmith.verification.answers import read_verdict

(BMM,) = load_tasks(["bmm_0"])
FOREIGN = replace(BMM, id="mine_0", text=BMM.text + "\n# of somebody else\n")
PROGRAMS = [BMM.impl, "return E0"]
REQUEST = Request(compose(BMM, (), get_target("step"), None, 0).messages, 2, 0.7, seed=5)


def member(*tasks: Any, workers: int = 1, room: int = 1) -> Member:
    return Member(pack({"settings": {"workers": workers}, "tasks": to_json(tasks)}), room)


async def found(answer: Any) -> Any:
    return found_in(unpack(await answer))


def test_it_judges_and_samples_as_one_machine_does():
    async def both() -> None:
        with LocalExecutor(Settings(workers=1), [BMM, FOREIGN]) as local:
            here, there = local.model(), member(BMM, FOREIGN)
            assert await found(there.begin()) == {"versions": versions(), "problem": ""}
            for task in (BMM, FOREIGN):
                for source in PROGRAMS:
                    told = await found(there.judge(pack({"task": to_json(task), "source": source})))
                    assert read_verdict(told, source) == await local.judge.judge(task, source)
            try:
                assert read(Reply, await found(there.complete(pack(REQUEST)))) == await here.complete(REQUEST)
            finally:
                await here.close()
                await there._model.close()
                there._executor.__exit__(None, None, None)

    asyncio.run(both())


@pytest.mark.parametrize(("workers", "room", "most"), [(4, 1, 1), (1, 4, 1), (4, 2, 2)])
def test_it_has_no_more_workers_than_its_machine_has_room_for(workers, room, most):
    there = member(workers=workers, room=room)
    assert asyncio.run(found(there.begin()))["problem"] == ""
    assert there._executor._settings.workers == there._executor.judge._workers == most


def test_where_nothing_isolates_it_refuses_tasks_of_others(monkeypatch):
    monkeypatch.setattr(sandbox.Sandbox, "missing", property(lambda _: "the kernel offers no Landlock"))
    assert asyncio.run(found(member(BMM).begin()))["problem"] == ""
    assert "--trust-tasks" in asyncio.run(found(member(FOREIGN).begin()))["problem"]


@pytest.mark.parametrize("order", [b"{}", b'{"settings": {"sampls": 1}, "tasks": []}'])
def test_an_order_of_another_version_is_a_problem_beside_the_versions(order):
    told = asyncio.run(found(Member(order, 1).begin()))
    assert told["problem"]
    assert told["versions"] == versions()


def test_a_target_that_is_not_there_is_a_problem():
    told = asyncio.run(found(member(replace(BMM, target="elsewhere")).begin()))
    assert "target 'elsewhere': no such target" in told["problem"]


@pytest.mark.parametrize("asked", [b"", b"{}", b'{"task": {}, "source": 1}'])
def test_a_question_that_is_none_is_answered_with_an_error(asked):
    told = unpack(asyncio.run(member().judge(asked)))
    assert (told["kind"], told["again"]) == ("VerifierError", True)


def test_a_member_that_fails_at_sampling_leaves_the_sample_to_be_asked_for_again():
    class FleetOfOne:
        async def ask(self, what: str, asked: bytes) -> dict[str, Any]:
            return unpack(await getattr(member(), what)(asked))  # it has not begun, so its own code fails

    model = FleetModel(EmbeddedModel(get_target("step")), FleetOfOne())
    with pytest.raises(ProviderError, match="no reply from the cluster: AssertionError") as caught:
        asyncio.run(model.complete(REQUEST))
    assert caught.value.retryable


def test_what_differs_is_said_with_both_versions():
    ours = versions()
    assert differences(ours, dict(ours)) == ""
    assert differences(ours, ours | {"torch": "1.0"}) == f"torch 1.0 (here: {ours['torch']})"
    assert "numpy none" in differences(ours, {name: ours[name] for name in ours if name != "numpy"})


def test_a_changed_file_of_a_part_that_counts_is_another_version(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("one.py", "deep/two.yaml", "deep/note.txt", "other.py"):
        (tmp_path / name).write_text("1")
    before = _digest(tmp_path, ["one.py", "deep"])
    for name, counts in (("other.py", False), ("deep/note.txt", False), ("deep/two.yaml", True), ("one.py", True)):
        (tmp_path / name).write_text("2")
        after = _digest(tmp_path, ["one.py", "deep"])
        assert (after != before) is counts
        before = after
