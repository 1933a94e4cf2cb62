"""A member finds what the local executor finds, says what it computes with, and raises nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from opsmith.agents.prompt import compose_prompt
from opsmith.devices.describe import describe_device
from opsmith.errors import ProviderError
from opsmith.executors.local import LocalExecutor
from opsmith.executors.member import MEMBERS_BUSINESS, ClusterMember
from opsmith.executors.on_ray import FleetModel
from opsmith.executors.versions import _digest_rooms, describe_differences, list_versions
from opsmith.executors.wire import open_answer, pack_message, read_record, unpack_message
from opsmith.judging.answers import read_verdict
from opsmith.judging.installation import read_scrutiny_here
from opsmith.judging.limits import Limits
from opsmith.models import Reply, Request
from opsmith.records import to_json
from opsmith.running import sandbox
from opsmith.settings import Settings
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith_lab.models.embedded import EmbeddedModel

(BMM,) = load_tasks(["bmm_0"])
FOREIGN = replace(BMM, id="mine_0", text=BMM.text + "\n# of somebody else\n")
PROGRAMS = [BMM.impl, "return E0"]
REQUEST = Request(compose_prompt(BMM, (), get_target("step"), None, 0).messages, 2, 0.7, seed=5)


def member(*tasks: Any, workers: int = 1, room: int = 1) -> ClusterMember:
    return ClusterMember(pack_message({"settings": {"workers": workers}, "tasks": to_json(tasks)}), room)


async def found(answer: Any) -> Any:
    return open_answer(unpack_message(await answer))


def test_it_judges_and_samples_as_one_machine_does():
    async def both() -> None:
        with LocalExecutor(Settings(workers=1), [BMM, FOREIGN]) as local:
            here, there = local.make_models().own, member(BMM, FOREIGN)
            status = {"versions": list_versions(["step"]), "problem": "", "devices": {"cpu": describe_device().digest}}
            assert await found(there.begin()) == status
            secret = read_scrutiny_here().secret
            for task in (BMM, FOREIGN):
                for source in PROGRAMS:
                    message = {"task": to_json(task), "source": source, "level": "cheap", "secret": secret}
                    told = await found(there.judge(pack_message(message)))
                    assert read_verdict(told, source) == await local.judge.judge(task, source)
            try:
                assert read_record(Reply, await found(there.complete(pack_message(REQUEST)))) == await here.complete(
                    REQUEST
                )
            finally:
                await here.close()
                await there._model.close()
                there._executor.__exit__(None, None, None)

    asyncio.run(both())


@pytest.mark.parametrize(("workers", "room", "most"), [(4, 1, 1), (1, 4, 1), (4, 2, 2)])
def test_it_has_no_more_workers_than_its_machine_has_room_for(workers, room, most):
    there = member(workers=workers, room=room)
    assert asyncio.run(found(there.begin()))["problem"] == ""
    assert there._executor._settings.place.workers == there._executor.judge.workers == most


def test_it_gives_candidates_the_seconds_of_the_run():
    flat = Settings(candidate_seconds=7, trial_seconds=3).as_flat("json")
    given = {name: flat[name] for name in MEMBERS_BUSINESS}
    there = ClusterMember(pack_message({"settings": given, "tasks": to_json([BMM])}), 1)
    assert asyncio.run(found(there.begin()))["problem"] == ""
    assert there._executor.judge._limits == Limits(7, 3)


def test_where_nothing_isolates_it_refuses_tasks_of_others(monkeypatch):
    monkeypatch.setattr(sandbox.Sandbox, "missing", property(lambda _: "the kernel offers no Landlock"))
    assert asyncio.run(found(member(BMM).begin()))["problem"] == ""
    assert "--trust-tasks" in asyncio.run(found(member(FOREIGN).begin()))["problem"]


@pytest.mark.parametrize("order", [b"{}", b'{"settings": {"sampls": 1}, "tasks": []}'])
def test_an_order_of_another_version_is_a_problem_beside_the_versions(order):
    told = asyncio.run(found(ClusterMember(order, 1).begin()))
    assert told["problem"]
    assert told["versions"] == list_versions()


def test_a_target_that_is_not_there_is_a_problem():
    told = asyncio.run(found(member(replace(BMM, target="elsewhere")).begin()))
    assert "target 'elsewhere': no such target" in told["problem"]


@pytest.mark.parametrize("asked", [b"", b"{}", b'{"task": {}, "source": 1}'])
def test_a_question_that_is_none_is_answered_with_an_error(asked):
    told = unpack_message(asyncio.run(member().judge(asked)))
    assert (told["kind"], told["again"]) == ("VerifierError", True)


def test_a_member_that_fails_at_sampling_leaves_the_sample_to_be_asked_for_again():
    class FleetOfOne:
        async def ask_member(self, what: str, message: bytes) -> dict[str, Any]:
            return unpack_message(await getattr(member(), what)(message))  # it has not begun, so its own code fails

    model = FleetModel(EmbeddedModel(get_target("step")), FleetOfOne())
    with pytest.raises(ProviderError, match="no reply from the cluster: AssertionError") as caught:
        asyncio.run(model.complete(REQUEST))
    assert caught.value.retryable


def test_what_differs_is_said_with_both_versions():
    ours = list_versions()
    assert describe_differences(ours, dict(ours)) == ""
    assert describe_differences(ours, ours | {"torch": "1.0"}) == f"torch 1.0 (here: {ours['torch']})"
    assert "numpy none" in describe_differences(ours, {name: ours[name] for name in ours if name != "numpy"})


def test_a_changed_file_of_a_part_that_counts_is_another_version(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("one.py", "deep/two.yaml", "deep/note.txt", "other.py"):
        (tmp_path / name).write_text("1")
    before = _digest_rooms(tmp_path, ["one.py", "deep"])
    for name, counts in (("other.py", False), ("deep/note.txt", False), ("deep/two.yaml", True), ("one.py", True)):
        (tmp_path / name).write_text("2")
        after = _digest_rooms(tmp_path, ["one.py", "deep"])
        assert (after != before) is counts
        before = after
