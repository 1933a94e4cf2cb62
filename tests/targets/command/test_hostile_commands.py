"""A language whose own programs are run to build and to run: what they leave in the folder is theirs, and goes."""

import os
from pathlib import Path

import pytest

from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome
from opsmith.running import sandbox
from opsmith.suites import read_task_file

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing())

LANGUAGE = """
name = "script"
source = "program.py"
prompt = "Python"

[compile]
commands = [["{python}", "-S", "{source}", "build"]]
outputs = ["built"]

[run]
command = ["{python}", "-S", "built", "run"]
"""
PROBLEM = """
problem: copy
dims: {N: 3}
inputs: [{name: x, dtype: fp32, shape: [N], data: normal}]
outputs: [{name: y, dtype: fp32, shape: [N]}]
reference: |
  def copy(x):
      return x
"""
PROGRAM = """
import os, shutil, sys
step = sys.argv[1]
if step == "build":
    shutil.copyfile(sys.argv[0], "built")
else:
    shutil.copyfile("in_x.bin", "out_y.bin")
"""
DEEP = """
for _ in range(1200 if step == "build" else 0):
    os.mkdir("deep")
    os.chdir("deep")
"""
FOLDER = """
if step == "{step}":
    os.remove("{file}")
    os.mkdir("{file}")
"""


@pytest.mark.parametrize(
    ("ending", "outcome", "words"),
    [
        (DEEP, Outcome.PASSED, ""),
        (FOLDER.format(step="build", file="built"), Outcome.REFUSED, "a folder in place of the file built"),
        (FOLDER.format(step="run", file="out_y.bin"), Outcome.REFUSED, "a folder in place of the file out_y.bin"),
    ],
    ids=["deep", "built", "output"],
)
def test_what_a_program_makes_of_the_folder_is_its_own_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, outcome: Outcome, words: str
) -> None:
    for name, text in (("language.toml", LANGUAGE), ("copy.yaml", PROBLEM)):
        (tmp_path / name).write_text(text)
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    task = read_task_file(tmp_path / "copy.yaml", str(tmp_path / "language.toml"))
    with Pool(1, trial_deadline=100) as pool:
        verdict = pool.verify(task, PROGRAM + ending)
    assert (verdict.outcome, verdict.charged_to) == (outcome, Boundary.CANDIDATE), verdict.message
    assert words in verdict.message
    assert [name for name in os.listdir(temporary) if name.startswith("opsmith-commands")] == []
