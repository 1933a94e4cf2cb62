"""`opsmith devices`: this machine, its peaks once they were measured, and who has it."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opsmith.devices.describe import describe_device, describe_limits
from opsmith.devices.lease import lease_device
from opsmith.devices.peaks import Bandwidth, Peaks, load_peaks, save_peaks
from opsmith.devices.probing import _ask_process, ask_language
from opsmith.targets.wgsl.webgpu import NO_PACKAGE


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
    assert "limits in total" in done.out
    (row, *_) = json.loads(opsmith("devices", "--json").out)
    assert row["limits_in_total"] == describe_limits()


def test_peaks_that_were_measured_are_shown(opsmith: Callable[..., Any]) -> None:
    save_peaks(Peaks(describe_device().digest, {"fp32": 123.4}, (Bandwidth(1 << 14, 55.5, 66.6),)))
    done = opsmith("devices")
    assert "123 GFLOP/s in fp32" in done.out
    assert all(text in done.out for text in ("16 KiB", "55.5", "66.6"))


def test_who_has_the_machine_is_said(opsmith: Callable[..., Any]) -> None:
    with lease_device("cpu", "measure softmax"):
        assert "(measure softmax)" in opsmith("devices").out
        row, *_ = json.loads(opsmith("devices", "--json").out)
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


def test_each_device_that_is_not_here_says_what_is_missing(opsmith: Callable[..., Any]) -> None:
    _, *rows = json.loads(opsmith("devices", "--json").out)
    names = {row["device"].partition(":")[0] for row in rows}
    assert names == {"cuda", "metal", "triton", "wgpu"}
    assert all(row["use"] or row["lacks"] for row in rows)


def test_a_package_that_is_not_installed_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "wgpu.py").write_text("""raise ModuleNotFoundError("No module named 'wgpu'", name="wgpu")""")
    monkeypatch.syspath_prepend(str(tmp_path))
    (device,) = ask_language("wgsl", "judged", 30.0)
    assert device.lacks == (NO_PACKAGE,)


def test_a_probe_that_hangs_or_crashes_hangs_nobody() -> None:
    begin = time.monotonic()
    assert "no answer within 0.5 s" in _ask_process(["-c", "while True: pass"], 0.5)
    assert "killed by signal 6" in _ask_process(["-c", "import os; os.abort()"], 30.0)
    assert "boom" in _ask_process(["-c", "raise SystemExit('boom')"], 30.0)
    assert time.monotonic() - begin < 60


def test_no_language_is_loaded_to_look_for_its_device() -> None:
    code = "import sys; from opsmith.devices.probing import probe_devices; probe_devices(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"opsmith.targets.cuda", "opsmith.targets.wgsl", "wgpu", "torch"} & {*done.stdout.split()}
