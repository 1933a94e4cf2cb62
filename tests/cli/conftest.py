"""The command line in this process, on tasks of the tiny target."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from opsmith.cli.app import build_app

SUM = "target: tiny_target:TINY\ninputs: {x: [1, 2], y: [3, 5]}\nwant: [4, 7]\n"
SQUARE = "target: tiny_target:TINY\ninputs: {x: [2, 3]}\nwant: [4, 9]\n"


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def opsmith(capsys, monkeypatch, tmp_path) -> Callable[..., Done]:
    """`opsmith("verify", path)` in an empty folder, without any key in the environment."""
    monkeypatch.chdir(tmp_path)
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(key, raising=False)

    def call(*arguments: object) -> Done:
        with pytest.raises(SystemExit) as ended:
            build_app()([str(argument) for argument in arguments], prog_name="opsmith")
        printed = capsys.readouterr()
        return Done(int(ended.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture
def tasks(tmp_path) -> Path:
    """A folder of two tiny tasks; one carries its own implementation."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "sum_0.yaml").write_text(SUM + "impl: x y +\n")
    (folder / "square_0.yaml").write_text(SQUARE)
    return folder
