"""`opsmith devices`: this machine, its peaks once they were measured, and who has it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opsmith.devices.describe import describe_device
from opsmith.devices.lease import lease_device
from opsmith.devices.peaks import Bandwidth, Peaks, load_peaks, save_peaks


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_the_machine_is_described_and_what_is_not_known_says_so(opsmith: Callable[..., Any]) -> None:
    done = opsmith("devices")
    device = describe_device()
    assert done.code == 0
    assert device.digest[:12] in done.out
    assert "opsmith devices --measure" in done.out
    assert "nobody" in done.out


def test_peaks_that_were_measured_are_shown(opsmith: Callable[..., Any]) -> None:
    save_peaks(Peaks(describe_device().digest, {"fp32": 123.4}, (Bandwidth(1 << 14, 55.5, 66.6),)))
    done = opsmith("devices")
    assert "123 GFLOP/s in fp32" in done.out
    assert all(text in done.out for text in ("16 KiB", "55.5", "66.6"))


def test_who_has_the_machine_is_said(opsmith: Callable[..., Any]) -> None:
    with lease_device("cpu", "measure softmax"):
        assert "(measure softmax)" in opsmith("devices").out
        (row,) = json.loads(opsmith("devices", "--json").out)
        assert row["holder"]["purpose"] == "measure softmax"
        assert row["peaks"] is None
        assert row["digest"] == describe_device().digest


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler: install Debian's package gcc")
def test_measured_peaks_are_ones_that_a_core_can_have(opsmith: Callable[..., Any]) -> None:
    done = opsmith("devices", "--measure", "--json")
    assert done.code == 0, done.err
    device, peaks = describe_device(), load_peaks(describe_device().digest)
    assert peaks is not None
    assert {*peaks.gflops} - {"int8"} == {"fp32", "fp64"}
    assert "int8" in peaks.gflops or device.architecture != "x86_64"
    assert [team.threads for team in peaks.teams] == [count for count in [device.usable_cores] if count != 1]
    assert 1 < peaks.gflops["fp64"] < peaks.gflops["fp32"] < 2000
    smallest, *_, largest = peaks.bandwidths
    assert all(cache.size > smallest.working_set for cache in device.caches[:1])
    assert 0.5 < largest.best < smallest.best < 5000
    assert json.loads(done.out)[0]["peaks"]["gflops"] == peaks.gflops
