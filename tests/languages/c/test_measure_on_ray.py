"""Programs in C are measured by a machine of a Ray cluster, which has its device alone meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from targets.native.programs import needs_compiler

pytest.importorskip("ray", reason="the ray extra is not installed")
pytestmark = needs_compiler

MEASURING = """
import asyncio, json
import ray
from opsmith.executors.on_ray import RayExecutor
from opsmith.measuring.orders import SpeedOrder, name_measurement
from opsmith.measuring.record import MeasuringGrade
from opsmith.settings import Settings
from opsmith.suites import load_tasks

(task,) = load_tasks(["kernels/row_sum"], "c")

async def measure_twice(measurer):
    first = [report async for report in measurer.measure(SpeedOrder(task, task.impl, MeasuringGrade.SCREEN))]
    keys = frozenset(name_measurement(task.id, report.measurement) for report in first)
    order = SpeedOrder(task, task.impl, MeasuringGrade.SCREEN, keys)
    return first, [report async for report in measurer.measure(order)]

async def watch_device(measurer):
    measuring, free = asyncio.create_task(measure_twice(measurer)), []
    while not measuring.done():
        free.append(ray.available_resources().get("opsmith:cpu", 0))
        await asyncio.sleep(0.05)
    return *await measuring, min(free)

with RayExecutor(Settings(executor="ray", workers=1), [task]) as executor:
    first, second, free = asyncio.run(watch_device(executor.measurer))
print(json.dumps([[report.measurement.reason for report in first], len(second), free]))
"""


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder for temporary files whose path leaves room for those of sockets."""
    with tempfile.TemporaryDirectory(prefix="o", dir="/tmp") as folder:
        yield Path(folder)


def test_a_machine_of_the_cluster_measures_while_it_has_its_device(short: Path) -> None:
    environment = os.environ | {"TMPDIR": str(short)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURING], env=environment, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    reasons, repeated, free = json.loads(done.stdout)
    assert reasons == ["", "", ""]
    assert repeated == 0, "what was measured is not measured again"
    assert free == 0, "a resource that another run would have waited for"
