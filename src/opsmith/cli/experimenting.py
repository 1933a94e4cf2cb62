"""`opsmith experiment`: the evaluation of the paper, one command each."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.options import AsJson, Out, StoreUrl, TrustTasks, make_store

if TYPE_CHECKING:
    from opsmith.evaluation.experiment import Experiment
    from opsmith.evaluation.plan import Asked
    from opsmith.store import Store


def add_to(app: typer.Typer) -> None:
    app.command()(experiment)


def experiment(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME|FILE|all]", help="Without: list the experiments.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(metavar="M", help="Instead of the file's; several.")] = None,
    base_url: Annotated[str | None, typer.Option(metavar="U", help="A server of your own.")] = None,
    samples: Annotated[int | None, typer.Option(metavar="N", help="Per task, round and temperature.")] = None,
    tasks: Annotated[str | None, typer.Option(metavar="IDS|DIR", help="Ids, files or folders, with commas.")] = None,
    seed: Annotated[list[int] | None, typer.Option(metavar="S", help="May be given several times.")] = None,
    out: Out = Path("runs"),
    url: StoreUrl = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the results.")] = Path("results"),
    executor: Annotated[
        str | None, typer.Option(metavar="local|ray", help="On this machine, or on a Ray cluster's.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(metavar="A", help="The cluster's HOST:PORT, or auto; without: one for this run.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Verifier processes on each machine; as many of the embedded model.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="What it would ask and cost; nothing is asked.")] = False,
    max_cost: Annotated[float | None, typer.Option(metavar="USD", help="Of all its runs; then none asks.")] = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment of the paper.

    The same command goes on where an earlier one was stopped; a run that is there already is not made again.
    """
    from opsmith.errors import UsageError
    from opsmith.evaluation.catalogue import find
    from opsmith.evaluation.plan import Asked

    if name is None:
        return _list(as_json)
    if max_cost is not None and not max_cost > 0:
        raise UsageError(f"--max-cost: given {max_cost}; expected more than 0")
    names = tuple(filter(None, tasks.split(","))) if tasks is not None else ()
    where = {"executor": executor, "ray_address": ray_address, "workers": workers}
    asked = Asked(tuple(model or ()), samples, names, tuple(seed or ()), trust_tasks, base_url, where)
    found = find(name)
    if dry_run:
        return _forecast(found, asked, as_json)
    raise typer.Exit(_run(found, asked, partial(make_store, out, url), results, max_cost, as_json))


def _list(as_json: bool) -> None:
    from opsmith.evaluation.catalogue import known
    from opsmith.evaluation.reading import read_experiment
    from opsmith.report.tables import output, table

    found = [(read_experiment(file), file) for file in known().values()]
    if as_json:
        print(json.dumps([{"name": one.name, "title": one.title, "file": str(file)} for one, file in found], indent=1))
        return
    made = table("experiment", "what it shows", "arms")
    for one, _ in found:
        made.add_row(one.name, one.title, ", ".join(arm.name for arm in one.arms))
    output().print(made)


def _forecast(found: tuple[Experiment, ...], asked: Asked, as_json: bool) -> None:
    from opsmith.benchmarks import load_tasks
    from opsmith.evaluation.forecast import ASSUMED, forecast
    from opsmith.evaluation.forecast_table import forecast_table
    from opsmith.evaluation.plan import plan, tasks_of
    from opsmith.records import to_json
    from opsmith.report.tables import output

    lines = {one.name: forecast(plan(one, asked), load_tasks(tasks_of(one, asked))) for one in found}
    if as_json:
        print(json.dumps({"experiments": to_json(lines), "assumed": ASSUMED}, indent=1))
        return
    for name, runs in lines.items():
        output().print(forecast_table(name, runs))
    print(*ASSUMED, sep="\n")


def _run(
    found: tuple[Experiment, ...],
    asked: Asked,
    place: Callable[[], Store],
    results: Path,
    max_cost: float | None,
    as_json: bool,
) -> int:
    from opsmith.evaluation.conduct import Conducted, conduct
    from opsmith.report.live import watch
    from opsmith.report.tables import output

    made: list[Conducted] = []
    with place() as store, watch(output(stderr=True)) as on_event:
        for one in found:
            left = None if max_cost is None else max_cost - sum(item.cost for item in made)
            made.append(conduct(one, asked, store, results, left, on_event))
            if made[-1].stopped:
                break
    for item in made:
        print(json.dumps(item.data)) if as_json else output().print(*item.lines, sep="\n", soft_wrap=True)
    if made[-1].stopped:
        again = "nothing is lost: the same command goes on from here"
        print(f"opsmith: {made[-1].name} stopped ({made[-1].stopped}); {again}", file=sys.stderr)
    return 130 if made[-1].stopped == "interrupted" else 0
