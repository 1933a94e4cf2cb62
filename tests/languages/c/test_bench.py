"""`opsmith bench native`: how long verdicts on compiled candidates take."""

import json
import os
import subprocess
import sys
from pathlib import Path

from targets.native.programs import needs_compiler


@needs_compiler
def test_it_times_first_and_cached_verdicts_and_a_batch_and_leaves_no_build(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "opsmith", "bench", "native", "row_sum", "--times", "3", "--batch", "4", "--json"]
    environment = os.environ | {"OPSMITH_BUILDS": str(tmp_path / "builds")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    (row,) = measured["tasks"]
    assert (row["task"], row["verdicts"], row["refused"]) == ("row_sum", 3, 0)
    assert 0 < row["cached_ms"] < row["first_ms"] <= row["first_longest_ms"]
    assert row["batch_s"] > 0
    assert measured["summary"]["first_worst_ms"] == row["first_ms"]
    assert not (tmp_path / "builds").exists()
