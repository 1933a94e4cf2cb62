"""Programs in CUDA as they are carried to a GPU: cubins, launches at each size, arguments as wide as kernels take them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from languages.gpu_programs import needs_cuda
from opsmith.devices.describe import describe_device
from opsmith.judging.pool import Pool
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import SpeedRequest, TimedProgram, choose_timed_sets
from opsmith.measuring.record import MeasuringGrade
from opsmith.remote.here import measure_here
from opsmith.remote.merging import merge_results, read_results
from opsmith.remote.packing import Pack, pack_requests
from opsmith.suites import load_tasks
from opsmith.targets.gpu.nvidia.driver import LIBRARY_VARIABLE

pytestmark = needs_cuda
TASKS = ["row_sum", "inclusive_scan", "layer_norm"]
WIDTHS = {"i32": 4, "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8}  # all others are pointers


@pytest.fixture(scope="module")
def pack(pool: Pool, room: TimingRoom) -> Pack:
    requests = []
    for task in load_tasks([f"kernels/{name}" for name in TASKS], "cuda"):
        assert task.impl is not None
        program = TimedProgram(task.impl, "program")
        sets = choose_timed_sets(task, ["small", "odd"])
        requests.append(SpeedRequest(task, program, None, sets, MeasuringGrade.SCREEN, describe_device(), None))
    return pack_requests(room, pool.verify, requests)


def test_plain_programs_are_packed_for_the_architecture_that_is_stated(pack: Pack) -> None:
    assert pack.refused == []
    assert [program["name"] for program in pack.manifest["programs"]] == TASKS
    assert {program["needs"]["architecture"] for program in pack.manifest["programs"]} == {"sm_90"}


def test_arguments_are_as_many_and_as_wide_as_the_kernels_of_the_cubin_take(pack: Pack) -> None:
    for program in pack.manifest["programs"]:
        parameters = dict(list_parameters(pack.files[program["artefacts"]["program"]]))
        for launch in list_launches(program):
            sizes = [WIDTHS.get(kind, 8) for kind, _ in launch["args"]]
            assert sizes == parameters[launch["kernel"]]


def test_where_there_is_no_gpu_each_size_has_a_reason(
    pack: Pack, room: TimingRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(LIBRARY_VARIABLE, "/nowhere/libcuda.so")
    results = read_results(measure_here(pack, lambda _: None).write_all(), pack)
    reasons = [report.measurement.reason for _, report in merge_results(room, pack, results)]
    assert len(reasons) == 2 * len(TASKS)
    assert all("no CUDA driver here" in reason for reason in reasons), reasons


def list_launches(program: dict[str, Any]) -> list[dict[str, Any]]:
    calls = [shape_set["calls"]["program"] for shape_set in program["sets"]]
    return [launch for call in calls for launch in call["launches"]]


def list_parameters(cubin: bytes) -> Iterator[tuple[str, list[int]]]:
    """Kernels and the bytes of their parameters, by the cubin's own sections (ELF64) `.nv.info.KERNEL`."""
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<3H", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", cubin, start + number * size) for number in range(count)]
    for name, _, _, _, begin, length in sections:
        text = cubin[sections[names][4] + name :].partition(b"\0")[0].decode()
        if text.startswith(".nv.info."):
            yield text.removeprefix(".nv.info."), list(_read_sizes(cubin[begin : begin + length]))


def _read_sizes(section: bytes) -> Iterator[int]:
    sizes, place = {}, 0
    while place < len(section):
        form, attribute, value = struct.unpack_from("<BBH", section, place)
        if (form, attribute) == (4, 0x17):  # a parameter: its number, and its size among the flags
            _, number, _, flags = struct.unpack_from("<IHHI", section, place + 4)
            sizes[number] = flags >> 18 & 0x3FFF
        place += 4 + (value if form == 4 else 0)
    return (sizes[number] for number in sorted(sizes))
