"""The conversation of one sample: a model that calls tools is told what they say, until it answers.

Each request holds the whole conversation so far. A reply is stored before its calls are run, and what a tool says is
stored before it is sent: whoever goes on later runs no call twice and asks for no reply twice. Every call of every
reply has one row, also one that is not run. A sample has as many calls, output tokens and seconds of tools as the
settings say; when one of them is used up the model is asked once more, without tools, and that is its last word.

Which program a conversation comes to is `find_last_program`; judging it is the sample's business (`sample`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from opsmith.agents.reply import PLAIN, ReadReply, ReplyForm, read_reply
from opsmith.learn.ask import AgentQuestion, Asking, HaltedError
from opsmith.learn.session import RunSession
from opsmith.models import Message, ToolCall
from opsmith.models.answers import describe_cut
from opsmith.records import Task, printable
from opsmith.settings import Tooling
from opsmith.store.rows import PROPOSER, TOOLS, SampleKey, ToolCallEntry, in_turn, tool_call_rows
from opsmith.targets import Target
from opsmith.tools import Tool, ToolContext, ToolOutcome, ToolResult
from opsmith.tools.arguments import MOST_ARGUMENTS
from opsmith.tools.table import list_tools, offer_tools, read_program, run_tool

MOST_TURNS = 8  # that are kept room for: who talks longer may come to the end of its context window
MOST_NAME = 64  # characters of a tool's name that are sent back and stored
ANSWER_NOW = "No tool can be called any more. Answer now, with the whole program, in the form that was asked for."


@dataclass(frozen=True)
class SpokenTurn:
    """A reply of a conversation, and whose it is."""

    agent: str
    text: str
    calls: tuple[ToolCall, ...] = ()
    cut: str = ""  # on what its tokens went, where their limit cut it


@dataclass(frozen=True)
class Conversation:
    """All that was said for one sample, before anything is judged."""

    messages: tuple[Message, ...]  # of the last request
    turns: tuple[SpokenTurn, ...]  # at least one

    @property
    def last(self) -> SpokenTurn:
        return self.turns[-1]


@dataclass
class _Allowance:
    """What a sample has left."""

    limits: Tooling
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def exhausted(self) -> str:
        """What is used up, in words; "": there is some of everything left."""
        if self.calls >= self.limits.tool_calls:
            return f"the {self.limits.tool_calls} calls that a sample has are used up"
        if self.tokens >= self.limits.tool_tokens:
            return f"the {self.limits.tool_tokens} output tokens that a sample with tools has are used up"
        if self.seconds >= self.limits.tool_seconds:
            return f"the {self.limits.tool_seconds:g} seconds that a sample has for tools are used up"
        return ""


class Conversing:
    """The conversations of one round. Where the settings offer no tool, a conversation is one request."""

    def __init__(
        self,
        session: RunSession,
        asking: Asking,
        store_prompt: Callable[[tuple[Message, ...]], str],
        stored: Mapping[str, Sequence[ToolCallEntry]],
    ) -> None:
        """`stored`: calls that an earlier session ran, by sample, in order."""
        self._limits = session.settings.teamwork.tooling
        self.tools = {tool.name: tool for tool in list_tools(self._limits.tools, session.target)}
        self._offers = offer_tools(tuple(self.tools.values()))
        self._session = session
        self._asking = asking
        self._store_prompt = store_prompt
        self._stored = stored

    async def converse(self, key: SampleKey, messages: tuple[Message, ...], context: ToolContext) -> Conversation:
        """Ask a sample's proposer, and answer its calls. Raises UnjudgedError, HaltedError, StoreError."""
        talk = _Talk(_Allowance(self._limits), messages)
        offers = () if key.is_join else self._offers
        while True:
            is_last = bool(talk.allowance.exhausted)
            agent = in_turn(TOOLS, len(talk.turns)) if talk.turns else PROPOSER
            question = AgentQuestion(talk.messages, self._store_prompt(talk.messages), offers, may_call=not is_last)
            reply = await self._asking.request_reply(key, agent, question)
            calls = tuple(_name_uniquely(reply.calls[0])) if any(reply.calls[:1]) else ()
            talk.turns.append(
                SpokenTurn(agent, reply.texts[0], tuple(call.call for call in calls), describe_cut(reply))
            )
            if not calls:
                return Conversation(talk.messages, tuple(talk.turns))
            talk.allowance.tokens += reply.usage.output_tokens
            results = [await self._answer_call(key, agent, call, talk, context) for call in calls]
            if is_last:
                return Conversation(talk.messages, tuple(talk.turns))
            sent = tuple(call.call for call in calls)
            raw = next(iter(reply.raw), "") if sent == reply.calls[0] else ""  # where nothing was changed
            said = Message("assistant", reply.texts[0], calls=sent, raw=raw)
            talk.messages = (*talk.messages, said, *results)
            if talk.allowance.exhausted:
                talk.messages = (*talk.messages, Message("user", ANSWER_NOW))

    def ask_again(self, messages: tuple[Message, ...]) -> AgentQuestion:
        """What an agent is asked after a conversation: tools that were called in it are named, and none is run."""
        has_called = any(message.calls for message in messages)
        return AgentQuestion(messages, self._store_prompt(messages), self._offers if has_called else (), may_call=False)

    async def _answer_call(
        self, key: SampleKey, agent: str, call: _NamedCall, talk: _Talk, context: ToolContext
    ) -> Message:
        """The result of a call, from the store or from the tool; it is stored by then. Raises HaltedError."""
        earlier = self._stored.get(key.id, ())
        if talk.number < len(earlier):
            entry = earlier[talk.number]
        elif self._session.halt:
            raise HaltedError
        else:
            started = time.monotonic()
            result = await self._run_call(call, talk.allowance, context)
            arguments = call.received.arguments
            named = (printable(call.received.name[:MOST_NAME]), arguments, result.text, result.outcome.value)
            entry = ToolCallEntry(talk.number, agent, *named, time.monotonic() - started)
            await asyncio.wrap_future(self._session.store.put(tool_call_rows(key, entry)))
        talk.number += 1
        talk.allowance.seconds += entry.seconds
        if entry.outcome != ToolOutcome.LIMIT.value:
            talk.allowance.calls += 1
        return Message("tool", entry.result, call=call.call.id)

    async def _run_call(self, call: _NamedCall, allowance: _Allowance, context: ToolContext) -> ToolResult:
        if exhausted := allowance.exhausted:
            return ToolResult(f"It was not run: {exhausted}. Answer now.", ToolOutcome.LIMIT)
        if call.problem:
            return ToolResult(f"It was not run: {call.problem}.", ToolOutcome.REFUSED)
        tool = self.tools.get(call.received.name)
        if tool is None:
            return _refuse_unknown(call.received.name, self.tools)
        seconds = allowance.limits.tool_seconds - allowance.seconds
        try:
            async with asyncio.timeout(seconds):
                return await run_tool(tool, context, call.received.arguments)
        except TimeoutError:
            text = f"{tool.name}: it had not ended after {seconds:.3g} s, which is all that this sample had left"
            return ToolResult(text, ToolOutcome.LIMIT)


