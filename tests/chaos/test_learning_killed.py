"""`study-learning` and `study3` under `kill -9`, through both SDKs: every sample once, and the result of a study that nobody disturbed."""

import json
import random
import signal

import pytest
from models.servers import AnthropicServer, OpenAIServer, read_messages

from chaos.processes import Commands
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith_lab.evaluation.learners import KnownMind

TASKS = ("expert_0", "gemm_0", "index_0", "norm_0")
KILLS, CONCURRENCY, SAMPLES = 4, 3, 2


def conduct(commands, study, server, name, place, kill_at=()):
    """The rows of the study, and how many requests it took; its process dies at the arrival of each of these requests."""
    mind = KnownMind("mender" if study == "study3" else "reader", get_target("step"), load_tasks(TASKS))

    def answer(body):
        if served.count in kill_at:
            command.process.kill()
        messages = read_messages(body)
        return mind.answer_messages(messages, random.Random(messages[-1].content))

    with server(answer) as served:
        arguments = (
            "experiment",
            study,
            "--target",
            "step",
            "--model",
            f"{name}/any",
            "--base-url",
            served.url,
            "--json",
        )
        arguments += ("--tasks", ",".join(TASKS), "--samples", SAMPLES, "--concurrency", CONCURRENCY)
        arguments += ("--out", place / "runs", "--results", place / "results")
        for number in kill_at:
            command = commands.start(*arguments)
            assert command.code() == -signal.SIGKILL, f"it ended before request {number}: {command.said}"
        command = commands.start(*arguments)
        return command.result(), served.count


@pytest.mark.parametrize(("study", "server", "name"), [
    ("study-learning", OpenAIServer, "openai"),
    ("study-learning", AnthropicServer, "anthropic"),
    ("study3", OpenAIServer, "openai"),
])  # fmt: skip
def test_a_study_of_learning_that_is_killed_goes_on(study, server, name, tmp_path):
    with Commands(tmp_path) as commands:
        whole, asked = conduct(commands, study, server, name, tmp_path / "whole")
        kill_at = [asked * number // (KILLS + 1) for number in range(1, KILLS + 1)]
        killed, asked_again = conduct(commands, study, server, name, tmp_path / "killed", kill_at)
    assert whole["rows"] == killed["rows"]
    ends = [[(run["arm"], run["end"], run["solved"]) for run in study["runs"]] for study in (whole, killed)]
    assert ends[0] == ends[1]
    lost = CONCURRENCY * (2 if study == "study3" else 1)  # of study3, four kills under load lost 14
    assert asked <= asked_again <= asked + KILLS * lost
    with Store.open(tmp_path / "killed" / "runs") as store:
        counts = {run["arm"]: store.sample_count(run["run"]) for run in killed["runs"]}
    spending = {"source", "none", "resampling", "adaptive", "improving", "repeating"}
    assert {counts[arm] for arm in counts if arm not in spending} == {len(TASKS) * SAMPLES}
    assert json.loads((tmp_path / "killed" / "results" / f"{study}.json").read_text())["complete"]
