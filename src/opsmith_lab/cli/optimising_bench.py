"""`opsmith bench optimise`: the optimisation pass of the embedded tuner and analyst, as a table."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.options import AsJson, StorePlace, make_pool
from opsmith.cli.progress import show_progress
from opsmith_lab.cli.printing import Markdown, name_command, print_figures

if TYPE_CHECKING:
    from opsmith.records import Task
    from opsmith.results.optimisation import OptimisedTask
    from opsmith.settings import Settings
    from opsmith.store import Store
    from opsmith_lab.bench.tuned_speeds import TunedProgram, TunedSpeeds

TWELVE = (  # of the kernels: sums, norms, products, convolutions, pooling, functions
    "bias_gelu_residual",
    "conv2d",
    "cross_entropy",
    "gemm_at",
    "gemm_bias_relu",
    "int8_gemm",
    "layer_norm",
    "masked_attention",
    "max_pool2d",
    "rms_norm",
    "row_sum",
    "softmax",
)
_LANGUAGE = "c"


@dataclass(frozen=True)
class PassPlan:
    """What is optimised, and how."""

    rounds: int
    attempts: int
    analyst: str
    seed: int
    rename: int | None
    drawn: int | None

    def make_settings(self, tasks: Sequence[Task]) -> Settings:
        from opsmith.settings import Settings

        return Settings(
            tasks=tuple(task.id for task in tasks),
            target=_LANGUAGE,
            model="tuner",
            analyst=self.analyst,
            optimise=self.rounds,
            attempts=self.attempts,
            plateau=1,  # a round that gains nothing is the last one of its task: rounds are long where all are measured
            seed=self.seed,
            temperatures=(0.7,),
            profiles=("remarks", "roofline"),
            memory=0,
            example_pair=False,
        )

    def load_tasks(self, names: Sequence[str], folder: Path) -> tuple[Task, ...]:
        """The named ones, or the drawn ones, whose files are written there."""
        from opsmith.suites import load_tasks
        from opsmith_lab.drawn import write_problems

        if self.drawn is not None:
            names = [str(path) for path in write_problems(folder / f"drawn-{self.drawn}", self.drawn)]
        return load_tasks(tuple(names or TWELVE), _LANGUAGE)


def bench_optimise(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    tasks: Annotated[list[str] | None, typer.Argument(metavar="TASK", help="Default: 12 of the kernels.")] = None,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="At most.")] = 3,
    attempts: Annotated[int, typer.Option(min=1, metavar="N", help="For each task in a round.")] = 4,
    analyst: Annotated[str, typer.Option(metavar="analyst|none", help="Rules that suggest, or nobody.")] = "analyst",
    seed: Annotated[int, typer.Option(metavar="S")] = 0,
    rename: Annotated[
        int | None, typer.Option(metavar="S", help="Begin with other names of variables, drawn by this seed.")
    ] = None,
    drawn: Annotated[
        int | None, typer.Option(metavar="S", help="Six problems drawn by this seed, instead of named ones.")
    ] = None,
    of_run: Annotated[
        str | None, typer.Option("--of", metavar="RUN", help="Make the table of a run that is there.")
    ] = None,
    with_torch: Annotated[
        bool, typer.Option("--torch/--no-torch", help="Measure torch eager and torch.compile too.")
    ] = True,
    markdown: Markdown = None,
    data: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write all figures.")] = None,
    *,
    place: StorePlace,
    as_json: AsJson = False,
) -> None:
    """Make kernels in C faster without a language model.

    What comes of it is measured beside compilers and torch. The tuner rewrites a program as the analyst suggests; both
    read their prompts and nothing else. Each task begins with its plain program. The best program is measured by full
    grade at the largest timed sizes, the plain one with other flags, torch eager and torch.compile by a screen.
    """
    from opsmith.records import to_json
    from opsmith_lab.bench.tuned_table import list_means, list_missing, tabulate_tuned, write_markdown

    plan, begin = PassPlan(rounds, attempts, analyst, seed, rename, drawn), time.monotonic()
    chosen = plan.load_tasks(tasks or (), place.out)
    with place.make() as store:
        run = perform_pass(plan, chosen, store) if of_run is None else store.find_run(of_run)
        programs = dict(read_programs(store, run))
    searched = time.monotonic() - begin
    speeds = _measure_programs(chosen, programs, with_torch)
    facts = _list_facts(plan, run, searched, time.monotonic() - begin - searched, is_old=of_run is not None)
    if markdown is not None:
        markdown.write_text(write_markdown(speeds, facts), encoding="utf-8")
    figures = {"facts": facts, **to_json(speeds), "mean": to_json(speeds.mean), "large_gains": speeds.large_gains}
    if data is not None:
        data.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print_figures(as_json, figures, tabulate_tuned(speeds), lines=(*list_missing(speeds), *list_means(speeds)))


def perform_pass(plan: PassPlan, tasks: Sequence[Task], store: Store) -> str:
    """The run's id."""
    from opsmith.api import improve
    from opsmith.judging.judge import Solution
    from opsmith.report.live import watch_run
    from opsmith.report.tables import open_console

    settings = plan.make_settings(tasks)
    solutions = [Solution(task, _choose_start(task, plan.rename)) for task in tasks]
    with watch_run(open_console(stderr=True)) as show:
        return improve(tasks, "tuner", settings, store, on_event=show, solutions=solutions).run