@dataclass
class _Talk:
    """A conversation in the making."""

    allowance: _Allowance
    messages: tuple[Message, ...]
    turns: list[SpokenTurn] = field(default_factory=list)
    number: int = 0  # of the next call


@dataclass(frozen=True)
class _NamedCall:
    """A call as it came and as it is sent back."""

    received: ToolCall
    call: ToolCall  # with an id of its own, and arguments that can be sent
    problem: str = ""  # why it is not run


def _name_uniquely(calls: Sequence[ToolCall]) -> list[_NamedCall]:
    """The calls of a reply, each with an id that no other one of them has: results are told apart by it."""
    named: list[_NamedCall] = []
    used: set[str] = set()
    for place, call in enumerate(calls, 1):
        problem = ""
        name = call.id.strip()
        if not name or name in used:
            problem = f"its id {printable(name[:MOST_NAME])!r} is that of another call of the same turn" if name else ""
            taken = {*used, *(stated.id for stated in calls)}
            name = next(chosen for number in count(place) if (chosen := f"call-{number}") not in taken)
        used.add(name)
        is_long = len(call.arguments) > MOST_ARGUMENTS  # the tool refuses it; nobody pays for sending it back
        sent = ToolCall(name, call.name[:MOST_NAME], "{}" if is_long else call.arguments)
        named.append(_NamedCall(call, sent, problem))
    return named


def _refuse_unknown(name: str, tools: Mapping[str, Tool[Any]]) -> ToolResult:
    offered = ", ".join(tools)
    return ToolResult(
        f"There is no tool {printable(name[:MOST_NAME])!r}; expected one of {offered}.", ToolOutcome.REFUSED
    )


def count_tool_turns(limits: Tooling) -> int:
    """How many replies' worth of room in a context window conversations are given, calls and results together."""
    return 0 if limits.tools == "none" else min(limits.tool_calls, MOST_TURNS)


def find_last_program(
    conversation: Conversation,
    target: Target,
    task: Task,
    tools: Mapping[str, Tool[Any]],
    form: ReplyForm = PLAIN,
) -> tuple[ReadReply, str]:
    """The program that counts, and the agent whose turn holds it: that of the last reply, or else the one that a tool
    was last called with, or a draft in the text of an earlier turn. `form`: as `read_reply` has it."""
    last = conversation.last
    final = read_reply(target, task, last.text, form=form).blame_limit(last.cut, last.text)
    if final.source is not None:
        return final, last.agent
    for turn in reversed(conversation.turns):
        for call in reversed(turn.calls):
            tool = tools.get(call.name)
            source = None if tool is None else read_program(tool, target, task, call.arguments)
            if source is not None:
                return ReadReply(source), turn.agent
        draft = read_reply(target, task, turn.text, form=form) if turn is not last else final
        if draft.source is not None:
            return draft, turn.agent
    return final, conversation.last.agent
