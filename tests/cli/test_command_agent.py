"""`opsmith run --model "command:..."`: a script of a few lines solves tasks, and a run that it broke goes on."""

import json
import sys

import pytest

pytestmark = pytest.mark.usefixtures("warm_runs")

AGENT = """#!{python}
import os, pathlib, sys
prompt = sys.stdin.read().rpartition("task:")[2]
calls = pathlib.Path({calls!r})
with calls.open("a") as file:
    print(os.getcwd(), file=file)
if os.environ["AGENT_LOGIN"] != "tester" or "NOT_NAMED" in os.environ:
    sys.exit(64)
if pathlib.Path({broken!r}).exists() and "[2, 3]" in prompt:
    print("no login", file=sys.stderr)
    sys.exit(64)
print("impl: |\\n ", "x y +" if "[1, 2]" in prompt else "x x *")
"""


@pytest.fixture
def run(opsmith, tasks, tmp_path, monkeypatch):
    """`run()` on both tiny tasks; the agent breaks on one of them while the file `broken` is there."""
    broken, calls, script = (tmp_path / name for name in ("broken", "calls", "agent"))
    script.write_text(AGENT.format(python=sys.executable, calls=str(calls), broken=str(broken)))
    script.chmod(0o700)
    broken.touch()
    monkeypatch.setenv("AGENT_LOGIN", "tester")
    monkeypatch.setenv("NOT_NAMED", "secret")

    def call(*options):
        return opsmith("run", "--model", f"command:{script}", "--tasks", tasks, "--samples", 5, "--temperature", 0.5, "--concurrency", 2, "--pass-env", "AGENT_LOGIN", *options)  # fmt: skip

    call.broken, call.calls = broken, calls
    return call


def test_a_script_solves_tasks_and_a_run_goes_on_where_it_broke(run, opsmith):
    stopped = run("--json")
    assert stopped.code == 3
    assert "exit code 64: no login" in stopped.err
    run.broken.unlink()
    done = run("--json")
    assert done.code == 0
    result = json.loads(done.out)
    assert (result["solved"], result["usage"]["cost_usd"], result["usage"]["input_tokens"]) == (2, None, 0)
    assert result["usage"]["requests"] == 10
    folders = run.calls.read_text().split()
    assert len(set(folders)) == len(folders)  # each request had a folder of its own
    again = run()
    assert (again.code, len(run.calls.read_text().split())) == (0, len(folders))
    [listed] = json.loads(opsmith("runs", "--json").out)
    assert listed["info"]["is_language_model"] is True
