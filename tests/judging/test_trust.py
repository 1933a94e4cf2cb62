"""Where nothing isolates code of task files, that is said, and only bundled tasks run unless the others are trusted."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
from harmful import RIGHT, SMALL, step_task, tiny_python

import opsmith.api
from opsmith.api import improve
from opsmith.cli.app import build_app
from opsmith.config import read_config
from opsmith.errors import TaskError, UsageError
from opsmith.judging.pool import Pool
from opsmith.judging.trust import is_bundled
from opsmith.running import sandbox
from opsmith.running.sandbox import Sandbox
from opsmith.settings import Settings

OPEN = Sandbox(isolate=False)


@pytest.fixture(scope="module")
def shared_pool():
    with Pool(1, sandbox=OPEN) as pool:
        yield pool


@pytest.fixture
def open_pool(shared_pool, monkeypatch):
    """`open_pool(trust_tasks=...)`: a pool without isolation, as context; its processes run already."""

    def opened(*_limits, trust_tasks=False, **_more):
        monkeypatch.setattr(shared_pool, "_trust_tasks", trust_tasks)
        return nullcontext(shared_pool)

    return opened


@pytest.fixture
def no_landlock(monkeypatch):
    """A kernel without Landlock, as far as this process can tell."""
    monkeypatch.setattr(sandbox, "missing", lambda: "the kernel offers no Landlock")


def test_a_bundled_task_is_one_by_its_content():
    assert is_bundled(opsmith.load_task("attn_0"))
    assert not is_bundled(step_task("attn_0"))


@pytest.mark.parametrize(("name", "options"), [("attn_0", {}), ("softmax", {}), ("softmax", {"threads": 2})])
def test_a_bundled_problem_is_one_in_every_language_of_ours_with_all_options(name, options):
    task = opsmith.load_task(name, "c", options)
    assert is_bundled(task)
    changed = task.text.replace("torch.", "(print('mine'), torch)[1].", 1)
    assert changed != task.text
    assert not is_bundled(replace(task, text=changed))
    assert not is_bundled(replace(task, target="tiny_target:TINY_PYTHON"))


def test_bundled_tasks_are_judged_and_others_refused(open_pool):
    task = opsmith.load_task("attn_0")
    with open_pool() as pool:
        assert pool.verify(task, task.impl).passed
        with pytest.raises(UsageError, match=r"hostile_0: .*isolates it here.*--trust-tasks"):
            pool.verify(step_task(), RIGHT)


def test_trusted_tasks_are_judged(open_pool, tmp_path):
    made = tmp_path / "made"
    with open_pool(trust_tasks=True) as pool:
        assert pool.verify(step_task(), RIGHT).passed
        assert pool.verify(step_task(**{"global": f"import os; os.mkdir({str(made)!r})"}), RIGHT)
        with pytest.raises(UsageError, match="are executed, and nothing isolates them"):
            pool.verify(tiny_python(), "def solve(x):\n    return 1\n")
    assert made.exists()  # the same code that has no effect where workers are confined


def test_a_pool_that_refuses_starts_nothing_and_says_why_once(no_landlock, caplog):
    with Pool(1, sandbox=SMALL) as pool:
        pool.admit([opsmith.load_task("attn_0"), opsmith.load_task("bmm_0")])
        with pytest.raises(UsageError, match="no Landlock"):
            pool.admit([step_task()])
        assert pool._nursery._process is None
    said = [record.message for record in caplog.records]
    assert said == ["code of task files is not isolated here: the kernel offers no Landlock"]


def test_a_run_is_refused_before_a_model_is_asked(no_landlock):
    with pytest.raises(UsageError, match="--trust-tasks"):
        improve([step_task()], model=None, settings=Settings())  # type: ignore[arg-type]


def test_the_library_refuses_and_trusts(open_pool, monkeypatch):
    monkeypatch.setattr(opsmith.api, "default_pool", lambda trust: open_pool(trust_tasks=trust).enter_result)
    with pytest.raises(UsageError, match="trust_tasks=True"):
        opsmith.verify(step_task(), RIGHT)
    assert opsmith.verify(step_task(), RIGHT, trust_tasks=True).passed


@pytest.mark.parametrize(("options", "code"), [([], 2), (["--trust-tasks"], 0)])
def test_the_command_refuses_and_trusts(open_pool, monkeypatch, tmp_path, capsys, options, code):
    monkeypatch.setattr("opsmith.judging.pool.Pool", open_pool)
    file = tmp_path / "mine_0.yaml"
    file.write_text("target: tiny_target:TINY\ninputs: {x: [1]}\nwant: [1]\nimpl: x\n")
    with pytest.raises(SystemExit) as ended:
        build_app()(["verify", str(file), *options], prog_name="opsmith")
    assert int(ended.value.code or 0) == code
    assert ("--trust-tasks" in capsys.readouterr().err) == (code == 2)


def test_an_experiment_file_cannot_trust_the_tasks_that_came_with_it(tmp_path):
    file = tmp_path / "shared.toml"
    file.write_text("samples = 1\ntrust_tasks = true\n")
    with pytest.raises(TaskError, match=r"shared.toml:2: trust_tasks: .*--trust-tasks"):
        read_config(file)


@pytest.mark.parametrize(
    ("platform", "machine", "version", "words"),
    [
        ("darwin", True, 7, "this is darwin"),
        ("linux", None, 7, "numbers of system calls are not known"),
        ("linux", True, 0, "no Landlock"),
    ],
)
def test_what_is_missing_is_said_in_words(monkeypatch, platform, machine, version, words):
    monkeypatch.setattr(sandbox.sys, "platform", platform)
    monkeypatch.setattr(sandbox, "MACHINE", machine)
    monkeypatch.setattr(sandbox.landlock, "find_version", lambda: version)
    assert words in sandbox.missing()
