"""An agent on the command line is a chat model: what it is handed, what is read from it, and that nothing stays."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
import time
from pathlib import Path

import pytest

from opsmith.errors import ProviderError, UsageError
from opsmith.models import Message, Reply, Request, ToolOffer
from opsmith.models.agent_output import read_output
from opsmith.models.attempt import Failure
from opsmith.models.command import CommandModel
from opsmith.models.limits import RateLimits
from opsmith.models.retry import Retry
from opsmith.records import Usage

from .drawings import draw_png

ASKED = Request(
    (Message("system", "Be brief."), Message("user", "2 + 2?"), Message("assistant", "5"), Message("user", "No."))
)
PROMPT = "# Instructions\n\nBe brief.\n\n# Request\n\n2 + 2?\n\n# Your earlier answer\n\n5\n\n# Request\n\nNo.\n"


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """`agent(script, args)`: the model behind a script, whose requests have `places` for folders."""
    places = tmp_path / "places"
    places.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(places))

    def make(
        script: str, arguments: str = "", attempts: int = 1, timeout: float = 60.0, pass_env=(), limit: int = 4
    ) -> CommandModel:
        file = tmp_path / "agent"
        file.write_text(f"#!{sys.executable}\n{script}" if not script.startswith("#!") else script)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

        async def hurry(_: float) -> None:
            pass

        retry = Retry(attempts=attempts, timeout_s=timeout, sleep=hurry)
        return CommandModel(f"command:{file} {arguments}".strip(), RateLimits(limit), retry, pass_env)

    yield make
    assert list(places.iterdir()) == []  # every request's folder is gone


def ask(model: CommandModel, request: Request = ASKED) -> Reply:
    return asyncio.run(model.complete(request))


def test_the_prompt_comes_on_the_input_and_the_reply_is_what_is_printed(agent):
    reply = ask(agent("import sys; print(sys.stdin.read(), end='')"))
    assert reply.texts == (PROMPT,)
    assert (reply.usage, reply.finish, reply.model) == (Usage(1, cost_usd=None), ("stop",), "")


def test_prompt_and_reply_may_be_files(agent):
    script = "import sys, shutil; print('noise', sys.stdin.read()); shutil.copy(sys.argv[1], sys.argv[2][2:])"
    assert ask(agent(script, "{prompt} o={reply}")).texts == (PROMPT,)


def test_each_request_has_an_empty_folder_of_its_own_and_sees_listed_variables_only(agent, monkeypatch, tmp_path):
    (tmp_path / "home-of-runs").mkdir()
    monkeypatch.chdir(tmp_path / "home-of-runs")
    for name in ("OPENAI_API_KEY", "OPSMITH_STORE", "MY_LOGIN", "UNNAMED"):
        monkeypatch.setenv(name, f"value-of-{name}")
    script = "import json, os; open('left', 'w'); print(json.dumps([os.getcwd(), os.listdir('.'), dict(os.environ)]))"
    model = agent(script, pass_env=("MY_LOGIN",))
    (first, files, variables), (second, _, _) = (
        json.loads(ask(model).texts[0].replace("[key]", "value")) for _ in range(2)
    )
    assert first != second
    assert files == ["left"]
    listed = {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "TERM",
        "TZ",
        "TMPDIR",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "MY_LOGIN",
    }
    python = {"LC_CTYPE"}  # which Python sets for itself
    assert {name for name in variables if not name.startswith("XDG_")} <= listed | python
    assert variables["MY_LOGIN"] == "value"  # blotted out of the reply: it may be a key
    assert Path(variables["TMPDIR"]).parent == Path(first).parent
    assert "home-of-runs" not in json.dumps([first, variables])


def test_a_slow_one_is_killed_with_all_that_it_started(agent, tmp_path):
    pids = tmp_path / "pids"
    script = (
        "import os, subprocess, sys, time\n"
        f"log = open({str(pids)!r}, 'a')\n"
        "for options in ({}, {'start_new_session': True}):\n"
        "    child = subprocess.Popen(['sleep', '600'], **options)\n"
        "    print(child.pid, file=log, flush=True)\n"
        "print(os.getpid(), file=log, flush=True)\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(ProviderError, match="no answer within 2 s"):
        ask(agent(script, timeout=2.0))
    started = [int(line) for line in pids.read_text().split()]
    assert len(started) == 3
    assert not any(is_running(pid) for pid in started)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_what_an_agent_leaves_behind_holds_up_no_reply_and_is_killed(agent):
    script = (
        "import os, subprocess; child = subprocess.Popen(['sleep', '600'], start_new_session=True); print(child.pid)"
    )
    began = time.monotonic()
    reply = ask(agent(script))
    assert time.monotonic() - began < 60
    assert not is_running(int(reply.texts[0]))


def test_nothing_goes_on_when_we_are_killed(agent, tmp_path):
    """Our end of the pipe is closed by the system then."""
    model = agent(
        "import os, time; print(os.getpid(), flush=True); open(os.environ['HOME'] + '/pid', 'w').write(str(os.getpid())); time.sleep(600)"
    )
    code = (
        "import asyncio, tempfile\n"
        f"tempfile.tempdir = {str(tmp_path / 'places')!r}\n"
        "from opsmith.models.agent_process import AgentOrder, run_agent\n"
        f"order = AgentOrder({model._order.command!r}, {{'PATH': '/usr/bin:/bin', 'HOME': {str(tmp_path)!r}}})\n"
        "asyncio.run(run_agent(order, 'x'))\n"
    )

    async def kill_in_the_midst() -> int:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        pid = int(await wait_for_text(tmp_path / "pid"))
        process.kill()
        await process.wait()
        for _ in range(200):
            if not is_running(pid) and not any((tmp_path / "places").iterdir()):
                break
            await asyncio.sleep(0.05)
        return pid

    assert not is_running(asyncio.run(kill_in_the_midst()))


async def wait_for_text(file: Path) -> str:
    for _ in range(400):
        if file.exists() and file.read_text():
            return file.read_text()
        await asyncio.sleep(0.05)
    raise AssertionError(f"{file} never came")


@pytest.mark.parametrize(
    ("script", "words", "attempts"),
    [
        ("import sys; print('one\\n\\nmore words', file=sys.stderr); sys.exit(3)", "exit code 3: one more words, after 2 attempts", 2),
        ("import sys; sys.exit(64)", "exit code 64: nothing on its standard error, after 1 attempt", 1),
        ("import os; os.kill(os.getpid(), 9)", "exit code 137", 2),
        ("#!/no/such/interpreter\n", "exit code 126: .*No such file or directory, after 1 attempt", 1),
        ("print('{\"is_error\": true, \"result\": \"Credit balance is too low\"}')", "the agent failed: Credit balance is too low", 2),
        ("import sys; sys.stdout.write('x' * (5 << 20))", "more than 4 MiB on its standard output, after 1 attempt", 1),
    ],
)  # fmt: skip
def test_a_failure_is_told_in_the_agents_words_and_sent_again_where_that_may_help(agent, script, words, attempts):
    with pytest.raises(ProviderError, match=words) as failure:
        ask(agent(script, attempts=2))
    assert ("after 2 attempts" in str(failure.value)) == (attempts == 2)
    assert "base-url" not in str(failure.value)


def test_a_key_that_an_agent_prints_is_in_no_message_and_no_reply(agent, monkeypatch):
    monkeypatch.setenv("OTHER_LOGIN", "correct-horse-battery")
    script = "import os, sys; print(os.environ['OTHER_LOGIN'], file=sys.stderr); print(os.environ['OTHER_LOGIN']); sys.exit(CODE)"
    assert ask(agent(script.replace("CODE", "0"), pass_env=("OTHER_LOGIN",))).texts == ("[key]\n",)
    with pytest.raises(ProviderError) as failure:
        ask(agent(script.replace("CODE", "1"), pass_env=("OTHER_LOGIN",)))
    assert "horse" not in str(failure.value)


def test_no_file_for_the_reply_is_a_failure_and_no_answer_is_none(agent):
    with pytest.raises(ProviderError, match=r"no file at \{reply\}"):
        ask(agent("print('x')", "{reply}"))
    assert ask(agent("print()")).finish == ("no text: the command answered nothing",)


def test_bytes_that_are_no_text_become_signs_that_say_so(agent):
    assert ask(agent("import sys; sys.stdout.buffer.write(b'a\\xff\\x00b')")).texts == ("a\ufffd\x00b",)


def test_an_agent_need_not_read_its_prompt(agent):
    long = Request((Message("user", "x" * 1_000_000),))
    assert ask(agent("print('ok')"), long).texts == ("ok\n",)


def test_pictures_are_left_out_and_that_is_said(agent, caplog):
    model = agent("import sys; print(sys.stdin.read())")
    reply = ask(model, Request((Message("user", "look", (draw_png(),)),)))
    assert (reply.blind, "look" in reply.texts[0]) == (True, True)
    assert "no pictures" in caplog.text


def test_tools_are_offered_and_called_by_text(agent):
    offer = ToolOffer("check", "Checks a program.", '{"type": "object"}')
    model = agent(
        "import sys; text = sys.stdin.read(); print('```tool\\nname: check\\narguments: {program: x}\\n```' if 'Checks a program.' in text else text)"
    )
    [[call]] = ask(model, Request((Message("user", "go"),), tools=(offer,))).calls
    assert (call.name, call.arguments) == ("check", '{"program":"x"}')
    told = (Message("user", "go"), Message("assistant", "", calls=(call,)), Message("tool", "Refused.", call=call.id))
    last = ask(model, Request(told, tools=(offer,), may_call=False))
    assert "Results of the tools:" in last.texts[0]
    assert last.calls == ()


def test_as_many_run_at_once_as_the_setting_says(agent, tmp_path):
    script = (
        "import os, time\n"
        f"folder = {str(tmp_path)!r} + '/now'\n"
        "os.makedirs(folder, exist_ok=True)\n"
        "open(f'{folder}/{os.getpid()}', 'w').close()\n"
        "time.sleep(0.2)\n"
        "print(len(os.listdir(folder)))\n"
        "os.remove(f'{folder}/{os.getpid()}')\n"
    )

    async def ask_often(model: CommandModel) -> list[int]:
        return [int(reply.texts[0]) for reply in await asyncio.gather(*(model.complete(ASKED) for _ in range(6)))]

    assert max(asyncio.run(ask_often(agent(script, limit=2)))) == 2


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("command:no-such-agent -p", "no program here"),
        ("command:sh -c 'oops", "no closing quotation"),
        ("command:   ", "given no program"),
        ("command:sh -c 'curl -H \"Authorization: Bearer abcdefghijkl\"'", "looks like a key"),
    ],
)
def test_a_command_that_cannot_be_started_is_refused_before_anything_is_asked(name, words):
    with pytest.raises(UsageError, match=words) as refusal:
        CommandModel(name, RateLimits(), Retry())
    assert "abcdefgh" not in str(refusal.value)


def test_a_variable_to_pass_has_to_be_there():
    with pytest.raises(UsageError, match="--pass-env: given NOT_THERE_AT_ALL"):
        CommandModel("command:sh", RateLimits(), Retry(), ("NOT_THERE_AT_ALL",))


EVENTS = "\n".join(
    json.dumps(event)
    for event in (
        {"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "impl: x"}},
        {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 9}},
    )
)
RESULT = {"type": "result", "result": "impl: x", "total_cost_usd": 0.25, "modelUsage": {"m-1": {}}}
RESULT["usage"] = {
    "input_tokens": 5,
    "cache_read_input_tokens": 40,
    "cache_creation_input_tokens": 10,
    "output_tokens": 9,
}


@pytest.mark.parametrize(
    ("printed", "usage", "model"),
    [
        (json.dumps(RESULT), Usage(1, 55, 9, 40, 0.25), "m-1"),
        (json.dumps(RESULT, indent=1), Usage(1, 55, 9, 40, 0.25), "m-1"),
        ('{"type": "assistant"}\n' + json.dumps(RESULT) + "\n", Usage(1, 55, 9, 40, 0.25), "m-1"),
        (EVENTS, Usage(1, 100, 9, 40, None), ""),
        ('{"response": "impl: x", "stats": {}}', Usage(1, cost_usd=None), ""),
        ('impl: x\n{"usage": {"input_tokens": 7, "output_tokens": true}}\n', Usage(1, 7, 0, 0, None), ""),
        ('{"result": "impl: x", "usage": {"input_tokens": -1, "output_tokens": 1e9}, "total_cost_usd": Infinity}', Usage(1, cost_usd=None), ""),
    ],
)  # fmt: skip
def test_usage_is_read_where_an_agent_reports_it(printed, usage, model):
    reply = read_output(printed)
    assert (reply.texts[0].strip(), reply.usage, reply.model) == ("impl: x", usage, model)


@pytest.mark.parametrize(
    "printed", ['{"impl": "x"}', "[1]", "text\n{'a': 1}", '{"a": 1}\n{"impl": "x"}', "{" * 100_000]
)
def test_json_that_reports_nothing_is_the_answer_itself(printed):
    assert read_output(printed).texts == (printed,)


def test_a_reply_in_a_file_is_the_text_and_what_is_printed_the_usage():
    reply = read_output(EVENTS, "from the file")
    assert (reply.texts, reply.usage.input_tokens) == (("from the file",), 100)


def test_an_agent_that_ended_without_a_result_failed():
    with pytest.raises(Failure, match="error_max_turns"):
        read_output('{"type": "result", "subtype": "error_max_turns"}')
