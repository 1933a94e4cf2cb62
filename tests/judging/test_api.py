"""The package as a library: light to import, and its few public functions."""

import subprocess
import sys
from pathlib import Path

import pytest
from scripted_target import TASK

import opsmith
from opsmith.errors import UsageError
from opsmith.judging import verifier

HEAVY = {"torch", "numpy", "pydantic", "sqlalchemy", "openai", "anthropic", "rich", "typer", "yaml", "mcp"}


def imported_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_opsmith_imports_nothing_heavy():
    assert not imported_by("import opsmith") & HEAVY
    assert not imported_by("import opsmith; opsmith.Verdict, opsmith.Stage") & HEAVY
    assert not imported_by("import opsmith; opsmith.verify") & {"torch", "numpy", "openai", "anthropic"}


def test_every_public_name_is_there():
    assert all(getattr(opsmith, name) is not None for name in opsmith.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = opsmith.nothing


def test_verify_judges_in_a_worker_as_the_verifier_does_here():
    verdict = opsmith.verify(TASK, "right")
    assert verdict.passed
    assert verdict.stage == opsmith.Stage.MATCH
    assert verdict.message == "passed: 3 trials"
    assert verifier.verify(TASK, "right") == verdict


def test_verify_many_gives_a_verdict_each():
    assert [verdict.passed for verdict in opsmith.verify_many(TASK, ["right", "wrong", "right"])] == [True, False, True]


def test_verify_reply_looks_for_the_program():
    reply = "Here it is:\n```yaml\nimpl: |\n  right\noutputs: []\n```"
    verdict = opsmith.verify_reply(TASK, reply)
    assert verdict.passed
    assert any("outputs" in warning for warning in verdict.warnings)


def test_a_reply_without_a_program_is_refused_at_format():
    verdict = opsmith.verify_reply(TASK, "I cannot do that.")
    assert (verdict.stage, verdict.outcome) == (opsmith.Stage.FORMAT, opsmith.Outcome.REFUSED)
    assert verdict.verifier == "scripted-1"


def test_a_task_is_loaded_by_its_file(tmp_path):
    (tmp_path / "mine.yaml").write_text("target: scripted_target:SCRIPTED\ntext: a task\n")
    task = opsmith.load_task(tmp_path / "mine.yaml")
    assert (task.id, task.target, Path(task.path).name) == ("mine", TASK.target, "mine.yaml")
    with pytest.raises(UsageError, match="no such"):
        opsmith.load_task("no_such_task")
