"""No text of others steers the terminal that shows it: not a reply, a name, a file, an error; in a real terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from learn.tiny_run import SETTINGS, InProcess, TinyModel
from models.servers import OpenAIServer, refused
from terminals import shown_by
from tiny_target import register, tiny_task

from opsmith.learn.loop import improve
from opsmith.models import Reply, Request
from opsmith.records import Experience, Usage
from opsmith.store import Store

from .canary import SUM

TESTS = Path(__file__).parents[1]
STEERING = {
    "a colour": "\x1b[38;5;201m",
    "hidden text": "\x1b[8m",
    "another screen": "\x1b[?1049h",
    "a title": "\x1b]0;owned\x07",
    "a link": "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "the clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "C1": "\x9b2J\x90\x9d0;owned\x9c",
    "overwriting": "what was there\rOVER\x08\x7f\x0b\x0c",
    "direction": "\u202etxt.exe\u2066\u2069\u200f\u061c",
    "lines that are none": "\u2028\u2029\x85",
}
MARKUP = "[red]x[/red][link=http://evil.example]y[/link][/nothing] :bomb:"
EVIL = MARKUP + "".join(STEERING.values())
OF_RICH = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AK]")  # colours, the cursor, a line cleared
CODEGEN = ["codegen", "x\udcff\udc9b_0.yaml", "--impl", "program.txt"]
EACH = """
import json, os, sys
import opsmith.results.result, opsmith.report.pages, opsmith.report.comparison, opsmith.store
from opsmith.cli import main
for arguments in json.loads(sys.argv[1]):
    print("=====", flush=True)
    if os.fork() == 0:
        sys.argv = ["opsmith", *arguments]
        main()
    os.wait()
"""


def is_plain(shown: str) -> bool:
    """Whether it holds nothing but rich's own sequences, and no colour or mark that came from `EVIL`."""
    assert not [name for name, text in STEERING.items() if text in shown]
    assert "\rOVER" not in shown
    rest = OF_RICH.sub("", shown).replace("\r", "").replace("\n", "").replace("\t", "")
    assert rest.isprintable(), sorted({char for char in rest if not char.isprintable()})
    return True


class Hostile(TinyModel):
    """A model whose name and replies steer."""

    name = f"evil-{EVIL}"

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        return Reply((f"{EVIL}\r\nHere it is.\x1b\n{reply.texts[0]}",), Usage(1, 9, 9, 0, 0.1), self.name, (EVIL,))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of hostile tasks, and files of hostile names."""
    register()
    folder = tmp_path_factory.mktemp("hostile")
    names = [f"{EVIL}_0", "a\nb\n_1"]
    tasks = [tiny_task(name.replace("/", ""), "x y +", seed=at) for at, name in enumerate(names)]
    given = [Experience(tasks[0], f"x y + \\ {MARKUP}\x1b]0;owned\x07", 1.0, -1, "import")]
    with Store.open(folder / "runs") as store:
        for seed in (1, 2):
            settings = SETTINGS.replace(samples=2, max_rounds=1, seed=seed)
            improve(tasks, Hostile(), settings, store, judge=InProcess(), experiences=given[: seed - 1])
    for name in (EVIL.replace("/", ""), "x\udcff\udc9b"):
        (folder / f"{name}_0.yaml").write_text(SUM + "impl: x y +\n", encoding="utf-8")
    (folder / "wrong.txt").write_text(EVIL, encoding="utf-8")
    (folder / "program.txt").write_text("x y + \\ \x1b]0;owned\x07\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def shown(place: Path) -> dict[str, str]:
    """What commands that start no process show on a terminal."""
    with Store.open(place / "runs") as store:
        one, two = (summary.info.id for summary in store.list_runs())
        task = next(task.id for task in store.read_tasks(one) if "evil" in task.id)
        sample = next(iter(store.list_samples(one, task))).id
    commands = {
        "runs": ["runs", "--wide"],
        "show a run": ["show", one],
        "show another run": ["show", two],
        "show a task": ["show", one, task],
        "show a sample": ["show", one, sample],
        "show a prompt": ["show", one, sample, "--prompt"],
        "spent": ["spent", one],
        "compare": ["compare", one, two],
        "report": ["report", one, "-o", "-", "--format", "md"],
        "prompt": ["prompt", "x\udcff\udc9b_0.yaml", "--from", one],
        "codegen": CODEGEN,
        "json": ["runs", "--json"],
        "no such sample": ["show", one, EVIL],
        "no such run": ["show", EVIL],
        "no such command": [EVIL],
        "no such option": ["runs", f"--{EVIL}"],
        "no such store": ["runs", "--out", f"{place}/{EVIL}"],
        "finished": ["pause", one],
    }
    told = json.dumps(list(commands.values()))
    parts = shown_by(place, "-c", EACH, told, PYTHONPATH=str(TESTS)).split("=====\r\n")[1:]
    return dict(zip(commands, parts, strict=True))


def test_commands_that_read_a_store_of_others(shown: dict[str, str]) -> None:
    assert all(map(is_plain, shown.values()))
    assert "Traceback" not in str(shown)
    for name in ("runs", "show a run", "show a prompt", "spent", "compare", "no such run"):
        assert "[red]x[/red]" in shown[name], "the words are there, and markup is text"
    assert ":bomb:" in shown["runs"]
    assert "\r\nHere it is.\ufffd\r\n" in shown["show a prompt"], "lines of a reply stay lines"
    assert "owned\r\ncost    $0\r\n" not in shown["show a run"], "a name makes no line of its own"


def test_colours_of_our_own_stay(shown: dict[str, str]) -> None:
    assert "\x1b[1m" in shown["runs"]


def test_json_is_the_same_with_and_without_a_terminal(place: Path, shown: dict[str, str]) -> None:
    piped = subprocess.run(
        [sys.executable, "-m", "opsmith", "runs", "--json"], cwd=place, capture_output=True, check=True
    )
    assert shown["json"].encode().replace(b"\r\n", b"\n") == piped.stdout
    assert piped.stdout.isascii()
    assert json.loads(piped.stdout)[0]["info"]["model"] == Hostile.name


def test_a_document_is_a_file_s_content_and_only_a_terminal_changes_it(place: Path, shown: dict[str, str]) -> None:
    command, environment = [sys.executable, "-m", "opsmith", *CODEGEN], os.environ | {"PYTHONPATH": str(TESTS)}
    piped = subprocess.run(command, cwd=place, capture_output=True, check=True, env=environment)
    assert b"x y + \\ \x1b]0;owned\x07\n" in piped.stdout
    assert "x y + \\ \ufffd]0;owned\ufffd\r\n" in shown["codegen"]


@pytest.mark.parametrize("command", ["verify", "check"])
def test_commands_that_judge_files_of_others(place: Path, command: str) -> None:
    files = [path for path in sorted(place.iterdir()) if path.suffix == ".yaml"]
    more = [] if command == "check" else ["--impl", place / "wrong.txt"]
    shown = shown_by(place, "-m", "opsmith", command, *files, *more, "--trust-tasks", PYTHONPATH=str(TESTS))
    assert is_plain(shown)
    assert "[red]x" in shown


def test_a_run_with_a_server_and_tasks_of_others(place: Path, tmp_path: Path) -> None:
    def answer(body: dict[str, object]) -> object:
        return refused(EVIL) if len(server.requests) % 2 else f"{EVIL}\nimpl: |\n  {EVIL}\n"

    for name in (EVIL.replace("/", ""), "fine"):
        (tmp_path / f"{name}_0.yaml").write_text(SUM, encoding="utf-8")
    with OpenAIServer(answer) as server:  # type: ignore[arg-type]
        model = ["--model", f"openai/{MARKUP}\x1b[2J", "--base-url", server.url, "--concurrency", "1"]
        run = ["-m", "opsmith", "run", *model, "--tasks", tmp_path, "--samples", "4", "--trust-tasks"]
        shown = shown_by(tmp_path, *run, OPENAI_API_KEY="none", PYTHONPATH=str(TESTS))
    assert is_plain(shown)
    assert "\x1b[?25l" in shown, "there was a display"
    assert "[red]x" in shown
    assert "nothing was solved, so there is nothing to learn from" in shown


def test_what_anybody_prints_while_a_display_is_shown(tmp_path: Path) -> None:
    code = """
