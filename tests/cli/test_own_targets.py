"""Commands on targets of one's own: found by what the task says, and told file and line where they fail."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from export.stores import RUN as STORED
from export.stores import Said, info, write_run
from failing_target import PLACE

from opsmith.errors import TargetError, UsageError
from opsmith.records import Boundary
from opsmith.store import Store
from opsmith.suites import read_task_file
from opsmith.targets import TARGETS, get_target

pytestmark = pytest.mark.usefixtures("warm_runs")

SUM = "target: tiny_target:TINY\ninputs: {x: [1, 2], y: [3, 5]}\nwant: [4, 7]\n"
PYTHON = SUM.replace(":TINY", ":TINY_PYTHON") + 'impl: "def solve(x, y): return x + y"\n'
RUN = ("run", "--samples", "8", "--max-rounds", "1", "--no-report", "--json")


@pytest.fixture
def failing(tmp_path):
    """A task file whose target fails in one method."""

    def file(method: str) -> Path:
        text = PYTHON if method.startswith("python_") else SUM + "impl: x y +\n"
        path = tmp_path / f"{method.lower()}_0.yaml"
        path.write_text(
            text.replace("tiny_target:TINY_PYTHON", "tiny_target:TINY").replace(
                "tiny_target:TINY", f"failing_target:{method}"
            )
        )
        return path

    return file  # fmt: skip


def test_what_a_run_left_is_found_by_what_its_tasks_say(opsmith, tasks, monkeypatch):
    monkeypatch.delitem(TARGETS, "tiny", raising=False)  # what the target calls itself
    (tasks / "square_0.yaml").unlink()
    run = json.loads(opsmith(*RUN, "--tasks", tasks).out)["run"]
    assert opsmith("reverify", run).code == 0
    assert "sft" in opsmith("export", run, "--dataset", "data").out
    refused = opsmith("export", run, "--library", "library").err
    words = " ".join(refused.split())
    assert "there is no library of programs of the target " in words
    assert "try: --dataset DIR" in words
    assert opsmith("bench", "verify", tasks, "--batch", "4").code == 0


def test_an_executed_target_cannot_be_timed_and_that_is_said(opsmith, tmp_path):
    (tmp_path / "python_0.yaml").write_text(PYTHON)
    done = opsmith("bench", "verify", "python_0.yaml")
    assert done.code == 2
    assert "candidates of target tiny_target:TINY_PYTHON are executed" in done.err


@pytest.mark.parametrize(
    "command",
    [("codegen", "write_script"), ("cost", "estimate_cost"), ("prompt", "base_prompt"), ("bench", "verify", "run_programs"),
     (*RUN, "--tasks", "make_sampler"), (*RUN, "--tasks", "list_trials"), ("codegen", "read_task")],
)  # fmt: skip
def test_a_mistake_of_a_target_ends_a_command_with_its_file_and_line(opsmith, failing, command):
    done = opsmith(*command[:-1], failing(command[-1]))
    assert done.code == 2
    assert PLACE in done.err
    assert "report this as a bug" not in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "method",
    ["check_program", "list_trials", "run_programs", "read_task", "python_encode_inputs", "python_compare_outputs"],
)
def test_a_verdict_and_a_check_name_the_line_and_go_on_with_other_files(opsmith, failing, tasks, method):
    done = opsmith("verify", failing(method), tasks / "sum_0.yaml", "--json")
    assert [(line["charged_to"], line["outcome"]) for line in done.lines] == [
        ("target", "unjudged"),
        ("candidate", "passed"),
    ]
    assert PLACE in done.lines[0]["message"]
    assert PLACE in opsmith("check", failing(method)).out


@pytest.mark.parametrize("command", ["codegen", "check", "verify"])
def test_a_target_without_a_method_is_told_which_and_where_its_class_is(opsmith, failing, command):
    done = opsmith(command, failing("LACKING"))
    assert done.code == 2
    missing = "comment, stages, base_prompt, read_program, list_trials, run_programs"
    assert f"an object without {missing} at failing_target.py:" in done.err + done.out
    assert "in class Lacking" in done.err + done.out


@pytest.mark.parametrize(("command", "words"), [("codegen", "writes no scripts"), ("cost", "has no cost model")])
def test_what_a_target_does_not_offer_is_said(opsmith, failing, command, words):
    done = opsmith(command, failing("LEAST"))
    assert done.code == 2
    assert f"target 'least' {words}" in done.err


def test_samples_that_a_target_fails_on_are_left_unjudged_and_charged_to_it(opsmith, failing):
    done = opsmith(*RUN, "--tasks", failing("read_program"))
    assert done.code == 2
    assert PLACE in done.err
    with Store.open("runs") as store:
        (run,) = store.list_runs()
        assert {whom for _, _, whom in store.read_charges(run.info.id)} == {Boundary.TARGET.value}
        assert PLACE in store.read_failures(run.info.id, 0)[0][2]


def test_what_cannot_be_imported_is_told_with_the_place_where_it_lies(opsmith, tmp_path, monkeypatch):
    package = tmp_path / "project" / "src" / "language_of_mine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import tiny_target\nTARGET = tiny_target.Tiny()\n")
    (tmp_path / "project" / "tasks").mkdir()
    file = tmp_path / "project" / "tasks" / "sum_0.yaml"
    file.write_text(SUM.replace("tiny_target:TINY", "language_of_mine:TARGET") + "impl: x y +\n")
    for folder, place in ((tmp_path, "project/src"), (tmp_path / "project", "src"), (package, str(package.parent))):
        monkeypatch.chdir(folder)
        assert f"PYTHONPATH={place}, or pip install" in opsmith("codegen", file).err
    monkeypatch.syspath_prepend(package.parent)
    assert "x y +" in opsmith("codegen", file).out


@pytest.mark.cold
def test_an_installed_target_is_found_by_its_entry_point(opsmith, tmp_path, monkeypatch):
    installed = tmp_path / "site" / "calculators-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Name: calculators\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[opsmith.targets]\nbus-1 = tiny_target:TINY\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    file = tmp_path / "sum_0.yaml"
    file.write_text(SUM.replace("tiny_target:TINY", "bus-1") + "impl: x y +\n")
    run = json.loads(opsmith(*RUN, "--tasks", file).out)["run"]
    assert opsmith("reverify", run).code == 0
    assert opsmith("verify", file).out == "sum_0: passed: 2 trials\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import a_library_of_nobody\n", "No module named 'a_library_of_nobody' at {name}.py:1, in <module>"),
        ("\n1 / 0\n", "ZeroDivisionError: division by zero at {name}.py:2"),
        ("\n\ndef f(:\n", "{name}.py:3"),
        ("raise SystemExit(0)\n", "SystemExit: 0 at {name}.py:1"),
    ],
)
def test_a_target_whose_import_fails_is_told_the_line(tmp_path, monkeypatch, text, words):
    name = f"broken_language_{abs(hash(text))}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TargetError) as caught:
        get_target(f"{name}:TARGET")
    assert words.format(name=name) in str(caught.value)


@pytest.mark.parametrize(
    "name", [":T", "..a:T", "tiny_target:NO_SUCH", "no_such_module_of_anybody:T", "os:path", "json:loads"]
)
def test_a_name_that_is_none_of_a_target_is_the_user_s_to_correct(name):
    with pytest.raises(UsageError, match="expected"):
        get_target(name)


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e9"])
@pytest.mark.parametrize("option", ["--candidate-seconds", "--trial-seconds"])
def test_seconds_are_positive_and_finite(opsmith, tasks, option, value):
    for command in (("verify", tasks), ("check", tasks), ("run", "--tasks", tasks)):
        done = opsmith(*command, option, value)
        assert done.code == 2
        assert f"{option}: given" in done.err


@pytest.mark.cold
def test_an_endless_candidate_costs_what_it_is_given(opsmith, tmp_path):
    (tmp_path / "endless_0.yaml").write_text(
        PYTHON.replace("return x + y", "return solve(x, y) if x < 0 else [0 for _ in iter(int, 1)]")
    )
    done = opsmith("verify", "endless_0.yaml", "--level", "cheap", "--trial-seconds", "0.5")
    assert done.code == 1
    assert "no outputs within 0.5 s for this trial" in done.out
    assert "--trial-seconds sets the limit" in done.out
    done = opsmith("verify", "endless_0.yaml", "--candidate-seconds", "0.5")
    assert "no outputs within 1.5 s for all trials" in done.out, "the full level gives three times the seconds"
    assert "--candidate-seconds sets the limit" in done.out


@pytest.mark.cold
def test_a_run_is_judged_again_with_its_own_seconds(opsmith, tmp_path):
    (tmp_path / "slow_0.yaml").write_text(PYTHON)
    slow = "import time\ndef solve(x, y):\n    time.sleep(1)\n    return x + y\n"
    run = replace(info("tiny_python"), settings={"candidate_seconds": 60.0, "trial_seconds": 0.2})
    with write_run(tmp_path / "runs", {"slow_0": [Said(slow, True)]}, [read_task_file(tmp_path / "slow_0.yaml")], run):
        pass
    done = opsmith("reverify", STORED, "--json")
    assert (done.code, json.loads(done.out)["lost"]) == (1, ["slow_0"])
    assert "no outputs within 0.2 s" in done.out
