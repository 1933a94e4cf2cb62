"""Problems of problem files and of STeP task files, asked for in C."""

import re

import pytest

from opsmith.api import improve, load_task
from opsmith.errors import TaskError, UsageError
from opsmith.measuring.measure import choose_timed_sets
from opsmith.problems.digest import hash_problem
from opsmith.suites import adapt_task, find_bundled, find_files, load_tasks, read_task_file, task_files
from opsmith.targets import get_target
from opsmith.targets.native.comparison import judge_pass
from opsmith.targets.native.task import read_native_task
from opsmith.targets.native.trials import make_trials
from opsmith.targets.protocols import Adapting, Configured, Stating, Suffixed

C = get_target("c")


def test_c_takes_problems_of_others_with_options():
    assert isinstance(C, Stating)
    assert isinstance(C, Adapting)
    assert isinstance(C, Configured)
    assert isinstance(C, Suffixed)


@pytest.mark.parametrize("suite", ["step26", "kernels"])
def test_every_problem_of_a_suite_has_a_task_a_shown_text_and_a_plain_program_in_c(suite):
    tasks = load_tasks([suite], "c")
    for task, own in zip(tasks, map(read_task_file, task_files(suite)), strict=True):
        origin = get_target(own.target)
        assert isinstance(origin, Stating)
        assert (task.id, task.group, task.target) == (own.id, own.group, "c")
        assert C.problem_digest(task) == origin.problem_digest(own)
        assert "void kernel(" in task.shown
        assert task.impl
        assert "void kernel(" in task.impl
    assert len({task.digest for task in tasks}) == len(tasks)


def test_a_statement_shows_no_sizes_and_inputs_that_only_the_verifier_needs():
    shown = load_task("kernels/softmax", "c").shown
    assert "fp32 [M, N]; data: normal" in shown
    assert "torch.softmax(x, -1)" in shown
    assert "{M: 48, N: 300}" in shown
    assert "129" not in shown
    assert "input_data" not in shown
    assert "bench" not in shown


def test_what_a_language_adds_to_a_problem_is_not_asked_for_in_c():
    task = load_task("etoe_2", "c")
    problem = C.find_problem(task)
    assert "E" not in problem.symbols
    assert hash_problem(problem) == C.problem_digest(task)


def test_options_are_part_of_the_task_and_none_changes_nothing():
    (plain,) = load_tasks(["softmax"], "c")
    (threaded,) = load_tasks(["softmax"], "c", {"threads": "2"})
    assert read_native_task(threaded.text)[1].threads == 2
    assert "threads: 2\n" in threaded.shown
    assert threaded.digest != plain.digest
    assert C.problem_digest(threaded) == C.problem_digest(plain)
    assert load_tasks(["softmax"], "c", {"threads": 1}) == (plain,)
    assert adapt_task(threaded, None, {"flags": "-O2"}).text.startswith('options: {"flags": "-O2", "threads": 2}\n')


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("c", {"threads": 0}, "target c: option threads: given 0; expected a number from 1"),
        ("c", {"thread": 2}, "target c: option 'thread': no such option; known: flags, threads"),
        ("step", {"threads": 2}, "options threads: target 'step' has none"),
    ],
)
def test_an_option_that_the_language_does_not_have_is_refused(target, options, words):
    with pytest.raises(UsageError, match=words):
        load_tasks(["gemm_0"], target, options)


@pytest.mark.parametrize("ask", [load_task, lambda name: load_tasks([name]), lambda name: improve([name])])
def test_a_problem_file_without_a_language_says_how_one_is_named(ask):
    with pytest.raises(UsageError, match=r"softmax\.yaml: given a problem that states no language; .*try: --target c"):
        ask("softmax")


def test_a_problem_file_that_states_c_is_a_task_of_c(tmp_path):
    path = tmp_path / "softmax.yaml"
    path.write_text("target: c\n" + find_files(["softmax"])[0].read_text("utf-8"), encoding="utf-8")
    assert load_task(path).digest == load_task("softmax", "c").digest


def test_a_step_file_that_states_c_is_refused_with_what_to_try(tmp_path):
    path = tmp_path / "gemm_0.yaml"
    path.write_text("target: c\ninputs: []\n", encoding="utf-8")
    with pytest.raises(TaskError, match="given no problem for the target c"):
        load_task(path)


def test_a_bundled_problem_is_known_in_every_language():
    task = load_task("softmax", "c")
    bundled = find_bundled(task)
    assert bundled is not None
    assert bundled.impl == task.impl
    assert find_bundled(adapt_task(task, None, {"threads": 2})) is None


def test_findings_on_a_step_task_in_c_have_the_shapes_and_names_of_the_prompt():
    for name in ("gemm_0", "index_1", "extrema_0"):
        task = load_task(name, "c")
        types = dict(zip(find_names(task), C.find_problem(task).types, strict=True))
        for argument, type_ in types.items():
            assert re.search(rf"\b{argument}: .*{re.escape(type_.label)}", task.shown), (name, argument)
    (trial, *_) = make_trials(load_task("extrema_0", "c").text).trials
    wrong = trial.data.layout.outputs_size * b"\0"
    places = [finding.where for finding in judge_pass(trial.name, trial.data, wrong).errors]
    assert [place.partition(",")[0] for place in places] == ["output S0_0 (fp32 [N]", "output S0_1 (fp32 [N]"]


def find_names(task):
    problem = C.find_problem(task)
    return [tensor.name for tensor in problem.tensors] + [n for output in problem.outputs for n in output.tensor_names]


def test_timed_sizes_are_those_of_the_task_s_own_dims():
    assert choose_timed_sets(load_task("norm_0", "c")) == {"large": {"N": 64, "D": 64}}
    assert choose_timed_sets(load_task("softmax", "c"))["small"] == {"M": 64, "N": 256}
