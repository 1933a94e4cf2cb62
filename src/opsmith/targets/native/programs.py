"""What compiled languages share of a target: how programs are checked, built, run and compared.

A language adds `check_source`, `canonical_form` and its prompt; `NativeTasks` is the part that makes tasks.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from opsmith.problems.digest import hash_problem
from opsmith.records import Diagnostic, Stage, Task
from opsmith.running.compiler import Artefact, CompileFailure
from opsmith.running.toolchain import find_toolchain
from opsmith.targets.hidden import HiddenTrials
from opsmith.targets.native.build import BuildRefusal, BuildRequest, BuildResult, build_library
from opsmith.targets.native.cache import BuildCache
from opsmith.targets.native.driver import DRIVER, PROGRAM, write_driver
from opsmith.targets.native.flags import BuildFlags, find_isa
from opsmith.targets.native.runner import run_artefacts
from opsmith.targets.native.signature import make_signature
from opsmith.targets.native.task import read_native_task
from opsmith.targets.native.variants import BARE, Variant, choose_variants
from opsmith.targets.programs import Build
from opsmith.targets.trial import Checked, TaskFault, Trial, TrialResult

CACHE_VARIABLE = "OPSMITH_BUILDS"  # a folder for builds, in place of the user's cache


class NativePrograms(ABC):
    """Fits `Built`, `Loaded`, `Executed`, `HidesSizes`, `Preloaded`, `Referenced` and most of `Target`."""

    name: str
    verifier: str
    comment = "//"
    stages = ("PARSE", "COMPILE")

    @abstractmethod
    def check_source(self, source: str) -> tuple[Diagnostic, ...]:
        """What is refused at PARSE, before a compiler sees it."""

    @abstractmethod
    def canonical_form(self, source: str) -> str:
        """Equal for programs that differ in names and layout only."""

    def check_program(self, task: Task, source: str) -> Checked:
        errors = self.check_source(source)
        if errors:
            return Checked(Stage("PARSE"), errors=errors)
        return Checked(Stage.RUN, self.canonical_form(source))

    def describe_toolchain(self) -> str:
        toolchain = find_toolchain()
        return f"{toolchain.version} {find_isa().name}" if toolchain is not None else "no compiler"

    def build_program(self, task: Task, source: str) -> Build:
        requests = self._list_requests(task, source)
        threads = read_native_task(task.text)[1].threads
        return _collect_builds(requests, _build_all([*requests.values()]), threads)

    def build_timed(self, task: Task, source: str) -> Build:
        program = self._request_build(task, source, BARE)
        signature = program.signature
        driver = BuildRequest(program.problem, self.name, signature, write_driver(signature), BuildFlags(find_isa()))
        requests = {PROGRAM: program, DRIVER: driver}
        return _collect_builds(requests, _build_all([*requests.values()]), read_native_task(task.text)[1].threads)

    def _list_requests(self, task: Task, source: str) -> dict[str, BuildRequest]:
        """A build of each variant."""
        variants = choose_variants(read_native_task(task.text)[1].threads)
        return {variant.name: self._request_build(task, source, variant) for variant in variants}

    def _request_build(self, task: Task, source: str, variant: Variant) -> BuildRequest:
        problem, options = read_native_task(task.text)
        flags = BuildFlags(find_isa(), options.flags, options.threads > 1)
        return BuildRequest(hash_problem(problem), self.name, make_signature(problem), source, flags, variant)

    def runtime_paths(self) -> Sequence[Path]:
        return ()  # what artefacts are linked with is loaded before they are

    def execute_artefacts(self, artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
        return run_artefacts(artefacts, inputs)

    def list_trials(self, task: Task) -> Sequence[Trial]:
        from opsmith.targets.native.trials import make_trials  # noqa: PLC0415 - imports torch

        return make_trials(task.text).trials

    def hidden_trials(self, task: Task, program: str) -> HiddenTrials:
        from opsmith.targets.native.trials import make_trials  # noqa: PLC0415 - imports torch

        return HiddenTrials(make_trials(task.text).draw_hidden(program))

    def encode_inputs(self, trial: Trial) -> bytes:
        encoded: bytes = trial.data.encoded_inputs
        return encoded

    def compare_outputs(self, trial: Trial, outputs: bytes | memoryview) -> TrialResult:
        from opsmith.targets.native.comparison import judge_outputs  # noqa: PLC0415 - imports torch

        return judge_outputs(trial.name, trial.data, outputs)

    def run_programs(self, programs: Sequence[Any], trial: Trial) -> Sequence[TrialResult | TaskFault]:
        """Never called: programs are executed."""
        raise NotImplementedError(f"target {self.name}: its programs are executed")

    def run_reference(self, trial: Trial) -> object:
        reference: object = trial.data.run_reference()
        return reference

    def preload_modules(self) -> None:
        import_module("opsmith.targets.native.comparison")


# -- builds


def _build_all(requests: Sequence[BuildRequest]) -> list[BuildResult]:
    """At once: a first verdict waits for them all."""
    cache_ = open_cache()
    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(lambda request: build_library(request, cache_), requests))


def _collect_builds(requests: Mapping[str, BuildRequest], results: Sequence[BuildResult], threads: int) -> Build:
    """One build of all: its artefacts by name, or the first refusal or failure. The first request is the program's."""
    for result in results:
        if isinstance(result, BuildRefusal):
            return Build({}, result.errors)
    for result in results:
        if isinstance(result, CompileFailure):
            return Build({}, failure=result.reason)
    pairs = zip(requests, results, strict=True)
    artefacts = {name: result.data for name, result in pairs if isinstance(result, Artefact)}
    flags, toolchain = next(iter(requests.values())).flags, find_toolchain()
    version = toolchain.version if toolchain is not None else ""
    return Build(artefacts, toolchain=f"{version}: {flags.key}", threads=threads)


@cache
def open_cache() -> BuildCache:
    """Of the user, for all processes: OPSMITH_BUILDS, or opsmith/builds where the system keeps caches."""
    folder = os.environ.get(CACHE_VARIABLE)
    if folder:
        return BuildCache(Path(folder))
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return BuildCache(Path(base) / "opsmith" / "builds")
