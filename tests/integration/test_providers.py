"""A whole run through the official SDKs against servers on loopback, with every listed shape of reply."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from models.servers import OVERLOADED, RESET, SERVER_ERROR, AnthropicServer, OpenAIServer, refused, too_many

from opsmith.records import Stage
from opsmith.store import Store

SHAPES = yaml.safe_load((Path(__file__).parents[1] / "agents" / "reply_shapes.yaml").read_text(encoding="utf-8"))
REPLIES = [shape["reply"] for shape in SHAPES["shapes"]]
FAULTS = [too_many("0"), SERVER_ERROR, None, RESET, OVERLOADED]
SERVERS = {"openai/served": OpenAIServer, "anthropic/served": AnthropicServer}


def run(folder: Path, model: str, url: str, *options: str) -> dict:
    """`opsmith run` as a user starts it; its closing JSON."""
    task = folder / "square_sum.yaml"
    task.write_text(SHAPES["task"], encoding="utf-8")
    command = [sys.executable, "-m", "opsmith", "run", "--model", model, "--base-url", url, "--tasks", str(task)]
    command += ["--temperature", "0.7", "--max-rounds", "1", "--concurrency", "1", "--agents", "single", "--json"]
    done = subprocess.run(
        [*command, "--out", str(folder / "out"), *options], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("model", SERVERS)
def test_every_listed_shape_of_reply_is_counted_and_judged(tmp_path: Path, model: str) -> None:
    answers = iter(REPLIES)
    with SERVERS[model](lambda body: next(answers), faults=FAULTS) as server:
        result = run(tmp_path, model, server.url, "--samples", str(len(REPLIES)))
    assert server.count == len(REPLIES) + len([fault for fault in FAULTS if fault])
    assert result["per_task"]["square_sum"]["samples"] == len(REPLIES)
    assert result["usage"]["requests"] == len(REPLIES)
    found = judged(tmp_path / "out", result["run"])
    assert len(found) == len(set(REPLIES))
    for shape in SHAPES["shapes"]:
        expected = "refused" in shape
        verdict = found[shape["reply"]]
        assert (verdict.stage == Stage.FORMAT) is expected, (shape["name"], verdict.message)
        assert "source" in shape or verdict.passed is not expected, (shape["name"], verdict.message)


def judged(folder: Path, run_id: str) -> dict:
    """The final verdict of every reply of a run."""
    with Store.open(folder) as store:
        samples = [store.find_sample(run_id, row.id) for row in store.list_samples(run_id)]
    return {sample.calls[0].reply.texts[0]: sample.candidates[-1].verdict for sample in samples}


def test_the_static_part_of_the_prompt_comes_first_and_is_the_same_for_every_request(tmp_path: Path) -> None:
    with OpenAIServer(REPLIES[0]) as server:
        run(tmp_path, "openai/served", server.url, "--samples", "3")
        systems = {body["messages"][0]["content"] for body in server.requests}
        assert len(systems) == 1
        assert all(body["messages"][0]["role"] == "system" for body in server.requests)


def test_a_key_that_is_refused_ends_in_one_message(tmp_path: Path) -> None:
    task = tmp_path / "square_sum.yaml"
    task.write_text(SHAPES["task"], encoding="utf-8")
    with OpenAIServer(refused("Incorrect API key provided", status=401)) as server:
        command = [sys.executable, "-m", "opsmith", "run", "--model", "openai/served", "--base-url", server.url]
        command += ["--tasks", str(task), "--samples", "2", "--max-rounds", "1", "--out", str(tmp_path / "out")]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "401" in done.stderr
