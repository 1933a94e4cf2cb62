"""How a record becomes rows of the store, and how each sample is named. Pure functions; nothing is written here."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from opsmith.models import Message, Reply, Request, ToolCall
from opsmith.models.pictures import Picture
from opsmith.records import (
    Boundary,
    Candidate,
    Experience,
    KnownProgram,
    Suggestion,
    Task,
    Verdict,
    content_hash,
    dumps,
    to_json,
)
from opsmith.store import schema
from opsmith.store.database import Row

PROPOSER, GUARDIAN, REPAIR = "proposer", "guardian", "repair"
TOOLS = "tools"  # tools-1, tools-2 ...: the proposer, told what the tools said that it called in its turn before
UNANSWERED = "unanswered"  # -1, -2 ...: in that session an agent's reply held no answer; what it cost is booked so
NOBODY = "nobody"  # a sample was not made, and nobody is at fault: the model has nothing more for its task
Wish = Literal["pause", "resume"]
Phase = Literal["functional", "optimisation"]
FUNCTIONAL: Phase = "functional"  # until a candidate is right
OPTIMISATION: Phase = "optimisation"  # from a right one
ANALYST = "analyst"
PLANNER = "planner"
JOIN = "join"  # the model of samples whose program is joined from those of a plan's parts


@dataclass(frozen=True)
class SampleKey:
    """One sample of a run: the n-th answer to a task at a temperature in a round.

    What is as it was before there was a choice stands in no name, so that names and seeds of earlier runs stay.
    """

    run: str
    round: int
    task: str
    temperature: float
    number: int
    target: str = ""  # the language, where the run chose one (`Settings.target`)
    phase: Phase = FUNCTIONAL
    model: str = ""  # that it asks, where the run has several; `JOIN`: the parts of a plan are joined

    @cached_property
    def id(self) -> str:
        """Also the id of the proposer's first request; see `request_id`."""
        return _short_hash(self.run, *self._place)

    def request_id(self, agent: str) -> str:
        """The id of the request that an agent of this sample makes."""
        return self.id if agent == PROPOSER else _short_hash(self.id, agent)

    def seed(self, run_seed: int, agent: str = PROPOSER) -> int:
        """The request's seed, of 63 bits: the same in a resumed run, whatever was sampled in between."""
        return int(content_hash(str(run_seed), *self._place, *([] if agent == PROPOSER else [agent]))[:16], 16) >> 1

    @property
    def is_join(self) -> bool:
        """Whether its program is joined from those of a plan's parts: no model is asked."""
        return self.model == JOIN

    @property
    def _place(self) -> tuple[str, ...]:
        """Where it stands in a run."""
        target = [f"target={self.target}"] if self.target else []
        phase = [f"phase={self.phase}"] if self.phase != FUNCTIONAL else []
        model = [f"model={self.model}"] if self.model else []
        return str(self.round), self.task, repr(float(self.temperature)), str(self.number), *target, *phase, *model


@dataclass(frozen=True)
class RunInfo:
    """What decides a run's result, and so its id."""

    id: str
    identity: str
    model: str
    is_language_model: bool
    target: str
    seed: int
    settings: Mapping[str, Any]
    versions: Mapping[str, Any]
    name: str = field(default="", compare=False, metadata={"left_out": ""})  # that people gave it; "": none

    @property
    def label(self) -> str:
        """What people call it: the name that they gave it, else its id."""
        return self.name or self.id


@dataclass(frozen=True)
class PromptFit:
    """How the prompts of a round were fitted into the context window that the settings state."""

    window: int  # tokens
    factor: float  # tokens that the server counts, for one that we estimate
    left_out: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (task, tasks of its demonstrations that did not fit)


@dataclass(frozen=True)
class RoundInfo:
    """What a round sets out to do."""

    number: int
    cycle: int
    level: str
    demonstrations: tuple[tuple[str, str], ...]  # (task, hash of the program), all that any of its prompts shows
    attempted: tuple[str, ...]
    planned: int  # samples
    phase: Phase = FUNCTIONAL
    fit: PromptFit | None = None  # None: no window was stated


@dataclass(frozen=True)
class Judged:
    """A candidate of a sample with its verdict; `source` None: the reply held no program."""

    source: str | None
    verdict: Verdict
    agent: str = PROPOSER
    parent: str | None = None  # Candidate.id
    parent_sample: str | None = None  # the sample that holds the parent; None: this one
    device: str | None = None  # where the verdict was found, of a candidate that is built
    build: Mapping[str, Any] | None = None  # how it was built: flags, ISA, compiler; None: it was interpreted

    @property
    def name(self) -> str:
        """The candidate's id; "" where there is none."""
        return Candidate(self.source).id if self.source is not None else ""


