"""`opsmith verify`, and the commands that take a task and a program: a line per task, an exit code for all."""

import io
import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("warm")

FIELDS = {
    *("task", "candidate", "outcome", "passed", "stage", "charged_to", "errors", "message"),
    *("max_abs_error", "trials", "seconds"),
}


# The mean of a row, and a program for it that is right where D = 16.
SIXTEENTH = """
inputs: [{name: E0, dtype: fp32, dims: [D, N], data_gen: torch.randn}]
fns:
  - {name: Sum, func_name: fn_sum, apply: "return [state[0] + input[0]]", init: [0], input_dtype: fp32, output_dtype: fp32}
  - {name: Part, func_name: fn_part, apply: "return [input[0] / 16]", input_dtype: fp32, output_dtype: fp32}
outputs: [{name: S0, dtype: fp32, dims: [N], data_transform: ["input_data['E0'].mean(-1)"]}]
impl: return step.Map(fn=fn_part).apply(step.Accum(fn=fn_sum, b=1).apply(E0))
"""


def test_one_json_line_per_task_and_the_worst_outcome_counts(opsmith, tasks):
    (tasks / "broken_0.yaml").write_text("target: tiny_target:TINY\nwant: [1]\n")
    done = opsmith("verify", tasks, "--json")
    assert done.code == 2
    assert all(set(line) - {"scrutiny"} == FIELDS for line in done.lines)
    assert ["scrutiny" in line for line in done.lines] == [False, False, True], "what was judged says how hard"
    assert [(line["task"], line["outcome"], line["charged_to"]) for line in done.lines] == [
        ("broken_0", "unjudged", "task"),
        ("square_0", "unjudged", "task"),
        ("sum_0", "passed", "candidate"),
    ]
    broken, bare, passed = done.lines
    assert "expected a mapping with `inputs` and `want`" in broken["message"]
    assert "--impl FILE" in bare["message"]
    assert (passed["stage"], passed["trials"], passed["max_abs_error"], passed["errors"]) == ("MATCH", 2, 0.0, [])


def test_a_problem_that_is_asked_for_in_no_language_is_no_candidates_fault(opsmith):
    done = opsmith("verify", "kernels/softmax", "--json")
    assert (done.code, done.out) == (2, "")
    assert "softmax: no language is stated; try: --target c" in done.err


def test_a_problem_without_a_program_says_where_one_may_lie(opsmith, tmp_path):
    path = tmp_path / "double.yaml"
    problem = "problem: double\ndims: {N: 4}\ninputs: [{name: x, dtype: fp32, shape: [N], data: normal}]\n"
    outputs = "outputs: [{name: y, dtype: fp32, shape: [N]}]\nreference: 'def double(x): return 2 * x'\n"
    path.write_text(problem + outputs)
    (line,) = opsmith("verify", path, "--target", "c", "--json").lines
    assert "given:    no program of its own" in line["message"]
    assert "try:      --impl FILE, or a program in plain/double.c beside it" in line["message"]


def test_files_of_one_name_in_several_folders_are_told_apart_by_their_paths(opsmith, tasks):
    (tasks / "wrong").mkdir()
    wrong = (tasks / "sum_0.yaml").read_text().replace("x y +", "x y -")
    (tasks / "wrong" / "sum_0.yaml").write_text(wrong)
    done = opsmith("verify", tasks / "sum_0.yaml", tasks / "wrong" / "sum_0.yaml", "--json")
    assert [(line["task"], line["outcome"]) for line in done.lines] == [
        (str(tasks / "sum_0.yaml"), "passed"),
        (str(tasks / "wrong" / "sum_0.yaml"), "refused"),
    ]


def test_a_person_reads_what_the_name_of_a_shape_set_stands_for(opsmith, tasks):
    (tasks / "mean_0.yaml").write_text(SIXTEENTH)
    done = opsmith("verify", tasks / "mean_0.yaml")
    assert (done.code, done.out.count("unit (N = 1, D = 2) seed 0 float64\n")) == (1, 1)
    (line,) = opsmith("verify", tasks / "mean_0.yaml", "--json").lines
    assert "unit seed 0 float64\n" in line["message"]  # as it is stored


