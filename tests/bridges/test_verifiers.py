"""The benchmark as an environment of `verifiers`: its own loop and commands, with a model on loopback."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import verifiers.v1 as vf
from loopback import FAST, NOTHING, WRONG, WRONG_SUM, faulty, oracle, reply_with, serving, solved_run, text_of
from models.servers import SERVER_ERROR, OpenAIServer
from pydantic import ValidationError
from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig

from opsmith.agents.prompt import compose_prompt
from opsmith.bridges.prime_verifiers import StepTaskset, StepTasksetConfig
from opsmith.bridges.questions import make_questions
from opsmith.targets import get_target

ID = "opsmith-step26"


def rolled_out(server: OpenAIServer, folder: Path, rollouts: int = 1, **taskset: Any) -> dict[str, list[vf.Trace]]:
    """The traces of a whole evaluation, by task."""
    config = EvalConfig.model_validate(
        {
            "env": {"taskset": {"id": ID, **taskset}},
            "model": "any",
            "client": {"base_url": server.url, "api_key_var": "NO_KEY_AT_ALL"},
            "num_rollouts": rollouts,
            "push": False,
            "rich": None,
            "output_dir": folder,
        }
    )
    found: dict[str, list[vf.Trace]] = {}
    for episode in asyncio.run(run_eval(config)):
        for trace in episode.traces:
            found.setdefault(trace.task.data.id, []).append(trace)
    return found


def rewards(traces: list[vf.Trace]) -> list[float | None]:
    return [None if (found := trace.rewards["verdict"]) is None else found.score for trace in traces]


def test_a_verdict_is_the_reward_and_is_kept_with_the_trace(tmp_path: Path) -> None:
    with serving({"bmm_0": [oracle("bmm_0"), WRONG], "attn_0": [WRONG]}) as server:
        traces = rolled_out(server, tmp_path, 2, tasks="bmm_0,attn_0,gemm_0")
    found = {name: sorted(rewards(each)) for name, each in traces.items()}
    assert found == {"bmm_0": [0.0, 1.0], "attn_0": [0.0, 0.0], "gemm_0": [0.0, 0.0]}
    assert all(trace.ok for each in traces.values() for trace in each)
    (refused,) = {trace.info["verdict"]["message"] for trace in traces["gemm_0"]}
    assert refused.startswith("FORMAT")
    assert {trace.metrics["stage"] for trace in traces["bmm_0"] if trace.reward == 1} == {5.0}


@pytest.mark.parametrize("speed", [False, True])
def test_kernels_in_c_are_rewarded_for_speed_only_where_it_is_asked_for(tmp_path: Path, speed: bool) -> None:
    fast = reply_with((FAST / "gemm_bias_relu.c").read_text(encoding="utf-8"))
    replies = {"gemm_bias_relu": [fast], "row_sum": [reply_with(WRONG_SUM)], "softmax": [oracle("softmax", "c")]}
    with serving(replies, "c") as server:
        traces = rolled_out(server, tmp_path, tasks=",".join(replies), target="c", task={"speed": speed})
    scored = {name: rewards(each)[0] for name, each in traces.items()}
    assert (scored["row_sum"], scored["softmax"]) == (0.0, 1.0)
    (trace,) = traces["gemm_bias_relu"]
    facts = trace.info["verdict"].get("speed")
    assert (facts is not None) == speed
    assert scored["gemm_bias_relu"] == 1 + (facts["bonus"] if facts else 0)
    assert 1 <= scored["gemm_bias_relu"] <= 2


def test_it_asks_once_what_a_run_asks(tmp_path: Path) -> None:
    with serving({}) as server:
        rolled_out(server, tmp_path, tasks="bmm_0")
    (question,) = make_questions("bmm_0")
    prompt = compose_prompt(question.task, [], get_target("step"), None, 0)
    (request,) = server.requests
    assert [(item["role"], text_of(item)) for item in request["messages"]] == [
        (message.role, message.content) for message in prompt.messages
    ]


def test_what_cannot_be_judged_is_an_error_without_a_reward(tmp_path: Path) -> None:
    path = faulty(tmp_path)
    with serving({str(path): [oracle("gemm_0")]}) as server:
        (trace,) = rolled_out(server, tmp_path, tasks=str(path))["faulty_0"]
    assert rewards([trace]) == [None]
    assert not trace.ok
    assert trace.last_error.type == "TaskError"
    assert "forgotten" in trace.last_error.message
    assert trace.info["verdict"]["charged_to"] == "task"


def test_a_provider_that_fails_is_an_error_of_the_provider(tmp_path: Path) -> None:
    with OpenAIServer("ok", [SERVER_ERROR] * 50) as server:
        (trace,) = rolled_out(server, tmp_path, tasks="bmm_0")["bmm_0"]
    assert not trace.ok
    assert trace.last_error.type == "ProviderError"
    assert trace.rewards.get("verdict") is None


def test_the_default_are_the_26_tasks_of_the_paper() -> None:
    tasks = list(StepTaskset(StepTasksetConfig(id=ID)))
    assert len(tasks) == len({task.key for task in tasks}) == 26
    assert tasks[0].data.idx == 0


def test_the_solutions_of_a_run_are_shown_but_never_a_tasks_own(tmp_path: Path) -> None:
    run = solved_run(tmp_path, ["bmm_0", "bmm_1"])
    taskset = StepTaskset(StepTasksetConfig(id=ID, tasks="bmm_0,attn_0", from_run=run, out=str(tmp_path)))
    assert {task.data.id: task.data.demonstrations for task in taskset} == {
        "bmm_0": ["bmm_1"],
        "attn_0": ["bmm_0", "bmm_1"],
    }


def test_a_task_that_does_not_exist_is_refused_with_the_settings() -> None:
    with pytest.raises(ValidationError, match="no such id, file or folder; near matches: bmm_"):
        StepTasksetConfig(id=ID, tasks="bmm_99")


def test_vf_validate_finds_a_faulty_task_file(tmp_path: Path) -> None:
    command = [
        script("vf-validate"),
        ID,
        "--taskset.tasks",
        f"bmm_0,{faulty(tmp_path)}",
        "--runtime.type",
        "subprocess",
    ]
    command += ["--only-gold", "--no-rich", "--run.dir", "here", "--output-dir", tmp_path]
    subprocess.run(command, capture_output=True, check=False)
    lines = (tmp_path / "here" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    found = {item["name"]: item["valid"] for item in map(json.loads, lines)}
    assert found == {"bmm_0": True, "faulty_0": False}


def script(name: str) -> Path:
    return Path(sys.executable).parent / name


def test_from_the_command_line_with_several_attempts(tmp_path: Path) -> None:
    command = [script("vf-eval"), ID, "--env.taskset.tasks", "bmm_0,attn_0", "--env.id", "best-of-n", "--env.n", "4"]
    command += ["--env.agent.runtime.type", "subprocess", "--model", "any", "--no-push", "--no-rich"]
    with serving({"bmm_0": [oracle("bmm_0"), WRONG, NOTHING, WRONG]}) as server:
        command += ["--client.base-url", server.url, "--run.dir", "here", "--output-dir", tmp_path]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PRIME_API_KEY": "none"})
    lines = (tmp_path / "here" / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    traces = [trace for line in lines for trace in vf.WireEpisode.model_validate_json(line).traces]
    found: dict[str, list[float]] = {"bmm_0": [], "attn_0": []}
    for trace in traces:
        found[trace.task.data.id].append(trace.reward)
    assert {name: sorted(each) for name, each in found.items()} == {"bmm_0": [0, 0, 0, 1], "attn_0": [0, 0, 0, 0]}
    solved = {trace.task.data.id: trace.metrics["pass_at_n"] for trace in traces}
    assert solved == {"bmm_0": 1.0, "attn_0": 0.0}
