"""One request to a command-line agent: a process in an empty folder of its own, gone with the folder when we return.

The agent works with the user's rights, as it does without us. It is told nothing of us but the prompt: no path of ours,
and only the variables that it is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opsmith.models import agent_watch
from opsmith.models.attempt import Failure
from opsmith.outside import remove_folder

PROMPT, REPLY = "{prompt}", "{reply}"  # in an argument: the path of the file
MAX_BYTES = 4 << 20  # of what an agent prints, and of its reply's file
LAST_BYTES = 1 << 13  # of its messages that are kept
_CHUNK = 1 << 16
_DYING_S = 10.0  # for the end of what was killed


@dataclass(frozen=True)
class AgentOrder:
    """What is started for each request."""

    command: tuple[str, ...]  # the absolute program and its arguments
    environment: Mapping[str, str]  # all of it, but for TMPDIR, which is in the folder

    @property
    def reads_file(self) -> bool:
        return any(PROMPT in argument for argument in self.command)

    @property
    def writes_file(self) -> bool:
        return any(REPLY in argument for argument in self.command)


@dataclass(frozen=True)
class AgentOutput:
    """What an agent left."""

    code: int  # of its exit; 128 and more: a signal
    printed: bytes
    messages: str  # the end of its standard error
    reply: bytes | None  # what it wrote to the reply's file; None: it wrote none


class AgentFolder:
    """The place of one request: an empty folder to work in, and beside it what is exchanged."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="opsmith-agent-")).resolve()
        self.work, self.temporary = self.root / "work", self.root / "tmp"
        self.prompt, self.reply = self.root / "prompt.md", self.root / "reply.md"
        self.work.mkdir()
        self.temporary.mkdir()

    def fill_argument(self, argument: str) -> str:
        return argument.replace(PROMPT, str(self.prompt)).replace(REPLY, str(self.reply))

    def read_reply(self) -> bytes | None:
        """None: there is no plain file. Raises Failure for one that is too large."""
        if self.reply.is_symlink() or not self.reply.is_file():
            return None
        with self.reply.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        _refuse_large(content, "in its reply's file")
        return content

    def remove(self) -> None:
        remove_folder(self.root)


async def run_agent(order: AgentOrder, prompt: str) -> AgentOutput:
    """Hand it the prompt and hear it to its end; cancelled, it is killed with all that it started. Raises Failure."""
    folder = AgentFolder()
    try:
        text = prompt.encode("utf-8", "replace")
        if order.reads_file:
            folder.prompt.write_bytes(text)
        process, lifeline = await _start_process(order, folder)
        try:
            return await _hear_process(order, process, folder, text)
        finally:
            os.close(lifeline)
            await _await_end(process)
    except OSError as error:
        raise Failure(f"no process: {error.strerror}") from error
    finally:
        folder.remove()


async def _start_process(order: AgentOrder, folder: AgentFolder) -> tuple[asyncio.subprocess.Process, int]:
    """The process, and what keeps it alive until it is closed."""
    heard, lifeline = os.pipe()
    command = [folder.fill_argument(argument) for argument in order.command]
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", agent_watch.__file__, str(heard), str(folder.root), *command),
            stdin=asyncio.subprocess.DEVNULL if order.reads_file else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder.work,
            env={**order.environment, "TMPDIR": str(folder.temporary)},
            pass_fds=(heard,),
            start_new_session=True,  # a Ctrl-C is ours: what is in flight is finished
        )
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(heard)
    return process, lifeline


async def _hear_process(
    order: AgentOrder, process: asyncio.subprocess.Process, folder: AgentFolder, prompt: bytes
) -> AgentOutput:
    assert process.stdout is not None
    assert process.stderr is not None
    reading = asyncio.ensure_future(_read_bounded(process.stdout))
    hearing = asyncio.ensure_future(_read_last(process.stderr))
    writing = asyncio.ensure_future(_write_prompt(process, prompt))
    try:
        printed, messages, _ = await asyncio.gather(reading, hearing, writing)
    finally:
        for task in (reading, hearing, writing):
            task.cancel()
        await asyncio.gather(reading, hearing, writing, return_exceptions=True)
    code = await process.wait()
    reply = folder.read_reply() if order.writes_file else None
    return AgentOutput(code, printed, messages.decode("utf-8", "replace"), reply)


async def _write_prompt(process: asyncio.subprocess.Process, prompt: bytes) -> None:
    """An agent need not read it."""
    if process.stdin is None:
        return
    with contextlib.suppress(ConnectionError):
        process.stdin.write(prompt)
        await process.stdin.drain()
    with contextlib.suppress(ConnectionError):
        process.stdin.close()
        await process.stdin.wait_closed()


async def _read_bounded(stream: asyncio.StreamReader) -> bytes:
    content = bytearray()
    while chunk := await stream.read(_CHUNK):
        content += chunk
        _refuse_large(content, "on its standard output")
    return bytes(content)


async def _read_last(stream: asyncio.StreamReader) -> bytes:
    content = bytearray()
    while chunk := await stream.read(_CHUNK):
        content += chunk
        del content[:-LAST_BYTES]
    return bytes(content)


async def _drain_stream(stream: asyncio.StreamReader) -> None:
    while await stream.read(_CHUNK):
        pass


def _refuse_large(content: bytes | bytearray, where: str) -> None:
    if len(content) > MAX_BYTES:
        problem = f"more than {MAX_BYTES >> 20} MiB {where}"
        raise Failure(problem, remedy="let it print its answer alone, or write that to {reply}")


async def _await_end(process: asyncio.subprocess.Process) -> None:
    """Its keeper ends it, and is killed itself where it does not. Nobody waits for a process whose pipes are full."""
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(_DYING_S):
            await asyncio.gather(_drain_stream(process.stdout), _drain_stream(process.stderr))
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
