"""A run on a real Ray of this machine ends with what the local executor finds, quietly, and leaves nothing behind.

The cluster tests, in which machines join and are killed, are `tests/chaos/test_ray.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from opsmith.store import Store

pytest.importorskip("ray", reason="the ray extra is not installed")

TESTS = Path(__file__).parents[1]
TASK = "target: tiny_target:TINY\ninputs: {x: [1, 2], y: [2, 5], z: [3, 3]}\nwant: [6, 10]\n"
HELD = "-".join(["sk", "canary", "0123456789"])


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder for temporary files whose path leaves room for those of sockets."""
    with tempfile.TemporaryDirectory(prefix="o", dir="/tmp") as folder:
        yield Path(folder)


def run(folder: Path, temporary: Path, out: str, *options: object) -> subprocess.CompletedProcess[str]:
    """`opsmith run` on a task that is not bundled, in a target that only a module names, with a key at hand."""
    command = [sys.executable, "-m", "opsmith", "run", "--model", "embedded", "--tasks", "sum_0.yaml", "--samples", 6,
               "--temperature", 0.7, "--max-rounds", 1, "--out", out, "--json", "--no-report", *options]  # fmt: skip
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(TESTS)]))
    environment = os.environ | {
        "PYTHONPATH": path,
        "OPENAI_API_KEY": HELD,
        "TMPDIR": str(temporary),
        "HOME": str(folder),
    }
    return subprocess.run(
        list(map(str, command)), env=environment, cwd=folder, text=True, capture_output=True, check=False
    )


def test_a_ray_that_does_not_start_in_time_is_one_message(
    tmp_path: Path, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sum_0.yaml").write_text(TASK)
    monkeypatch.setenv("RAY_gcs_server_port_wait_time_s", "0")
    done = run(tmp_path, short, "ray", "--executor", "ray")
    assert done.returncode == 2
    assert "expected a Ray of this machine's own (Timed out" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_on_ray_is_the_local_one_and_leaves_nothing(tmp_path: Path, short: Path) -> None:
    (tmp_path / "sum_0.yaml").write_text(TASK)
    found, said = [], ""
    for out, options in (("local", ()), ("ray", ("--executor", "ray", "--workers", 1))):
        done = run(tmp_path, short, out, *options)
        assert done.returncode == 0, done.stderr
        with Store.open(tmp_path / out) as store:
            found.append(store.read_contents(json.loads(done.stdout)["run"]))
        said += done.stderr
    assert found[0] == found[1]
    assert any("passed" in text for table, text in found[0] if table == "verdict")
    assert not {"ray", "(raylet)", HELD} & set(said.lower().split())
    assert list(short.iterdir()) == []
    assert not (tmp_path / ".ray").exists()  # Ray's token for all later clusters
