"""`opsmith bench attack`: what its library says of itself, how rows are counted, and a small run in STeP."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from opsmith.errors import UsageError
from opsmith.suites import load_tasks
from opsmith_lab.bench.attack_table import list_notes, write_markdown
from opsmith_lab.bench.attacks import LANGUAGES, LIBRARY, AttackRow, list_attacks, read_attack, read_task

KINDS = {"mistakes", "sizes", "data", "races", "detection", "forged", "memory", "bombs", "escapes", "clocks", "right"}


def write_attack(folder: Path, kind: str, name: str, text: str, language: str = "step") -> Path:
    path = folder / language / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_every_program_of_the_library_says_what_it_is_and_has_a_problem() -> None:
    attacks = list(list_attacks(LANGUAGES, ()))
    assert len(attacks) >= len([path for path in LIBRARY.rglob("*__*") if path.is_file()])
    assert {attack.kind for attack in attacks} <= KINDS
    assert {read_task(attack).target for attack in attacks} == {*LANGUAGES}
    stages = {attack.stage for attack in attacks if attack.kind == "mistakes"}
    assert stages - {""} == {"PARSE", "COMPILE", "RUN", "MATCH"}


@pytest.mark.parametrize(
    ("text", "problem", "stage", "options"),
    [
        ("// problem: softmax\n// refused: RUN race on shared memory\n", "softmax", "RUN", {}),
        ("// wrong: tail: the last entries; refused at MATCH\n", "row_sum", "MATCH", {}),
        ("// problem: gemm_at\n// wrong: no barrier\n// option: threads=2\n", "gemm_at", "", {"threads": "2"}),
    ],
)
def test_a_program_says_its_problem_stage_and_options(
    tmp_path: Path, text: str, problem: str, stage: str, options: dict[str, str]
) -> None:
    attack = read_attack(write_attack(tmp_path, "races", "row_sum__what.c", text, "c"))
    assert (attack.problem, attack.stage, attack.options, attack.name) == (
        problem,
        stage,
        options,
        "c/races/row_sum__what",
    )


def test_a_program_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="says nothing of itself"):
        read_attack(write_attack(tmp_path, "sizes", "softmax__a.c", "int x;\n" * 9, "c"))
    with pytest.raises(UsageError, match="problem nothing"):
        read_task(read_attack(write_attack(tmp_path, "sizes", "nothing__a.c", "// wrong: all\n", "c")))


def test_rows_say_what_passed_and_what_the_usual_harness_lets_pass() -> None:
    rows = [
        AttackRow("c", "sizes", 3, 1, 0, 6, 3.0, 3, 3, ["c/sizes/a: passed at MATCH under 1 of 2 secrets"]),
        AttackRow("c", "right", 2, 2, 0, 4, 1.0, 2, 2),
    ]
    facts = {"command": "opsmith bench attack", "machine": "a processor", "level": "full", "secrets": "2 secrets"}
    page = write_markdown(rows, facts, {"wgsl": "no driver"})
    assert "| c | sizes | 3 | 2 | 1 | 0 | 0.50 | 3 of 3 |" in page
    assert "|  | all right ones | 2 | 2 | 2 | 0 | 0.25 | 2 of 2 |" in page
    assert list(list_notes(rows, {"wgsl": "no driver"})) == ["wgsl: not judged: no driver", rows[0].surprises[0]]


def test_a_run_judges_programs_and_asks_the_usual_harness(tmp_path: Path) -> None:
    """The wrong one returns its first input; the other is right, and so not as it should be among mistakes."""
    program = load_tasks(["bmm_0"])[0].impl
    write_attack(tmp_path, "mistakes", "bmm_0__right.step", f"# wrong: nothing; refused at MATCH\n{program}")
    write_attack(tmp_path, "mistakes", "bmm_0__first.step", "# wrong: the first input; refused at TYPE\nreturn E0\n")
    done = run_bench("--target", "step", "--class", "mistakes", "--also", str(tmp_path), "--secrets", "2", "--json")
    assert done.returncode == 1, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["tried"], row["passed"], row["verdicts"], row["usual_passed"], row["usual_tried"]) == (2, 1, 4, 1, 2)
    assert row["surprises"] == ["step/mistakes/bmm_0__right: passed at MATCH under 2 of 2 secrets"]


def test_a_class_without_programs_is_refused() -> None:
    done = run_bench("--target", "step", "--class", "nothing")
    assert done.returncode == 2
    assert "no program of step, class nothing" in " ".join(done.stderr.split())


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opsmith", "bench", "attack", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
