"""`opsmith bench`: figures with their units, for every target."""

import json

import pytest

pytestmark = pytest.mark.usefixtures("warm")


def test_bench_verify_times_every_stage_beside_the_reference(opsmith):
    done = opsmith("bench", "verify", "rope_0", "index_3", "--batch", "4", "--json")
    assert done.code == 0, done.err
    measured = json.loads(done.out)
    assert set(measured["tasks"]) == {"rope_0", "index_3"}
    total, row = measured["summary"], measured["tasks"]["rope_0"]
    assert total["tasks"] == 2
    assert all(0 < total[key]["median"] <= total[key]["worst"] for key in ("trial_ms", "candidate_ms", "refusal_ms"))
    assert total["base_over_reference"]["worst"] >= row["base"]["trial"] / row["base"]["reference"]
    assert row["trials"] >= 40
    assert row["batch"]["samples"] == sum(row["batch"]["stages"].values()) == 4
    assert total["candidates_per_second_of_all"] > 0
    assert total["memory_mib"] > 50
    assert all(speed > 0 for speed in total["verdicts_per_second"].values())


def test_bench_verify_prints_a_table(opsmith):
    done = opsmith("bench", "verify", "index_3", "--batch", "0")
    assert "batch/s" in done.out
    assert "refusals before RUN" in done.out
    assert "in batches:" not in done.out


def test_bench_native_says_which_tasks_it_can_time(opsmith):
    done = opsmith("bench", "native", "index_3", "--target", "step")
    assert done.code == 2
    assert "index_3 is a task of step; expected one of c; try --target c" in done.err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ["verify", "index_3", "powers_0", "--batch", "2"],
            ["index_3: programs are drawn, 1 of 2", "powers_0: verdicts are timed, 2 of 2"],
        ),
        (["mutation", "powers_0", "--sample", "2"], ["powers_0: its changed programs are judged, 1 of 1"]),
        (["run", "--tasks", "powers_0", "--requests", "8", "--latency", "0.01"], ["samples judged: 8 of 8"]),
    ],
)
def test_a_terminal_is_told_how_far_a_measurement_is(opsmith, monkeypatch, command, words):
    told = []
    monkeypatch.setattr("opsmith.cli.progress.ProgressLine.update_text", lambda _, text: told.append(text))
    monkeypatch.setattr("opsmith.cli.progress.takes_lines", lambda stream: True)
    assert opsmith("bench", *command).code == 0
    assert set(words) <= set(told)


def test_what_is_no_terminal_is_told_nothing(opsmith):
    assert opsmith("bench", "mutation", "powers_0", "--sample", "2").err == ""


def test_bench_ui_times_every_kind_of_page(opsmith):
    done = opsmith("bench", "ui", "--samples", "400", "--times", "2", "--json")
    assert done.code == 0, done.err
    rows = {row.pop("page"): row for row in json.loads(done.out)}
    assert {"runs", "run", "samples", "sample", "task", "attempts"} <= set(rows)
    assert all(0 < row["median"] <= row["worst"] for row in rows.values())


def test_bench_store_asks_every_question_of_each_size(opsmith):
    done = opsmith("bench", "store", "--samples", "200", "--runs", "2", "--times", "1", "--json")
    assert done.code == 0, done.err
    (found,) = json.loads(done.out)
    assert found["runs"] == 2
    assert found["samples"] > 200
    assert {"resume, to the first request", "report, html", "ui: last page"} <= {
        q["question"] for q in found["questions"]
    }
    assert all(q["median"] > 0 and q["memory_mib"] >= 0 for q in found["questions"])
    assert {page["page"] for page in found["pages"]} >= {"runs", "run", "samples"}
