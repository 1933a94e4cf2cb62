"""What GPU languages share of a target: tasks, options, and the check of a program's plan before anything is built."""

from __future__ import annotations

import json

import pytest
import yaml
from targets.gpu.plain_gpu_target import PLAIN_GPU

from opsmith.errors import TaskError, UnaskableError, UsageError
from opsmith.records import Stage, Task
from opsmith.suites import load_tasks
from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.native.task import read_task_problem
from opsmith.targets.native.trials import make_trials

PLACE = "targets.gpu.plain_gpu_target:PLAIN_GPU"
LAUNCH = "// launch row_sum grid=(M) block=(256) args=(x, y, M, N)"
PROGRAM = f"{LAUNCH}\nkernel row_sum\n"


@pytest.fixture(scope="module")
def task() -> Task:
    (of_problem,) = load_tasks(["kernels/row_sum"], "c")
    return PLAIN_GPU.read_task(of_problem.text, "row_sum")


def test_a_task_shows_arrays_and_numbers_by_the_names_of_plans_and_no_prototype(task: Task) -> None:
    shown = yaml.safe_load(task.shown)
    assert list(shown["arguments"]) == ["x", "y", "M", "N"]
    assert "function" not in shown
    assert "void" not in task.shown


def test_options_are_of_the_language_and_part_of_the_task(task: Task) -> None:
    chosen = PLAIN_GPU.configure_task(task, {"chip": "two"})
    assert PLAIN_GPU.find_options(chosen).write_options() == {"chip": "two"}
    assert yaml.safe_load(chosen.shown)["chip"] == "two"
    assert chosen.digest != task.digest
    assert PLAIN_GPU.configure_task(chosen, {"chip": "one"}) == task
    assert read_task_problem(chosen.text) == read_task_problem(task.text)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"threads": "2"}, "option 'threads': no such option; known: chip"), ({"chip": "three"}, "expected one or two")],
)
def test_an_option_that_there_is_not_is_refused(task: Task, options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=f"target plain_gpu: .*{words}"):
        PLAIN_GPU.configure_task(task, options)


def test_a_problem_of_types_that_the_language_lacks_is_no_task() -> None:
    (of_problem,) = load_tasks(["kernels/rms_norm"], "c")
    with pytest.raises(TaskError, match="given bf16 for the target plain_gpu; expected arrays of fp32, fp16, int32"):
        PLAIN_GPU.read_task(of_problem.text, "rms_norm")


def test_data_of_a_task_with_options_can_be_made_by_who_knows_no_language(task: Task) -> None:
    chosen = PLAIN_GPU.configure_task(task, {"chip": "two"})
    own = PLAIN_GPU.list_trials(chosen)
    assert [trial.name for trial in make_trials(chosen.text).trials] == [trial.name for trial in own]
    assert not own[0].data.options.has_order


def test_a_right_plan_leads_to_run_with_a_form_that_names_do_not_change(task: Task) -> None:
    checked = PLAIN_GPU.check_program(task, PROGRAM)
    assert (checked.stage, checked.errors) == (Stage.RUN, ())
    assert PLAIN_GPU.check_program(task, f"// sums\n\n{PROGRAM}").program == checked.program
    assert PLAIN_GPU.check_program(task, PROGRAM.replace("256", "128")).program != checked.program


def test_a_bound_plan_is_what_a_build_takes(task: Task) -> None:
    bound = PLAIN_GPU.bind_program(task, PROGRAM)
    assert isinstance(bound, BoundPlan)
    assert json.loads(bound.write_json())["launches"][0]["kernel"] == "row_sum"


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("kernel row_sum\n", None, "a program without a launch line"),
        (PROGRAM.replace("launch row_sum", "launch rowsum"), 1, "rowsum: no such kernel; expected one of row_sum; try: write row_sum"),
        (PROGRAM.replace("args=(x, y", "args=(x, z"), 1, "given z: no such argument"),
        (PROGRAM.replace("grid=(M)", "grid=(M - 1)"), 1, "given grid.x = `M - 1` = 0 at M = 1"),
        (PROGRAM.replace("block=(256)", "block=(2048)"), 1, "given block.x = 2048; expected 1 to 1024"),
        (f"{PROGRAM}asm\n", None, "given asm"),
    ],
)  # fmt: skip
def test_a_wrong_plan_is_refused_at_parse_with_its_line(task: Task, source: str, line: int | None, words: str) -> None:
    checked = PLAIN_GPU.check_program(task, source)
    assert checked.stage == Stage("PARSE")
    assert checked.program is None
    assert (checked.errors[0].kind, checked.errors[0].line) == ("PARSE", line)
    assert words in str(checked.errors[0])
    assert checked.errors[0].text == (source.split("\n")[line - 1] if line else "")


def test_mistakes_of_source_and_plan_are_told_together(task: Task) -> None:
    errors = PLAIN_GPU.check_program(task, f"{PROGRAM.replace('(x', '(u')}asm\n").errors
    assert [error.given[:3] for error in errors] == ["asm", "u: "]


def test_a_suite_is_asked_for_without_the_problems_that_a_language_lacks_types_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = load_tasks(["kernels"], "c")
    asked = load_tasks(["kernels"], PLACE)
    left_out = {task.id for task in whole} - {task.id for task in asked}
    assert {"rms_norm", "row_max_argmax"} <= left_out
    assert len(asked) > 12
    load_tasks(["kernels"], PLACE)
    (warning,) = [record.message for record in caplog.records if "left out" in record.message]
    assert warning.startswith(f"left out {len(left_out)} of the tasks, which {PLACE} cannot be asked for: ")
    with pytest.raises(UnaskableError, match="given bf16"):
        load_tasks(["row_sum", "rms_norm"], PLACE)
