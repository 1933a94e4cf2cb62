"""`opsmith run`, `runs`, `show` and `prompt --from`, against a model server on loopback."""

import json

import pytest
from models.servers import OpenAIServer, refused

from opsmith.suites import load_tasks

pytestmark = pytest.mark.usefixtures("warm_runs")

pytest.importorskip("openai", reason="the providers extra is not installed")

ANSWERS = {"[1, 2]": "x y +", "[2, 3]": "x x *"}  # by the first input's values


def answer(body):
    """One right answer in three; the square needs the guardian's copies."""
    program = next(program for values, program in ANSWERS.items() if f"x: {values}" in body["messages"][-1]["content"])
    return f"impl: |\n  {program if body['seed'] % 3 == 0 else 'x'}\n"


@pytest.fixture
def run(opsmith, tasks):
    """`run(*options)` on both tiny tasks; `run.server` is the model."""
    with OpenAIServer(answer) as server:

        def call(*options):
            model = ["--model", "openai/any", "--base-url", server.url]
            return opsmith("run", *model, "--tasks", tasks, "--samples", 8, "--temperature", 0.5, *options)

        call.server = server
        yield call


def test_a_run_solves_the_tasks_and_says_so(run, opsmith, tasks):
    done = run("--json")
    assert done.code == 0
    result = json.loads(done.out)
    assert {"run", "model", "solved", "tasks", "rounds", "per_task", "usage", "wall_s"} <= set(result)
    assert (result["model"], result["solved"], result["tasks"]) == ("openai/any", 2, 2)
    assert {"round", "demonstrations", "attempted", "newly_solved", "cumulative"} <= set(result["rounds"][0])
    assert {"solved", "round", "success_rate", "samples"} <= set(result["per_task"]["sum_0"])
    assert {"requests", "input_tokens", "output_tokens", "cost_usd"} <= set(result["usage"])
    assert result["usage"]["requests"] == run.server.count
    assert "round 0: no demonstrations; 2 tasks, 16 samples" in done.err
    assert "solved square_0" in done.err

    again = run()
    assert (again.code, run.server.count) == (0, result["usage"]["requests"])
    assert "sum_0: 0" in again.out
    assert "cost    unknown" in again.out

    listed = opsmith("runs")
    assert result["run"] in listed.out
    shown = opsmith("show", result["run"])
    assert "copy x" in shown.out  # the guardian's
    outcomes = [opsmith("show", result["run"], task, "--samples").out.split() for task in result["per_task"]]
    refused = sum(words.count("refused") for words in outcomes)
    assert f"why     {refused} of " in shown.out
    opsmith("tag", result["run"], "+good")
    [told] = opsmith("show", result["run"], "--json").lines
    assert (told["failures"]["refused"], told["tags"]) == (refused, ["good"])
    assert "note    [good]" in opsmith("show", result["run"]).out
    samples = opsmith("show", result["run"], "sum_0", "--samples").out.splitlines()
    passed = next(line.split()[0] for line in samples if "passed" in line)
    detail = opsmith("show", result["run"][:8], passed).out
    assert detail.startswith(f"sample {passed}")
    assert "--- verdict ---\npassed" in detail
    assert "--- proposer: user ---" not in detail
    asked = opsmith("show", result["run"][:8], passed, "--prompt").out
    assert asked.index("--- verdict ---") < asked.index("--- proposer: user ---")
    [described] = opsmith("show", result["run"], passed, "--json", "--prompt").lines
    assert described["outcome"] == "passed"
    assert "task:" in described["requests"][0]["messages"][1]["content"]
    assert "=== sum_0, round 0: " in opsmith("show", result["run"], "sum_0", "--prompt").out
    assert "examples:" in opsmith("prompt", tasks / "sum_0.yaml", "--from", result["run"]).out
    assert "'zzz': no task and no sample of run" in opsmith("show", result["run"], "zzz").err


def test_options_stand_over_the_experiment_file(run, tasks):
    (tasks / "short.toml").write_text("samples = 3\nmax_rounds = 1\nseed = 5\n")
    done = run(tasks / "short.toml", "--json")
    assert json.loads(done.out)["per_task"]["sum_0"]["samples"] == 8
    assert json.loads(done.out)["run"].startswith("any-s5-")


def test_a_server_that_fails_leaves_nothing_lost(run):
    run.server._faults = iter([refused("no such key", status=401)])
    done = run("--concurrency", 1)
    assert done.code == 3
    assert "no such key" in done.err
    assert "Traceback" not in done.err
    run.server._faults = iter([])
    assert run().code == 0


def test_a_dry_run_tells_requests_and_cost_and_makes_nothing(opsmith, tmp_path):
    out = tmp_path / "runs"
    options = ["--tasks", "gemm_0,bmm_0", "--samples", "4", "--temperature", "1.0", "--out", str(out), "--dry-run"]
    done = opsmith("run", "--model", "openai/gpt-4o-2024-11-20", *options, "--json")
    found = json.loads(done.out)["run"]
    first = found["first"]
    assert (first["requests"], first["output_tokens"]) == (8, 8 * 1024)
    assert first["cost_usd"] == pytest.approx((2.5 * first["input_tokens"] + 10 * first["output_tokens"]) / 1e6)
    assert found["most"]["requests"] == 8 + 4  # one task is left, for one more round
    assert not out.exists()
    assert found["precedents"] == [], "nothing is stored: what is expected is a guess, which is said"
    text = opsmith("run", "--model", "openai/some-model", *options).out
    assert "unknown" in text
    assert "Expected rounds: a guess, as no finished run like it is stored" in " ".join(text.split())


def test_a_dry_run_with_known_programs_shows_both_ends(opsmith, tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "bmm_0.step").write_text(load_tasks(["bmm_0"])[0].impl)
    options = [
        "--tasks",
        "gemm_0,bmm_0",
        "--samples",
        "4",
        "--temperature",
        "1.0",
        "--known",
        str(tmp_path / "old"),
        "--dry-run",
    ]
    found = json.loads(opsmith("run", "--model", "openai/m", *options, "--json").out)
    assert [found[end]["first"]["requests"] for end in ("run", "if_known_are_right")] == [8, 4]
    text = opsmith("run", "--model", "openai/m", *options).out
    assert "not judged before the run. Were none of them right:" in text
    assert "Were all of them right, 1 of 2 tasks would be asked for:" in text


def test_a_dry_run_expects_the_rounds_that_a_stored_run_took(opsmith, tmp_path):
    options = ["--tasks", "index_0", "--samples", "2", "--temperature", "1.0", "--out", str(tmp_path / "runs")]
    ran = json.loads(opsmith("run", *options, "--no-report", "--json").out)
    planned = json.loads(opsmith("run", "--model", "openai/gpt-4o-2024-11-20", *options, "--dry-run", "--json").out)
    assert planned["run"]["precedents"] == [ran["run"]]
    assert planned["run"]["expected_rounds"] == len(ran["rounds"])
    assert planned["run"]["expected"]["output_tokens"] == 2 * len(ran["rounds"]) * 512, "half of what a reply may hold"
