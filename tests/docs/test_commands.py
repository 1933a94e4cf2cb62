"""Every command of the documentation is run as it stands there, and prints what the page shows."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from languages.gpu_programs import needs_cuda, needs_metal, needs_wgsl
from models.servers import OpenAIServer
from targets.native.programs import needs_compiler

from docs.blocks import DOCS, Block, fits, read_blocks
from docs.shell import Shell
from opsmith.agents.prompt import read_prompt
from opsmith.models import Message
from opsmith.suites import load_tasks
from opsmith_lab.models.sampling import fence_program

SERVER = "http://127.0.0.1:8000"  # in the pages; the tests put a server of their own there,
UI_PORT = "8741"  # and a port that is free there,
DATABASE = "postgresql://team:a-password@db.example:5432/opsmith"  # and an empty database

# Pages that go on where the one before them ended share a folder.
CHAINS = {
    "kernels in TVM": ["tvm.md"],
    "kernels in Triton": ["triton.md"],
    "a run and what came of it": ["first-run.md", "reports.md", "live-page.md", "export.md"],
    "work of one's own": ["own-task.md", "own-language.md", "python-languages.md"],
    "a library that lives": ["living-library.md"],
    "a manual": ["manuals.md"],
    "known programs": ["known-programs.md"],
    "models on servers": ["paid-models.md"],
    "the rules for servers": ["providers.md"],
    "tools": ["tools.md"],
    "many runs": ["analysis.md"],
    "a shared store": ["shared-store.md"],
    "a cluster": ["many-machines.md"],
    "the paper": ["experiments.md", "bridges.md"],
    "search or recitation": ["study.md"],
    "the start": ["index.md", "installing.md", "choose-your-path.md"],
    "problem files": ["problem-files.md"],
    "kernels in C": ["c.md"],
    "other machines": ["other-machines.md"],
    "kernels for GPUs": ["gpu-languages.md"],
    "faster kernels": ["optimise.md"],
    "profiles": ["profiles.md"],
    "plans": ["plans.md"],
    "several models": ["several-models.md"],
    "problems of others": ["kernelbench.md"],
    "FlashInfer Trace": ["flashinfer.md"],
    "agents of one's own": ["command-agents.md", "mcp.md"],
}
NOT_RUN = {
    "index.md": 1,
    "choose-your-path.md": 3,
    "installing.md": 1,
    "paid-models.md": 1,
    "experiments.md": 4,
    "bridges.md": 3,
    "export.md": 6,
    "many-machines.md": 1,
    "own-language.md": 1,
    "manuals.md": 1,
    "known-programs.md": 1,
    "flashinfer.md": 1,
    "c.md": 2,
    "gpu-languages.md": 2,
    "tvm.md": 5,
    "triton.md": 2,
    "other-machines.md": 5,
    "optimise.md": 3,
    "command-agents.md": 1,
    "mcp.md": 2,
    "plans.md": 1,
    "study.md": 5,
}  # blocks that say so, and why


def answer(body: dict[str, Any]) -> str | dict[str, Any]:
    """A model that knows the programs of the bundled tasks. It looks up one word where it is offered tools."""
    if "tools" in body and body["messages"][-1]["role"] == "user":
        call = {"id": "a", "type": "function", "function": {"name": "language", "arguments": '{"topic": "Map"}'}}
        choice = {
            "message": {"role": "assistant", "content": None, "tool_calls": [call]},
            "finish_reason": "tool_calls",
        }
        return {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}
    parts = read_prompt([Message(message["role"], message["content"]) for message in body["messages"]])
    asked = yaml.safe_load(parts.task)
    known = (task for task in load_tasks(["index_0", "bmm_0"]) if yaml.safe_load(task.prompt_text) == asked)
    return next((fence_program(task.impl or "") for task in known), "I do not know.")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(answer) as running:
        yield running


MARKS = {
    "kernels in C": [needs_compiler],
    "other machines": [needs_compiler],
    "kernels for GPUs": [needs_cuda, needs_wgsl, needs_metal],
    "faster kernels": [needs_compiler],
    "profiles": [needs_compiler],
}


@pytest.mark.parametrize("chain", [pytest.param(chain, marks=MARKS.get(chain, ())) for chain in CHAINS])
def test_the_commands_of_the_pages_work_in_order(
    chain: str, tmp_path: Path, server: OpenAIServer, request: pytest.FixtureRequest
) -> None:
    here = {SERVER: server.url.removesuffix("/v1"), UI_PORT: str(free_port())}
    if any(DATABASE in (DOCS / name).read_text(encoding="utf-8") for name in CHAINS[chain]):
        here[DATABASE] = request.getfixturevalue("postgres").new_database()
    with Shell(tmp_path) as shell:
        for name in CHAINS[chain]:
            for block in read_blocks(DOCS / name):
                if block.runs and not block.exempt:
                    run_block(block, name, shell, here)


def run_block(block: Block, page: str, shell: Shell, here: dict[str, str]) -> None:
    """Do what a block says; `here`: what stands in the pages, and what it is on this machine."""
    folder = Path(shell.run("pwd")[0].strip())
    if block.title:
        (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
        (folder / block.title).write_text(block.body)
    elif block.language == "python":
        (folder / "block.py").write_text(put(block.body, here))
        printed, code = shell.run("python block.py")
        assert code == 0, f"{page}:{block.line}\n{printed}"
    else:
        for command in block.commands():
            printed, code = shell.run(put(command.text, here))
            place = f"{page}:{command.line}: {command.text}"
            assert code == command.code, f"{place}\nexit code {code}, expected {command.code}\n{printed}"
            assert not command.expected or fits(command.expected, printed), f"{place}\nprinted:\n{printed}"


def put(text: str, here: dict[str, str]) -> str:
    for shown, meant in here.items():
        text = text.replace(shown, meant)
    return text


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_every_page_with_commands_is_in_a_chain() -> None:
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    have = {page for page in pages if any(block.runs for block in read_blocks(DOCS / page))}
    assert have - {"task-files.md"} <= {name for names in CHAINS.values() for name in names}


def test_what_is_not_run_says_why() -> None:
    exempt = {
        name: [block for block in read_blocks(DOCS / name) if block.exempt]
        for names in CHAINS.values()
        for name in names
    }
    assert {name: len(blocks) for name, blocks in exempt.items() if blocks} == NOT_RUN
    assert all(len(block.exempt) > 20 for blocks in exempt.values() for block in blocks)


@pytest.mark.parametrize(
    ("expected", "printed", "agree"),
    [
        ("a  b\n...\nz", "a b\nc\nd\n\nz  \n", True),
        ("took ... s", "took 3.2 s", True),
        ("took ... s", "took 3.2 m", False),
        ("a", "a\nb", False),
        ("a.c", "abc", False),
        ("...", "anything\nat all", True),
    ],
)
def test_expected_output_is_compared(expected: str, printed: str, agree: bool) -> None:
    assert fits(expected, printed) is agree