@dataclass(frozen=True)
class ToolCallEntry:
    """A call of a tool within a sample, and what the model was told."""

    number: int  # within the sample, from 0
    turn: str  # the agent whose reply called: proposer, tools-1 ...
    name: str  # of the tool, as the model wrote it
    arguments: str  # as received
    result: str
    outcome: str  # ok, error, refused, limit
    seconds: float  # that the tool worked


@dataclass(frozen=True)
class PromptMessage:
    """A message of a prompt in the store, by the hashes of its texts."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    pictures: tuple[tuple[str, str], ...] = ()  # (media, hash of the base64)
    calls: tuple[tuple[str, str, str], ...] = ()  # of tools: (id, name, hash of the arguments)
    call: str = ""  # of role tool: the id of the call that it answers
    raw: str | None = None  # hash of `Message.raw`; None: it is ""

    @property
    def names(self) -> tuple[str, ...]:
        """All texts that it needs."""
        arguments = (name for _, _, name in self.calls)
        return self.text, *(name for _, name in self.pictures), *arguments, *([self.raw] if self.raw else [])

    def read_message(self, bodies: Mapping[str, str]) -> Message:
        """The message, from texts by their hashes."""
        pictures = tuple(Picture(media, bodies[name]) for media, name in self.pictures)
        calls = tuple(ToolCall(call, tool, bodies[arguments]) for call, tool, arguments in self.calls)
        return Message(self.role, bodies[self.text], pictures, calls, self.call, bodies[self.raw] if self.raw else "")


def in_turn(agent: str, turn: int) -> str:
    """An agent's name in a turn of a conversation: `guardian`, `repair-1`, `guardian-1`, ..."""
    return f"{agent}-{turn}" if turn else agent


def turn_of(agent: str) -> tuple[int, bool, int]:
    """The inverse, to sort by: what an agent does within a sample comes in this order. Turns with tools come between
    the proposer's first one and the guardian's."""
    name, _, turn = agent.partition("-")
    number = int(turn or 0)
    return (0, False, number) if name == TOOLS else (number, name == GUARDIAN, 0)


def text_row(body: str) -> Row:
    return schema.text, {"hash": content_hash(body), "body": body}


def run_rows(
    info: RunInfo, tasks: Sequence[Task], problems: Mapping[str, str] | None = None, secret: str | None = None
) -> list[Row]:
    """`problems`: digests of what tasks ask for in any language, by the task's id; `secret`: what hidden sizes come
    from, if the run is a new one."""
    rows: list[Row] = [
        (
            schema.run,
            {
                **{name: getattr(info, name) for name in ("id", "identity", "model", "is_language_model", "target")},
                "seed": info.seed,
                "settings": dumps(info.settings),
                "versions": dumps(info.versions),
                "at": time.time(),
                "secret": secret,
            },
        )
    ]
    for task in tasks:
        body = task_body(task)
        rows.append(text_row(body))
        named = {"run": info.id, "id": task.id, "digest": task.digest, "body": content_hash(body)}
        rows.append((schema.task, {**named, "problem": (problems or {}).get(task.id)}))
    return rows


def task_body(task: Task) -> str:
    """A task's JSON, less the author's own implementation and the place where the file lay."""
    return dumps(replace(task, impl=None, path=""))


def session_row(run: str, settings: Mapping[str, Any], versions: Mapping[str, Any], commit: str | None) -> Row:
    values = {"settings": dumps(settings), "versions": dumps(versions), "commit": commit}
    return schema.session, {"run": run, **values, "at": time.time()}


def round_row(run: str, info: RoundInfo) -> Row:
    lists = {"demonstrations": dumps(info.demonstrations), "attempted": dumps(info.attempted)}
    place = {"run": run, "number": info.number, "cycle": info.cycle, "level": info.level}
    phase = None if info.phase == FUNCTIONAL else info.phase
    fit = None if info.fit is None else dumps(info.fit)
    return schema.round_, {**place, **lists, "planned": info.planned, "phase": phase, "fit": fit, "at": time.time()}


