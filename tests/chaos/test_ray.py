"""A run on a Ray cluster whose machines join and are killed ends with what one machine finds, or says what it waits for.

The nodes are processes of this machine; the model is the embedded program sampler, which is no language model.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.machines import Machines, cluster
from chaos.processes import Command, Commands, wait_until
from opsmith.errors import OpsmithError
from opsmith.store import Store

pytest.importorskip("ray", reason="the ray extra is not installed")

LOST = "was lost: its work is given to others"
WAITS = "no machine takes part: the run waits for"

Contents = frozenset[tuple[str, str]]

SAMPLES = 384  # of each task: a run that lasts while machines join and die
OPTIONS = ("--model", "embedded", "--tasks", "bmm_0,attn_1", "--samples", SAMPLES, "--temperature", 0.7,
           "--seed", 3, "--max-rounds", 2, "--concurrency", 4)  # fmt: skip


def started(commands: Commands, machines: Machines) -> Command:
    """A run on the cluster."""
    return commands.run("ray", *OPTIONS, "--executor", "ray", "--ray-address", machines.address)


def gets_work(machines: Machines, run: Command) -> None:
    """The machine that joined last, before the run is over."""
    wait_until(lambda: machines.newest_works() or not run.alive, why=lambda: run.said)


def judged(out: Path) -> int:
    """Samples of the first round that have a verdict."""
    try:
        with Store.open(out) as store:
            (run,) = store.list_runs()
            return len(store.judged_ids(run.info.id, 0))
    except (OpsmithError, ValueError):  # it has not begun
        return 0


def contents(out: Path, run: str) -> Contents:
    with Store.open(out) as store:
        return store.read_contents(run)


def ends_the_same(run: Command, folder: Path, alone: Contents) -> None:
    assert judged(folder / "ray") <= 2 * SAMPLES
    result = run.result()  # its stdout is JSON, whatever Ray prints
    assert contents(folder / "ray", result["run"]) == alone
    assert not {"(raylet)", "Traceback"} & set(run.said.split())


def joins_and_dies(machines: Machines, folder: Path, alone: Contents) -> None:
    """A machine joins and gets work; the older one dies, then that one too; another takes its place."""
    with Commands(folder) as commands:
        run = started(commands, machines.be(1))
        gets_work(machines, run)
        machines.join()
        gets_work(machines, run)
        for lost in (1, 2):
            waits = run.said.count(WAITS)  # a slow machine is waited for when it starts
            machines.lose()
            wait_until(lambda: run.said.count(LOST) == lost or not run.alive, why=lambda: run.said)  # noqa: B023
            assert run.alive, "in the midst of the run"
            done = judged(folder / "ray")
            if lost == 1:  # the other one goes on with the work before it is lost too
                wait_until(lambda: judged(folder / "ray") > done or not run.alive, why=lambda: run.said)  # noqa: B023
                assert run.said.count(WAITS) == waits
        wait_until(lambda: run.said.count(WAITS) > waits or not run.alive, why=lambda: run.said)
        assert run.alive, run.said
        machines.join()
        ends_the_same(run, folder, alone)
        assert run.said.count(LOST) == 2


def waits_and_goes_on_without(machines: Machines, folder: Path, alone: Contents) -> None:
    """The only machine dies, Ctrl-C ends the wait, and the same command goes on without the cluster."""
    with Commands(folder) as commands:
        run = started(commands, machines.be(1))
        wait_until(lambda: judged(folder / "ray") >= 5 or not run.alive, why=lambda: run.said)
        machines.lose()
        run.wait_for("Ctrl-C ends it in good order")
        run.interrupt()
        assert run.code(40) == 130
        assert "the same command goes on from here" in run.said
        ends_the_same(commands.run("ray", *OPTIONS), folder, alone)


def test_a_run_ends_the_same_whatever_becomes_of_the_machines(tmp_path: Path) -> None:
    """One test, since a cluster takes seconds to start and tests that share one may go to several processes."""
    folders = [tmp_path / name for name in ("alone", "joins", "waits")]
    for folder in folders:
        folder.mkdir()
    with Commands(folders[0]) as commands:
        alone = contents(folders[0] / "local", commands.finish("local", *OPTIONS)["run"])
    with cluster() as machines:
        joins_and_dies(machines, folders[1], alone)
        waits_and_goes_on_without(machines, folders[2], alone)
        assert machines.jobs() == {"opsmith"}, "Ray would tell the cluster the command line, passwords and all"
