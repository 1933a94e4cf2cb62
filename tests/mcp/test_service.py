"""What an agent from outside may call and read: by the SDK's own client, in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import Implementation

from opsmith.api import load_task
from opsmith.errors import UsageError
from opsmith.judging.files import ProgramSource, judge_files
from opsmith.mcp.places import TaskPlaces
from opsmith.mcp.server import make_server
from opsmith.mcp.service import MOST_AT_WORK, Service
from opsmith.records import Level
from opsmith.results.bests import list_best
from opsmith.results.result import result_of
from opsmith.store import Store
from opsmith.suites import find_files

TASK = "gemm_2"
RIGHT = load_task(TASK).impl or ""
DOUBLED = """\
E2 = step.Streamify().apply(step.Repeat(n=M).apply(step.Bufferize(a=1).apply(E1)))
A = step.Accum(fn=fn_add, b=1).apply(step.Map(fn=fn_mul).apply((E0, E2)))
A, B = step.Copy().apply(A)
B = step.Accum(fn=fn_add, b=1).apply(step.Repeat(n=2).apply(B))
"""
WRONG_HIDDEN = f"{DOUBLED}return [B, A, A, A, A, A, A][K_value - 7 * (K_value // 7)]"
PROGRAMS = {
    "right": RIGHT,
    "wrong": f"{DOUBLED}return [A, B][1]",
    "wrong at sizes that are not shown": WRONG_HIDDEN,
    "mistyped": RIGHT.replace("fn_mul", "fn_add"),
    "no program": "I could not solve this.",
    "a bomb": "return " + "[" * 20_000 + "E0" + "]" * 20_000,
}


class Answer:
    def __init__(self, result: Any) -> None:
        self.is_error: bool = result.is_error
        self.text: str = "\n".join(content.text for content in result.content)
        head = dict(line.split(": ", 1) for line in self.text.splitlines() if ": " in line)
        self.verdict = (head.get("outcome"), head.get("stage"), head.get("charged_to"))


@pytest.fixture
def places(tmp_path) -> TaskPlaces:
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "mine.yaml").write_text(Path(load_task(TASK).path).read_text())
    (folder / "inner").mkdir()
    (folder / "inner" / "also.yaml").write_text(Path(load_task(TASK).path).read_text())
    (tmp_path / "outside.yaml").write_text("secret: 1\n")
    (folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (folder / "way").symlink_to(tmp_path)
    (folder / "own.yaml").write_text("target: tiny_target:TINY\ninputs: {x: [1]}\nwant: [1]\n")
    return TaskPlaces((folder,))


@pytest.fixture
def speak(places, shared_pool) -> Callable[..., Any]:
    """`speak(work)`: what `work(client)` brings, of a client of a server with or without a store."""

    def connect(work: Callable[[Client], Awaitable[Any]], store: Store | None = None, name: str = "tester") -> Any:
        async def go() -> Any:
            server = make_server(Service(places, shared_pool, store))
            async with Client(server, client_info=Implementation(name=name, version="1")) as client:
                return await work(client)

        return asyncio.run(go())

    return connect


async def call(client: Client, tool: str, **arguments: object) -> Answer:
    return Answer(await client.call_tool(tool, arguments))


def test_verdicts_are_those_of_the_command_line(speak, shared_pool):
    async def verify_all(client: Client) -> dict[str, Answer]:
        return {name: await call(client, "verify", task=TASK, program=source) for name, source in PROGRAMS.items()}

    answers = speak(verify_all)
    for name, source in PROGRAMS.items():
        [judged] = judge_files(find_files([TASK]), ProgramSource(source), shared_pool)
        verdict = judged.verdict
        assert answers[name].verdict == (verdict.outcome, verdict.stage.name, verdict.charged_to), name
    assert answers["right"].verdict == ("passed", "MATCH", "candidate")
    assert [answer.verdict[1] for answer in answers.values()] == ["MATCH", "MATCH", "MATCH", "TYPE", "PARSE", "PARSE"]


def test_no_answer_holds_a_hidden_size(speak, shared_pool):
    [judged] = judge_files(find_files([TASK]), ProgramSource(WRONG_HIDDEN), shared_pool)
    assert "K = 7, M = 5" in judged.verdict.warnings[0]  # which people are told

    async def ask_for_sizes(client: Client) -> list[str]:
        texts = [(await call(client, tool, task=TASK, program=WRONG_HIDDEN)).text for tool in ("check", "verify")]
        return [*texts, *[(await call(client, tool, task=TASK)).text for tool in ("show_task", "prompt")]]

    texts = speak(ask_for_sizes)
    assert "sizes not shown" in texts[1]
    assert not any("K = 7" in text or "not for models" in text for text in texts)
    assert "shapes:" not in texts[2]


def test_tools_and_resources_tell_what_they_are(speak):
    async def look_around(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        tasks, figures = {"list_tasks", "show_task", "prompt", "submit"}, {"cost", "measure"}
        assert set(tools) == tasks | figures | {"language", "check", "verify"}
        assert all(tool.description and tool.input_schema["additionalProperties"] is False for tool in tools.values())
        listed = (await call(client, "list_tasks")).text.split("\n")
        assert "-            mine.yaml" in listed
        assert f"step26       {TASK}" in listed
        assert not any("link" in line for line in listed)
        assert (await call(client, "prompt", task="mine.yaml")).text.count("--- user ---") == 1
        assert "Bufferize" in (await call(client, "language", topic="Bufferize")).text
        assert (await call(client, "verify", task="inner/also.yaml", program=RIGHT)).verdict[0] == "passed"
        assert "off_chip" in (await call(client, "cost", task=TASK, program=RIGHT)).text
        untimed = await call(client, "measure", task=TASK, program=RIGHT)
        assert (untimed.is_error, "Not measured" in untimed.text) == (True, True)
        uris = [resource.uri for resource in (await client.list_resources()).resources]
        assert "opsmith://language/step" in uris
        [content] = (await client.read_resource("opsmith://language/step")).contents
        assert "Bufferize" in content.text
        with pytest.raises(MCPError, match="there is none"):
            await client.read_resource("opsmith://runs/x/experiences")

    speak(look_around)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../outside.yaml", "no `..`"),
        ("inner/../../outside.yaml", "no `..`"),
        ("link.yaml", "no link"),
        ("way/outside.yaml", "no link"),
        ("/etc/passwd", "no absolute path"),
        ("mine.yaml\0.yaml", "printable name"),
        ("a\x1b[2Jb", "printable name"),
        ("x" * 1999, "at most 200 characters"),
        ("x" * 100_000, "at most 2000 characters"),
        ("", "printable name"),
        ("inner", "list_tasks"),
        ("step26/../step26/gemm_2", "no `..`"),
        ("own.yaml", "a language that is built in"),
        (["mine.yaml"], "valid string"),
    ],
)
def test_other_paths_and_languages_are_refused_in_words(speak, name, words, tmp_path):
    answer = speak(lambda client: call(client, "show_task", task=name))
    assert answer.is_error
    assert words in answer.text
    assert len(answer.text) < 1000
    assert "secret" not in answer.text
    assert str(tmp_path) not in answer.text
    assert all(char.isprintable() or char == "\n" for char in answer.text)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("verify", {"task": TASK}, "verify, argument 'program'"),
        ("verify", {"task": "kernels/softmax", "program": "x"}, "kernels/softmax: given a problem that states no language; "
         "expected the one to write in; try: the argument `target`"),
        ("verify", {"task": TASK, "program": "x" * 200_000}, "at most"),
        ("verify", {"task": TASK, "program": 7}, "int '7'"),
        ("verify", {"task": TASK, "program": "x", "sizes": True}, "argument 'sizes'"),
        ("verify", {"task": TASK, "program": "x", "target": "tiny_target:TINY"}, "expected one of c, cuda, metal, step, triton, tvm, wgsl"),
        ("show_task", {"task": TASK, "target": "../x.toml"}, "expected one of c, cuda, metal, step, triton, tvm, wgsl"),
        ("list_tasks", {"suite": "../"}, "no such suite"),
        ("no_such_tool", {}, "there is none"),
        ("submit", {"task": TASK, "program": "x"}, "there is no store"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_answered_in_words(speak, tool, arguments, words):
    answer = speak(lambda client: call(client, tool, **arguments))
    assert answer.is_error
    assert words in answer.text
    assert len(answer.text) < 1000


def test_what_is_submitted_is_judged_and_kept_as_imported(speak, tmp_path):
    async def submit(client: Client) -> list[str]:
        texts = [
            (await call(client, "submit", task=TASK, program=PROGRAMS[name])).text
            for name in ("wrong", "right", "right")
        ]
        texts.append((await call(client, "submit", task=TASK, program=f"# another one\n{RIGHT}")).text)
        uris = [resource.uri for resource in (await client.list_resources()).resources if "runs/" in resource.uri]
        return [*texts, *[(await client.read_resource(uri)).contents[0].text for uri in uris]]

    with Store.open(tmp_path / "runs") as store:
        wrong, first, again, other, *experiences = speak(submit, store, "Claude Code/2")
        assert "not kept" in wrong
        assert "imported from Claude Code/2" in first
        assert again == first
        summaries = store.list_runs()
        assert len(summaries) == 2
        run = next(summary.info.id for summary in summaries if summary.info.id in first)
        assert run not in other
        info = store.read_info(run)
        assert info is not None
        assert info.model == "import:Claude Code 2"
        [best] = [entry.experience for entry in list_best(store, run)]
        assert (best.task.id, best.source, best.round, best.origin) == (TASK, RIGHT.rstrip(), -1, run)
        result = result_of(store, run)
        assert (result.finished, result.solved_before, result.usage.requests) == (True, (TASK,), 0)
    assert json.loads(experiences[0])[0]["task"] == TASK
    assert "shapes:" not in experiences[0]


def test_two_clients_are_served_at_once_and_one_that_gives_up_frees_its_worker(places, shared_pool):
    class Waiting:
        """A judge that two have to ask before either is answered; a third one waits for ever."""

        def __init__(self) -> None:
            self.asked, self.both, self.freed = 0, asyncio.Event(), asyncio.Event()

        async def judge(self, task: Any, source: str, level: Level = Level.CHEAP) -> Any:
            self.asked += 1
            if self.asked == 2:
                self.both.set()
            if source != "never":
                await self.both.wait()
                return await shared_pool.judge(task, source, level)
            try:
                await asyncio.Event().wait()
            finally:
                self.freed.set()

    async def go() -> None:
        judge = Waiting()
        server = make_server(Service(places, judge))
        async with Client(server) as one, Client(server) as two, asyncio.timeout(60):
            answers = await asyncio.gather(*(call(client, "verify", task=TASK, program=RIGHT) for client in (one, two)))
            assert [answer.verdict[0] for answer in answers] == ["passed", "passed"]
            waiting = asyncio.create_task(call(one, "verify", task=TASK, program="never"))
            while judge.asked < 3:
                await asyncio.sleep(0.01)
            waiting.cancel()
            await judge.freed.wait()

    asyncio.run(go())


def test_more_calls_than_can_be_worked_on_are_told_to_wait(places):
    class Silent:
        async def judge(self, task: Any, source: str, level: Level = Level.CHEAP) -> Any:
            await asyncio.Event().wait()

    async def go() -> Answer:
        service = Service(places, Silent())
        calls = [
            asyncio.create_task(service.call_tool("verify", {"task": TASK, "program": "x"}))
            for _ in range(MOST_AT_WORK)
        ]
        await asyncio.sleep(0)
        result = await service.call_tool("list_tasks", {})
        for waiting in calls:
            waiting.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert (await service.call_tool("list_tasks", {"suite": "step26"})).outcome == "ok"
        return result

    assert asyncio.run(go()).outcome == "limit"


def test_a_manual_of_the_users_language_is_looked_up_and_quoted(tmp_path, shared_pool):
    (tmp_path / "unit.md").write_text("## Waking the unit\n\n`zwake.u` wakes the unit before an exp.\n")
    service = Service(TaskPlaces((), "c"), shared_pool, manual=[str(tmp_path / "unit.md")])

    async def ask(name: str, arguments: dict[str, str]) -> str:
        return (await service.call_tool(name, arguments)).text

    assert "`zwake.u` wakes" in asyncio.run(ask("language", {"topic": "zwake.u"}))
    assert "`zwake.u` wakes" in asyncio.run(ask("prompt", {"task": "kernels/softmax"}))
    assert "zwake" not in asyncio.run(ask("language", {"topic": "waking", "target": "step"}))


def test_no_error_names_a_place_of_this_machine(speak, tmp_path):
    """The store of a user, in a folder with a blank, is asked for a run that it lacks, and then damaged."""

    async def ask(client: Client) -> list[str]:
        texts = []
        for uri in ("opsmith://runs/x/experiences", "opsmith://language/c-"):
            with pytest.raises(MCPError) as raised:
                await client.read_resource(uri)
            texts.append(str(raised.value))
        return texts

    async def use_damaged(client: Client) -> list[str]:
        with pytest.raises(MCPError) as raised:
            await client.list_resources()
        return [str(raised.value), (await call(client, "submit", task=TASK, program=RIGHT)).text]

    with Store.open(tmp_path / "my runs") as store:
        texts = speak(ask, store)
        assert "no such run in opsmith.sqlite" in texts[0]
    (tmp_path / "my runs" / "opsmith.sqlite").write_bytes(b"junk" * 5000)
    texts += speak(use_damaged, store)  # it is closed, too
    assert "the user's store failed" in texts[-1]
    assert not any("my runs" in text or str(tmp_path) in text for text in texts), texts


def test_a_folder_to_allow_has_to_be_one(tmp_path):
    with pytest.raises(UsageError, match="expected a folder"):
        TaskPlaces((tmp_path / "nothing",))
