"""`opsmith measure`: what cannot be timed is said before anything is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opsmith.store import Store
from opsmith.suites import load_tasks


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("attn_0", "--shapes", "large"), "cycles of task attn_0 are counted at its own sizes only: base"),
        (("attn_0", "--against", "eager"), "expected plain or a FILE"),
        (("nosuch",), "no such id, file or folder"),
        (("kernels/softmax", "--target", "c", "--shapes", "small,nosuch"), "shape set 'nosuch'"),
        (("kernels", "--target", "c"), "expected one"),
    ],
)
def test_what_cannot_be_timed_is_said(opsmith: Callable[..., Any], arguments: tuple[str, ...], words: str) -> None:
    done = opsmith("measure", *arguments)
    assert done.code != 0
    assert words in done.err
    assert not done.out


def test_a_program_is_not_compared_with_itself(opsmith: Callable[..., Any], tmp_path: Path) -> None:
    program = tmp_path / "program.c"
    program.write_text("void kernel(void) {}\n", "utf-8")
    files = ("--impl", str(program), "--against", str(program))
    done = opsmith("measure", "kernels/softmax", "--target", "c", *files)
    assert "is the program itself" in done.err


def test_a_program_that_is_simulated_has_its_cycles_beside_its_task_s_own(
    opsmith: Callable[..., Any], tmp_path: Path
) -> None:
    task = load_tasks(["index_0"])[0]
    program = tmp_path / "program.step"
    program.write_text(f"# the same\n{task.impl}", "utf-8")
    done = opsmith("measure", "index_0", "--impl", str(program), "--json")
    (row,) = json.loads(done.out)["measurements"]
    assert (done.code, row["unit"], row["shape_set"]) == (0, "cycles", "base")
    assert row["device"].startswith("emulated:step-")
    cycles = opsmith("cost", "index_0", "--json")
    assert row["time"]["value"] == json.loads(cycles.out)["cycles"]
    assert row["ratio"]["precise"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert row["ratio"]["partner"] == "plain"


def test_the_cycles_of_a_task_s_own_program_stand_alone(opsmith: Callable[..., Any]) -> None:
    done = opsmith("measure", "index_0")
    assert done.code == 0
    assert "emulated:step" in done.out
    assert " cycles" in done.out


@pytest.mark.usefixtures("warm_runs")
def test_what_a_run_solved_is_measured_later_and_stored_once(opsmith: Callable[..., Any], tasks: Path) -> None:
    done = opsmith("run", "--tasks", tasks, "--samples", 8, "--temperature", 1.0, "--max-rounds", 1, "--json")
    run, solved = json.loads(done.out)["run"], json.loads(done.out)["solved"]
    first = opsmith("measure", run[:-4], "--json", "--trust-tasks")
    rows = json.loads(first.out)["measurements"]
    assert solved == len(rows) > 0
    assert all(row["unit"] == "cycles" and row["time"]["value"] >= 30.0 and row["sample"] for row in rows)
    assert first.code == 0
    again = opsmith("measure", run, "--json", "--again", "--trust-tasks")
    assert json.loads(again.out)["measurements"] == rows
    with Store.open("runs") as store:
        assert len(store.read_speeds(run)) == len(rows), "equal rows are one"


@pytest.mark.usefixtures("warm_runs")
def test_an_option_of_a_task_is_refused_for_a_run(opsmith: Callable[..., Any], tasks: Path) -> None:
    done = opsmith("run", "--tasks", tasks, "--samples", 1, "--temperature", 1.0, "--max-rounds", 1, "--json")
    refused = opsmith("measure", json.loads(done.out)["run"], "--shapes", "large")
    assert (refused.code, refused.out) == (2, "")
    assert "--shapes: given with a run" in refused.err


def test_a_figure_is_drawn_where_it_is_asked_for(opsmith: Callable[..., Any], tmp_path: Path) -> None:
    done = opsmith("measure", "index_0", "--figure", str(tmp_path / "speed.svg"))
    assert done.code == 0
    assert "Speed of index_0" in (tmp_path / "speed.svg").read_text("utf-8")
    refused = opsmith("measure", "index_0", "--figure", str(tmp_path / "speed.gif"))
    assert "given .gif; expected a file in .svg, .png or .pdf" in refused.err


def test_of_a_wrong_program_its_verdict_is_told_and_no_table(opsmith: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "wrong.step").write_text("y = Nothing(x)\n", "utf-8")
    verdict = opsmith("verify", "index_0", "--impl", "wrong.step").out.splitlines()
    done = opsmith("measure", "index_0", "--impl", "wrong.step")
    assert done.code == 1
    assert "shape set" not in done.out
    assert set(verdict[1:]) <= {line.removeprefix("the program is not right: ") for line in done.out.splitlines()}
