"""A chat model's searches under `kill -9`: every proposal and every evaluation once, and no stored reply asked again."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from lab.study.test_study1 import adaptation_of, ask_mind, read_user, reply_as
from models.servers import AnthropicServer, OpenAIServer, read_messages

from opsmith_lab.study.problems import SETS
from opsmith_lab.study.size_minds import SizeMind
from opsmith_lab.study.synthetic import list_synthetic

CONCURRENCY, SEARCHES, BUDGET = 3, 4, 50
SEARCH = f"""
import json, sys
from pathlib import Path
from opsmith.models.table import get_model
from opsmith.settings import Settings
from opsmith_lab.study import problems, synthetic
from opsmith_lab.study.searching import SearchPlan, search_with_model
problems.SETS["tiny"] = lambda: synthetic.list_synthetic()[:{SEARCHES}]
model = get_model(Settings(model=sys.argv[1], base_url=sys.argv[2]))
plan = SearchPlan(("chat",), ("tiny",), (0,))
found, _ = search_with_model(plan, model, Path(sys.argv[3]), {CONCURRENCY}, None, lambda text: None)
points = {{each.box.name: each.trajectory.points.tolist() for each in found.done}}
print(json.dumps(points, sort_keys=True))
"""


def search(server, name, file, kill_at=None):
    """What a process prints that searches; it is killed once the server has had so many requests."""
    answer, reached = reply_as("searcher-30"), threading.Event()

    def count_and_answer(body):
        if kill_at is not None and served.count >= kill_at:
            reached.set()
        return answer(body)

    with server(count_and_answer) as served:
        command = [sys.executable, "-c", SEARCH, f"{name}/any", served.url, str(file)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            if kill_at is not None and reached.wait(120):
                process.send_signal(signal.SIGKILL)
            output = process.communicate(timeout=120)[0]
        return output, [read_user(body) for body in served.requests]


@pytest.mark.parametrize(("server", "name", "kills"), [(OpenAIServer, "openai", 10), (AnthropicServer, "anthropic", 3)])
def test_a_study_that_is_killed_goes_on_and_asks_nothing_twice(server, name, kills, tmp_path):
    undisturbed, all_asked = search(server, name, tmp_path / "whole.jsonl")
    file, asked = tmp_path / "killed.jsonl", Counter()
    for number in range(kills):
        output, requests = search(server, name, file, kill_at=1 + number * 7 % 15)
        assert output == ""
        asked.update(requests)
        after = [json.loads(line)["key"] for line in file.read_bytes().splitlines()[1:-1]]
        assert len(after) == len(set(after)), "no reply is stored twice"
    output, requests = search(server, name, file)
    asked.update(requests)
    assert output == undisturbed
    assert set(asked) == set(all_asked)
    assert sum(asked.values()) - len(all_asked) <= kills * CONCURRENCY, "what was under way, and nothing else"
    keys = [json.loads(line)["key"] for line in file.read_bytes().splitlines()[1:]]
    assert len(keys) == len(set(keys)) == SEARCHES * BUDGET


@pytest.mark.parametrize(("mind", "problems"), [("searcher-30", 24), ("searcher-10", 96)])
def test_a_mind_that_seldom_adapts_is_found_where_its_power_says_so(mind, problems, tmp_path, monkeypatch):
    """4,800 requests for the second: too many for the tests of every day."""
    monkeypatch.setitem(SETS, "tiny", lambda: list_synthetic()[:problems])
    searches, requests, _ = ask_mind(OpenAIServer, "openai", tmp_path, mind)
    assert len(requests) == problems * BUDGET
    assert adaptation_of(searches)[1].p < 0.05


def ask_for_kernels(server, place, kill_after=None):
    """One start of study2 in its smallest form, which is killed after so many requests; the estimates of its page."""
    command = [
        sys.executable,
        "-m",
        "opsmith",
        "experiment",
        "study2",
        "--model",
        "openai/any",
        "--base-url",
        server.url,
    ]
    command += ["--sets", "two", "--samples", "3", "--tasks", "softmax", "--arms", "told,untold", "--measure", "none"]
    command += ["--concurrency", str(CONCURRENCY), "--out", str(place), "--results", str(place)]
    before = server.count
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while kill_after is not None and process.poll() is None:
            if server.count >= before + kill_after:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.01)
        process.wait(240)
    return json.loads((place / "study2.json").read_text())["rows"] if kill_after is None else process.returncode


def test_kernels_of_a_study_that_is_killed_are_asked_for_once(tmp_path):
    mind, kills = SizeMind("drawer", ["c"]), 3

    def answer(body):
        rng = random.Random(f"{body['seed']} {body['messages']}")
        return mind.answer_messages(read_messages(body), body["temperature"], rng)

    with OpenAIServer(answer) as whole, OpenAIServer(answer) as server:
        undisturbed = ask_for_kernels(whole, tmp_path / "whole")
        codes = [ask_for_kernels(server, tmp_path / "killed", 5) for _ in range(kills)]
        assert codes == [-signal.SIGKILL] * kills
        assert ask_for_kernels(server, tmp_path / "killed") == undisturbed
    assert whole.count == 2 * 2 * 3 * 3
    assert server.count - whole.count <= kills * CONCURRENCY, "what was under way, and nothing else"
    for file in (tmp_path / "killed" / "studies" / "study2").glob("*.jsonl"):
        keys = [json.loads(line).get("key") for line in file.read_bytes().splitlines()]
        assert len(keys) == len(set(keys))
