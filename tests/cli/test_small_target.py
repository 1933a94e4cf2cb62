"""A language of at most sixty lines goes through the whole loop: task, prompt, reply, verdict, experience, report."""

import json
from pathlib import Path

import pytest
import small_target

pytestmark = pytest.mark.usefixtures("warm_runs")

TASKS = {
    "sum_0": ("{x: [1, 2, 5], y: [3, 5, 7]}", "[4, 7, 12]", "x + y"),
    "square_0": ("{x: [2, 3, 5], y: [2, 3, 5]}", "[4, 9, 25]", "x * y"),
}
RUN = ("run", "--tasks", "tasks", "--samples", "8", "--temperature", "1", "--max-rounds", "2", "--json")


@pytest.fixture
def files(tmp_path):
    """Two task files in the folder `tasks`, with their authors' programs."""
    (tmp_path / "tasks").mkdir()
    for name, (inputs, want, program) in TASKS.items():
        text = f"target: small_target:TARGET\ninputs: {inputs}\nwant: {want}\nimpl: {program}\n"
        (tmp_path / "tasks" / f"{name}.yaml").write_text(text)
    return tmp_path


def test_it_has_at_most_sixty_lines():
    assert len(Path(small_target.__file__).read_text().splitlines()) <= 60


def test_it_goes_through_the_whole_loop(opsmith, files):
    done = opsmith(*RUN)
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["solved"] == 2, "the embedded model draws from the language's own sampler"
    assert set(result["per_task"]) == set(TASKS)
    shown = opsmith("prompt", "tasks/sum_0.yaml", "--from", result["run"]).out
    assert "one expression of the inputs" in shown, "the base prompt"
    assert "impl: |" in shown, "what was solved is shown in the next prompt"
    report = (files / "runs" / "reports" / f"{result['run']}.html").read_text()
    assert all(name in report for name in TASKS)
    assert opsmith("reverify", result["run"]).code == 0


@pytest.mark.parametrize(
    ("program", "stage", "words"),
    [
        ("x +", "PARSE", "invalid syntax"),
        ("x / y", "PARSE", "given:    Div"),
        ("x + z", "NAMES", "expected: one of x, y"),
        ("x * y", "MATCH", "expected: 4"),
    ],
)
def test_a_wrong_program_is_refused_where_it_goes_wrong(opsmith, files, program, stage, words):
    (files / "program.txt").write_text(program)
    done = opsmith("verify", "tasks/sum_0.yaml", "--impl", "program.txt", "--json")
    assert (done.code, done.lines[0]["stage"]) == (1, stage)
    assert words in done.lines[0]["message"]


def test_what_it_does_not_offer_is_said_and_what_every_language_has_works(opsmith, files):
    assert opsmith("cost", "tasks/sum_0.yaml").err.strip().endswith("target 'small' has no cost model")
    assert "no search" in opsmith("run", "--tasks", "tasks", "--model", "search").err
    assert opsmith("check", "tasks").code == 2, "without an audit of its own some checks cannot be made"
    assert opsmith("bench", "verify", "tasks").code == 0
    script = opsmith("codegen", "tasks/sum_0.yaml").out
    scope: dict[str, object] = {}
    exec(script, scope)
    scope["test_the_program_is_right"]()
