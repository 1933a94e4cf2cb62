"""What a client may call and read: tasks, prompts, the tools of `opsmith.tools`, submissions, references, experiences.

Nothing here knows the protocol. All that is answered is a text in words that a model reads; a failure of what was asked
is an answer too. Hidden sizes are in none of them: texts of tasks are those of prompts, verdicts are those of tools.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import Field, create_model

from opsmith.agents.manual import find_manual
from opsmith.agents.prompt import compose_prompt, write_system_prompt
from opsmith.errors import OpsmithError, StoreError, UsageError, VerifierError
from opsmith.judging.judge import Judge
from opsmith.judging.trust import is_bundled
from opsmith.mcp.places import LANGUAGES, LONGEST_NAME, TaskPlaces, hide_places
from opsmith.measuring.orders import Measurer
from opsmith.records import KnownProgram, Level, Outcome, Task, printable
from opsmith.results.bests import list_best
from opsmith.targets import get_target
from opsmith.tools import Tool, ToolContext, ToolOutcome, ToolResult
from opsmith.tools.arguments import Program, ToolArguments, WrongArgumentsError, check_arguments, write_schema
from opsmith.tools.table import TOOLS, run_tool
from opsmith.tools.trying import describe_verdict
from opsmith.tools.wording import bound_text, unwrap_program

if TYPE_CHECKING:
    from opsmith.store import Store

log = logging.getLogger("opsmith.mcp")
MOST_AT_WORK = 64  # calls of all clients
MOST_OF_CLIENT = 16  # of these, where there may be several clients
MOST_RUNS = 50  # that are listed: the latest
MOST_EXPERIENCES = 200  # of a run that are read: the first
MOST_LISTED = 200_000  # characters of a list, a prompt or a resource
SCHEME = "opsmith://"
_SERVED = {  # by the names of the command line; examples are those of a run, which are resources here
    {"try": "verify"}.get(name, name): tool for name, tool in TOOLS.items() if name != "examples"
}
_WORKING = frozenset({"verify", "submit", "cost", "measure"})  # what takes a worker
_RESOURCE = re.compile(r"opsmith://(?:language/(?P<language>[\w-]{1,40})|runs/(?P<run>[\w. -]{1,200})/experiences)")


class ListArguments(ToolArguments):
    """What is listed."""

    suite: str = Field(default="", max_length=LONGEST_NAME, description="One suite's alone; empty: all tasks.")


class LanguageArguments(ToolArguments):
    """The language that is spoken of."""

    target: str = Field(
        default="", max_length=40, description=f"The language, where it is not the usual one: {' or '.join(LANGUAGES)}."
    )


class TaskArguments(LanguageArguments):
    """A task, and the language that it is asked for in."""

    task: str = Field(max_length=10 * LONGEST_NAME, description="A task's name, as `list_tasks` lists it.")


class SubmissionArguments(TaskArguments):
    """A program for a task."""

    program: Program
    run: str = Field(
        default="",
        max_length=200,
        description="A run of the user's that goes on and has the task: from its next round on it shows the program.",
    )


@dataclass(frozen=True)
class ServedTool:
    """A tool as clients see it."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class ServedResource:
    """A text that clients may read."""

    uri: str
    name: str
    description: str
    media: str = "text/plain"


@dataclass(frozen=True)
class ServedText:
    """A resource's content."""

    text: str
    media: str = "text/plain"


_OWN: Mapping[str, tuple[type[ToolArguments], str]] = {
    "list_tasks": (ListArguments, "List the tasks that programs may be written for, one a line: suite, name."),
    "show_task": (TaskArguments, "Show a task: what is asked for, in the text that a model is shown."),
    "prompt": (TaskArguments, "Show the whole prompt of a task: the language, its rules and the task."),
    "submit": (
        SubmissionArguments,
        "Submit a program for a task. It is judged harder than `verify` judges; a right one is kept in the store that "
        "the user stated, as imported from you; with `run`, that run shows it from its next round on.",
    ),
}


