"""Names and files from outside stay names and files: none becomes a path elsewhere, none keeps the reader busy."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from opsmith.config import read_config
from opsmith.errors import OpsmithError, TaskError, UsageError
from opsmith.models.table import get_model
from opsmith.settings import Settings
from opsmith.suites import read_task_file
from opsmith_lab.evaluation.reading import is_experiment, read_experiment

TASK = "inputs: [{name: E0, dtype: fp32, dims: [M], data_gen: torch.rand}]\noutputs: [{name: S0, dtype: fp32, dims: [M], data_transform: [x]}]\n"
READERS: dict[str, Callable[[Path], object]] = {"settings": read_config, "experiment": read_experiment}
TEXTS = {
    "lists 100000 deep": "a = " + "[" * 100_000,
    "tables 100000 deep": "a = " + "{a = " * 100_000,
    "a key of 50000 parts": "a." * 50_000 + "b = 1",
    "a quoted key of 50000 parts": "'a' . \"b\"." * 25_000 + "b = 1",
    "one word of a million letters": "a" * 1_000_000,
    "no TOML": "\0",
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_hostile_toml_file_is_refused(tmp_path: Path, reader: str, text: str) -> None:
    (tmp_path / "x.toml").write_text(TEXTS[text])
    with pytest.raises(TaskError, match=r"x\.toml"):
        READERS[reader](tmp_path / "x.toml")


@pytest.mark.parametrize("reader", [*READERS.values(), read_task_file])
def test_what_is_no_regular_file_of_sensible_size_is_not_read(tmp_path: Path, reader: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "device.toml").symlink_to("/dev/zero")
    (tmp_path / "folder.toml").mkdir()
    with (tmp_path / "huge.toml").open("wb") as file:
        file.truncate(2**40)
    for name in ("pipe", "device", "folder", "huge"):
        with pytest.raises(TaskError, match=r"no regular file|expected at most"):
            reader(tmp_path / f"{name}.toml")


def test_a_folder_of_experiments_is_listed_whatever_lies_in_it(tmp_path: Path) -> None:
    (tmp_path / "x.toml").symlink_to("/dev/zero")
    assert is_experiment(tmp_path / "x.toml"), "a broken one is taken for one"


@pytest.mark.parametrize("name", ["...yaml", "..yaml", "a b;c.yaml", "-o.yaml", "a\nb.yaml", "$(x).yaml"])
def test_an_id_is_a_file_s_stem_and_never_leads_elsewhere(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(TASK)
    task = read_task_file(tmp_path / name)
    assert "/" not in task.id
    assert (tmp_path / f"{task.id}.py").resolve().parent == tmp_path


@pytest.mark.parametrize("key", ["id", "path", "impl_file", "include"])
def test_a_task_file_has_no_field_for_a_path(tmp_path: Path, key: str) -> None:
    (tmp_path / "x_0.yaml").write_text(f"{TASK}{key}: ../../etc/passwd\n")
    task = read_task_file(tmp_path / "x_0.yaml")
    assert (task.id, task.path) == ("x_0", str(tmp_path / "x_0.yaml"))
    assert "root:" not in repr(task)


def test_a_file_cannot_say_where_a_key_is_sent(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('model = "openai/m"\nbase_url = "http://elsewhere.example/v1"\n')
    with pytest.raises(TaskError, match=r"x\.toml:2: base_url: given in a file; expected the option --base-url"):
        read_config(tmp_path / "x.toml")
    experiment = (
        '[settings]\nbase_url = "http://elsewhere.example/v1"\n[[model]]\nname = "openai/m"\n[[arm]]\nname = "a"\n'
    )
    (tmp_path / "y.toml").write_text(f'title = "t"\nshows = "s"\nanalysis = "methods"\n{experiment}')
    with pytest.raises(TaskError, match="base_url: expected the option --base-url"):
        read_experiment(tmp_path / "y.toml")


@pytest.mark.parametrize("name", ["profile_command", "analyst_url"])
def test_a_file_names_no_command_that_is_executed_and_no_second_place_for_a_key(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.toml").write_text(f'model = "openai/m"\n{name} = "x"\n')
    with pytest.raises(TaskError, match=rf"x\.toml:2: {name}: given in a file; expected the option --"):
        read_config(tmp_path / "x.toml")
    experiment = f'[settings]\n{name} = "x"\n[[model]]\nname = "openai/m"\n[[arm]]\nname = "a"\n'
    (tmp_path / "y.toml").write_text(f'title = "t"\nshows = "s"\nanalysis = "methods"\n{experiment}')
    with pytest.raises(TaskError, match=f"{name}: expected the option --"):
        read_experiment(tmp_path / "y.toml")


@pytest.mark.parametrize(
    "url", ["http://h/v1?api-key=canary-secret", "http://h/v1#canary-secret", "http://me:canary-secret@h/v1"]
)
def test_an_address_with_more_than_a_place_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(UsageError, match="--base-url") as caught:
        get_model(Settings(model="openai/m", base_url=url))
    assert "canary-secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["replay:/dev/zero", "replay:..", "replay:/proc/self/environ", "openai/../../x"])
def test_a_model_s_name_reads_nothing_but_a_recording(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("CANARY", "canary-secret")
    with pytest.raises(OpsmithError) as caught:
        get_model(Settings(model=name))
    assert "canary-secret" not in str(caught.value)
