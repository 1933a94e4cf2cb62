"""Any text is read or refused: task files by a TaskError, replies by a FORMAT finding, replay files by a TaskError."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from fuzz.examples import BITS, REPLIES, TASK_FILES, TASKS, fuzz, spoiled
from opsmith.agents.indentation import strip_indentation
from opsmith.agents.prompt import format_yaml_block
from opsmith.agents.reply import read_reply
from opsmith.errors import OpsmithError, TaskError
from opsmith.models.replay import ReplayModel
from opsmith.records import Task
from opsmith.suites import read_task_file
from opsmith.targets import get_target
from opsmith.targets.step.ir import read_spec, write_spec
from opsmith.targets.step.language.spec import TaskSpec

STEP = get_target("step")
JOINED = st.lists(st.sampled_from([*BITS, "inputs: ", "outputs: ", "dims: ", "name: ", "fns: "]), max_size=30).map(
    "".join
)
HEADER = b'{"replay": 1, "model": "m", "is_language_model": true}\n'
LINE = b'{"key": "a", "texts": ["x"], "usage": {"requests": 1, "cost_usd": 0.5}, "model": "m", "finish": ["stop"]}\n'


def result(read: Callable[[Any], Any], given: Any) -> Any:
    """What is read, or the refusal; any other exception is a failure of the test."""
    try:
        return read(given)
    except OpsmithError as error:
        return error


def read_or_refused(text: str) -> None:
    found = result(read_spec, text)
    if isinstance(found, TaskSpec):
        assert read_spec(write_spec(found)) == found
        return
    assert isinstance(found, TaskError)
    assert found.diagnostics
    assert all(entry.line and entry.column for entry in found.diagnostics)
    assert len(str(found)) < 2**17


@fuzz(250)
@given(spoiled(TASK_FILES))
def test_a_spoiled_task_file_is_read_or_refused_with_places(text: str) -> None:
    read_or_refused(text)


@fuzz(150)
@given(st.text() | JOINED)
def test_any_text_as_a_task_file_is_read_or_refused_with_places(text: str) -> None:
    read_or_refused(text)


@fuzz(60)
@given(st.binary() | spoiled(TASK_FILES).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_as_a_task_file_are_read_or_refused(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz_0.yaml"
        path.write_bytes(data)
        found = result(read_task_file, path)
    assert str(found)
    if isinstance(found, Task):
        assert STEP.read_task(found.text, found.id).text == found.text


@fuzz(300)
@given(spoiled(REPLIES) | JOINED | st.text())
def test_any_reply_holds_one_program_or_says_why_not(reply: str) -> None:
    found = read_reply(STEP, TASKS[0], reply)
    assert (found.source is None) == bool(found.errors)
    assert found.source is None or STEP.check_program(TASKS[0], found.source).stage
    assert len(found.dropped) <= 20


@fuzz(200)
@given(st.text(alphabet=" \t\n\r\x0b\x0cab\u2028é"))
def test_indentation_is_removed_as_the_standard_library_does(text: str) -> None:
    assert strip_indentation(text) == textwrap.dedent(text)


@fuzz(200)
@given(st.text() | JOINED)
def test_a_program_stays_itself_in_a_prompt(program: str) -> None:
    """A program comes from a model: what it holds must not become a key of the next prompt."""
    asked = yaml.safe_load(f"input_impl: {format_yaml_block(program)}\n")
    assert asked == {"input_impl": strip_indentation(program).strip("\n") + "\n"}


@st.composite
def spoiled_bytes(draw: st.DrawFn) -> bytes:
    data = HEADER + LINE * draw(st.integers(0, 2))
    start = draw(st.integers(0, len(data)))
    return data[:start] + draw(st.binary(max_size=6)) + data[min(len(data), start + draw(st.integers(0, 9))) :]


@fuzz(150)
@given(spoiled_bytes() | st.binary())
def test_any_bytes_as_a_replay_file_are_read_or_refused(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz.jsonl"
        path.write_bytes(data)
        found = result(ReplayModel, path)
    assert isinstance(found, ReplayModel) or "line " in str(found)