def _choose_start(task: Task, rename: int | None) -> str:
    from opsmith.targets import get_target
    from opsmith.targets.protocols import Tuned

    target = get_target(task.target)
    assert task.impl is not None
    assert isinstance(target, Tuned)
    return task.impl if rename is None else target.make_tuner().rename_variables(task.impl, rename)


def read_programs(store: Store, run: str) -> Iterator[tuple[str, TunedProgram]]:
    """The best program of each task that has a better one, by its id."""
    from opsmith.results.optimisation import read_optimisation
    from opsmith.results.states import AttemptState
    from opsmith_lab.bench.tuned_speeds import TunedProgram

    optimised = read_optimisation(store, run)
    for task in optimised.tasks if optimised is not None else ():
        best = next((step.row for step in task.steps if step.row.candidate == task.best and step.row.source), None)
        right = sum(step.state is AttemptState.CORRECT for step in task.steps)
        if best is not None and best.source is not None:
            yield task.task, TunedProgram(best.source, len(task.steps), right, tuple(_list_changes(task)), task.gain)


def _list_changes(task: OptimisedTask) -> list[str]:
    """The suggestions that led from the start program to the best one."""
    by_sample = {step.row.sample: step for step in task.steps}
    step = next((step for step in task.steps if step.row.candidate == task.best), None)
    changes: list[str] = []
    while step is not None:
        suggestion = step.row.suggestion
        changes.insert(0, suggestion.what.partition(":")[0] if suggestion is not None else "a drawn move")
        step = by_sample.get(step.parent_sample or "")
    return changes


def _measure_programs(tasks: Sequence[Task], programs: dict[str, TunedProgram], with_torch: bool) -> TunedSpeeds:
    from opsmith.measuring.loop import TimingRoom
    from opsmith_lab.bench.tuned_speeds import TunedTable

    with (
        show_progress("what it came to is measured") as tell,
        make_pool(1, False) as pool,
        TimingRoom() as room,
    ):
        return TunedTable(room, pool.verify, with_torch=with_torch).measure_tasks(tasks, programs, tell)


def _list_facts(plan: PassPlan, run: str, searched: float, measured: float, *, is_old: bool) -> dict[str, Any]:
    """What the pass was made with; of a run that was there before, its store says that."""
    from opsmith.targets import get_target
    from opsmith.targets.protocols import Tuned

    target = get_target(_LANGUAGE)
    names = {"rename": "names of variables drawn by seed", "drawn": "problems drawn by seed"}
    table = {
        "command": f"`{name_command()}`",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "run": run,
    }
    if is_old:
        return {**table, "seconds": f"{measured:.0f} for the table"}
    return {
        **table,
        "seed": str(plan.seed),
        "search": f"{plan.rounds} rounds of {plan.attempts} attempts for each problem at most, analyst: {plan.analyst}",
        **{words: str(value) for name, words in names.items() if (value := getattr(plan, name)) is not None},
        "tuner": f"`{target.make_tuner().name_version()[:16]}`" if isinstance(target, Tuned) else "",
        "seconds": f"{searched:.0f} for the pass, {measured:.0f} for the table",
    }
