"""`opsmith bench languages` with real builds and verdicts, of C."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from targets.native.programs import needs_compiler


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opsmith", "bench", "languages", "c", "--tasks", "row_sum", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_compiler
def test_plain_programs_are_judged_and_timed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = run_bench("--markdown", str(page), "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["languages"]
    assert (row["programs"], row["passed"], row["unjudged"]) == (1, 1, 0)
    assert row["refused"] == row["wrong"] > 0
    assert min(row["files"], row["tokens"] - row["lines"], row["programs_outside"] - 24) > 0
    assert row["compile_ms"] > 0
    assert row["verdict_ms"] > 0
    assert f"| c | 1 of 1 | {row['refused']} of {row['wrong']} | 0.0 % of {row['wrong'] + 1} |" in page.read_text(
        "utf-8"
    )


def test_a_language_that_is_not_compiled_is_no_language_here() -> None:
    command = [sys.executable, "-m", "opsmith", "bench", "languages", "step"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "given 'step'; expected one of c" in " ".join(done.stderr.split())