def prompt_rows(messages: Sequence[Message]) -> tuple[str, list[Row]]:
    """The prompt's hash, and its texts; a message that is in the store already costs nothing.

    A prompt is [[role, hash of the text], ...]. Where there are pictures, [[media, hash of the base64], ...] stands
    third; where tools are called, `_index_calls` fourth.
    """
    rows: list[Row] = []

    def name_text(body: str) -> str:
        rows.append(text_row(body))
        return str(rows[-1][1]["hash"])

    named: list[list[Any]] = []
    for message in messages:
        pictures = [[picture.media, name_text(picture.data)] for picture in message.images]
        calls = _index_calls(message, name_text)
        further = [pictures, calls] if calls else [pictures] if pictures else []
        named.append([message.role, name_text(message.content), *further])
    prompt = name_text(dumps(named))
    return prompt, rows


def _index_calls(message: Message, name_text: Callable[[str], str]) -> dict[str, Any]:
    """What a message has to do with tools; empty: nothing."""
    calls = [[call.id, call.name, name_text(call.arguments)] for call in message.calls]
    raw = name_text(message.raw) if message.raw else None
    entries = {"calls": calls, "call": message.call, "raw": raw}
    return {name: entry for name, entry in entries.items() if entry}


def read_prompt_names(index: str) -> list[PromptMessage]:
    """The inverse of what `prompt_rows` keeps under the prompt's hash."""
    return [_read_named(*entry) for entry in json.loads(index)]


def _read_named(
    role: Literal["system", "user", "assistant", "tool"],
    text: str,
    pictures: Sequence[Sequence[str]] = (),
    tools: Mapping[str, Any] | None = None,
) -> PromptMessage:
    tools = tools or {}
    calls = tuple((call, name, arguments) for call, name, arguments in tools.get("calls", ()))
    named = tuple((media, name) for media, name in pictures)
    return PromptMessage(role, text, named, calls, tools.get("call", ""), tools.get("raw"))


def reply_rows(
    key: SampleKey,
    agent: str,
    prompt: str,
    request: Request,
    reply: Reply,
    seconds: float,
    role_model: str | None = None,
) -> list[Row]:
    """A request with its reply. A request without one leaves no row: it is asked again. `role_model`: of a role
    that has one to itself; None: the sample's."""
    name = key.request_id(agent)
    names = {"id": name, "agent": agent, "sample": key.id, "prompt": prompt}
    place = {"run": key.run, "round": key.round, "task": key.task, "temperature": key.temperature}
    limits = {"number": key.number, "seed": request.seed, "max_tokens": request.max_tokens}
    phase = None if key.phase == FUNCTIONAL else key.phase
    has_calls = any(reply.calls) or any(reply.raw)  # else nothing of it must go back as it came
    calls = dumps({"calls": reply.calls, "raw": reply.raw}) if has_calls else None
    lists = {"texts": dumps(reply.texts), "finish": dumps(reply.finish), "calls": calls}
    bill = {**to_json(reply.usage), "reasoning_tokens": reply.usage.reasoning_tokens or None}
    received = {"request": name, "run": key.run, "model": reply.model, **lists, **bill, "shared": reply.shared or None}
    return [
        (schema.request, {**names, **place, **limits, "phase": phase, "asked": role_model or key.model or None}),
        (schema.reply, {**received, "seconds": seconds, "at": time.time()}),
    ]


def read_calls(text: str | None) -> tuple[tuple[tuple[ToolCall, ...], ...], tuple[str, ...]]:
    """`Reply.calls` and `Reply.raw` from the column of a reply."""
    if text is None:
        return (), ()
    stored = json.loads(text)
    return tuple(tuple(ToolCall(**call) for call in calls) for calls in stored["calls"]), tuple(stored["raw"])


def tool_call_rows(key: SampleKey, entry: ToolCallEntry) -> list[Row]:
    """A call of a tool with its result."""
    arguments, result = text_row(entry.arguments), text_row(entry.result)
    named = {"number": entry.number, "turn": entry.turn, "name": entry.name, "outcome": entry.outcome}
    hashes = {"arguments": arguments[1]["hash"], "result": result[1]["hash"]}
    columns = _sample_columns(key, **named, **hashes, seconds=entry.seconds, at=time.time())
    return [arguments, result, (schema.tool_call, columns)]


def suggestion_rows(key: SampleKey, suggestion: Suggestion) -> list[Row]:
    """What was suggested to a sample."""
    body = text_row(dumps(suggestion))
    return [body, (schema.suggestion, _sample_columns(key, body=body[1]["hash"], at=time.time()))]


