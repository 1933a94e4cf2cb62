"""Cubins of any language are called alike, on the same GPU: another language than CUDA shares its device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from targets.gpu.plain_gpu_target import PlainGpuTarget

from opsmith.executors import local_measurer
from opsmith.executors.local_measurer import LocalMeasurer
from opsmith.judging.pool import Pool
from opsmith.measuring.objectives import choose_device_kind
from opsmith.records import Task
from opsmith.remote import filling
from opsmith.suites import load_tasks
from opsmith.targets.gpu.nvidia.carrying import CONVENTION, list_artefacts, plan_call
from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.lookup import TARGETS
from opsmith.targets.programs import Build, CarriedBuild

PROGRAM = "// launch row_sum grid=(M) block=(256) args=(x, y, M, N)\nkernel row_sum\n"
OF_ANOTHER_KIND, ITS_OWN = {"wgpu:0": "1"}, {"cuda:1": "2"}


class CubinTarget(PlainGpuTarget):
    """A second language whose programs become cubins."""

    name = "cubins"
    convention = CONVENTION

    def build_carried(self, task: Task, source: str) -> CarriedBuild:
        plan = self.bind_program(task, source)
        assert isinstance(plan, BoundPlan)
        artefacts = list_artefacts(b"cubin", plan, {"row_sum": "_row_sum"}, {"row_sum": ["", "", "i64"]})
        return CarriedBuild(Build(artefacts), {"architecture": "sm_90"})

    def plan_call(self, build: Build, numbers: Sequence[float]) -> Mapping[str, Any]:
        return plan_call(build, numbers)


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setitem(TARGETS, CubinTarget.name, CubinTarget)
    (of_problem,) = load_tasks(["kernels/row_sum"], "c")
    return CubinTarget().read_task(of_problem.text, "row_sum")


def test_a_number_goes_with_the_width_that_the_language_says_or_with_the_drivers(task: Task) -> None:
    build = CubinTarget().build_carried(task, PROGRAM).build
    (launch,) = plan_call(build, [3, 5])["launches"]
    assert launch == {
        "kernel": "_row_sum",
        "grid": [3, 1, 1],
        "block": [256, 1, 1],
        "shared": 0,
        "args": [["input", 0], ["output", 0], ["i64", 3], ["whole", 5]],
    }


def test_every_language_of_a_device_has_the_lease_of_that_device(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    leased = []

    @contextlib.contextmanager
    def note_lease(device: str, *_: object) -> Iterator[None]:
        leased.append(device)
        yield

    monkeypatch.setattr(filling, "lease_device", note_lease)
    monkeypatch.setattr(filling, "make_request", lambda order: None)
    monkeypatch.setattr(filling, "pack_requests", lambda *_: SimpleNamespace(sets={"one": None}))
    received = SimpleNamespace(write_all=lambda: None, remove=lambda: None)
    monkeypatch.setattr(filling, "measure_here", lambda *_: received)
    monkeypatch.setattr(filling, "read_results", lambda *_: None)
    monkeypatch.setattr(filling, "merge_results", lambda *_: [])
    order: Any = SimpleNamespace(task=task)
    room: Any = SimpleNamespace(lease_seconds=0.0)
    assert choose_device_kind(task) == "cuda"
    assert list(filling.fill_order(order, Pool(workers=1), room)) == []
    assert leased == ["cuda:0"]


@pytest.mark.parametrize(("gpus", "lacks"), [(OF_ANOTHER_KIND, True), ({}, True), (ITS_OWN, False)])
def test_a_gpu_of_another_kind_is_no_device_for_it(
    task: Task, gpus: dict[str, str], lacks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_measurer, "list_own_gpus", lambda: gpus)
    reason = LocalMeasurer(Pool(workers=1)).explain_lack(task)
    assert ("no device here that its programs are timed on" in reason) is lacks
