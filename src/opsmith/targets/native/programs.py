"""What compiled languages share of a target: how programs are checked, built, run and compared.

A language adds `check_source`, `canonical_form` and its prompt; `NativeTasks` is the part that makes tasks.
"""

from __future__ import annotations

import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from opsmith.problems.digest import hash_problem
from opsmith.records import Diagnostic, Stage, Task
from opsmith.running.compiler import CompileFailure
from opsmith.running.toolchain import find_toolchain
from opsmith.running.turnstile import CPU
from opsmith.targets.native import calls
from opsmith.targets.native.build import BuildRefusal, BuildRequest, build_variants
from opsmith.targets.native.cache import BuildCache
from opsmith.targets.native.calls import DRIVER, MIXER, PROGRAM
from opsmith.targets.native.deployed import HOST, DeployedProgram, DeploymentError, build_host, run_deployed
from opsmith.targets.native.draw_judging import DrawnTrials
from opsmith.targets.native.driver import MIXER_SOURCE, write_driver
from opsmith.targets.native.explain import explain_failure, read_program
from opsmith.targets.native.flags import BuildFlags, find_isa, list_features
from opsmith.targets.native.imports import check_imports
from opsmith.targets.native.layout import DEPLOYED
from opsmith.targets.native.remarks import write_assembly
from opsmith.targets.native.runner import run_artefacts
from opsmith.targets.native.signature import FUNCTION, make_signature
from opsmith.targets.native.standalone import build_standalone
from opsmith.targets.native.task import NativeOptions, read_native_task
from opsmith.targets.native.variants import BARE, Variant, choose_variants
from opsmith.targets.programs import Build, CallConvention, CarriedBuild, DeployedEnd, StandaloneProgram
from opsmith.targets.trial import Checked

CONVENTION = CallConvention(calls.__name__, "remote-pairs/2", CPU, (DRIVER, MIXER))
CACHE_VARIABLE = "OPSMITH_BUILDS"  # a folder for builds, in place of the user's cache


class NativePrograms(DrawnTrials, ABC):
    """Fits `Built`, `Deployed`, `Loaded`, `Executed`, `HidesSizes`, `Diagnosing`, `Preloaded`, `Referenced`,
    `Assembled`, `StandingAlone`, `Carried`; most of `Target`."""

    name: str
    verifier: str
    comment = "//"
    stages = ("PARSE", "COMPILE")
    explained_kinds = frozenset({"RUN", "MEMORY", "STATE"})
    convention = CONVENTION

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
        options = read_native_task(task.text)[1]
        return self.build_forms(task, source, options, choose_variants(options.threads))

    def build_deployed(self, task: Task, source: str) -> Build:
        problem, options = read_native_task(task.text)
        build = self.build_forms(task, source, options, choose_variants(options.threads, is_full=True))
        if not build.artefacts:
            return build
        if errors := check_imports(build.artefacts[DEPLOYED]):
            return Build({}, errors)
        try:
            host = build_host(make_signature(problem), hash_problem(problem), open_cache())
        except DeploymentError as error:
            return Build({}, failure=str(error))
        return replace(build, artefacts={**build.artefacts, HOST: host})

    def run_deployed(self, build: Build, trials: Sequence[bytes], seconds: float) -> Sequence[bytes] | DeployedEnd:
        artefacts = build.artefacts
        return run_deployed(DeployedProgram(artefacts[DEPLOYED], artefacts[HOST], build.threads), trials, seconds)

    def build_timed(self, task: Task, source: str) -> Build:
        problem, options = read_native_task(task.text)
        program = self.build_forms(task, source, options, [BARE])
        driver = self._build_variants(task, write_driver(make_signature(problem)), NativeOptions(), [BARE])
        if not program.artefacts or not driver.artefacts:
            return program if not program.artefacts else driver
        artefacts = {PROGRAM: program.artefacts[BARE.name], DRIVER: driver.artefacts[BARE.name]}
        return replace(program, artefacts=artefacts)

    def build_carried(self, task: Task, source: str) -> CarriedBuild:
        isa = find_isa().name
        needs = {"machine": platform.machine(), "isa": isa, "features": list_features(isa)}
        timed = self.build_timed(task, source)
        mixer = self._build_variants(task, MIXER_SOURCE, NativeOptions(), [BARE]) if timed.artefacts else timed
        if not mixer.artefacts or not timed.artefacts:
            return CarriedBuild(mixer, needs)
        artefacts = {**timed.artefacts, MIXER: mixer.artefacts[BARE.name]}
        return CarriedBuild(replace(timed, artefacts=artefacts), needs)

    def plan_call(self, build: Build, numbers: Sequence[float]) -> Mapping[str, Any]:
        return {"function": FUNCTION}  # which the driver calls with the numbers

    def build_forms(self, task: Task, source: str, options: NativeOptions, variants: Sequence[Variant]) -> Build:
        """The variants of a candidate: in a language that gcc does not compile, of what another compiler made of it."""
        return self._build_variants(task, source, options, variants)

    def _build_variants(
        self,
        task: Task,
        source: str,
        options: NativeOptions,
        variants: Sequence[Variant],
        assembly: Mapping[str, str] | None = None,
    ) -> Build:
        """`source`: in C; `assembly`: `BuildRequest.assembly`."""
        request = replace(self._make_request(task, source, options), assembly=assembly or {})
        result = build_variants(request, variants, open_cache())
        if isinstance(result, BuildRefusal):
            return Build({}, result.errors)
        if isinstance(result, CompileFailure):
            return Build({}, failure=result.reason)
        return Build(result, toolchain=describe_toolchain(request.flags), threads=options.threads)

    def _make_request(self, task: Task, source: str, options: NativeOptions | None = None) -> BuildRequest:
        """`options`: in place of the task's own."""
        problem, own = read_native_task(task.text)
        flags = (options or own).choose_flags(find_isa())
        return BuildRequest(hash_problem(problem), self.name, make_signature(problem), source, flags)

    def write_assembly(self, task: Task, source: str) -> tuple[str, str]:
        request = self._make_request(task, source)
        return write_assembly(request), request.flags.isa.name

    def build_standalone(self, task: Task, source: str, inputs: bytes | memoryview) -> StandaloneProgram:
        return build_standalone(self._make_request(task, source), inputs)

    def runtime_paths(self) -> Sequence[Path]:
        return ()  # what artefacts are linked with is loaded before they are

    execute_artefacts = staticmethod(run_artefacts)

    def explain_failure(
        self, task: Task, source: str, inputs: bytes | memoryview, finding: Diagnostic
    ) -> tuple[Diagnostic, ...]:
        return explain_failure(read_program(task.text, source, find_isa(), inputs))


def describe_toolchain(flags: BuildFlags) -> str:
    """Compiler, instruction set and flags, without what only shows mistakes."""
    toolchain = find_toolchain()
    return f"{toolchain.version if toolchain is not None else ''}: {flags.key}"


@cache
def open_cache() -> BuildCache:
    """Of the user, for all processes: OPSMITH_BUILDS, or opsmith/builds where the system keeps caches."""
    folder = os.environ.get(CACHE_VARIABLE)
    if folder:
        return BuildCache(Path(folder))
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return BuildCache(Path(base) / "opsmith" / "builds")
