"""A command of the user's own: what it prints and draws is a report, and nothing of it is left behind."""

from __future__ import annotations

import base64
import os
import struct
import sys
import time
import zlib
from pathlib import Path

import pytest

from opsmith.errors import UsageError
from opsmith.profiling.profiler import ProfileSubject, ProfilingError
from opsmith.profiling.user_command import CommandProfiler
from opsmith.records import PICTURE, TEXT, ProfileReport
from opsmith.suites import load_tasks

SOURCE = "return E0\n"
[TASK] = load_tasks(("attn_0",))


def _profile(script: str, *words: str, deadline: float = 60.0) -> list[ProfileReport]:
    command = " ".join([sys.executable, "-c", f"'{script}'", *words])
    return list(CommandProfiler(command, deadline).profile_program(ProfileSubject(TASK, SOURCE)))


def _png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * ((width + 1) * height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_it_is_given_the_source_in_a_folder_of_its_own_which_is_gone_afterwards() -> None:
    script = 'import os, sys; print(open(sys.argv[1]).read(), os.listdir("."), os.getcwd() == sys.argv[2], sys.argv[1], os.getcwd())'
    [report] = _profile(script, "{source}", "{folder}")
    assert (report.kind, report.media) == ("command", TEXT)
    assert f"{SOURCE} ['program.txt'] True program.txt" in report.body
    assert not Path(report.body.split()[-1]).exists()


def test_pictures_that_a_model_can_be_shown_come_by_name_and_others_are_told_of(tmp_path: Path) -> None:
    names = {"b": _png(3, 2), "a": _png(1, 1), "wide": _png(9000, 1), "text": b"GIF89a", "short": b"\x89PNG\r\n\x1a\n"}
    for name, content in names.items():
        (tmp_path / name).write_bytes(content)
    script = 'import pathlib, sys; [pathlib.Path(n + ".png").write_bytes((pathlib.Path(sys.argv[1]) / n).read_bytes()) '
    script += 'for n in sys.argv[2:]]; pathlib.Path("link.png").symlink_to("a.png")'
    text, *pictures = _profile(script, str(tmp_path), *names)
    assert pictures == [
        ProfileReport("command", PICTURE, base64.b64encode(names[name]).decode()) for name in ("a", "b")
    ]
    assert all(f"(picture {name}.png is left out" in text.body for name in ("wide", "text", "short", "link"))


def test_one_that_fails_or_does_not_end_says_nothing_and_its_children_end_with_it(tmp_path: Path) -> None:
    with pytest.raises(ProfilingError, match="ended with status 3: because"):
        _profile('import sys; print("because", file=sys.stderr); sys.exit(3)')
    with pytest.raises(ProfilingError, match="No such file"):
        list(CommandProfiler("/no/such/program").profile_program(ProfileSubject(TASK, SOURCE)))
    script = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
    )
    script = script.replace("'", '"') + 'open(sys.argv[1], "w").write(str(p.pid)); time.sleep(60)'
    with pytest.raises(ProfilingError, match="had not ended after"):
        _profile(
            script,
            str(tmp_path / "pid"),
            deadline=2.0,
        )
    pid = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 10.0
    while _is_running(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _is_running(pid)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_it_sees_no_variable_that_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "secret")
    [report] = _profile("import os; print(*sorted(os.environ))")
    assert "PATH" in report.body
    assert "MY_API_KEY" not in report.body
    assert "MY_API_KEY" in os.environ


def test_what_it_prints_is_cut() -> None:
    [report] = _profile('print("line of a text\\n" * 100000)')
    assert len(report.body) < 9000
    assert "cut here" in report.body


@pytest.mark.parametrize("command", ["", "  ", "'"])
def test_a_command_without_a_program_is_refused(command: str) -> None:
    with pytest.raises(UsageError, match="--profile-command"):
        CommandProfiler(command)
