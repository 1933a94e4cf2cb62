"""Names of machines, folders and answers that were made to harm: each is refused in words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from opsmith.errors import OpsmithError, UsageError
from opsmith.remote.merging import RemoteResults, ResultsError, describe_remote
from opsmith.remote.packing import Pack, write_pack
from opsmith.remote.ssh import COMMAND_VARIABLE, RemoteError, RemotePlace, measure_over_ssh, read_place
from opsmith.targets.gpu.nvidia.carrying import CONVENTION
from opsmith.targets.native.programs import CONVENTION as NATIVE
from opsmith.targets.programs import CallConvention
from opsmith.timing.carried import FORMAT
from opsmith.timing.carried import MANIFEST as MANIFEST_NAME

KEY = "0123456789abcdef" * 2
MANIFEST: dict[str, Any] = {
    "format": FORMAT,
    "protocol": {},
    "programs": [{"module": NATIVE.module, "sets": [{"key": KEY}]}],
}


@pytest.mark.parametrize(
    "text",
    [
        "ssh:-oProxyCommand=touch x",
        "ssh:-F/tmp/x",
        "ssh:user@-oProxyCommand",
        "ssh:a@b@-x",
        "ssh:a b",
        "ssh:a\nb",
        "ssh:a\n",
        "ssh:a;b",
        "ssh:$(a)",
        "ssh:a'b",
        "ssh:",
        "ssh:a:0",
        "ssh:a:65536",
        "ssh:a:99999",
        "ssh:a:٢٢",
        "ssh:\x1b[2Ja",
    ],
)
def test_odd_names_of_machines_are_refused_before_ssh_sees_them(text: str) -> None:
    with pytest.raises(UsageError, match="expected ssh:HOST") as caught:
        read_place(text)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([{"kind": "machine"}, {"kind": "result", "result": {"key": "0" * 32}}], "not asked for"),
        ([{"kind": "result", "result": {"key": "../../../../../../tmp/opsmith_escaped__"}}], "not asked for"),
        ([{"kind": "result", "result": {"key": [1]}}], "not asked for"),
        ([{"kind": "result"}], "not asked for"),
        ([{"kind": "result", "result": {"key": KEY}}] * 2, "not asked for"),
        ([{"kind": "output"}], "expected a digest"),
        ([{"kind": "output", "name": "../" * 21 + "a", "size": 1}], "expected a digest"),
        ([{"kind": "output", "name": "a" * 64, "size": 1 << 60}], "an output of"),
        ([{"kind": "output", "name": "a" * 64, "size": -1}], "an output of"),
        (["[" * 100_000], "in place of results"),
        ([{"kind": "failure", "error": "\x1b[2J"}], "hostile"),
    ],
)
def test_answers_that_are_none_of_the_runners_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[Any], words: str
) -> None:
    answers = tmp_path / "answers"
    answers.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    script = tmp_path / "hostile"
    script.write_text(f"#!/bin/sh\nexec cat {answers}\n")
    script.chmod(0o700)
    monkeypatch.setenv(COMMAND_VARIABLE, str(script))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(RemoteError, match=words) as caught:
        measure_over_ssh(Pack(MANIFEST), RemotePlace("hostile"), lambda _: None)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"programs": [{"sets": [{"key": "../../escaped"}]}]},
        {"programs": [{"sets": [{"key": "/" + "a" * 31}]}]},
        {"programs": [{"sets": [{}]}]},
        {"programs": 5},
    ],
)
def test_a_manifest_that_names_other_places_is_not_run(tmp_path: Path, change: Mapping[str, Any]) -> None:
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / MANIFEST_NAME).write_text(json.dumps({**MANIFEST, **change}))
    command = [sys.executable, "-m", "opsmith.remote.runner", str(tmp_path / "packed")]
    done = subprocess.run(command, text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no manifest" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["packed", MANIFEST_NAME]


@pytest.mark.parametrize("manifest", ['{"name": "a page of the web"}', "[]", "[" * 100_000, "{"])
def test_a_folder_with_a_manifest_of_something_else_is_left_as_it_is(tmp_path: Path, manifest: str) -> None:
    for name in ("files/own", "results/own"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("own")
    (tmp_path / MANIFEST_NAME).write_text(manifest)
    with pytest.raises(OpsmithError, match="something else"):
        write_pack(Pack(MANIFEST), tmp_path, "", "")
    assert (tmp_path / "files/own").read_text() == (tmp_path / "results/own").read_text() == "own"


@pytest.mark.parametrize("convention", [NATIVE, CONVENTION])
@pytest.mark.parametrize(
    "machine",
    [
        {"texts": {"a/" * 2000 + "b": ""}, "machine": "x", "cores": 1, "usable_cores": 1},
        {"texts": {"a": "", "a/b": ""}, "machine": "x", "cores": 1, "usable_cores": 1},
        {"texts": {"a\0": "\ud800"}, "machine": "x", "cores": 1, "usable_cores": 1},
        {"texts": 5, "gpus": 5},
        {"gpus": {}},
        {"gpus": [5]},
    ],
)
def test_descriptions_of_machines_that_are_none_are_refused(
    convention: CallConvention, machine: Mapping[str, Any]
) -> None:
    with pytest.raises(ResultsError, match="no description of the machine"):
        describe_remote(convention, machine)


def test_the_name_of_a_device_moves_no_cursor() -> None:
    gpu = {"name": "\x1b[2J", "architecture": "\x1b[2Jsm_90", "cuda": "\x1b[2J13" * 100}
    device = describe_remote(CONVENTION, {"gpus": [gpu]})
    assert "\x1b" not in device.name
    assert len(device.name) < 300


def test_an_output_that_is_a_device_a_pipe_or_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ("a" * 64)).symlink_to("/dev/zero")
    os.mkfifo(tmp_path / ("b" * 64))
    with open(tmp_path / ("c" * 64), "wb") as file:
        file.truncate(1 << 40)
    results = RemoteResults({}, {}, tmp_path)
    for letter in "abc":
        with pytest.raises(ResultsError, match="no regular file, or larger"):
            results.read_output(letter * 64, 100)
