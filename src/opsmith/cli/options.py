"""Options that several commands share, and what is opened from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.errors import StoreError, UsageError

if TYPE_CHECKING:
    from opsmith.judging.pool import Pool
    from opsmith.store import Store

ASKED, MODELS, LEARNING = (
    "What is asked",
    "Who answers",
    "How it learns",
)  # groups of options, in the help of commands with many
SPENDING, REQUESTS, PLACES, RESULTS = "How much is spent", "Requests", "Where it runs", "What comes out"


def declare_option(panel: str, metavar: str | None, text: str, *names: str) -> Any:
    """An option with a value, or a switch, in a group of the help; `names` where they are not the parameter's own."""
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=RESULTS)]
Out = Annotated[Path, declare_option(RESULTS, "DIR", "The folder of the store of runs, and of reports.")]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="OPSMITH_STORE",
        help="A store for several machines: postgresql://USER:PASSWORD@HOST:PORT/DATABASE.",
        rich_help_panel=RESULTS,
    ),
]
TrustTasks = Annotated[
    bool,
    typer.Option(
        "--trust-tasks",
        help="Run other than bundled tasks even where nothing isolates their code.",
        rich_help_panel=PLACES,
    ),
]
CandidateSeconds = Annotated[
    float | None,
    declare_option(PLACES, "S", "Seconds of one candidate, over all its trials; default 60; times 3 in full."),
]
TrialSeconds = Annotated[
    float | None,
    declare_option(PLACES, "S", "Seconds of each trial, where candidates run; default 10; times 3 in full."),
]
TargetName = Annotated[
    str | None,
    declare_option(ASKED, "LANGUAGE", "The language of the programs, in place of the task file's.", "--target"),
]
TargetOptions = Annotated[
    list[str] | None,
    declare_option(
        ASKED, "NAME=VALUE", "An option of the language, such as threads=2; may be given several times.", "--option"
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what it would ask and cost, and ask nothing.", rich_help_panel=RESULTS)
]
NoReport = Annotated[
    bool, typer.Option("--no-report", help="Write no HTML report at the end.", rich_help_panel=RESULTS)
]
_RUN_HELP = "A run's id, the beginning of it, or its name"
RunName = Annotated[str, typer.Argument(metavar="RUN", help=f"{_RUN_HELP}.")]
NewestRun = Annotated[str | None, typer.Argument(metavar="RUN", help=f"{_RUN_HELP}; default: the newest run.")]
Impl = Annotated[Path | None, typer.Option(metavar="FILE|-", help="The program; default: the one in the task's file.")]


def read_target_options(texts: Sequence[str] | None) -> dict[str, str]:
    """Options of a target by name. Raises UsageError for a text that is no NAME=VALUE."""
    options = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise UsageError(f"--option: given {text!r}; expected NAME=VALUE, such as threads=2")
        options[name] = value
    return options


def make_pool(
    workers: int | None,
    trust_tasks: bool,
    candidate_seconds: float | None = None,
    trial_seconds: float | None = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Pool:
    """A pool with these limits, or those of a run's stored settings, or the default ones."""
    from opsmith.judging.limits import limits_of_run  # noqa: PLC0415  (no command but those that judge pays)
    from opsmith.judging.pool import Pool  # noqa: PLC0415

    limits = limits_of_run(settings, candidate_seconds, trial_seconds)
    return Pool(workers, limits.candidate, trial_deadline=limits.trial, trust_tasks=trust_tasks)


@dataclass(frozen=True)
class StorePlace:
    """Where runs are stored, as the options of a command say."""

    out: Out = Path("runs")
    url: StoreUrl = None

    @property
    def is_there(self) -> bool:
        return bool(self.url) or self._file.is_file()

    @property
    def _file(self) -> Path:
        from opsmith.store import FILE  # noqa: PLC0415  (SQLAlchemy is slow to import)

        return self.out if self.out.is_file() else self.out / FILE

    def make(self) -> Store:
        """The store of the database at `url`, else of the folder `out`, made if need be; reports go to `out`."""
        from opsmith.store import Store  # noqa: PLC0415  (SQLAlchemy is slow to import)

        if not self.url:
            return Store.open(self.out)
        if "://" not in self.url:
            raise UsageError(
                "--store: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE; try, for a folder: --out DIR"
            )
        return Store.open(self.url, self.out)

    def open(self) -> Store:
        """The store of earlier runs; one in a folder must be there: looking at it does not make one."""
        if not self.is_there:
            raise UsageError(f"{self.out}: no runs here; expected a store made by `opsmith run`; try: --out DIR")
        if not self.url and not self._file.stat().st_size:
            given = f"store {self._file}: given an empty file"
            raise StoreError(f"{given}; expected a store; try: a copy of it, or another --out")
        return self.make()


@dataclass(frozen=True)
class JudgingOptions:
    """How programs are judged, as the options of a command say."""

    candidate_seconds: CandidateSeconds = None
    trial_seconds: TrialSeconds = None
    trust_tasks: TrustTasks = False

    def make_pool(self, settings: Mapping[str, Any] = MappingProxyType({}), workers: int | None = None) -> Pool:
        """A pool with these limits, or those of a run's stored settings, or the default ones."""
        return make_pool(workers, self.trust_tasks, self.candidate_seconds, self.trial_seconds, settings)
