"""`opsmith mcp` as agents use it: processes, over stdio and HTTP, and programs in C."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from opsmith.api import load_task
from opsmith.executors.local_measurer import LocalMeasurer
from opsmith.judging.files import ProgramSource, judge_files
from opsmith.judging.pool import Pool
from opsmith.mcp.places import TaskPlaces
from opsmith.mcp.server import make_server
from opsmith.mcp.service import Service
from opsmith.running import sandbox
from opsmith.running.toolchain import NO_COMPILER, find_toolchain
from opsmith.suites import find_files
from opsmith.targets.hidden import NOT_SHOWN

TASK = "gemm_2"
RIGHT = load_task(TASK).impl or ""
WRONG = RIGHT.replace("return E6", "E7, E8 = step.Copy().apply(E6)\nreturn step.Map(fn=fn_mul).apply((E7, E8))")
OPSMITH = (sys.executable, "-m", "opsmith")


def read_text(result: Any) -> str:
    return "\n".join(content.text for content in result.content)


async def verify_and_submit(client: Client) -> list[str]:
    listed = await client.call_tool("list_tasks", {})
    wrong = await client.call_tool("verify", {"task": TASK, "program": WRONG})
    submitted = await client.call_tool("submit", {"task": TASK, "program": RIGHT})
    return [read_text(result) for result in (listed, wrong, submitted)]


def run_opsmith(*arguments: object) -> str:
    command = [*OPSMITH, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def test_a_process_serves_two_clients_of_stdio_and_what_they_submit_is_where_a_run_begins(tmp_path):
    server = StdioServerParameters(
        command=OPSMITH[0], args=[*OPSMITH[1:], "mcp", "--out", str(tmp_path), "--workers", "1"], env=dict(os.environ)
    )

    async def ask_both() -> list[list[str]]:
        async with Client(stdio_client(server)) as one, Client(stdio_client(server)) as two:
            return await asyncio.gather(verify_and_submit(one), verify_and_submit(two))

    for listed, wrong, submitted in asyncio.run(ask_both()):
        assert TASK in listed
        assert "outcome: refused\nstage: MATCH\ncharged_to: candidate" in wrong
        assert "kept as imported" in submitted
    [run] = re.findall(r"import-\S+", run_opsmith("runs", "--out", tmp_path))[:1]
    assert f"given   1 solved before this run and not counted: {TASK}" in run_opsmith("show", run, "--out", tmp_path)
    options = (
        "--tasks",
        f"{TASK},gemm_0",
        "--samples",
        1,
        "--max-rounds",
        1,
        "--no-report",
        "--out",
        tmp_path,
        "--json",
    )
    assert f'"{TASK}"' in run_opsmith("run", "--from", run, *options).split('"solved_before"')[-1]


def test_over_http_it_answers_who_has_the_token(tmp_path):
    process = subprocess.Popen(
        [*OPSMITH, "mcp", "--http", "--address", "127.0.0.1:0", "--out", str(tmp_path), "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "OPSMITH_MCP_TOKEN"},
    )
    try:
        assert process.stderr is not None
        url, token = process.stderr.readline().split()[0], process.stderr.readline().split()[-1]
        assert len(token) >= 32

        async def speak() -> list[str]:
            async with httpx2.AsyncClient() as without:
                body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
                assert (await without.post(url, json=body)).status_code == 401
                header = {"Authorization": "Bearer " + "x" * len(token)}
                assert (await without.post(url, json=body, headers=header)).status_code == 401
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http:
                one, two = (Client(streamable_http_client(url, http_client=http)) for _ in range(2))
                async with one, two:
                    answers = await asyncio.gather(verify_and_submit(one), verify_and_submit(two))
            return answers[0]

        assert "kept as imported" in asyncio.run(speak())[2]
    finally:
        process.send_signal(signal.SIGINT)
        printed, messages = process.communicate(timeout=60)
    assert printed == ""
    assert token not in messages
    assert "Traceback" not in messages


NEEDS_C = (
    pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing()),
    pytest.mark.skipif(find_toolchain() is None, reason=NO_COMPILER),
)
KERNEL = "gather"
UNSHOWN = " && ".join(f"T != {size}" for size in (100, 1, 37, 130))  # those of the task and of its shape sets
BOMB = "static char big[1UL << 40];\n#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(A(A(A(A(x)))))))\nB(int;)\n"


@pytest.mark.parametrize("marked", [pytest.param(None, marks=NEEDS_C)])
def test_verdicts_in_c_are_those_of_the_command_line_and_tell_no_hidden_size(marked):
    plain = (Path(find_files([KERNEL])[0].parent) / "plain" / f"{KERNEL}.c").read_text()
    programs = {
        "right": plain,
        "wrong": re.sub(r"for \((.*?)= 0;", r"for (\1= 1;", plain, count=1),
        "wrong at sizes that are not shown": re.sub(r"}\s*$", f"if ({UNSHOWN}) y[0] += 1;\n}}\n", plain),
        "mistyped": plain.replace("{", "{ double *nothing = 1.5;", 1),
        "no program": "I could not solve this.",
        "a bomb": BOMB + plain,
        "endless": plain.replace("{", "{ for (;;) ; ", 1),
    }

    async def verify_all(pool: Pool) -> dict[str, str]:
        async with Client(
            make_server(Service(TaskPlaces(), pool, make_measurer=partial(LocalMeasurer, pool)))
        ) as client:
            answers = {}
            for name, program in programs.items():
                arguments = {"task": f"kernels/{KERNEL}", "target": "c", "program": program}
                answers[name] = read_text(await client.call_tool("verify", arguments))
            arguments = {"task": f"kernels/{KERNEL}", "target": "c", "program": plain}
            answers["its speed"] = read_text(await client.call_tool("measure", arguments))
            return answers

    with Pool(1, 30.0, trial_deadline=2.0) as pool:
        answers = asyncio.run(verify_all(pool))
        for name, program in programs.items():
            [judged] = judge_files(find_files([KERNEL]), ProgramSource(program, target="c"), pool)
            verdict = judged.verdict
            head = f"outcome: {verdict.outcome}\nstage: {verdict.stage.name}\ncharged_to: {verdict.charged_to}"
            assert answers[name].startswith(head), (name, answers[name], verdict.message)
            sizes = set(re.findall(r"\b[TVD] = \d+", " ".join(verdict.warnings)))
            assert bool(sizes) == ("not shown" in name)
            assert not any(size in answers[name] for size in sizes)
    assert answers["right"].startswith("outcome: passed")
    assert answers["wrong"].startswith("outcome: refused")
    assert re.match(r"shape set small: [\d.e+]+ ns; no ratio", answers["its speed"])  # it is the task's own program
    assert NOT_SHOWN in answers["wrong at sizes that are not shown"]
