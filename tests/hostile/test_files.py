"""A hostile task file or replay file is refused by a short message that says where, at little cost to the caller."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostile.corpus import Attack, attacks, params
from hostile.measure import cost_of
from opsmith.errors import OpsmithError, TargetError, TaskError, UsageError
from opsmith.models.replay import ReplayModel
from opsmith.suites import load_tasks, read_task_file
from opsmith.targets.step.ir import read_spec

TASK_FILE = """\
inputs: [{name: E0, dtype: fp32, dims: [M], data_gen: torch.rand}]
outputs: [{name: S0, dtype: fp32, dims: [M], data_transform: [x]}]
"""
SOUND = read_spec(TASK_FILE)
STRANGE_TARGETS = (
    "os:system", "this:s", "antigravity:x", "builtins:exec", ".x:y", "a..b:c", "json.decoder:x", "pytest:x",
    "yaml:load", "é:é", "::", "x" * 5000,
)  # fmt: skip
MAX_MESSAGE = 64 * 1024  # characters


def error_of(read: Callable[[Any], object], given: Any) -> OpsmithError | None:
    try:
        read(given)
    except OpsmithError as error:
        return error
    return None


@pytest.mark.parametrize("attack", params(attacks("tasks.yaml", "file")))
def test_a_hostile_task_file_is_refused_with_a_place(attack: Attack) -> None:
    cost = cost_of(lambda: error_of(read_spec, attack.text), {os.getpid()})
    assert isinstance(cost.answer, TaskError)
    assert attack.word in str(cost.answer), str(cost.answer)[:500]
    assert all(char.isprintable() or char in "\n\t" for char in str(cost.answer))
    assert all(found.line is not None for found in cost.answer.diagnostics)
    assert len(str(cost.answer)) <= MAX_MESSAGE
    assert cost.is_small(), cost
    assert read_spec(TASK_FILE) == SOUND


@pytest.mark.parametrize("attack", params(attacks("replays.yaml", "file")))
def test_a_hostile_replay_file_is_refused_at_its_line(tmp_path: Path, attack: Attack) -> None:
    path = tmp_path / "replay.jsonl"
    path.write_text(attack.text, encoding="utf-8")
    cost = cost_of(lambda: error_of(ReplayModel, path), {os.getpid()})
    assert isinstance(cost.answer, TaskError)
    assert attack.word in str(cost.answer), str(cost.answer)[:500]
    assert len(str(cost.answer)) <= MAX_MESSAGE
    assert cost.is_small(), cost


def test_of_repeated_ids_in_a_replay_file_the_first_counts(tmp_path: Path) -> None:
    path = tmp_path / "replay.jsonl"
    rows = [{"replay": 1, "model": "m", "is_language_model": True}, *({"key": "a", "texts": [str(i)]} for i in (1, 2))]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert [reply.texts for reply in ReplayModel(path)._replies.values()] == [("1",)]


@pytest.mark.parametrize("name", ["/etc", "/dev/zero", "/proc/self/mem", "../" * 500, "x" * 5000, "a\0b.yaml"])
def test_a_path_that_is_no_replay_file_is_refused(name: str) -> None:
    cost = cost_of(lambda: error_of(ReplayModel, name), {os.getpid()})
    assert isinstance(cost.answer, UsageError)
    assert cost.is_small(), cost


@pytest.mark.parametrize(
    "name",
    ["x" * 5000, "a/" * 3000 + "x.yaml", "a\0b", "a\0b.yaml", "\ud800", "/dev/zero", "../../etc/passwd", "step26/../x"],
)
def test_a_name_that_means_no_task_is_a_usage_error(name: str) -> None:
    cost = cost_of(lambda: error_of(load_tasks, [name]), {os.getpid()})
    assert isinstance(cost.answer, UsageError), cost
    assert cost.is_small(), cost


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "circle.yaml").symlink_to(tmp_path / "circle.yaml")
    (tmp_path / "device.yaml").symlink_to("/dev/zero")
    (tmp_path / "folder.yaml").mkdir()
    for name in ("pipe", "circle", "device", "folder"):
        cost = cost_of(lambda path=tmp_path / f"{name}.yaml": error_of(read_task_file, path), {os.getpid()})
        assert isinstance(cost.answer, TaskError)
        assert "no regular file" in str(cost.answer)
        assert cost.is_quick(), cost
    assert isinstance(error_of(load_tasks, [str(tmp_path)]), TaskError)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(2**40)
    cost = cost_of(lambda: error_of(read_task_file, path), {os.getpid()})
    assert "expected at most 1048576" in str(cost.answer)
    assert cost.is_small()


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"inputs: \xff\xfe")
    assert "cannot be read" in str(error_of(read_task_file, tmp_path / "latin.yaml"))


@pytest.mark.parametrize("target", STRANGE_TARGETS)
def test_a_file_that_states_a_strange_target_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "mine.yaml").write_text(f"target: {target}\n{TASK_FILE}")
    assert isinstance(error_of(read_task_file, tmp_path / "mine.yaml"), TaskError | UsageError | TargetError)
