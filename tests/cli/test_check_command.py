"""`opsmith check`: a row per task file, its faults under it, and an exit code for all."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("warm")

DOUBLE = """
inputs: [{name: E0, dtype: fp32, dims: [N], data_gen: torch.randn}]
fns: [{name: Two, func_name: fn_two, input_dtype: fp32, output_dtype: fp32, apply: "return [2 * input[0]]"}]
outputs: [{name: S0, dtype: fp32, dims: [N], data_transform: ["2 * input_data['E0']"]}]
"""
IMPL = "impl: return step.Map(fn=fn_two).apply(E0)\n"


@pytest.fixture
def files(tmp_path):
    """A right task, and some that are not."""
    folder = tmp_path / "mine"
    folder.mkdir()
    texts = {
        "right_0": DOUBLE + IMPL,
        "bare_0": DOUBLE,
        "copy_0": DOUBLE.replace("2 * input_data['E0']", "input_data['E0'].clone()") + "impl: return E0\n",
        "broken_0": DOUBLE.replace("dims: [N], data_gen", "dims: [], data_gen"),
        "ends_0": DOUBLE.replace("2 * input_data['E0']", "import os\\nos._exit(1)\\n2 * input_data['E0']") + IMPL,
    }
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def states(done):
    return {line["task"]: line["state"] for line in done.lines}


@pytest.mark.parametrize(
    ("names", "code"),
    [(["right_0"], 0), (["right_0", "copy_0"], 1), (["right_0", "bare_0"], 2), (["bare_0", "copy_0"], 1)],
)
def test_the_exit_code_says_whether_a_fault_was_found(opsmith, files, names, code):
    assert opsmith("check", *(files / f"{name}.yaml" for name in names)).code == code


def test_a_folder_gives_a_line_per_file_whatever_is_wrong_with_it(opsmith, files):
    done = opsmith("check", files, "--json")
    assert done.code == 1
    assert states(done) == {
        "bare_0": "not checked",
        "broken_0": "faulty",
        "copy_0": "faulty",
        "ends_0": "not checked",
        "right_0": "fine",
    }
    found = {line["task"]: line["findings"] for line in done.lines}
    assert "dims" in found["broken_0"][0]["found"]
    assert "never ends, exits" in found["ends_0"][0]["remedy"]
    assert {finding["state"] for finding in found["right_0"]} == {"fine"}


def test_files_of_one_name_in_several_folders_are_told_apart_by_their_paths(opsmith, files):
    (files / "more").mkdir()
    (files / "more" / "right_0.yaml").write_text(DOUBLE)
    done = opsmith("check", files / "right_0.yaml", files / "more", "--json")
    assert states(done) == {str(files / "right_0.yaml"): "fine", str(files / "more" / "right_0.yaml"): "not checked"}


def test_a_person_reads_what_was_tried_what_passed_and_what_to_try(opsmith, files):
    done = opsmith("check", files / "copy_0.yaml", files / "bare_0.yaml")
    assert "2 task files: 1 faulty, 1 not checked" in done.out
    assert "copy_0: answers: faulty\n  tried: S0 = E0\n  found: passes all" in done.out
    assert "  try:   data or `cases` for which S0 is not E0" in done.out
    assert "bare_0: program: not checked\n  tried: nothing\n  found: the file has no `impl`" in done.out


def test_the_cause_of_a_nan_stands_first_and_what_follows_from_it_in_one_block(opsmith, files):
    (files / "log_0.yaml").write_text(DOUBLE.replace("2 * input_data['E0']", "input_data['E0'].log()") + IMPL)
    done = opsmith("check", files / "log_0.yaml")
    first, rest = done.out.partition("1 task file: 1 faulty")[2].strip().split("\n  try:", 1)
    assert first.startswith("log_0: data: faulty\n")
    assert "it comes from negative numbers in E0" in first
    assert rest.count("log_0: ") == 1
    assert "log_0: reference, program, answers, tolerance, inputs, functions: not checked" in rest


def test_a_task_of_another_language_is_checked_as_far_as_that_goes(opsmith, tasks):
    done = opsmith("check", tasks / "sum_0.yaml", "--json")
    assert done.code == 2
    (line,) = done.lines
    assert [(finding["check"], finding["state"]) for finding in line["findings"]] == [
        ("program", "fine"),
        ("data", "not checked"),
    ]


def test_the_bundled_tasks_are_fine(opsmith):
    done = opsmith("check", "step26", "step_extra", "--json")
    assert done.code == 0
    assert set(states(done).values()) == {"fine"}
    assert len(done.lines) == 39


def test_the_example_of_the_documentation_is_fine(opsmith, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "task-files.md").read_text()
    first, second = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "energy_0.yaml").write_text(first + second)
    done = opsmith("check", tmp_path / "energy_0.yaml")
    assert done.code == 0, done.out
    assert "FAULTY" not in done.out
