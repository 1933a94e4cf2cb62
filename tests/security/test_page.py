"""SECURITY.md names tests that are there, and commands import nothing that lies beside somebody's files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .canary import begin, start

ROOT = Path(__file__).parents[2]


def test_the_tests_that_the_page_names_are_there() -> None:
    named = set(re.findall(r"`(tests/\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8")))
    assert len(named) > 5
    assert [name for name in sorted(named) if not list((ROOT / name).glob("test_*.py"))] == []


@pytest.mark.parametrize("target", ["evil:TARGET", "evil"])
def test_a_task_file_cannot_bring_its_module_along(tmp_path: Path, target: str) -> None:
    folder = begin(tmp_path / "theirs")
    (folder / "evil.py").write_text(f"open({str(folder / 'harm')!r}, 'w').close()\nTARGET = None\n")
    (folder / "sum_0.yaml").write_text(f"target: {target}\ninputs: {{x: [1]}}\nwant: [1]\n")
    assert start(folder, "check", "sum_0.yaml").wait(60) == 2
    assert "evil" in (folder / "printed.txt").read_text()
    assert not (folder / "harm").exists()
