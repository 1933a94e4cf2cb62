"""One suite asked for in two languages: `--target` chooses, and runs are compared by problem."""

import json
from pathlib import Path

import pytest
from judging.harmful import needs_isolation

from opsmith import Settings, improve
from opsmith.cli.app import build_app
from opsmith.errors import TaskError, UsageError
from opsmith.models import Reply, Request
from opsmith.records import Usage
from opsmith.report.document import write_document
from opsmith.report.languages import read_languages
from opsmith.report.markdown import write_markdown
from opsmith.report.views import run_view
from opsmith.store import Store
from opsmith.suites import load_tasks

pytestmark = pytest.mark.usefixtures("warm_runs")

PYTHON = "tiny_target:TINY_PYTHON"
ANSWERS = {None: "x y +", PYTHON: "def solve(x, y): return x + y"}
SETTINGS = Settings(samples=2, temperatures=(1.0,), max_rounds=1, agents="single")


class Canned:
    """One answer to everything."""

    name = "canned"
    context_window = None
    is_language_model = False

    def __init__(self, program: str) -> None:
        self.program = program
        self.seeds: list[int | None] = []

    async def complete(self, request: Request) -> Reply:
        self.seeds.append(request.seed)
        return Reply((f"impl: |\n  {self.program}\n",), Usage(1, 10, 5, 0, 0.0), self.name, ("stop",))

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders of the same tasks, but that product_0 asks for something else in the second."""
    folders = []
    for name, product in (("one", "[3, 10]"), ("two", "[3, 11]")):
        folder = tmp_path_factory.mktemp(name)
        for task, values in (("sum_0", "[4, 7]"), ("product_0", product)):
            text = f"target: tiny_target:TINY\ninputs: {{x: [1, 2], y: [3, 5]}}\nwant: {values}\n"
            (folder / f"{task}.yaml").write_text(text)
        folders.append(folder)
    return folders


@pytest.fixture(scope="module")
def runs(suites: list[Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A store with runs of the first folder in both languages, and of the second in the other one."""
    file = tmp_path_factory.mktemp("store") / "opsmith.sqlite"
    with Store.open(file) as store:
        pairs = ((suites[0], None), (suites[0], PYTHON), (suites[1], PYTHON))
        names = [
            improve([str(folder)], Canned(ANSWERS[target]), SETTINGS.replace(target=target), store).run
            for folder, target in pairs
        ]
    return file, names


@needs_isolation
def test_one_suite_is_solved_in_two_languages_and_compared_by_problem(runs, capsys):
    file, names = runs
    data = _compare(capsys, file, *names[:2])
    assert [run["language"] for run in data["runs"]["rows"]] == ["tiny", "tiny_python"]
    cells = {
        row.pop("problem"): {name: cell["solved"] for name, cell in row.items()} for row in data["problems"]["rows"]
    }
    assert cells == {
        "sum_0": {"tiny": True, "tiny_python": True},
        "product_0": {"tiny": False, "tiny_python": False},
    }
    [paired] = data["paired"]["rows"]
    assert (paired["tasks of both"], paired["left out, not in both alike"]) == (2, [])
    assert "target" in data["runs"]["units"]


@needs_isolation
def test_problems_that_differ_are_rows_of_their_own(runs, capsys):
    file, names = runs
    data = _compare(capsys, file, names[0], names[2])
    rows = [
        (row.pop("problem"), [name for name, cell in row.items() if cell is not None])
        for row in data["problems"]["rows"]
    ]
    assert sorted(rows) == [("product_0", ["tiny"]), ("product_0", ["tiny_python"]), ("sum_0", ["tiny", "tiny_python"])]
    assert data["paired"]["rows"][0]["left out, not in both alike"] == ["product_0"]


@needs_isolation
def test_the_table_has_a_column_for_each_language(runs, capsys):
    file, names = runs
    lines = _print(capsys, "compare", *names[:2], "--out", str(file.parent)).splitlines()
    assert any(line.split() == ["problem", "tiny", "tiny_python"] for line in lines)
    assert any(line.split()[:3] == ["sum_0", "round", "0,"] for line in lines)
    with Store.open(file) as store:
        assert '<th scope="col">tiny</th><th scope="col">tiny_python</th>' in write_document(store, names[:2])
        assert "| problem | tiny | tiny\\_python |" in write_markdown(store, names[:2])
        assert "Problems by target" not in write_markdown(store, names[1:])


