"""A third language: the tiny target's tasks, and programs in C that define `long solve(long x)`.

Candidates are built by the confined compiler and loaded into processes of their own. Rows under
`hidden` of a task are tried beside the stated ones.
"""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tiny_target import TinyPython, read_yaml

from opsmith.records import Diagnostic, Scrutiny, Task
from opsmith.running.compiler import CompileFailure, CompileOrder, CompileRefusal, run_compiler
from opsmith.targets import Build, Trial
from opsmith.targets.hidden import HiddenTrials
from opsmith.targets.interpreted import Case, ProgramError

FLAGS = ("-shared", "-fPIC", "-O1", "-fopenmp", "kernel.c", "-o", "kernel.so", "-lm")


class Compiled(TinyPython):
    """Programs whose first line is `// threads` may start them."""

    name = "compiled"
    verifier = "compiled-1"
    comment = "//"
    stages = ("PARSE", "COMPILE")
    failure = ""  # what of ours fails in a build
    at_once = threading.Barrier(2, timeout=20)  # reached by builds of sources that say so

    execute_program = None  # type: ignore[assignment]  # nothing of a candidate is Python's to execute

    def parse_program(self, task: Task, source: str) -> Any:
        if "solve" not in source:
            raise ProgramError("PARSE", Diagnostic("LANG", "program", "no `solve`", "long solve(long x)"))
        return source

    def canonical_form(self, source: str) -> str:
        return "".join(source.split())

    def build_program(self, task: Task, source: str) -> Build:
        if "// at once" in source:
            self.at_once.wait()
        if self.failure:
            return Build({}, failure=self.failure)
        result = run_compiler(CompileOrder({"kernel.c": source.encode()}, (FLAGS,), "kernel.so"))
        if isinstance(result, CompileFailure):
            return Build({}, failure=result.reason)
        if isinstance(result, CompileRefusal):
            finding = Diagnostic("CC", "kernel.c", result.messages or result.limit, "C that compiles")
            return Build({}, (finding,), toolchain="gcc -O1")
        return Build({"kernel.so": result.data}, toolchain="gcc -O1", threads=2 if "// threads" in source else 1)

    def execute_artefacts(self, artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
        library = ctypes.CDLL(str(artefacts["kernel.so"]))
        library.solve.argtypes, library.solve.restype = [ctypes.c_long], ctypes.c_long
        return json.dumps(library.solve(json.loads(bytes(inputs))["x"])).encode()

    def hidden_trials(self, task: Task, program: Any, scrutiny: Scrutiny) -> HiddenTrials | None:
        assert self.check_program(task, program).program == program
        rows = read_yaml(task.text).get("hidden", [])
        trials = [_Hidden(f"x = {x}", Case({"x": x}, value), reason=reason) for x, value, reason in rows]
        return HiddenTrials(iter(trials), ["one size could not be drawn"] if rows else [])

    def read_task(self, text: str, task_id: str, path: str = "") -> Task:
        return Task(task_id, self.name, text, path=path)


class _Hidden(Trial):
    def __init__(self, name: str, data: Case, reason: str) -> None:
        super().__init__(name, data)
        object.__setattr__(self, "reason", reason)

    def left_out(self) -> str:
        return str(self.reason)  # type: ignore[attr-defined]


class Failing(Compiled):
    failure = "the disk is full"


class Breaking(Compiled):
    def build_program(self, task: Task, source: str) -> Build:
        raise KeyError("a key")


class Diagnosing(Compiled):
    explained_kinds = frozenset({"RUN"})

    def explain_failure(
        self, task: Task, source: str, inputs: bytes | memoryview, finding: Diagnostic
    ) -> tuple[Diagnostic, ...]:
        return (Diagnostic("ASAN", finding.where, f"at {bytes(inputs).decode()}", "memory of its own", line=1),)


class Unexplaining(Compiled):
    explained_kinds = frozenset({"RUN"})

    def explain_failure(
        self, task: Task, source: str, inputs: bytes | memoryview, finding: Diagnostic
    ) -> tuple[Diagnostic, ...]:
        raise KeyError("a key")


class Locating(Compiled):
    """Answers that are negative are faults of a runtime, at the line that they say."""

    def execute_artefacts(self, artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
        answer = super().execute_artefacts(artefacts, inputs)
        if int(answer) < 0:
            raise ValueError(f"line {-int(answer)}")
        return answer

    def locate_failure(self, source: str, finding: Diagnostic) -> Diagnostic:
        line = int(finding.given.removeprefix("ValueError: line "))
        return replace(finding, line=line, text=source.split("\n")[line - 1])


class Versioned(Compiled):
    def describe_toolchain(self) -> str:
        return "gcc 99"


COMPILED, FAILING, BREAKING = Compiled(), Failing(), Breaking()
DIAGNOSING, UNEXPLAINING, LOCATING, VERSIONED = Diagnosing(), Unexplaining(), Locating(), Versioned()


def double_task(hidden: Sequence[tuple[int, int, str]] = (), target: str = "compiled_target:COMPILED") -> Task:
    """Twice x, at stated sizes and at hidden ones: x, what is wanted, why it is left out."""
    text = json.dumps({"inputs": {"x": [3, 21]}, "want": [6, 42], "hidden": [list(row) for row in hidden]})
    return Task("double_0", target, text)
