"""`opsmith bench languages` with real builds and verdicts, of C."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from targets.native.programs import needs_compiler

WRONG = Path(__file__).parents[2] / "fixtures" / "kernels" / "wrong"


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opsmith", "bench", "languages", "c", "--tasks", "row_sum", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_compiler
def test_right_and_wrong_programs_are_counted_and_timed(tmp_path: Path) -> None:
    for name in ("row_sum__header.c", "row_sum__tail.c", "softmax__constant.c"):
        shutil.copy(WRONG / name, tmp_path)
    page = tmp_path / "page.md"
    done = run_bench("--wrong", str(tmp_path), "--markdown", str(page), "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["languages"]
    assert (row["programs"], row["passed"], row["wrong"], row["refused"], row["unjudged"]) == (1, 1, 2, 2, 0)
    assert row["compile_ms"] > 0
    assert row["verdict_ms"] > 0
    assert "| c | 1 of 1 | 2 of 2 | 0.0 % of 3 |" in page.read_text("utf-8")


@needs_compiler
def test_a_verdict_that_is_not_as_it_should_be_is_said(tmp_path: Path) -> None:
    source = (WRONG / "row_sum__tail.c").read_text("utf-8")
    (tmp_path / "row_sum__tail.c").write_text(
        source.replace("refused at MATCH", "refused at PARSE").replace("refused at RUN", "refused at PARSE")
    )
    done = run_bench("--wrong", str(tmp_path))
    assert done.returncode == 1
    assert "c row_sum__tail.c: refused at " in done.stdout


def test_a_language_that_is_not_compiled_is_no_language_here() -> None:
    command = [sys.executable, "-m", "opsmith", "bench", "languages", "step"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "given 'step'; expected one of c" in " ".join(done.stderr.split())
