"""The runner's part for NVIDIA's GPUs, on a stand-in for the driver: the order of its calls, what it gives kernels, and
what it says of those that fail. No GPU is needed, and nothing here says how fast anything is on one."""

from __future__ import annotations

import json
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from targets.native.programs import needs_compiler

from languages.remote.requests import make_request
from opsmith.judging.pool import Pool
from opsmith.measuring.claims import Claim
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.remote.merging import merge_results, read_results
from opsmith.remote.packing import Pack, pack_requests, write_pack
from opsmith.targets.gpu.nvidia.carrying import CONVENTION
from opsmith.targets.gpu.nvidia.driver import LIBRARY_VARIABLE

pytestmark = needs_compiler
HERE = Path(__file__).parent
ROW_SUM_ARGS = [["input", 0], ["output", 0], ["whole", "N"], ["i32", "M"]]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(tmp_path_factory.mktemp("driver"), "stand_in_driver.c")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(tmp_path_factory.mktemp("kernels"), "stand_in_kernels.c")


def compile_library(folder: Path, name: str) -> Path:
    library = folder / f"{name}.so"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-int-to-pointer-cast", "-shared", "-fPIC"]
    subprocess.run([*command, str(HERE / name), "-o", str(library)], check=True)
    return library


@pytest.fixture(scope="module")
def native_packs(pool: Pool, room: TimingRoom) -> dict[MeasuringGrade, Pack]:
    """Data and partner of a task: what is called is changed to kernels."""
    return {
        grade: pack_requests(room, pool.verify, [make_request("row_sum", ["small"], grade=grade)])
        for grade in MeasuringGrade
    }


def make_call(kernel: str, sizes: dict[str, int], **changes: Any) -> dict[str, Any]:
    arguments = [[kind, sizes.get(value, value)] for kind, value in ROW_SUM_ARGS]
    launch = {"kernel": kernel, "grid": [sizes["M"], 1, 1], "block": [128, 1, 1], "shared": 0, "args": arguments}
    return {"workspaces": [], "launches": [{**launch, **changes}]}


def pack_kernels(
    native: Pack, image: Path, program: str, partner: str = "row_sum", call: dict[str, Any] | None = None, **needs: str
) -> Pack:
    """The pack of a program in C as one of kernels in `image`."""
    pack = deepcopy(native.manifest)
    (packed,) = native.sets.values()
    files = dict(native.files)
    made = Pack(pack, files)
    entry = pack["programs"][0]
    digest = made.add_file(str(image).encode() + b"\0")
    processes = CONVENTION.full_processes if packed.protocol.processes > 1 else 1
    entry.update(module=CONVENTION.module, processes=processes)
    entry.update(artefacts={"program": digest, "partner": digest}, needs=needs)
    (shape_set,) = entry["sets"]
    sizes = shape_set["sizes"]
    calls = {"program": call or make_call(program, sizes), "partner": make_call(partner, sizes)}
    shape_set.update(calls=calls)
    pack["protocol"]["deadline_s"] = 10.0
    made.sets[shape_set["key"]] = replace(
        packed,
        entry=shape_set,
        artefact=digest,
        convention=CONVENTION,
        read_file=files.__getitem__,
        protocol=replace(packed.protocol, processes=processes),
    )
    return made