@needs_isolation
def test_several_runs_of_a_language_are_one_column_and_a_problem_is_one_row(runs, capsys):
    file, names = runs
    with Store.open(file) as store:
        views = [run_view(store, name) for name in names]
        table = read_languages(store, views)
        assert read_languages(store, views[1:]) is None, "one language"
        html, markdown = write_document(store, names), write_markdown(store, names)
    assert [(column.target, len(column.runs), column.problems) for column in table.columns] == [
        ("tiny", 1, 2),
        ("tiny_python", 2, 3),
    ]
    rows = {
        row.name: [cell and (cell.is_solved, cell.right, cell.verdicts) for cell in row.cells] for row in table.rows
    }
    assert rows["sum_0"] == [(True, 2, 2), (True, 4, 4)]
    assert [row.name for row in table.rows].count("product_0") == 2, "the second folder's is another problem"
    assert all(column.unjudged_share == 0.0 and column.verdicts == 2 * 2 * len(column.runs) for column in table.columns)
    assert '<h3 id="languages">Languages</h3>' in html
    assert 'round 0, rate 1.000</a> <span class="muted">4 right of 4' in html
    assert "4 right of 4" in markdown.split("## Languages")[1]
    data = _compare(capsys, file, *names)["languages"]
    assert [language["solved"] for language in data["rows"]] == [1, 1]
    assert _print(capsys, "report", "--all", "--out", str(file.parent), "--format", "md", "-o", "-").strip()


@needs_isolation
def test_three_runs_stand_side_by_side(runs, capsys):
    file, names = runs
    assert len(_compare(capsys, file, *names)["problems"]["rows"]) == 3
    table = _print(capsys, "compare", *names, "--out", str(file.parent))
    assert f"tiny_python {names[1]}"[:16] in table


@needs_isolation
def test_the_language_is_part_of_a_run_and_of_its_seeds_only_when_it_is_chosen(suites, tmp_path):
    with Store.open(tmp_path) as store:
        models = {target: Canned(ANSWERS[target]) for target in ANSWERS}
        own, chosen = (
            improve([str(suites[0])], model, SETTINGS.replace(target=target), store).run
            for target, model in models.items()
        )
        assert own != chosen
        assert not {*models[None].seeds} & {*models[PYTHON].seeds}
        settings = [store.read_info(run).settings for run in (own, chosen)]
        assert [values.get("target", "absent") for values in settings] == ["absent", PYTHON]


def test_a_target_that_takes_no_problems_of_others_says_so(suites):
    with pytest.raises(UsageError, match=r"target 'step': given task .* cannot be asked for problems of other targets"):
        load_tasks([str(suites[0])], "step")
    with pytest.raises(TaskError, match="expected a mapping with `inputs` and `want`"):
        load_tasks(["attn_0"], PYTHON)
    [task] = load_tasks([str(suites[0] / "sum_0.yaml")], "tiny_target:TINY")
    assert task.target == "tiny_target:TINY"


@needs_isolation
def test_commands_on_tasks_take_the_language(suites, capsys, tmp_path):
    program = tmp_path / "sum.py"
    program.write_text(ANSWERS[PYTHON] + "\n")
    file = str(suites[0] / "sum_0.yaml")
    options = ("--target", PYTHON, "--impl", str(program))
    assert json.loads(_print(capsys, "verify", file, *options, "--json"))["outcome"] == "passed"
    assert "def solve" in _print(capsys, "codegen", file, *options)


def _compare(capsys, file: Path, *names: str):
    return json.loads(_print(capsys, "compare", *names, "--out", str(file.parent), "--json"))["tables"]


def _print(capsys, *arguments: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as end:
        build_app()(list(arguments), prog_name="opsmith")
    assert int(end.value.code or 0) == code
    return capsys.readouterr().out
