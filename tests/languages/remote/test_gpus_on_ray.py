"""Machines of a Ray cluster say which GPUs they have; what is measured on one goes to a machine that has it."""

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

from languages.remote.test_stand_in_gpu import compile_library
from opsmith.environment import NAMED_BY_USER
from opsmith.targets.gpu.nvidia.driver import LIBRARY_VARIABLE

pytest.importorskip("ray", reason="the ray extra is not installed")
pytestmark = needs_compiler

MEASURING = """
import asyncio, json
import ray
from opsmith.executors import on_ray
from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import MeasuringGrade
from opsmith.settings import Settings
from opsmith.suites import load_tasks

(task,) = load_tasks(["kernels/row_sum"], "c")
on_ray.choose_device_kind = lambda task: "cuda"  # a program in C takes the way of one for GPUs

async def measure_once(measurer):
    return [report async for report in measurer.measure(SpeedOrder(task, task.impl, MeasuringGrade.SCREEN))]

async def watch_device(measurer):
    measuring, free = asyncio.create_task(measure_once(measurer)), []
    while not measuring.done():
        free.append(ray.available_resources().get("opsmith:cuda:0", 0))
        await asyncio.sleep(0.05)
    try:
        return len(await measuring), min(free), ""
    except Exception as error:
        return 0, min(free), str(error)

with on_ray.RayExecutor(Settings(executor="ray", workers=1), [task]) as executor:
    resources = {name: amount for name, amount in ray.cluster_resources().items() if name.startswith("opsmith:")}
    print(json.dumps([resources, *asyncio.run(watch_device(executor.measurer))]))
"""


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder for temporary files whose path leaves room for those of sockets."""
    with tempfile.TemporaryDirectory(prefix="o", dir="/tmp") as folder:
        yield Path(folder)


def measure_on_ray(folder: Path, library: Path) -> tuple[dict[str, float], int, float, str]:
    environment = os.environ | {"TMPDIR": str(folder), LIBRARY_VARIABLE: str(library), NAMED_BY_USER: LIBRARY_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", MEASURING], env=environment, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    resources, reports, free, error = json.loads(done.stdout)
    return resources, reports, free, error


def test_a_machine_with_a_gpu_advertises_it_and_has_it_alone_while_it_measures(short: Path) -> None:
    library = compile_library(short, "stand_in_driver.c")
    resources, reports, free, error = measure_on_ray(short, library)
    assert error == ""
    assert resources == {"opsmith:cpu": 1, "opsmith:cuda:0": 1}
    assert (reports, free) == (3, 0)


def test_where_no_machine_has_a_gpu_it_is_said(short: Path) -> None:
    resources, reports, _, error = measure_on_ray(short, Path("/nowhere/libcuda.so"))
    assert resources == {"opsmith:cpu": 1}
    assert reports == 0
    assert "no machine of the cluster has a device cuda" in error