import json, logging, sys, time
from opsmith.cli import progress
from opsmith.terminal import guard_output
guard_output()
from opsmith.learn.events import Warned
from opsmith.report.live import watch_run
from opsmith.report.tables import open_console
evil = json.loads(sys.argv[1])
with watch_run(open_console(stderr=True)) as tell:
    print(evil)
    print(evil, file=sys.stderr)
    logging.warning(evil)
    tell(Warned(evil))
progress.DELAY_S, before = 0.01, sys.stdout
with progress.show_progress(evil) as tell:
    time.sleep(0.2)
    tell(evil + "again")
    assert sys.stdout is before, "what is printed goes where it would"
    time.sleep(0.6)
print("end")
"""
    shown = shown_by(tmp_path, "-c", code, json.dumps(EVIL))
    assert is_plain(shown)
    assert "Traceback" not in shown
    assert shown.count("[red]x") >= 6
    assert shown.endswith("end\r\n")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_mistakes_of_ours_and_notes_are_plain_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    code = """
import json, sys
import opsmith.cli.app, typer
def command(arguments, prog_name):
    typer.echo(json.loads(sys.argv[1]))
    typer.echo(json.loads(sys.argv[1]), err=True)
    raise RuntimeError(json.loads(sys.argv[1]))
opsmith.cli.app.build_app = lambda name: command
opsmith.cli.app.run_command(sys.argv[1:])
"""
    command = [sys.executable, "-c", code, json.dumps(EVIL + "\udc9b")]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, env=environment)
    assert done.returncode == 1
    assert is_plain(done.stdout.decode(encoding))
    assert is_plain(done.stderr.decode(encoding))
    assert b"RuntimeError: [red]x" in done.stderr


@pytest.mark.parametrize(("stream", "ends"), [("stderr", "written"), ("stdout", "BrokenPipeError")])
def test_messages_that_nobody_reads_end_nothing_and_results_do(tmp_path: Path, stream: str, ends: str) -> None:
    code = f"""
import os, sys
from opsmith.terminal import guard_output
guard_output()
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, sys.{stream}.fileno())
try:
    for _ in range(3):
        print("x" * 100_000, file=sys.{stream}, flush=True)
    os.write(3, b"written")
except BrokenPipeError as error:
    os.write(3, b"BrokenPipeError")
os._exit(0)
"""
    with (tmp_path / "told").open("wb") as told:
        command = ["bash", "-c", f'exec "{sys.executable}" -c "$0" 3>&{told.fileno()}', code]
        subprocess.run(command, check=True, pass_fds=[told.fileno()])
    assert (tmp_path / "told").read_text() == ends
