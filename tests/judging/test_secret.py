"""What hidden sizes are drawn from: an installation's secret, a stated one, and never a program's text."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opsmith.errors import UsageError
from opsmith.judging import installation
from opsmith.judging.installation import choose_secret, read_installation_secret, read_scrutiny_here, state_secret
from opsmith.judging.pool import Pool
from opsmith.records import Level, Scrutiny
from opsmith.suites import load_tasks


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder without a secret."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(installation, "_stated", [])
    return tmp_path / "state"


def test_it_is_made_once_whoever_comes_first_and_for_its_owner_alone(state: Path) -> None:
    def read_anew(_: int) -> str:
        return installation._read_kept.__wrapped__(state / "opsmith/secret")

    with ThreadPoolExecutor(8) as threads:
        read = set(threads.map(read_anew, range(40)))
    assert len(read) == 1
    assert len(read.pop()) == 32
    [file] = (state / "opsmith").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_where_it_cannot_be_kept_that_is_said(state: Path) -> None:
    state.write_text("no folder")
    with pytest.raises(UsageError, match=r"secret: the secret of this installation cannot be kept here .*--secret N"):
        read_installation_secret()
    state_secret("1")
    assert read_scrutiny_here(Level.FULL) == Scrutiny("1", Level.FULL), "then none of the installation's is needed"


def test_an_empty_one_is_no_secret(state: Path) -> None:
    (state / "opsmith").mkdir(parents=True)
    (state / "opsmith/secret").touch()
    with pytest.raises(UsageError, match="given an empty file"):
        read_installation_secret()


def test_a_run_is_given_the_stated_one_or_that_of_a_recording_or_a_new_one(state: Path) -> None:
    assert choose_secret("recorded") == "recorded"
    assert choose_secret() != choose_secret()
    state_secret("7")
    assert choose_secret() == choose_secret("recorded") == "7"


def test_its_name_and_its_text_tell_nothing() -> None:
    scrutiny = Scrutiny("the secret itself")
    assert "secret itself" not in f"{scrutiny} {scrutiny!r} {scrutiny.label}"
    assert scrutiny.digest != Scrutiny("another").digest
    assert Scrutiny("the secret itself", Level.FULL).digest == scrutiny.digest


def test_a_verdict_without_a_run_names_level_and_secret_and_one_of_a_run_does_not(shared_pool: Pool) -> None:
    [task] = load_tasks(["bmm_0"])
    source = task.impl or ""
    assert shared_pool.verify(task, source).scrutiny == read_scrutiny_here().label
    full = shared_pool.verify(task, source, Level.FULL)
    assert full.scrutiny == read_scrutiny_here(Level.FULL).label
    assert "cheap" not in full.scrutiny
    assert shared_pool.with_secret("a run's").verify(task, source).scrutiny == ""
