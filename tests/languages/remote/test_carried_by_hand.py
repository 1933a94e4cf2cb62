"""Folders of programs in C that are carried to a machine and back: what they say is merged, what is forged is refused."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from targets.native.programs import needs_compiler

from languages.c.fixture_programs import FIXTURES
from languages.remote.requests import make_request
from opsmith.errors import TaskError
from opsmith.judging.pool import Pool
from opsmith.measuring.claims import Claim
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.outside import MAX_BYTES
from opsmith.records import Verdict
from opsmith.remote.here import measure_here
from opsmith.remote.merging import ResultsError, merge_results, read_results
from opsmith.remote.packing import Pack, pack_requests, write_pack

pytestmark = needs_compiler
FAST = (FIXTURES / "fast/gemm_bias_relu.c").read_text("utf-8")


def run_runner(folder: Path) -> subprocess.CompletedProcess[str]:
    """In an empty environment, as on a machine that has Python alone."""
    command = [sys.executable, "-I", "-S", "runner.py"]
    return subprocess.run(command, cwd=folder, env={}, text=True, capture_output=True, timeout=300, check=False)


def merge_all(room: TimingRoom, pack: Pack, folder: Path) -> list[SpeedReport]:
    return [report for _, report in merge_results(room, pack, read_results(folder / "results", pack))]


@pytest.fixture(scope="module")
def carried(pool: Pool, room: TimingRoom, tmp_path_factory: pytest.TempPathFactory) -> tuple[Pack, Path]:
    """A pack with its results."""
    pack = pack_requests(room, pool.verify, [make_request("row_sum", ["small"])])
    folder = tmp_path_factory.mktemp("packed")
    write_pack(pack, folder, "", "")
    assert run_runner(folder).returncode == 0
    return pack, folder


def test_a_faster_program_is_claimed_by_both_clocks_of_the_other_machine(
    pool: Pool, room: TimingRoom, tmp_path: Path
) -> None:
    pack = pack_requests(room, pool.verify, [make_request("gemm_bias_relu", ["small"], FAST, MeasuringGrade.FULL)])
    for number in range(3):  # on a busy machine the clocks may contradict each other, which is not what is asked here
        folder = tmp_path / str(number)
        write_pack(pack, folder, "", "")
        done = run_runner(folder)
        assert done.returncode == 0, done.stderr
        (report,) = merge_all(room, pack, folder)
        if report.measurement.ratio is not None:
            break
        assert "the clock outside it" in report.measurement.reason
    assert report.measurement.reason == ""
    assert report.measurement.ratio is not None
    assert report.measurement.ratio.claim is Claim.FASTER
    assert report.measurement.ratio.precise.value > 1.5
    assert report.measurement.processes == 5


def test_equal_packs_are_equal_byte_for_byte_and_hold_nothing_expected(pool: Pool, room: TimingRoom) -> None:
    request = make_request("row_sum", ["small"])
    first, second = (pack_requests(room, pool.verify, [request]) for _ in range(2))
    assert first.list_files() == second.list_files()
    assert request.task.impl is not None
    assert "torch" not in first.text
    assert not any(b"reference" in data for data in first.files.values())


def test_the_runner_goes_on_where_it_was_stopped(carried: tuple[Pack, Path], tmp_path: Path) -> None:
    folder = tmp_path / "again"
    shutil.copytree(carried[1], folder)
    (row,) = (path for path in (folder / "results").glob("*.json") if path.name != "results.json")
    before = row.stat().st_mtime_ns
    assert run_runner(folder).returncode == 0
    assert row.stat().st_mtime_ns == before


def test_merging_twice_says_the_same_figures(room: TimingRoom, carried: tuple[Pack, Path]) -> None:
    assert merge_all(room, *carried) == merge_all(room, *carried)


def test_a_wrong_program_is_not_packed(pool: Pool, room: TimingRoom) -> None:
    request = make_request("row_sum", ["small"])
    assert request.task.impl is not None
    wrong = request.task.impl.replace("+=", "-=")
    pack = pack_requests(room, pool.verify, [make_request("row_sum", ["small"], wrong)])
    assert pack.manifest["programs"] == []
    ((_, _, reason, _),) = pack.refused
    assert "the program is not right" in reason


def test_a_program_that_is_wrong_while_it_is_timed_has_no_figure(pool: Pool, room: TimingRoom, tmp_path: Path) -> None:
    request = make_request("row_sum", ["small"])
    assert request.task.impl is not None
    late = make_request("row_sum", ["small"], request.task.impl.replace("+=", "-="))

    def believe_all(task: Any, source: str) -> Verdict:
        return pool.verify(request.task, request.task.impl or "")

    pack = pack_requests(room, believe_all, [late])
    write_pack(pack, tmp_path, "", "")
    assert run_runner(tmp_path).returncode == 0
    (report,) = merge_all(room, pack, tmp_path)
    assert report.measurement.time is None
    assert "a wrong output while it was timed" in report.measurement.reason


def test_a_processor_without_the_instructions_is_told_from_a_failure(
    room: TimingRoom, carried: tuple[Pack, Path], tmp_path: Path
) -> None:
    pack, folder = carried
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(folder, elsewhere, ignore=shutil.ignore_patterns("results"))
    manifest = json.loads((elsewhere / "manifest.json").read_text())
    manifest["programs"][0]["needs"]["features"].append("avx9000")
    (elsewhere / "manifest.json").write_text(json.dumps(manifest))
    assert run_runner(elsewhere).returncode == 0
    (report,) = merge_all(room, pack, elsewhere)
    assert "lacks avx9000" in report.measurement.reason


def test_a_folder_with_a_changed_artefact_is_not_run(carried: tuple[Pack, Path], tmp_path: Path) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(carried[1], folder, ignore=shutil.ignore_patterns("results"))
    (packed,) = carried[0].sets.values()
    with (folder / "files" / packed.artefact).open("ab") as file:
        file.write(b"x")
    done = run_runner(folder)
    (row,) = json.loads((folder / "results/results.json").read_text())["results"]
    assert "other bytes than were packed" in row["error"], done.stderr


def spoil_json(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = folder / "results/results.json"
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))

    return spoil


def change_row(name: str, value: object) -> Callable[[Path], None]:
    return spoil_json(lambda data: data["results"][0].update({name: value}))


def cut_output(folder: Path) -> None:
    output = next((folder / "results/outputs").iterdir())
    output.write_bytes(output.read_bytes()[:-5])


def forge_output(folder: Path) -> None:
    """Zeros under a name of their own, which the results are made to tell."""
    path = folder / "results/results.json"
    data = json.loads(path.read_text())
    check = data["results"][0]["checks"][0]
    zeros = bytes(len(zlib.decompress((folder / "results/outputs" / check["outputs"][0]).read_bytes())))
    check["outputs"] = [hashlib.sha256(zeros).hexdigest()]
    (folder / "results/outputs" / check["outputs"][0]).write_bytes(zlib.compress(zeros))
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (cut_output, "changed or cut off|incomplete|output"),
        (forge_output, "a wrong output while it was timed"),
        (change_row("checks", []), "without outputs of timed calls"),
        (change_row("seed", 7), "not those of the runner's seeds"),
        (change_row("seed", "7"), "without outputs of timed calls"),
        (change_row("pairs", [{"program": [1.0, -1.0], "partner": [1.0, 1.0]}]), "positive numbers"),
        (change_row("pairs", [{"program": [1.0], "partner": [1.0, 1.0]}]), "no pairs"),
        (change_row("pairs", [{"program": [float("nan")], "partner": [1.0]}]), "positive numbers"),
        (change_row("pairs", [{"program": [5e-324] * 20, "partner": [1.0] * 20}]), "positive numbers"),
        (change_row("pairs", [{"program": [1.0], "partner": [9.0]}]), "expected 1 of 20"),
        (change_row("pairs", [{"program": [1.0] * 20, "partner": [9.0] * 20}] * 2), "expected 1 of 20"),
        (change_row("pairs", "fast"), "lists of times"),
        (change_row("artefact", "0" * 64), "expected"),
        (spoil_json(lambda data: data.update(results=[])), "not among the results"),
        (spoil_json(lambda data: data.update(machine={})), "no description of the machine"),
        (spoil_json(lambda data: data["results"][0]["checks"][0].update(outputs=["../../x"])), "expected a sha256"),
        (spoil_json(lambda data: data["results"][0]["checks"][0].update(recipe={"first": 99})), "recipe"),
        (spoil_json(lambda data: data["results"][0]["checks"][0]["recipe"].update(first=math.inf)), "recipe"),
    ],
)
def test_forged_results_give_no_figure(
    room: TimingRoom, carried: tuple[Pack, Path], tmp_path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    pack, packed = carried
    folder = tmp_path / "forged"
    shutil.copytree(packed, folder)
    spoil(folder)
    (report,) = merge_all(room, pack, folder)
    assert report.measurement.time is None
    assert report.measurement.ratio is None
    assert re.search(words, report.measurement.reason), report.measurement.reason


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no results"),
        ('{"format": 2}', "no results"),
        ('{"format": 99, "machine": {}, "results": []}', "format 99"),
    ],
)
def test_a_file_that_is_none_of_the_runners_is_refused(
    carried: tuple[Pack, Path], tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(ResultsError, match=words):
        read_results(tmp_path, carried[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shapes": ["odd"]}, "shape sets row_sum at small; expected shape sets row_sum at odd"),
        ({"grade": MeasuringGrade.FULL}, "1 processes; expected 5 processes"),
        ({"source": "// {}\n"}, r"artefacts \w{12}; expected artefacts \w{12}: they are of other programs"),
        ({"partner": None}, "row_sum at small beside another partner"),
    ],
)
def test_results_that_are_not_of_the_pack_are_refused_by_what_differs(
    pool: Pool, room: TimingRoom, carried: tuple[Pack, Path], change: dict[str, Any], words: str
) -> None:
    request = make_request("row_sum", change.get("shapes", ["small"]), grade=change.get("grade", MeasuringGrade.SCREEN))
    if "source" in change:
        other_source = f"{request.program.source}static int two(void) {{ return 2; }}\nint (*kept)(void) = two;\n"
        request = replace(request, program=replace(request.program, source=other_source))
    if "partner" in change:
        request = replace(request, partner=None)
    other_pack = pack_requests(room, pool.verify, [request])
    with pytest.raises(ResultsError, match=words):
        merge_all(room, other_pack, carried[1])


def test_a_large_packs_results_merge_and_an_endless_file_does_not(carried: tuple[Pack, Path], tmp_path: Path) -> None:
    """As many shape sets as a megabyte cannot hold."""
    pack, folder = carried
    ((key, packed),) = pack.sets.items()
    data = json.loads((folder / "results/results.json").read_text())
    large = replace(pack, sets={f"{key}{number}": packed for number in range(900)})
    data["results"] = [{**data["results"][0], "key": key} for key in large.sets]
    file = tmp_path / "results.json"
    file.write_text(json.dumps(data, indent=1))
    assert file.stat().st_size > MAX_BYTES
    assert read_results(file, large).rows.keys() == large.sets.keys()
    with pytest.raises(TaskError, match="expected at most"):
        read_results(file, pack)


def test_the_runner_measures_on_this_machine_too_and_leaves_nothing(
    room: TimingRoom, carried: tuple[Pack, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    received = measure_here(carried[0], lambda _: None)
    ((_, report),) = merge_results(room, carried[0], read_results(received.write_all(), carried[0]))
    assert report.measurement.reason == ""
    received.remove()
    assert list((tmp_path / "opsmith/remote").iterdir()) == []
