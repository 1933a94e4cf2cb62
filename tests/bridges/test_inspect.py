"""The benchmark in Inspect AI: its own loop and command, with a model behind the OpenAI interface on loopback."""

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Epochs, Task, eval
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import Score, pass_at
from loopback import FAST, NOTHING, WRONG, WRONG_SUM, faulty, oracle, reply_with, serving, solved_run, text_of
from models.servers import OpenAIServer

from opsmith.agents.prompt import compose_prompt
from opsmith.bridges.inspect_task import kernels, step26
from opsmith.bridges.questions import make_questions
from opsmith.results.metrics import pass_at_k
from opsmith.settings import Settings
from opsmith.targets import get_target


def judged(server: OpenAIServer, folder: Path, epochs: Epochs | None = None, **parameters: Any) -> EvalLog:
    return evaluated(step26(**parameters), server, folder, epochs)


def evaluated(task: Task, server: OpenAIServer, folder: Path, epochs: Epochs | None = None) -> EvalLog:
    (log,) = eval(
        task,
        model="openai-api/local/any",
        model_base_url=server.url,
        model_args={"api_key": "none"},
        epochs=epochs,
        display="none",
        log_dir=str(folder),
    )
    assert log.status == "success", log.error
    return log


def scores(log: EvalLog) -> dict[str, list[Score]]:
    found: dict[str, list[Score]] = {}
    for sample in log.samples or []:
        found.setdefault(str(sample.id), []).append((sample.scores or {})["verdict"])
    return found


def metrics(log: EvalLog) -> dict[str, dict[str, float]]:
    """By reducer and metric."""
    assert log.results is not None
    return {
        score.reducer or "": {name: item.value for name, item in score.metrics.items()} for score in log.results.scores
    }


def test_a_verdict_is_a_score_and_says_why(tmp_path: Path) -> None:
    with serving({"bmm_0": [oracle("bmm_0")], "attn_0": [WRONG]}) as server:
        log = judged(server, tmp_path, tasks=["bmm_0", "attn_0", "gemm_0"])
    found = {name: each[0] for name, each in scores(log).items()}
    assert {name: score.value for name, score in found.items()} == {"bmm_0": "C", "attn_0": "I", "gemm_0": "I"}
    assert {name: (score.metadata or {})["stage"] for name, score in found.items()} == {
        "bmm_0": "MATCH",
        "attn_0": "TYPE",
        "gemm_0": "FORMAT",
    }
    assert found["bmm_0"].explanation.startswith("passed: ")
    assert "expected" in found["attn_0"].explanation
    assert found["attn_0"].answer == "return E0"
    assert (found["gemm_0"].answer, found["gemm_0"].reason) == (None, "invalid_response_format")
    assert metrics(log)[""] == pytest.approx({"attn": 0.0, "bmm": 1.0, "gemm": 0.0, "all": 1 / 3, "stderr": 1 / 3})


def test_it_asks_what_a_run_asks(tmp_path: Path) -> None:
    with serving({}) as server:
        judged(server, tmp_path, tasks="bmm_0")
    (task,) = [question.task for question in make_questions("bmm_0")]
    prompt = compose_prompt(task, [], get_target("step"), None, 0)
    (request,) = server.requests
    assert [(item["role"], text_of(item)) for item in request["messages"]] == [
        (m.role, m.content) for m in prompt.messages
    ]
    assert request["max_tokens"] == Settings().method.max_tokens


def test_the_default_are_the_26_tasks_of_the_paper() -> None:
    samples = list(step26().dataset)
    assert len(samples) == 26
    assert {sample.metadata["group"] for sample in samples} >= {"attn", "bmm", "norm"}


def test_what_cannot_be_judged_has_no_score_and_is_not_wrong(tmp_path: Path) -> None:
    path = faulty(tmp_path)
    with serving({str(path): [oracle("gemm_0")], "bmm_0": [oracle("bmm_0")]}) as server:
        log = judged(server, tmp_path, tasks=["bmm_0", str(path)])
    (score,) = scores(log)["faulty_0"]
    assert math.isnan(score.value)
    assert score.reason == "scoring_failed"
    assert "forgotten" in score.explanation
    assert score.metadata["charged_to"] == "task"
    assert metrics(log)[""]["all"] == 1.0
    assert (log.results.scores[0].scored_samples, log.results.scores[0].unscored_samples) == (1, 1)


def test_a_task_that_changed_after_it_was_asked_is_not_judged(tmp_path: Path) -> None:
    path = faulty(tmp_path)
    asked = step26(tasks=str(path))
    path.write_text(path.read_text(encoding="utf-8").replace("forgotten", "mul"), encoding="utf-8")
    with serving({}) as server:
        log = evaluated(asked, server, tmp_path)
    (score,) = scores(log)["faulty_0"]
    assert math.isnan(score.value)
    assert "has changed" in score.explanation