def failure_row(key: SampleKey, charged_to: Boundary | None, message: str) -> Row:
    """Why a sample is left unjudged; `charged_to` None: nobody is at fault."""
    place = {"run": key.run, "sample": key.id, "round": key.round, "task": key.task}
    charged = NOBODY if charged_to is None else charged_to.value
    charge = {"charged_to": charged, "message": message, "asked": key.model or None}
    return schema.failure, {**place, **charge, "at": time.time()}


def judged_rows(key: SampleKey, candidates: Sequence[Judged]) -> list[Row]:
    """All candidates of a sample with their verdicts; the last one is what the sample counts by.

    A candidate that was written twice in one sample has one row, and its agent is the first one that wrote it; of
    several replies without a program the last one's verdict stays.
    """
    rows: list[Row] = []
    different = {candidate.name: candidate for candidate in reversed(candidates)}
    if not candidates[-1].name:
        different[""] = candidates[-1]
    for name, candidate in different.items():
        body = dumps(replace(candidate.verdict, judging_seconds=0.0))
        outcome = {
            "stage": candidate.verdict.stage.name,
            "outcome": candidate.verdict.outcome.value,
            "body": content_hash(body),
        }
        times = {"seconds": candidate.verdict.judging_seconds, "at": time.time()}
        final = name == candidates[-1].name
        build = None if candidate.build is None else text_row(dumps(candidate.build))
        built = {"device": candidate.device, "build": build and build[1]["hash"]}
        rows.append((schema.verdict, _sample_columns(key, candidate=name, final=final, **outcome, **times, **built)))
        rows += [text_row(body), *([build] if build else [])]
        if candidate.source is not None:
            rows.append(text_row(candidate.source))
            parent = {"parent": candidate.parent, "parent_sample": candidate.parent_sample}
            rows.append((schema.candidate, _sample_columns(key, id=name, agent=candidate.agent, **parent)))
    return rows


def full_verdict_rows(run: str, sample: str, verdict: Verdict) -> list[Row]:
    """The full level's verdict on a sample's program."""
    body = text_row(dumps(replace(verdict, judging_seconds=0.0)))
    place = {"sample": sample, "candidate": verdict.candidate, "run": run, "body": body[1]["hash"]}
    outcome = {"stage": verdict.stage.name, "outcome": verdict.outcome.value}
    times = {"seconds": verdict.judging_seconds, "at": time.time()}
    return [body, (schema.full_verdict, {**place, **outcome, **times})]


def experience_rows(run: str, experience: Experience, sample: str | None, contaminated: bool) -> list[Row]:
    task = {
        "task": experience.task.id,
        "digest": experience.task.digest,
        "body": content_hash(task_body(experience.task)),
    }
    earned = {"round": experience.round, "success_rate": experience.success_rate, "origin": experience.origin}
    source = content_hash(experience.source)
    row = {"run": run, **task, **earned, "source": source, "sample": sample, "contaminated": contaminated}
    row["gain"] = experience.gain
    return [text_row(experience.source), text_row(task_body(experience.task)), (schema.experience, row)]


def known_rows(run: str, program: KnownProgram, verdict: Verdict) -> list[Row]:
    """A program that was given to a run, and what the full level says of it."""
    texts = (task_body(program.task), program.source, dumps(replace(verdict, judging_seconds=0.0)))
    rows = [text_row(body) for body in texts]
    hashes = dict(zip(("body", "source", "verdict"), (values["hash"] for _, values in rows), strict=True))
    about = {"run": run, "task": program.task.id, "author": program.author, "place": program.place}
    return [*rows, (schema.known, {**about, **hashes, "seconds": verdict.judging_seconds, "at": time.time()})]


def round_end_row(run: str, number: int, solved: Sequence[str]) -> Row:
    return schema.round_end, {"run": run, "number": number, "solved": dumps(solved), "at": time.time()}


def run_end_row(run: str, reason: str) -> Row:
    return schema.run_end, {"run": run, "reason": reason, "at": time.time()}


def control_row(run: str, wish: Wish) -> Row:
    return schema.control, {"run": run, "wish": wish, "at": time.time()}


def session_end_row(run: str, reason: str, seconds: float) -> Row:
    return schema.session_end, {"run": run, "reason": reason, "seconds": seconds, "at": time.time()}


def task_from_body(body: str) -> Task:
    return Task(**json.loads(body))


def _sample_columns(key: SampleKey, **values: object) -> dict[str, object]:
    return {"sample": key.id, "run": key.run, **values}


def _short_hash(*names: str) -> str:
    """128 bits name a sample: half the bytes of a full hash in four tables."""
    return content_hash(*names)[:32]
