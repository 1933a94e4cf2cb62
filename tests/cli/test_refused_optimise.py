"""What cannot be made better is refused in a sentence before a run exists; the usual objective is the language's own."""

import re

import pytest

from opsmith.errors import UsageError
from opsmith.learn.identity import run_info
from opsmith.learn.optimisation import choose_objective
from opsmith.models.roles import RoleModels
from opsmith.settings import Settings
from opsmith.suites import load_tasks
from opsmith.targets import get_target


class Named:
    name, is_language_model = "embedded", False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--objective", "time"), "they have: cycles, on_chip_bytes, off_chip_bytes"),
        (("--objective", "time", "--dry-run"), "they have: cycles, on_chip_bytes, off_chip_bytes"),
        (("--memory-from", "nobody"), "run 'nobody': no such run"),
        (("--reference", "nowhere"), "reference 'nowhere'"),
        (("--analyst", "openai/gpt-5", "--profiles", "blue"), "no such profiler"),
        (("--analyst", "openai/gpt-5", "--profiles", "mca"), "not made for programs of target step"),
    ],
)
def test_a_refused_optimise_leaves_no_run(opsmith, monkeypatch, options, words):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    refused = opsmith("optimise", "index_2", *options)
    assert refused.code == 2
    assert words in refused.err
    assert "embedded" not in opsmith("runs").out


def test_a_language_that_says_no_figure_is_refused_whatever_begins_the_run(opsmith, tmp_path):
    opsmith("init", "chip", "--command")
    language = tmp_path / "chip/language.toml"
    language.write_text(re.sub("^cycles = .*$", "", language.read_text(), flags=re.MULTILINE))
    (tmp_path / "made.toml").write_text('tasks = ["./chip/problems"]\nmodel = "embedded"\noptimise = 2\n')
    for command in (("optimise", "chip/problems"), ("run", "made.toml"), ("run", "made.toml", "--dry-run")):
        refused = opsmith(*command, "--target", language)
        assert refused.code == 2
        assert "try: run.cycles in a language file" in refused.err
    assert "embedded" not in opsmith("runs").out


def test_a_language_without_profiles_says_so(opsmith, tmp_path):
    opsmith("init", "chip", "--command")
    language = tmp_path / "chip/language.toml"
    language.write_text(language.read_text().partition("[profile]")[0] + "[toolchain]\nreadable = ['tools']\n")
    silent = opsmith("profile", "chip/problems/row_sum.yaml", "--target", language)
    assert (silent.code, silent.out) == (2, "")
    assert f"no profiler here says anything of programs of target {language}" in silent.err


@pytest.mark.parametrize(("target", "task", "usual"), [("c", "kernels/row_sum", "time"), ("step", "index_2", "cycles")])
def test_the_usual_objective_is_the_first_that_the_language_says_and_what_the_run_is_named_by(target, task, usual):
    tasks = load_tasks((task,), target)
    infos = []
    for objective in ("auto", usual):
        settings = choose_objective(Settings(optimise=2, objective=objective), tasks)
        assert settings.optimisation.objective == usual
        infos.append(run_info(tasks, [], None, RoleModels(Named()), get_target(target), settings))
    assert infos[0].id == infos[1].id
    assert infos[0].settings.get("objective", "time") == usual  # runs by time are named and stored as ever
    assert ("objective" in infos[0].settings) == (usual != "time")


def test_an_objective_of_another_language_is_refused_where_programs_are_made_better_only():
    tasks = load_tasks(("kernels/row_sum",), "c")
    with pytest.raises(
        UsageError, match="objective 'cycles': programs of target c have no such figure; they have: time"
    ):
        choose_objective(Settings(optimise=1, objective="cycles"), tasks)
    assert choose_objective(Settings(objective="cycles"), tasks).optimisation.optimise == 0
