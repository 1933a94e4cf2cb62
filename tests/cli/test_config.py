"""Settings files: every wrong key or value is named with its line."""

from pathlib import Path

import pytest

from opsmith.config import read_config, refuse_idle_options, resolve_settings
from opsmith.errors import TaskError, UsageError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("samples = 8\n\nsample = 8\n", r"x\.toml:3: unknown key 'sample'; did you mean 'samples'\? known: model, "),
        ("[settings]\nsamples = 8\n", r"x\.toml:1: unknown key 'settings'"),
        ("# a comment\nsamples = 0\n", r"x\.toml:2: samples: given 0; expected greater than or equal to 1"),
        ("temperatures = [0.5, 'hot']\n", r"x\.toml:1: temperatures: given 'hot'; expected a valid number"),
        ("temperatures = [0.5, nan]\n", r"x\.toml:1: temperatures: given nan; expected a finite number"),
        ("temperatures = [-1]\n", r"x\.toml:1: temperatures: given -1; expected greater than or equal to 0"),
        ("guardian = 'dynamic'\n", r"x\.toml:1: guardian: given 'dynamic'; expected 'static' or 'llm'"),
        ("samples = \n", r"x\.toml: not a readable TOML file: Invalid value \(at line 1"),
    ],
)
def test_a_wrong_file_is_named_with_the_line(tmp_path, text, words):
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(TaskError, match=words):
        read_config(tmp_path / "x.toml")


def test_a_task_file_in_the_place_of_settings_is_told_where_it_goes():
    with pytest.raises(
        UsageError, match=r"b/x\.yaml: given a task file; .* try: --tasks b/x\.yaml; several with commas"
    ):
        read_config(Path("b/x.yaml"))


def test_options_win_and_options_not_given_do_not(tmp_path):
    (tmp_path / "x.toml").write_text("samples = 8\nseed = 3\n")
    settings = resolve_settings(tmp_path / "x.toml", {"samples": 2, "seed": None, "model": None})
    assert (settings.method.samples, settings.seed, settings.method.levels) == (2, 3, 3)
    with pytest.raises(UsageError, match=r"--from: given 3; expected a valid string"):
        resolve_settings(None, {"from_run": 3})


def test_the_settings_of_the_main_job_are_right_and_open_with_their_command():
    file = ROOT / "experiments" / "main.toml"
    resolve_settings(file, {})
    assert file.read_text().splitlines()[0] == f"# opsmith run experiments/{file.name}"


def test_tasks_that_begin_with_a_dot_lie_beside_the_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('tasks = ["./tasks", "../shared.yaml", "attn_0", "tasks"]')
    assert read_config(file)["tasks"] == [f"{tmp_path}/tasks", f"{tmp_path}/../shared.yaml", "attn_0", "tasks"]


def test_options_of_a_target_are_a_table_over_which_the_command_line_lies(tmp_path):
    (tmp_path / "x.toml").write_text('target = "c"\n[target_options]\nthreads = 2\nflags = ["-O2", "-ffast-math"]\n')
    settings = resolve_settings(tmp_path / "x.toml", {"target_options": {"threads": "4"}})
    assert settings.target_options == {"threads": "4", "flags": ("-O2", "-ffast-math")}
    (tmp_path / "x.toml").write_text("target_options = 2\n")
    with pytest.raises(TaskError, match=r"x\.toml:1: target_options: given 2; expected"):
        read_config(tmp_path / "x.toml")


@pytest.mark.parametrize(
    "line",
    [
        'model = "command:sh -c true"',
        'models = ["embedded", "swarm:tuner,command:sh"]',
        'guardian_model = "command:sh"',
        'analyst = "command:sh"',
        'planner = "command:sh"',
        'pass_env = ["HOME"]',
    ],
)
def test_a_file_of_others_has_no_program_executed_and_hands_out_no_variable(tmp_path, line):
    file = tmp_path / "theirs.toml"
    file.write_text(f"samples = 2\n{line}\n")
    with pytest.raises(TaskError, match=r"theirs.toml:2: .* in a file; expected the option --"):
        read_config(file)


@pytest.mark.parametrize(
    ("option", "beside", "needed"),
    [
        ({"depth": 2}, {"plan": "static"}, "--depth: given 2 alone; expected --plan static or --plan llm"),
        ({"planner": "openai/m"}, {"plan": "llm"}, "--planner: given openai/m alone; expected --plan llm"),
        ({"tool_calls": 3}, {"tools": "check"}, "--tool-calls: given 3 alone; expected --tools check or --tools all"),
        ({"guardian_model": "search"}, {"guardian": "llm"}, "--guardian-model: given search alone; expected"),
    ],
)
def test_an_option_that_nothing_follows_from_is_refused(option, beside, needed):
    with pytest.raises(UsageError, match=needed):
        refuse_idle_options(option, resolve_settings(None, option))
    refuse_idle_options(option, resolve_settings(None, option | beside))
