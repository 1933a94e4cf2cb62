"""What is asked of every command: quick help, one message for bad input, exit codes that say who is at fault."""

import json
import os
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from opsmith.cli.app import build_app
from opsmith.cli.overview import COMMANDS as COMMANDS_BY_NAME
from opsmith.cli.overview import write_overview
from opsmith.store import Store

HEAVY = {"typer", "torch", "numpy", "pydantic", "sqlalchemy", "openai", "anthropic", "yaml", "rich", "mcp"}
COMMANDS = ["tasks", "models", "runs", "show", "verify", "run", "prompt", "codegen", "cost", "mcp"]


def test_help_imports_nothing_heavy():
    code = (
        "import atexit, sys\n"
        "from opsmith.cli import main\n"
        "atexit.register(lambda: print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr))\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert all(f"\n  {command} " in done.stdout for command in COMMANDS)
    assert not set(done.stderr.split()) & HEAVY


def test_commands_that_list_load_neither_torch_nor_what_they_do_not_show(tmp_path):
    """One process for all of them: what none of them loads, each of them does without."""
    Store.open(tmp_path).close()
    code = (
        "import contextlib, sys\n"
        "from opsmith.cli.app import build_app\n"
        "for command in (['tasks'], ['models'], ['codegen', 'bmm_0'], ['runs', '--out', sys.argv[1]]):\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        build_app(command[0])(command, prog_name='opsmith')\n"
        "    print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    *_, without_store, with_store = [set(line.split()) for line in done.stderr.splitlines()]
    assert all(words in done.stdout for words in ("bmm_0", "anthropic/NAME", "def prepare", "started"))
    assert not without_store & {"torch", "numpy", "sqlalchemy"}
    assert not with_store & {"torch", "numpy", "openai", "anthropic", "alembic", "jinja2"}


def test_the_overview_says_of_each_command_what_its_own_help_does():
    app = get_command(build_app())
    assert CliRunner().invoke(build_app(), ["--help"], prog_name="opsmith").stdout == write_overview()
    for name, (_, line) in COMMANDS_BY_NAME.items():
        assert app.commands[name].help.startswith(line.rstrip(".")), name
    assert set(app.commands) == set(COMMANDS_BY_NAME)
    assert all(len(line) <= 80 for line in write_overview().splitlines())
    for group in (name for name in COMMANDS_BY_NAME if name in ("bench", "import")):
        assert "..." not in CliRunner().invoke(build_app(group), [group, "--help"]).stdout.partition("Commands:")[2]


def test_many_options_are_listed_in_groups(opsmith):
    headings = [line for line in opsmith("run", "--help").out.splitlines() if line and not line.startswith(" ")]
    assert headings[1:] == [
        "Arguments:", "What is asked:", "Who answers:", "How it learns:", "How much is spent:", "Requests:",
        "Where it runs:", "What comes out:", "Other options:",
    ]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(opsmith, command):
    done = opsmith(command, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: opsmith {command}")


def test_version(opsmith):
    assert opsmith("--version").out == "opsmith 0.1.0\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify", "no_such_task"], "no such id, file or folder"),
        (["verify", "missing.yaml"], "does not exist"),
        (["verify", "bmm_0", "--impl", "missing.txt"], "missing.txt: does not exist"),
        (["verify", "bmm_0", "--impl", "a", "--reply", "b"], "expected one of them"),
        (["verify", "bmm_0", "--nonsense"], "No such option: --nonsense"),
        (
            ["verify", "softmax", "gather", "--target", "c", "--option", "threads=0"],
            "opsmith: target c: option threads",
        ),
        (["verify", "bmm_0", "--option", "threads=2"], "opsmith: options threads: target 'step' has none"),
        (["run", "missing.toml"], "missing.toml: does not exist"),
        (["run", "--model", "no/such"], "no such model; known: embedded"),
        (["run", "--model", "openai/x"], "OPENAI_API_KEY"),
        (["run", "--samples", "0"], "--samples: given 0; expected greater than or equal to 1"),
        (["run", "--agents", "many"], "--agents: given 'many'; expected 'single' or 'agent'"),
        (["run", "--model", "openai/x", "--base-url", "http://localhost:1/v1", "--from", "none"], "no such run"),
        (["runs"], "no runs here"),
        (["show", "some_run"], "no runs here"),
        (["prompt", "no_such_task"], "no such id"),
        (["codegen", "missing.yaml"], "does not exist"),
        (["cost", "no_such_task"], "no such id"),
    ],
)
def test_bad_input_ends_in_one_message_and_exit_code_2(opsmith, arguments, words):
    done = opsmith(*arguments)
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


def test_looking_for_runs_makes_no_store(opsmith, tmp_path):
    assert opsmith("runs").code == 2
    assert not (tmp_path / "runs").exists()


def test_a_reader_that_has_gone_is_no_error():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", "from opsmith.cli import main; main()", "tasks"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.stderr == ""


def test_tasks_lists_both_suites(opsmith):
    listed = json.loads(opsmith("tasks", "--json").out)
    assert sum(row["suite"] == "step26" for row in listed) == 26
    assert {"task": "bmm_0", "group": "bmm", "suite": "step26", "target": "step"}.items() <= listed[3].items()
    assert "bmm_0" in opsmith("tasks").out
    problems = json.loads(opsmith("tasks", "kernels", "--json").out)
    assert {row["target"] for row in problems} == {"problem"}
    (softmax,) = json.loads(opsmith("tasks", "softmax", "--target", "c", "--option", "threads=2", "--json").out)
    assert (softmax["target"], softmax["suite"]) == ("c", "kernels")


def test_models_says_which_keys_are_set_and_shows_none(opsmith, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    out = opsmith("models").out
    assert "OPENAI_API_KEY: set" in out
    assert "ANTHROPIC_API_KEY: not set" in out
    assert "very-secret" not in out


def test_a_task_is_described_by_its_file_and_shown_with_all_that_it_asks(opsmith):
    listed = {row["task"]: row["what"] for row in json.loads(opsmith("tasks", "--json").out)}
    assert all(listed.values())
    assert listed["softmax"] == "Softmax along every row."
    assert listed["norm_1"] == "Layer norm, elements as a stream."
    shown = opsmith("tasks", "norm_1").out
    assert [word for word in ("inputs:", "fns:", "outputs:", "impl:") if f"\n{word}" in shown] == [
        "inputs:", "fns:", "outputs:",
    ]  # fmt: skip
    assert "layer_norm(input_data['E0'], [D_value], eps=1e-5)" in shown
    softmax = opsmith("tasks", "softmax").out
    assert "return torch.softmax(x, -1)" in softmax
    assert "programs of its own: c, cuda, wgsl" in softmax
    assert opsmith(*softmax.splitlines()[-1].split("opsmith ")[1].split()).code == 0


def test_what_a_language_takes_not_is_said_once(opsmith):
    done = opsmith("verify", "rms_norm", "--target", "wgsl")
    assert (done.code, done.out.count("expected"), done.out.count("try:")) == (2, 1, 1)
    assert "  given:    bf16 for the target wgsl\n" in done.out
