"""`opsmith report` and `compare`, and the report that every run ends with."""

import json
import re
from pathlib import Path

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.learn.loop import improve
from opsmith.store import Store

pytestmark = pytest.mark.usefixtures("warm_runs")


@pytest.fixture
def runs(opsmith) -> list[str]:
    """Two runs in the folder `runs` of the empty folder that the commands work in."""
    with Store.open("runs") as store:
        settings = [SETTINGS.replace(seed=seed, samples=2) for seed in (1, 2)]
        return [improve(TASKS, TinyModel(), chosen, store, judge=InProcess()).run for chosen in settings]


def test_a_run_ends_by_naming_its_report(opsmith, warm, tasks):
    command = ("run", "--model", "embedded", "--tasks", tasks / "sum_0.yaml", "--samples", 2, "--max-rounds", 1)
    done = opsmith(*command)
    named = [line.split()[1] for line in done.out.splitlines() if line.startswith("report ")]
    assert named == [str(path) for path in Path("runs/reports").iterdir()]
    text = Path(named[0]).read_text()
    assert "sum_0" in text
    assert "the embedded model is a program sampler of the target language, not a language model" in text
    assert json.loads(opsmith(*command, "--json").out)["report"] == named[0]


def test_a_run_writes_no_report_that_is_not_wanted(opsmith, warm, tasks):
    command = ("run", "--model", "embedded", "--tasks", tasks / "sum_0.yaml", "--samples", 2, "--max-rounds", 1)
    done = opsmith(*command, "--no-report")
    assert not any(line.startswith("report ") for line in done.out.splitlines())
    assert not Path("runs/reports").exists()
    assert json.loads(opsmith(*command, "--no-report", "--json").out)["report"] is None


def test_a_report_that_cannot_be_written_takes_nothing_from_the_run(opsmith, warm, tasks):
    Path("runs").mkdir()
    Path("runs/reports").write_text("in the way")
    done = opsmith("run", "--model", "embedded", "--tasks", tasks / "sum_0.yaml", "--samples", 2, "--max-rounds", 1)
    assert done.code == 0
    assert "no report was written" in done.err
    assert "run " in done.out


def test_a_report_is_written_where_it_is_wanted(opsmith, runs):
    assert opsmith("report", runs[0]).out == f"runs/reports/{runs[0]}.html\n"
    assert opsmith("report", *runs, "-o", "deep/both.html").out == "deep/both.html\n"
    assert opsmith("report", runs[0], "-o", "table.csv").out == "table.csv\n"
    assert Path("table.csv").read_text().startswith("run,model,")
    assert opsmith("report", runs[0], "--format", "md", "-o", "-").out.startswith(f"# Run `{runs[0]}`")
    several = opsmith("report", runs[0], "--format", "md", "--format", "svg", "-o", "all").out.split()
    assert several[0] == f"all/{runs[0]}.md"
    assert all(Path(name).stat().st_size for name in several)
    assert Path(several[1]).parent == Path(f"all/{runs[0]}-figures")
    printed = opsmith("report", runs[0], "--format", "pdf", "-o", "print").out.split()
    assert printed
    assert all(Path(name).read_bytes().startswith(b"%PDF-") for name in printed)
    drawn = f"runs/reports/{runs[0]}-sum_0.svg"
    assert opsmith("draw", runs[0], "sum_0").out == f"{drawn}\n"
    assert opsmith("draw", runs[0], "sum_0", "-o", "-").out == Path(drawn).read_text()
    assert Path(opsmith("draw", runs[0], "sum_0", "-o", "sum.png").out.strip()).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("draw", "tiny-sampler-s1", "sum_9"), "has no such task"),
        (("report", "nothing"), "no such run"),
        (("report", "tiny", "--format", "docx"), "given 'docx'; expected one of html, md"),
        (("report", "tiny-sampler-s1", "--format", "parquet", "-o", "-"), "given stdout; expected a file"),
        (("report", "tiny-sampler-s1", "-o", "a.html", "--format", "md", "--format", "csv"), "one file for 2 formats"),
        (("report", "tiny-sampler-s1", "-o", "a.png"), "one file for all figures"),
        (("draw", "tiny-sampler-s1", "sum_0", "-o", "a.gif"), "given .gif; expected a file in .svg, .png or .pdf"),
        (("report", "tiny"), "more than one run"),
        (("compare", "tiny-sampler-s1", "tiny-sampler-s9"), "no such run"),
    ],
)
def test_what_cannot_be_done_is_said(opsmith, runs, arguments, words):
    done = opsmith(*arguments)
    assert (done.code, words in done.err) == (2, True)


def test_a_comparison_is_a_table_or_json(opsmith, runs):
    shown = opsmith("compare", *runs).out
    assert all(run in shown for run in runs)
    assert "exact McNemar test" in shown
    assert re.search(r"seed +1 +2", shown)
    [paired] = json.loads(opsmith("compare", *runs, "--json").out)["tables"]["paired"]["rows"]
    assert paired["tasks of both"] == len(TASKS)
