"""The n-th call of the store's files fails: some numbers of each kind of fault. All of them: `store_faults.py`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SWEEP = Path(__file__).with_name("store_faults.py")
needs_faults = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None, reason="faults are preloaded: Linux, and a C compiler"
)


@needs_faults
@pytest.mark.parametrize("begin", [3, 180, 420])
def test_nothing_is_lost_or_doubled_whichever_call_fails(begin: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, str(SWEEP), f"--begin={begin}", f"--every={begin + 1}", "--beyond=0", f"--log={log}"]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    trials = [json.loads(line) for line in log.read_text().splitlines()]
    assert not [(trial["mode"], trial["number"], words) for trial in trials for words in trial["wrong"]]
    assert done.returncode == 0, done.stderr
    assert len(trials) == 2 * 8
    assert any(trial["outcome"]["failed"] for trial in trials)
