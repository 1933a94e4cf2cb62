"""A run on a Ray cluster whose machines join and are killed ends with what one machine finds, or says what it waits for.

The nodes are processes of this machine; the model is the embedded program sampler, which is no language model.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.machines import Machines, cluster
from chaos.processes import Command, Commands, wait_until
from opsmith.errors import OpsmithError
from opsmith.store import Store

pytest.importorskip("ray", reason="the ray extra is not installed")

Contents = frozenset[tuple[str, str]]

SAMPLES = 16  # of each task
OPTIONS = ("--model", "embedded", "--tasks", "bmm_0,attn_1", "--samples", SAMPLES, "--temperature", 0.7,
           "--seed", 3, "--max-rounds", 2, "--concurrency", 4)  # fmt: skip


@pytest.fixture(scope="module")
def shared() -> Iterator[Machines]:
    with cluster() as made:
        yield made


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """What the run comes to on one machine."""
    folder = tmp_path_factory.mktemp("alone")
    with Commands(folder) as commands:
        result = commands.finish("local", *OPTIONS)
    return contents(folder / "local", result["run"])


def started(commands: Commands, machines: Machines) -> Command:
    """A run on the cluster, in the midst of its first round."""
    run = commands.run("ray", *OPTIONS, "--executor", "ray", "--ray-address", machines.address)
    wait_until(lambda: judged(commands.folder / "ray") >= 5 or not run.alive, why=lambda: run.said)
    return run


def judged(out: Path) -> int:
    """Samples of the first round that have a verdict."""
    try:
        with Store.open(out) as store:
            (run,) = store.runs()
            return len(store.judged(run.info.id, 0))
    except (OpsmithError, ValueError):  # it has not begun
        return 0


def contents(out: Path, run: str) -> Contents:
    with Store.open(out) as store:
        return store.contents(run)


def ends_the_same(run: Command, folder: Path, alone: Contents) -> None:
    assert judged(folder / "ray") <= 2 * SAMPLES
    result = run.result()  # its stdout is JSON, whatever Ray prints
    assert contents(folder / "ray", result["run"]) == alone
    assert not {"(raylet)", "Traceback"} & set(run.said.split())


def test_a_machine_is_killed_in_the_midst(
    commands: Commands, shared: Machines, alone: Contents, tmp_path: Path
) -> None:
    run = started(commands, shared.be(2))
    shared.lose()
    assert judged(tmp_path / "ray") < 2 * SAMPLES, "in the midst of the round"
    ends_the_same(run, tmp_path, alone)
    assert run.said.count("was lost: its work is given to others") == 1


def test_a_machine_that_joins_takes_the_place_of_one_that_dies(
    commands: Commands, shared: Machines, alone: Contents, tmp_path: Path
) -> None:
    run = started(commands, shared.be(1))
    shared.lose()
    run.wait_for("no machine takes part: the run waits for")
    assert run.alive
    shared.join()
    ends_the_same(run, tmp_path, alone)


def test_who_waits_for_a_machine_is_ended_by_ctrl_c_and_goes_on_without_the_cluster(
    commands: Commands, shared: Machines, alone: Contents, tmp_path: Path
) -> None:
    run = started(commands, shared.be(1))
    shared.lose()
    run.wait_for("Ctrl-C ends it in good order")
    run.interrupt()
    assert run.code(40) == 130
    assert "the same command goes on from here" in run.said
    again = commands.run("ray", *OPTIONS)
    ends_the_same(again, tmp_path, alone)
