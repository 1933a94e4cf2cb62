"""The executor of many machines: a fleet of members on a Ray cluster judges, and samples where the model computes.

The embedded model's requests are independent computations, so the machines share them (`Family.spreads`). A search
finds a task's programs one after another, which several machines would only repeat: it stays in one process here.
Models on a provider's server are asked from here too: rate limits, the circuit breaker and the money are facts of the
whole account and need one gate, and a request costs this process a few milliseconds.

Only the driver writes to the store, so that the machines share no file system and no database.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from opsmith.errors import ProviderError, UsageError, VerifierError
from opsmith.executors.cluster import import_ray, join_cluster
from opsmith.executors.fleet import Fleet, LostError
from opsmith.executors.local import open_pool
from opsmith.executors.local_profiler import LocalProfiler
from opsmith.executors.member import MEMBERS_BUSINESS
from opsmith.executors.wire import open_answer, pack_message, read_record
from opsmith.judging.answers import read_verdict
from opsmith.judging.installation import read_scrutiny_here
from opsmith.judging.plans import PlanAnswer
from opsmith.judging.pool import Pool
from opsmith.measuring.objectives import choose_device_kind
from opsmith.measuring.orders import SpeedOrder, explain_lack_of_figures
from opsmith.measuring.record import RecordError, SpeedReport, read_report
from opsmith.models import ChatModel, Reply, Request
from opsmith.models.roles import RoleModels
from opsmith.models.table import find_spreading, make_models
from opsmith.records import Level, Task, Verdict, to_json
from opsmith.settings import Settings
from opsmith.splits import Split
from opsmith.targets import BUILT_IN, TARGETS, get_target


class RayExecutor:
    """`place.workers` is the most that work on one machine; `place.ray_address` None: a cluster of its own."""

    def __init__(self, settings: Settings, tasks: Sequence[Task]) -> None:
        self._settings = settings
        self._tasks = tasks
        self._fleet: Fleet | None = None
        self._profiler: LocalProfiler | None = None
        self._pool: Pool | None = None
        self._open = contextlib.ExitStack()

    @property
    def judge(self) -> FleetJudge:
        assert self._fleet is not None
        return FleetJudge(self._fleet, self._open_pool)

    @property
    def measurer(self) -> FleetMeasurer:
        assert self._fleet is not None
        return FleetMeasurer(self._fleet)

    @property
    def profiler(self) -> LocalProfiler:
        """On this machine: what compilers and cost models say is the same on all."""
        if self._profiler is None:
            chosen = self._settings.optimisation
            cost = self._open_pool().cost
            self._profiler = LocalProfiler(cost, chosen.profiles, chosen.profile_command, self.measurer)
        return self._profiler

    def _open_pool(self) -> Pool:
        """A worker on this machine, for what is asked seldom; closed with the executor."""
        if self._pool is None:
            self._pool = open_pool(self._settings.place, 1)
            self._open.callback(self._pool.close)
        return self._pool

    def make_models(self, own: ChatModel | None = None) -> RoleModels:
        """The fleet computes what the proposer says that spreads, the first of several; all others compute here."""
        assert self._fleet is not None
        models = make_models(self._settings, get_target(self._tasks[0].target) if self._tasks else None, own)
        name = find_spreading(self._settings) if own is None else None
        if name is None:
            return models
        spread = FleetModel(models.by_name.get(name, models.own), self._fleet)
        by_name = {proposer: spread if proposer == name else model for proposer, model in models.by_name.items()}
        return replace(models, own=next(iter(by_name.values()), spread), by_name=by_name)

    def __enter__(self) -> Self:
        for name in {task.target for task in self._tasks}:
            _check_target(name)
        with contextlib.ExitStack() as stack:
            where = stack.enter_context(join_cluster(self._settings.place.ray_address))
            self._fleet = stack.enter_context(
                Fleet(import_ray(), self._pack_order(), self._settings.place.workers, where)
            )
            self._open = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._open.close()

    def _pack_order(self) -> bytes:
        """What a member is told; no key is among the settings, and none of them that could hold one is its business."""
        settings = {name: value for name, value in self._settings.as_flat("json").items() if name in MEMBERS_BUSINESS}
        if self._settings.teamwork.team.models:
            settings["model"] = find_spreading(self._settings) or settings["model"]
        return pack_message({"settings": settings, "tasks": to_json(self._tasks)})


class FleetJudge:
    """Verdicts of whichever machine has room; splits of this one, which `open_pool` gives a worker for."""

    def __init__(self, fleet: Fleet, open_pool: Callable[[], Pool], secret: str | None = None) -> None:
        self._fleet = fleet
        self._open_pool = open_pool
        self._secret = secret  # None: this machine's

    def with_secret(self, secret: str) -> FleetJudge:
        return FleetJudge(self._fleet, self._open_pool, secret)

    def plan(
        self, task: Task, question: str, split: Split | None = None, *, node: str = "", most: int = 8
    ) -> PlanAnswer:
        """As `Pool.plan`."""
        return self._open_pool().plan(task, question, split, node=node, most=most)

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        """Raises VerifierError when no machine could judge it, UsageError when one may not."""
        secret = self._secret or read_scrutiny_here().secret
        message = pack_message({"task": to_json(task), "source": source, "level": level, "secret": secret})
        try:
            answer = await self._fleet.ask_member("judge", message)
            return read_verdict(open_answer(answer), source)
        except (LostError, ValueError, TypeError, LookupError) as error:
            raise VerifierError(f"verifier: task {task.id}: no verdict from the cluster: {error}") from error


class FleetMeasurer:
    """Measurements on one machine at a time, which has its device alone: a resource of the cluster."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    explain_lack = staticmethod(explain_lack_of_figures)

    async def measure(self, order: SpeedOrder) -> AsyncIterator[SpeedReport]:
        """All reports of an order come together. Raises VerifierError when no machine could measure it."""
        try:
            measured = [to_json(key) for key in order.measured]
            message = pack_message(to_json(order) | {"measured": measured})
            answer = open_answer(await self._fleet.ask_member("measure", message, choose_device_kind(order.task)))
            reports = [read_report(report) for report in answer]
        except (LostError, ValueError, TypeError, LookupError, RecordError) as error:
            raise VerifierError(f"measuring: task {order.task.id}: nothing from the cluster: {error}") from error
        for report in reports:
            yield report


class FleetModel:
    """A model that computes, on whichever machine has room. `local` is the same model here, and is never asked."""

    def __init__(self, local: ChatModel, fleet: Fleet) -> None:
        self.name = local.name
        self.context_window = local.context_window
        self.is_language_model = local.is_language_model
        self._fleet = fleet

    async def complete(self, request: Request) -> Reply:
        """Raises ProviderError like the model itself, and when no machine could answer or a member failed."""
        try:
            return read_record(Reply, open_answer(await self._fleet.ask_member("complete", pack_message(request))))
        except (LostError, VerifierError, ValueError) as error:
            raise ProviderError(f"model {self.name!r}: no reply from the cluster: {error}", retryable=True) from error

    async def close(self) -> None:
        """Its processes are the members', which the executor ends."""


def _check_target(name: str) -> None:
    if name in TARGETS and name not in BUILT_IN:
        raise UsageError(
            f"target {name!r}: known in this process only; expected one that other machines find; "
            "try: module:attribute, or an entry point of the group opsmith.targets"
        )