@pytest.mark.parametrize(
    ("program", "options", "code", "stage"),
    [
        ("x y +", [], 0, "MATCH"),
        ("x y -", [], 1, "MATCH"),
        ("x z +", [], 1, "TYPE"),
        ("x y + x + x -", [], 1, "AFFINE"),
        ("x y + x + x -", ["--insert-copies"], 0, "MATCH"),
    ],
)
def test_a_given_program_is_judged_instead_of_the_files_own(opsmith, tasks, program, options, code, stage):
    (tasks / "program.txt").write_text(program + "\n")
    done = opsmith("verify", tasks / "sum_0.yaml", "--impl", tasks / "program.txt", "--json", *options)
    assert done.code == code
    assert [line["stage"] for line in done.lines] == [stage]


def test_a_program_comes_from_stdin(opsmith, tasks, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x y +\r\n")))
    done = opsmith("verify", tasks / "sum_0.yaml", "--impl", "-")
    assert (done.code, done.out) == (0, "sum_0: passed: 2 trials\n")


def test_a_reply_gives_its_program_and_nothing_else(opsmith, tasks):
    reply = tasks / "reply.txt"
    reply.write_text("Sure!\n```yaml\nwant: [0, 0]\nimpl: |\n  x y *\n```\n")
    done = opsmith("verify", tasks / "sum_0.yaml", "--reply", reply)
    assert done.code == 1
    assert "refused at MATCH" in done.out
    assert "want" in done.err
    reply.write_text("I cannot do this.")
    done = opsmith("verify", tasks / "sum_0.yaml", "--reply", reply, "--json")
    assert (done.code, done.lines[0]["stage"], done.lines[0]["candidate"]) == (1, "FORMAT", "")


def test_bytes_that_are_no_text_are_a_usage_error(opsmith, tasks):
    (tasks / "program.txt").write_bytes(b"\xff\xfe")
    done = opsmith("verify", tasks / "sum_0.yaml", "--impl", tasks / "program.txt")
    assert done.code == 2
    assert "UTF-8" in done.err


def test_prompt_shows_what_would_be_sent(opsmith, tasks):
    done = opsmith("prompt", tasks / "sum_0.yaml")
    assert done.code == 0
    assert done.out.startswith("--- system ---\nlanguage:")
    assert "--- user ---\ntask:\n  inputs:" in done.out
    assert "impl: x y +" not in done.out
    assert "tokens" in done.err


def test_codegen_writes_the_script(opsmith, tasks):
    assert opsmith("codegen", tasks / "sum_0.yaml").out == "# sum_0\nx y +"
    assert opsmith("codegen", tasks / "sum_0.yaml", "-o", tasks / "script.py").out == ""
    assert (tasks / "script.py").read_text() == "# sum_0\nx y +"
    done = opsmith("codegen", tasks / "sum_0.yaml", "-o", tasks / "no" / "script.py")
    assert (done.code, done.err) == (1, f"opsmith: {tasks / 'no' / 'script.py'}: does not exist\n")
    assert "--impl FILE" in opsmith("codegen", tasks / "square_0.yaml").err


def test_cost_prints_the_targets_figures(opsmith, tasks):
    assert json.loads(opsmith("cost", tasks / "sum_0.yaml", "--json").out) == {"words": 3, "cycles": 30}
    assert "words" in opsmith("cost", tasks / "sum_0.yaml").out


def test_what_lies_beside_a_task_file_is_not_imported(tmp_path):
    (tmp_path / "beside.py").write_text("open('imported', 'w').close()\nTARGET = None\n")
    (tmp_path / "evil_0.yaml").write_text("target: beside:TARGET\n")
    command = [sys.executable, "-m", "opsmith", "verify", "evil_0.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "No module named 'beside'" in done.stdout
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize("task", ["etoe_2", "attn_0"])
def test_cost_of_a_bundled_task_is_measured_in_a_confined_worker(opsmith, task):
    done = opsmith("cost", task, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["flops"] > 0


def test_a_function_may_use_the_parts_of_torch_that_bring_its_compiler(opsmith, tmp_path):
    (tmp_path / "slope_0.yaml").write_text(SLOPE)
    done = opsmith("verify", tmp_path / "slope_0.yaml")
    assert done.code == 0, done.out


SLOPE = """\
inputs:
  - {name: E0, dtype: fp32, dims: [N], data_gen: torch.rand}
fns:
  - name: Slope
    func_name: fn_slope
    apply: |
      return [torch.func.grad(lambda x: x * x)(input[0])]
    input_dtype: fp32
    output_dtype: fp32
outputs:
  - {name: S0, dtype: fp32, dims: [N], data_transform: ["2 * input_data['E0']"]}
impl: |
  return step.Map(fn=fn_slope).apply(E0)
"""
