"""Peaks are kept by device, read back as they were, and a file that says something else is as good as none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from opsmith.devices.describe import describe_device
from opsmith.devices.measure_peaks import PeaksError, measure_peaks, read_figures
from opsmith.devices.peaks import Bandwidth, Peaks, load_peaks, save_peaks

PEAKS = Peaks(
    "0123" * 16, {"fp32": 100.5, "fp64": 50.0}, (Bandwidth(16384, 400.0, 500.0), Bandwidth(1 << 20, 20.0, 9.5))
)


def test_peaks_are_kept_by_device(tmp_path: Path) -> None:
    save_peaks(replace(PEAKS, gflops={"fp32": 1.0}), tmp_path / "devices")
    path = save_peaks(PEAKS, tmp_path / "devices")
    assert load_peaks(PEAKS.device, tmp_path / "devices") == PEAKS
    team = replace(PEAKS, teams=(replace(PEAKS, threads=4),))
    save_peaks(team, tmp_path / "devices")
    assert load_peaks(PEAKS.device, tmp_path / "devices") == team
    assert load_peaks("4567" * 16, tmp_path / "devices") is None
    assert [entry.name for entry in path.parent.iterdir()] == [path.name], "nothing unfinished stays"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 1}',
        '{"version": 1, "peaks": {"device": "0123"}}',
        "\x00\xff",
        '{"version": 1, "peaks": 7}',
    ],
)
def test_a_spoiled_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    save_peaks(PEAKS, tmp_path).write_text(text, encoding="utf-8")
    assert load_peaks(PEAKS.device, tmp_path) is None


@pytest.mark.parametrize(
    "change", [{"version": 3}, {"peaks": {"device": "another"}}, {"peaks": {"gflops": {"fp32": 0}}}]
)
def test_a_file_of_another_kind_is_not_read(tmp_path: Path, change: dict[str, object]) -> None:
    path = save_peaks(PEAKS, tmp_path)
    data = json.loads(path.read_text())
    for key, value in change.items():
        data[key] = {**data[key], **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(data))
    assert load_peaks(PEAKS.device, tmp_path) is None


@pytest.mark.parametrize(
    "bandwidths",
    [(), (Bandwidth(2, 1, 1), Bandwidth(1, 1, 1)), (Bandwidth(1, 1, 1), Bandwidth(1, 1, 1)), (Bandwidth(1, 0, 1),)],
)
def test_peaks_are_positive_by_rising_working_set(bandwidths: tuple[Bandwidth, ...]) -> None:
    with pytest.raises(ValueError, match="expected positive figures by rising working set"):
        Peaks("a device", {}, bandwidths)


@pytest.mark.parametrize("line", ["gflops fp32", "bandwidth 12 much 3.0", "Illegal instruction", "gflops fp32 0.0", ""])
def test_what_is_no_figure_is_our_failure(line: str) -> None:
    with pytest.raises(PeaksError, match="something else than figures"):
        read_figures("a device", ["gflops fp64 1.0", "bandwidth 16 2.0 3.0", line])


def test_an_unknown_processor_has_no_peaks() -> None:
    with pytest.raises(PeaksError, match="expected x86_64 or aarch64"):
        measure_peaks(replace(describe_device(), architecture="riscv64", isa=None))