def test_kernels_in_c_are_judged_and_their_speed_is_a_second_score(tmp_path: Path) -> None:
    fast = reply_with((FAST / "gemm_bias_relu.c").read_text(encoding="utf-8"))
    replies = {"gemm_bias_relu": [fast], "row_sum": [reply_with(WRONG_SUM)], "softmax": [oracle("softmax", "c")]}
    with serving(replies, "c") as server:
        log = evaluated(kernels(",".join(replies), speed=True), server, tmp_path)
    judgements = {name: each[0] for name, each in scores(log).items()}
    assert {name: score.value for name, score in judgements.items()} == dict(zip(replies, ("C", "I", "C"), strict=True))
    assert (judgements["row_sum"].metadata or {})["stage"] == "MATCH"
    speeds = {name: (score.metadata or {}).get("speed") for name, score in judgements.items()}
    assert speeds["row_sum"] is None, "a wrong program is not timed"
    assert speeds["softmax"]["bonus"] == 0, "it is the task's own program"
    rewards = {str(sample.id): (sample.scores or {})["reward"].value for sample in log.samples or []}
    assert (rewards["row_sum"], rewards["softmax"]) == (0, 1)
    assert rewards["gemm_bias_relu"] == 1 + speeds["gemm_bias_relu"]["bonus"]
    assert 1 <= rewards["gemm_bias_relu"] <= 2
    assert speeds["gemm_bias_relu"]["ratio"] is not None or speeds["gemm_bias_relu"]["reason"]


def test_a_task_is_asked_and_judged_with_the_options_that_were_given(tmp_path: Path) -> None:
    asked = step26("kernels/row_sum", target="c", options="threads=2 'flags=-O2 -ffast-math'").dataset[0]
    assert asked.input[1].text.endswith("  flags: -O2 -ffast-math\n  threads: 2\n")
    with OpenAIServer(oracle("kernels/row_sum", "c")) as server:
        task = step26("kernels/row_sum", target="c", options={"flags": "-O2"})
        (score,) = scores(evaluated(task, server, tmp_path))["row_sum"]
    assert score.value == "C"
    assert " -O2 " in (score.metadata or {})["build"]
    with pytest.raises(PrerequisiteError, match="no such option; known: flags, threads"):
        step26("kernels/row_sum", target="c", options="speed=9")


def test_the_solutions_of_a_run_are_shown_but_never_a_tasks_own(tmp_path: Path) -> None:
    run = solved_run(tmp_path, ["bmm_0", "bmm_1"])
    asked = step26(["bmm_0", "attn_0"], run, str(tmp_path)).dataset
    shown = {sample.id: sample.metadata["demonstrations"] for sample in asked}
    assert shown == {"bmm_0": ["bmm_1"], "attn_0": ["bmm_0", "bmm_1"]}


def test_a_task_or_a_run_that_does_not_exist_is_said_in_one_message(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="no such id, file or folder; near matches: bmm_"):
        step26("bmm_99")
    run = solved_run(tmp_path, ["bmm_0"])
    with pytest.raises(PrerequisiteError, match=f"no such run .* known: {run}"):
        step26(from_run="zzz", out=str(tmp_path))


@pytest.mark.parametrize("n", [1, 4, 6])
def test_pass_at_k_is_the_same_number_in_both(n: int) -> None:
    for k in range(1, n + 1):
        for c in range(n + 1):
            reduced = pass_at(k)([Score(value="C")] * c + [Score(value="I")] * (n - c))
            assert reduced.as_float() == pytest.approx(pass_at_k(n, c, k))


def test_from_the_command_line(tmp_path: Path) -> None:
    command = [Path(sys.executable).parent / "inspect", "eval", "opsmith/step26", "--model", "openai-api/local/any"]
    command += ["-T", "tasks=bmm_0,attn_0", "--epochs", "4", "--epochs-reducer", "pass_at_1,pass_at_2"]
    command += ["--display", "plain", "--log-dir", tmp_path, "--log-format", "json"]
    with serving({"bmm_0": [oracle("bmm_0"), WRONG, NOTHING, WRONG], "attn_0": [oracle("attn_0")]}) as server:
        env = os.environ | {"LOCAL_BASE_URL": server.url, "LOCAL_API_KEY": "none"}
        subprocess.run(command, env=env, check=True, capture_output=True)
    (file,) = tmp_path.glob("*.json")
    log = read_eval_log(file)
    assert log.eval.task == "opsmith/step26"
    assert metrics(log)["pass_at_1"]["bmm"] == pytest.approx(pass_at_k(4, 1, 1))
    assert metrics(log)["pass_at_2"]["bmm"] == pytest.approx(pass_at_k(4, 1, 2))
    assert metrics(log)["pass_at_2"]["attn"] == 1.0
