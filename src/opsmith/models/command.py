"""`command:PROGRAM ARGS`: an agent of the user's own on the command line is a chat model.

Each request starts the program once, in an empty folder of its own (`agent_process`). The messages become one text, on
its standard input, or in a file where ARGS hold `{prompt}`; the reply is what it prints (`agent_output`), or the file
`{reply}`. Temperature, seed and the number of tokens are the agent's own affair. To the store it is a language model:
whatever stands behind the command wrote the programs, and it is no sampler of ours, whose runs are reported as such.
Our tools are offered and called by text (`textual_tools`); pictures are left out.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from opsmith.environment import select_agent_variables
from opsmith.errors import UsageError
from opsmith.models import Message, Reply, Request
from opsmith.models.agent_output import read_output
from opsmith.models.agent_process import AgentOrder, AgentOutput, run_agent
from opsmith.models.attempt import Failure, Sent
from opsmith.models.keys import make_blotter, read_env_file, redact_secrets
from opsmith.models.limits import Gate, RateLimits
from opsmith.models.parts import replace_surrogates
from opsmith.models.retry import Retry, log
from opsmith.models.textual_tools import read_textual, write_textual
from opsmith.models.tokens import estimate_tokens
from opsmith.records import printable

PREFIX = "command:"
MAX_WORDS = 500  # characters of an agent's messages that are shown
LAST_LINES = 5
_HEADINGS = {
    "system": "# Instructions",
    "user": "# Request",
    "assistant": "# Your earlier answer",
    "tool": "# What a tool answered",
}
_HOPELESS = {  # exit codes after which the same command would end alike
    64: "check ARGS: the program does not take them",
    126: "check that the program can be executed, by its first line too",
    127: "check the program that it starts: it was not found",
}
_HINT = "run the command by hand in an empty folder; paths in ARGS must be absolute, and --pass-env passes variables"


class CommandModel:
    """One command. Raises UsageError for one that cannot be started, before any request."""

    is_language_model = True
    context_window: int | None = None  # the agent's own affair

    def __init__(self, name: str, limits: RateLimits, retry: Retry, pass_env: Iterable[str] = ()) -> None:
        self.name = name
        named = read_named(pass_env)
        self._order = AgentOrder(parse_command(name), select_agent_variables(os.environ) | named)
        self._secrets = tuple(named.values())  # in no reply, whatever their names
        self._gate = Gate(*limits, clock=retry.clock, sleep=retry.sleep)
        self._retry = retry
        self._is_blind_told = False

    async def complete(self, request: Request) -> Reply:
        prompt = write_conversation((write_textual(request) if request.tools else request).messages)
        blind = any(message.images for message in request.messages)
        if blind and not self._is_blind_told:
            self._is_blind_told = True
            log.warning("%s: a command is shown no pictures; they are left out, the text stays", self.name)

        async def send(_: float) -> Sent[Reply]:
            reply = self._read_reply(await run_agent(self._order, prompt))
            reply = read_textual(reply) if request.tools and request.may_call else reply
            return Sent(replace(reply, blind=blind), reply.usage.input_tokens + reply.usage.output_tokens)

        return await self._retry.send_patiently(self.name, send, self._gate, estimate_tokens(prompt))

    async def close(self) -> None:
        """Nothing is open between two requests."""

    def _read_reply(self, output: AgentOutput) -> Reply:
        if output.code:
            raise self._describe_exit(output)
        if self._order.writes_file and output.reply is None:
            raise Failure("no file at {reply}, though the command ended well", hint=_HINT)
        written = None if output.reply is None else _decode_text(output.reply)
        try:
            reply = read_output(_decode_text(output.printed), written)
        except Failure as failure:
            raise Failure(self._shorten_words(failure.text), hint=_HINT) from None
        blot = make_blotter(self._secrets)
        return replace(reply, texts=tuple(map(blot, reply.texts)), model=blot(reply.model))

    def _describe_exit(self, output: AgentOutput) -> Failure:
        lines = [line for line in output.messages.splitlines() if line.strip()][-LAST_LINES:]
        words = self._shorten_words("\n".join(lines)) or "nothing on its standard error"
        remedy = _HOPELESS.get(output.code, "")
        return Failure(f"exit code {output.code}: {words}", code=str(output.code), remedy=remedy, hint=_HINT)

    def _shorten_words(self, text: str) -> str:
        """An agent's words on one line, bounded and without a key."""
        line = " ".join(printable(redact_secrets(text, self._secrets), keep="\n").split())
        return line if len(line) <= MAX_WORDS else "... " + line[-MAX_WORDS:]


def parse_command(name: str) -> tuple[str, ...]:
    """The absolute program and its arguments. No shell reads them. Raises UsageError."""
    text = name.removeprefix(PREFIX)
    if (clean := redact_secrets(text)) != text:
        raise UsageError(
            f"model '{PREFIX}{clean}': given what looks like a key, which would be stored with the run; expected a "
            "variable that the program reads; try: --pass-env NAME"
        )
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"model {name!r}: {str(error).lower()}; expected words as a shell quotes them") from None
    if not words:
        raise UsageError(f"model {name!r}: given no program; expected {PREFIX}PROGRAM ARGS")
    program = shutil.which(os.path.expanduser(words[0]))
    if program is None:
        raise UsageError(
            f"model {name!r}: given {words[0]!r}, which is no program here; expected one that can be executed; "
            "try: its absolute path"
        )
    return str(Path(program).absolute()), *words[1:]


def read_named(pass_env: Iterable[str]) -> dict[str, str]:
    """The variables of those names, of the environment or else of `.env`. Raises UsageError where one is not there."""
    named = tuple(pass_env)
    variables = {**read_env_file(), **os.environ}
    absent = [name for name in named if name not in variables]
    if absent:
        raise UsageError(
            f"--pass-env: given {', '.join(absent)}; expected variables of the environment or of .env; try: export "
            f"{absent[0]}=..."
        )
    return {name: variables[name] for name in named}


def write_conversation(messages: Sequence[Message]) -> str:
    """The messages as one text, each under a heading of its own.

    >>> print(write_conversation((Message("system", "Be brief."), Message("user", "2 + 2?"))))
    # Instructions
    <BLANKLINE>
    Be brief.
    <BLANKLINE>
    # Request
    <BLANKLINE>
    2 + 2?
    <BLANKLINE>
    """
    return "\n".join(f"{_HEADINGS[message.role]}\n\n{message.content.strip()}\n" for message in messages)


def _decode_text(content: bytes) -> str:
    """What is no UTF-8 becomes U+FFFD."""
    return replace_surrogates(content.decode("utf-8-sig", "replace"))
