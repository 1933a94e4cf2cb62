"""`opsmith new-task` from the command line, and from its draft to a task file that is fine."""

import subprocess
import sys

import pytest

IMPL = """
fns:
  - {name: Distance, func_name: fn_distance, input_dtype: [fp32, fp32], output_dtype: fp32,
     apply: "return [(input[0] - input[1]).abs()]"}
  - {name: Sum, func_name: fn_sum, init: [0], input_dtype: fp32, output_dtype: fp32,
     apply: "return [state[0] + input[0]]"}
impl: |
  E2 = step.Map(fn=fn_distance).apply((E0, E1))
  return step.Accum(fn=fn_sum, b=1).apply(E2)
"""


@pytest.fixture
def opsmith(tmp_path):
    (tmp_path / "mine.py").write_text("def distance(x, y):\n    return (x - y).abs().sum(-1)\n")

    def call(*arguments):
        command = [sys.executable, "-m", "opsmith", *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)

    return call


def test_a_draft_is_checked_and_completed(opsmith, tmp_path):
    made = opsmith("new-task", "mine:distance", "--shape", "x=4,8", "--shape", "y=4,8", "-o", "distance_0.yaml")
    assert (made.returncode, made.stdout) == (0, "")
    assert "opsmith check distance_0.yaml" in made.stderr
    checked = opsmith("check", "distance_0.yaml")
    assert checked.returncode == 2
    assert "distance_0: program: not checked" in checked.stdout
    assert "the file has no `impl`" in checked.stdout
    file = tmp_path / "distance_0.yaml"
    file.write_text(file.read_text() + IMPL)
    done = opsmith("check", "distance_0.yaml")
    assert done.returncode == 0, done.stdout


def test_a_refusal_is_a_message_and_writes_nothing(opsmith, tmp_path):
    done = opsmith("new-task", "mine.py:nearness", "--shape", "x=4", "-o", "x_0.yaml")
    assert done.returncode == 2
    assert done.stderr == "opsmith: mine.py:nearness: mine has no nearness; its functions: distance\n"
    assert not (tmp_path / "x_0.yaml").exists()


def test_the_help_says_that_the_function_is_run(opsmith):
    assert "run, here and with your rights" in " ".join(opsmith("new-task", "--help").stdout.split())