class Service:
    """One for all clients. `store` None: nothing is kept, and there are no experiences. `share`: the workers that one
    client's calls may have at once, where there may be several. `manual`: files of the usual language's."""

    def __init__(
        self,
        places: TaskPlaces,
        judge: Judge,
        store: Store | None = None,
        make_measurer: Callable[[], Measurer] | None = None,
        share: int = 1,
        manual: Sequence[str] = (),
    ) -> None:
        self._places = places
        self._judge = judge
        language = places.choose_language("")
        self._manuals = {language: find_manual(get_target(language), manual)} if manual else {}
        self._store = store
        self._make_measurer = None if make_measurer is None else cache(make_measurer)  # slow to import
        self._at_work = Counter[str]()  # calls by client
        self._turns: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(share))

    def list_tools(self) -> Iterator[ServedTool]:
        for name, (arguments, description) in _OWN.items():
            yield ServedTool(name, description, write_schema(arguments))
        for name, tool in _SERVED.items():
            schema = _join_schemas(write_schema(_choose_outer(tool)), write_schema(tool.arguments))
            yield ServedTool(name, tool.description, schema)

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], client: str = "", connection: str = ""
    ) -> ToolResult:
        """The answer to a call. Raises nothing for what a client may send. Cancelled, it frees its worker.

        `connection`: which of several clients calls; "": there is only one.
        """
        most = MOST_OF_CLIENT if connection else MOST_AT_WORK
        if self._at_work[connection] >= most or self._at_work.total() >= MOST_AT_WORK:
            return ToolResult("too many calls are under way; try again later", ToolOutcome.LIMIT)
        self._at_work[connection] += 1
        try:
            with self._speaking_plainly(f"tool {name[:LONGEST_NAME]}", str(arguments)):
                async with self._turns[connection] if connection and name in _WORKING else contextlib.nullcontext():
                    result = await self._answer_call(name, arguments, client)
            if result.outcome is ToolOutcome.OK:
                return result
            return replace(result, text=self._hide_places(result.text, str(arguments)))
        except UsageError as error:
            return ToolResult(bound_text(str(error)), ToolOutcome.REFUSED)
        except OpsmithError as error:
            return ToolResult(str(error), ToolOutcome.ERROR)
        finally:
            self._at_work[connection] -= 1
            if not self._at_work[connection]:
                del self._at_work[connection]
                self._turns.pop(connection, None)

    @contextlib.contextmanager
    def _speaking_plainly(self, what: str, given: str) -> Iterator[None]:
        """Raises UsageError for what the client can mend, VerifierError for anything else; neither names a place of
        this machine."""
        try:
            yield
        except WrongArgumentsError as mistake:
            raise UsageError(str(mistake)) from None
        except StoreError as error:
            log.error("%s", error)
            raise VerifierError("the user's store failed, which is told to the user; nothing was kept") from None
        except OpsmithError as error:
            raise UsageError(self._hide_places(str(error), given)) from None
        except Exception:
            log.exception("%s failed", printable(what))
            raise VerifierError("it failed, for a reason that is not yours; go on without it") from None

    def _hide_places(self, text: str, given: str) -> str:
        return hide_places(text, given, [] if self._store is None else [str(self._store.path)])

    async def _answer_call(self, name: str, arguments: Mapping[str, Any], client: str) -> ToolResult:
        if name == "list_tasks":
            return ToolResult(self._list_tasks(_read(name, ListArguments, arguments).suite))
        if name == "submit":
            return await self._submit_program(_read(name, SubmissionArguments, arguments), client)
        if name in _OWN:
            asked_task = _read(name, TaskArguments, arguments)
            task = self._places.read_task(asked_task.task, asked_task.target)
            return ToolResult(
                bound_text(task.prompt_text if name == "show_task" else self._write_prompt(task), MOST_LISTED)
            )
        if name not in _SERVED:
            known_names = ", ".join((*_OWN, *_SERVED))
            raise UsageError(f"tool {name[:LONGEST_NAME]!r}: there is none; known: {known_names}")
        tool = _SERVED[name]
        kind = _choose_outer(tool)
        outer = {key: value for key, value in arguments.items() if key in kind.model_fields}
        inner = {key: value for key, value in arguments.items() if key not in outer}
        context = self._make_context(_read(name, kind, outer))
        if name == "measure" and self._make_measurer is not None:
            context = replace(context, measurer=self._make_measurer())
        joined = create_model("JoinedArguments", __base__=(_choose_outer(tool), tool.arguments))
        _read(name, joined, arguments)  # all of them, so that what is wrong is said by the names that clients see
        return await run_tool(tool, context, inner)

    def _list_tasks(self, suite: str) -> str:
        rows = [f"{place or '-':12} {name}" for place, name in self._places.list_names() if suite in ("", place)]
        if not rows:
            raise UsageError(f"suite {suite!r}: no such suite; try: no suite, which lists all tasks")
        return bound_text("\n".join(rows), MOST_LISTED)

    def _make_context(self, arguments: LanguageArguments) -> ToolContext:
        if isinstance(arguments, TaskArguments):
            task = self._places.read_task(arguments.task, arguments.target)
            is_bundled(
                task
            )  # it parses files, which CPython 3.11 cannot do in two threads at once: here, not in theirs
        else:
            task = Task("", self._places.choose_language(arguments.target), "")
        return ToolContext(get_target(task.target), task, self._judge, manual=self._manuals.get(task.target))

    def _write_prompt(self, task: Task) -> str:
        prompt = compose_prompt(task, (), get_target(task.target), None, 0, manual=self._manuals.get(task.target))
        return "\n\n".join(f"--- {message.role} ---\n{message.content}" for message in prompt.messages)

    async def _submit_program(self, arguments: SubmissionArguments, client: str) -> ToolResult:
        if self._store is None:
            raise UsageError("submit: there is no store; try: opsmith mcp --out FOLDER; `verify` judges without one")
        from opsmith.mcp import importing  # noqa: PLC0415 - the tables of a store, which few need

        run = self._store.find_run(arguments.run) if arguments.run else ""
        if run:
            task = importing.find_submitted(self._store, run, arguments.task)
            context = ToolContext(get_target(task.target), task, self._judge)
        else:
            context = self._make_context(arguments)
        source = unwrap_program(context.target, context.task, arguments.program)
        if run:
            program = KnownProgram(context.task, source, "model", importing.clean_name(client))
            verdict = await importing.submit_program(self._store, run, program, self._judge)
        else:
            verdict = await self._judge.judge(context.task, source, Level.FULL)
        text = describe_verdict(context, verdict)
        if not verdict.passed:
            outcome = ToolOutcome.ERROR if verdict.outcome is Outcome.UNJUDGED else ToolOutcome.OK
            return ToolResult(bound_text(f"{text}\n\nIt is not kept."), outcome)
        if run:
            return ToolResult(f"{text}\n\nIt is kept: run {run} shows it from its next round on, as yours.")
        run = await importing.import_program(self._store, client, context.task, source, verdict)
        return ToolResult(f"{text}\n\nIt is kept as imported from {client or 'an unnamed client'}: run {run}.")

    def list_resources(self) -> Iterator[ServedResource]:
        """Raises VerifierError for a store that cannot be read."""
        for language in LANGUAGES:
            yield ServedResource(f"{SCHEME}language/{language}", language, f"The reference of the language {language}.")
        with self._speaking_plainly("the list of resources", ""):
            for summary in self._store.list_runs()[-MOST_RUNS:] if self._store is not None else ():
                name = f"experiences of {summary.info.id}"
                uri = f"{SCHEME}runs/{summary.info.id}/experiences"
                yield ServedResource(uri, name, "Solved tasks with their programs.", "application/json")

    def read_resource(self, uri: str) -> ServedText:
        """Raises UsageError for what is not there, VerifierError for a store that cannot be read."""
        with self._speaking_plainly("a resource", uri):
            return self._find_text(uri)

    def _find_text(self, uri: str) -> ServedText:
        match = _RESOURCE.fullmatch(uri)
        if match and match["language"] in LANGUAGES:
            return ServedText(write_system_prompt(get_target(match["language"]), "structural"))
        if match and match["run"] and self._store is not None:
            return ServedText(_write_experiences(self._store, match["run"]), "application/json")
        raise UsageError(f"resource {uri[:LONGEST_NAME]!r}: there is none; try: the list of resources")


def _read(name: str, kind: Any, arguments: Mapping[str, Any]) -> Any:
    return check_arguments(name, kind, arguments)


def _choose_outer(tool: Tool[Any]) -> type[LanguageArguments]:
    """What a call names beside the tool's own arguments."""
    return LanguageArguments if tool.name == "language" else TaskArguments


def _join_schemas(outer: Mapping[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    properties = {**outer["properties"], **inner["properties"]}
    required = [*outer.get("required", ()), *inner.get("required", ())]
    return {**inner, "properties": properties, "required": required}


def _write_experiences(store: Store, name: str) -> str:
    """A run's solutions as a JSON list: each task as a prompt shows it, and its program."""
    entries = [best.experience for best in list_best(store, store.find_run(name))[:MOST_EXPERIENCES]]
    rows = [
        {
            "task": experience.task.id,
            "target": experience.task.target,
            "success_rate": experience.success_rate,
            "text": experience.task.prompt_text,
            "program": experience.source,
        }
        for experience in entries
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False)