def run_kernels(pack: Pack, folder: Path, driver: Path, **variables: str) -> dict[str, Any]:
    write_pack(pack, folder, "", "")
    command = [sys.executable, "-I", "-S", "runner.py"]
    environment = {LIBRARY_VARIABLE: str(driver), **variables}
    done = subprocess.run(
        command, cwd=folder, env=environment, text=True, capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    data: dict[str, Any] = json.loads((folder / "results/results.json").read_text())
    return data


def merge_one(room: TimingRoom, pack: Pack, folder: Path) -> SpeedReport:
    ((_, report),) = merge_results(room, pack, read_results(folder / "results", pack))
    return report


def test_right_kernels_have_a_figure_with_the_devices_name(
    room: TimingRoom, native_packs: dict[MeasuringGrade, Pack], driver: Path, kernels: Path, tmp_path: Path
) -> None:
    pack = pack_kernels(native_packs[MeasuringGrade.FULL], kernels, "row_sum", "row_sum_twice")
    data = run_kernels(pack, tmp_path, driver)
    measured = merge_one(room, pack, tmp_path).measurement
    assert measured.reason == ""
    assert (measured.protocol, measured.processes) == ("cuda-pairs/1", 3)
    assert measured.device_name == "Stand-in 0 (sm_90, CUDA 13.0)"
    assert measured.ratio is not None
    assert measured.ratio.claim is Claim.FASTER  # the partner does it eight times
    (row,) = data["results"]
    assert row["kernels"]["program"][0]["blocks_per_multiprocessor"] == 16


def test_workspaces_shared_memory_and_several_launches_reach_kernels(
    room: TimingRoom, native_packs: dict[MeasuringGrade, Pack], driver: Path, kernels: Path, tmp_path: Path
) -> None:
    native = native_packs[MeasuringGrade.SCREEN]
    sizes = next(iter(native.sets.values())).entry["sizes"]
    count = sizes["M"] * sizes["N"]
    copied = {
        "kernel": "copy",
        "grid": [1, 1, 1],
        "block": [256, 1, 1],
        "shared": 64 << 10,
        "args": [["input", 0], ["workspace", 0], ["whole", count]],
    }
    call = make_call("row_sum", sizes)
    call["launches"][0]["args"][0] = ["workspace", 0]
    call = {"workspaces": [4 * count], "launches": [copied, *call["launches"]]}
    pack = pack_kernels(native, kernels, "", call=call)
    run_kernels(pack, tmp_path, driver)
    measured = merge_one(room, pack, tmp_path).measurement
    assert measured.reason == ""
    assert measured.ratio is not None
    assert measured.ratio.claim is None  # a screen


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("stale", "a wrong output while it was timed"),
        ("lazy", "a wrong output while it was timed"),
        ("overrun", "it wrote behind output 0"),
        ("fault", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("fail", "CUDA_ERROR_LAUNCH_FAILED"),
        ("crash", "killed by signal 6"),
        ("hang", "no answer within 10 s"),
        ("missing", "CUDA_ERROR_NOT_FOUND"),
    ],
)
def test_kernels_that_are_wrong_or_fail_have_no_figure_but_a_reason(
    room: TimingRoom,
    native_packs: dict[MeasuringGrade, Pack],
    driver: Path,
    kernels: Path,
    tmp_path: Path,
    kernel: str,
    words: str,
) -> None:
    pack = pack_kernels(native_packs[MeasuringGrade.SCREEN], kernels, kernel)
    run_kernels(pack, tmp_path, driver)
    measured = merge_one(room, pack, tmp_path).measurement
    assert measured.time is None
    assert words in measured.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"args": [["input", 0], ["output", 0], ["whole", 4]]}, "4 parameters; the plan gives 3"),
        ({"args": [["input", 0], ["output", 0], ["i32", 4], ["i32", 4]]}, "parameter 2 has 8 bytes, the plan gives 4"),
        ({"shared": 300 << 10}, "CUDA_ERROR_INVALID_VALUE"),
        ({"block": [1025, 1, 1]}, "CUDA_ERROR_INVALID_VALUE"),
    ],
)
def test_a_plan_that_kernels_do_not_take_is_refused(
    native_packs: dict[MeasuringGrade, Pack],
    driver: Path,
    kernels: Path,
    tmp_path: Path,
    changes: dict[str, Any],
    words: str,
) -> None:
    native = native_packs[MeasuringGrade.SCREEN]
    sizes = next(iter(native.sets.values())).entry["sizes"]
    pack = pack_kernels(native, kernels, "", call=make_call("row_sum", sizes, **changes))
    (row,) = run_kernels(pack, tmp_path, driver)["results"]
    assert words in row["error"]


@pytest.mark.parametrize(
    ("variables", "needs", "words"),
    [
        ({"STAND_IN_MEMORY": "100000"}, {}, "CUDA_ERROR_OUT_OF_MEMORY"),
        ({LIBRARY_VARIABLE: "/nowhere/libcuda.so"}, {}, "no CUDA driver here"),
        ({}, {"architecture": "sm_100"}, "built for sm_100, this device is sm_90"),
    ],
)
def test_a_machine_that_cannot_run_kernels_says_why(
    native_packs: dict[MeasuringGrade, Pack],
    driver: Path,
    kernels: Path,
    tmp_path: Path,
    variables: dict[str, str],
    needs: dict[str, str],
    words: str,
) -> None:
    pack = pack_kernels(native_packs[MeasuringGrade.SCREEN], kernels, "row_sum", **needs)
    (row,) = run_kernels(pack, tmp_path, driver, **variables)["results"]
    assert words in row["error"]


def test_torch_is_timed_on_the_same_data_where_it_is(
    native_packs: dict[MeasuringGrade, Pack], kernels: Path, tmp_path: Path
) -> None:
    pack = pack_kernels(native_packs[MeasuringGrade.SCREEN], kernels, "row_sum")
    write_pack(pack, tmp_path, "", "")
    command = [sys.executable, "torch_beside.py", "--device", "cpu", "--modes", "eager"]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "results/torch.json").read_text())["rows"]
    assert row["key"] in pack.sets
    assert 0 < row["eager"]["quarter_ns"] <= row["eager"]["median_ns"] <= row["eager"]["three_quarters_ns"]
