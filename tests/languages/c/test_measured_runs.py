"""A run in C whose solutions are timed: killed while it measures, it goes on with what is left."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from chaos.processes import Commands
from models.servers import OpenAIServer
from targets.native.programs import needs_compiler

from languages.model_servers import answer_with_programs
from opsmith.measuring.orders import name_measurement
from opsmith.records import TIME, Candidate
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed
from opsmith.suites import load_tasks

pytestmark = needs_compiler
TASK = load_tasks(["row_sum"], "c")[0]
SHAPES = [*("small", "odd", "large")]


def read_speeds(folder: Path) -> tuple[str, list[StoredSpeed]]:
    with Store.open(folder / "runs") as store:
        (row,) = store.list_runs()
        return row.info.id, store.read_speeds(row.info.id)


def test_a_killed_run_measures_what_is_left_and_a_later_command_nothing_more(tmp_path: Path) -> None:
    with OpenAIServer(answer_with_programs([TASK])) as server, Commands(tmp_path) as commands:
        options = ("--model", "openai/served", "--base-url", server.url, "--tasks", TASK.id, "--target", "c",
                   "--samples", 2, "--temperature", "1.0", "--max-rounds", "1", "--agents", "single",
                   "--measure", "screen")  # fmt: skip
        command = commands.run("runs", *options)
        command.wait_for(f"measured {TASK.id} at {SHAPES[0]}")
        assert command.kill(), "in the midst of measuring"
        _, before = read_speeds(tmp_path)
        result = commands.finish("runs", *options)
        asked = server.count
        run, speeds = read_speeds(tmp_path)
        code = commands.start("measure", run, "--screen", "--out", "runs").code()
        assert server.count == asked
    assert 1 <= len(before) < len(SHAPES)
    assert speeds[: len(before)] == before
    assert [speed.report.measurement.shape_set for speed in speeds] == SHAPES
    assert set(Counter(name_measurement(TASK.id, speed.report.measurement) for speed in speeds).values()) == {1}
    assert result["run"] == run
    assert code == int(any(speed.report.measurement.reason for speed in speeds))
    assert read_speeds(tmp_path) == (run, speeds), "all of it was stored already"
    for speed in speeds:
        measured = speed.report.measurement
        assert (speed.task, measured.objective, measured.device == "") == (TASK.id, TIME, False)
        assert measured.program != Candidate(TASK.impl or "").id, "a comment makes it another program"
        assert measured.ratio is None or measured.ratio.partner == "plain"
        assert (measured.time is not None) == (speed.report.share is not None)
