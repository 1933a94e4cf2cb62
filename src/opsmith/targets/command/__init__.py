"""Languages whose programs are compiled and run by commands, as one TOML file says: a compiler and a simulator.

Such a target's name is the path of its file. Problems, data and comparison are those of compiled languages; what is the
file's own is which words are run (`orders`) and what their messages mean (`diagnostics`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opsmith.errors import UsageError
from opsmith.manuals import read_manual
from opsmith.records import WHOLE_RUN, Diagnostic, Stage, Task
from opsmith.running.commands import CommandFailure, CommandResult, run_commands
from opsmith.targets.command.arrays import RunArrays, name_arrays, read_arrays
from opsmith.targets.command.diagnostics import (
    cut_messages,
    explain_compile,
    explain_obstacles,
    explain_run,
    quote_messages,
)
from opsmith.targets.command.improvement import describe_platform, write_improvement
from opsmith.targets.command.language import Language, read_language
from opsmith.targets.command.orders import MissingProgramError, hash_tools, order_compile, order_run
from opsmith.targets.command.variation import VariedPrograms, read_programs
from opsmith.targets.native.adaptation import NativeTasks
from opsmith.targets.native.draw_judging import DrawnTrials
from opsmith.targets.native.layout import read_inputs
from opsmith.targets.native.library.texts import OWNERSHIP, PROOF, describe_usage
from opsmith.targets.native.statement import write_statement
from opsmith.targets.native.task import NativeOptions, read_native_task
from opsmith.targets.programs import Build, Solved
from opsmith.targets.protocols import PROPOSER
from opsmith.targets.runs import CommandRun, RunOutputs
from opsmith.targets.trial import Checked, Trial, TrialResult

if TYPE_CHECKING:
    from opsmith.targets.native.trials import NativeTrialData

_LONGEST_LINE = 1 << 16
_NEEDS = """\
The programs are {language}. A call builds its program once for each process, or takes what `make` has built, then runs
it by the command of the language file, in a folder that is gone afterwards. `{variable}_TOOLS` names another folder for
the toolchain, which commands call `{{here}}`. `LIBRARY.cycles` in `_library.py` has the cycles of each operator's last
call, where the commands tell any. Tensors lie on the CPU."""
_RUNNER = "The commands of the language, and what `{name}/toolchain` holds, build and run them"


class CommandTarget(NativeTasks, DrawnTrials):
    """Fits `Target`, `Built`, `Commanded`, `Counting`, `Executed`, `HidesSizes`, `Versioned`, `Portable`, `Adapting`,
    `Sampled`, `HasManual`."""

    stages = ("PARSE", "COMPILE")
    write_function = None

    def __init__(self, name: str, language: Language) -> None:
        self.name = name
        self.language = language
        self.verifier = language.version
        self.comment = language.tables.comment
        self.suffix = Path(language.tables.source).suffix  # of programs beside task files
        manual = language.tables.manual
        self._manual_files = [language.folder / name for name in manual.files] if manual is not None else []
        self.manual_tokens = manual.tokens if manual is not None else 0

    # -- tasks and texts

    def base_prompt(self, role: str) -> str | None:
        return self.language.prompt if role == PROPOSER else None

    def read_manual(self) -> Mapping[str, str]:
        """Once: a file that changes under a run does not change its prompts."""
        return self._manual

    @cached_property
    def _manual(self) -> Mapping[str, str]:
        return read_manual(self._manual_files)

    @property
    def counts_cycles(self) -> bool:
        return bool(self.language.tables.run.cycles)

    def describe_platform(self) -> str:
        return describe_platform(self.language)

    def improvement_prompt(self, has_example: bool) -> str:
        return write_improvement(self.language, has_example)

    def configure_task(self, task: Task, options: Mapping[str, Any]) -> Task:
        names = ", ".join(options)
        raise UsageError(f"option {names}: a language of a file has none; try: say it in {self.name}, in [run]")

    def read_program(self, task: Task, text: str) -> str | None:
        """Any text that its size allows: only the compiler knows."""
        return text.strip("\n") + "\n" if text.strip() and not self._list_form_errors(text) else None

    def check_program(self, task: Task, source: str) -> Checked:
        errors = tuple(self._list_form_errors(source))
        return Checked(Stage("PARSE"), errors=errors) if errors else Checked(Stage.RUN, self._drop_comments(source))

    def make_sampler(self) -> VariedPrograms:
        if not self.language.tables.programs:
            raise UsageError(f"model 'embedded': {self.name} names no folder of `programs`; try another model")
        return read_programs(self.language.folder / self.language.tables.programs, self.suffix)

    def _list_form_errors(self, source: str) -> list[Diagnostic]:
        limit = self.language.tables.limits.source_kib << 10
        size, longest = len(source.encode(errors="replace")), max(map(len, source.splitlines()), default=0)
        if not source.strip():
            return [Diagnostic("PARSE", "program", "nothing", f"a program of {self.language.tables.name}")]
        if size > limit:
            return [Diagnostic("PARSE", "program", f"{size} bytes", f"at most {limit}")]
        if longest > _LONGEST_LINE:
            return [Diagnostic("PARSE", "program", f"a line of {longest} characters", f"at most {_LONGEST_LINE}")]
        return [Diagnostic("PARSE", "program", "a NUL character", "text")] if "\0" in source else []

    def _drop_comments(self, source: str) -> str:
        """What the hidden sizes of a program are drawn from."""
        lines = (line.partition(self.comment)[0].rstrip() for line in source.splitlines())
        return "\n".join(line for line in lines if line)

    def _show_task(self, task: Task) -> Task:
        problem, _ = read_native_task(task.text)
        name = task.id if problem.reference else ""
        return replace(task, shown=write_statement(problem, NativeOptions(), name, None, lambda dtype: ""))

    # -- builds and runs, in our own process

    def describe_toolchain(self) -> str:
        """What the programs of its commands are."""
        try:
            return f"tools {hash_tools(self.language)[:16]}"
        except (MissingProgramError, OSError) as error:
            return f"no tools: {error}"

    def build_program(self, task: Task, source: str) -> Build:
        tables = self.language.tables
        try:
            toolchain = f"{self.language.version}; tools {hash_tools(self.language)[:16]}"
            files = {tables.source: source.encode(errors="replace")}
            if tables.compile is None:
                return Build(files, toolchain=toolchain)
            result = run_commands(*order_compile(self.language, source))
        except (MissingProgramError, OSError) as error:
            return Build({}, failure=str(error))
        return self._read_build(result, source, files, toolchain)

    def _read_build(
        self, result: CommandResult | CommandFailure, source: str, files: Mapping[str, bytes], toolchain: str
    ) -> Build:
        compile_table = self.language.tables.compile
        assert compile_table is not None
        if isinstance(result, CommandFailure):
            return Build({}, failure=result.reason)
        if result.is_late:
            return Build({}, failure=f"the compiler had not ended after {result.limit}; see limits.compile_seconds")
        if not result.is_ended_well:
            errors = explain_compile(compile_table.diagnostics, result, source, self.language.tables.name)
            return Build({}, errors, toolchain=toolchain)
        if result.obstacles:
            return Build({}, explain_obstacles(result), toolchain=toolchain)
        missing = [name for name in compile_table.outputs if name not in result.files]
        if missing:
            words = quote_messages(result.messages) or "nothing"
            return Build({}, failure=f"the compiler left no file {missing[0]}; it said: {words}")
        return Build({**files, **result.files}, toolchain=toolchain)

    def plan_runs(self, task: Task, artefacts: Mapping[str, bytes], inputs: bytes | memoryview) -> Sequence[CommandRun]:
        """One run for each draw."""
        problem, (layout, views) = self.find_problem(task), read_inputs(memoryview(inputs))
        source = artefacts.get(self.language.tables.source, b"").decode(errors="replace")
        runs = []
        for draw, arrays_of_draw in zip(layout.draws, views, strict=True):
            arrays = name_arrays(problem, draw.numbers)
            order, limits = order_run(self.language, artefacts, arrays, arrays_of_draw)
            runs.append(CommandRun(order, limits, partial(self._read_run, arrays, source)))
        return runs

    def _read_run(self, arrays: RunArrays, source: str, result: CommandResult) -> RunOutputs | Diagnostic:
        if result.limit:
            return _refuse_run(f"a program that takes more than {result.limit}", "look for a loop that does not end")
        if not result.is_ended_well:
            if (finding := explain_run(self.language.tables.run.diagnostics, result, source)) is not None:
                return finding
            words = quote_messages(result.messages) or quote_messages(result.printed.decode(errors="replace"))
            code = result.codes[-1]
            end = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
            return _refuse_run(f"a process that {end}{': ' if words else ''}{words}", "")
        pieces = read_arrays(self.language.tables.run.arrays, arrays, result.files, result.printed, result.obstacles)
        if isinstance(pieces, str):
            return _refuse_run(pieces, "write every output, whole")
        words, table = self._read_words(result), self.language.tables.profile
        profile = (line for line in words.splitlines() if table is not None and re.search(table.lines, line))
        return RunOutputs(b"".join(pieces), self._read_cycles(words), "\n".join(profile))

    def _read_words(self, result: CommandResult) -> str:
        """What a run says: on its output, where that is not its arrays', and in its messages."""
        is_printed = self.language.tables.run.arrays != "stdio"
        printed = result.printed.decode(errors="replace") if is_printed else ""
        return cut_messages(f"{printed}\n{result.messages}")

    def _read_cycles(self, words: str) -> int | None:
        pattern = self.language.tables.run.cycles
        matches = list(re.finditer(pattern, words, re.MULTILINE))
        if not pattern or not matches or not matches[-1].re.groups:
            return None
        text = matches[-1]["cycles"] if "cycles" in matches[-1].re.groupindex else matches[-1][1]
        return int(text) if text and re.fullmatch(r"\d{1,18}", text) else None

    @property
    def profile_words(self) -> str:
        table = self.language.tables.profile
        return table.words if table is not None else ""

    # -- programs taken away: few commands need it

    requirements: Sequence[str] = ("torch>=2.6",)  # of a package

    def write_package(self, name: str, operators: Sequence[Solved]) -> dict[str, str | bytes]:
        from opsmith.targets.command.library_package import write_package  # noqa: PLC0415

        return write_package(self.language, name, operators)

    def describe_usage(self, name: str, operators: Sequence[Solved]) -> str:
        return describe_usage(name, operators, _NEEDS.format(language=self.language.tables.name, variable=name.upper()))

    def describe_proof(self, name: str) -> str:
        return PROOF

    def describe_ownership(self, name: str) -> str:
        return OWNERSHIP.format(name=name, runner=_RUNNER.format(name=name))

    # -- data, in a task's worker

    def compare_outputs(self, trial: Trial, outputs: bytes | memoryview) -> TrialResult:
        from opsmith.targets.native.comparison import judge_pass  # noqa: PLC0415 - imports torch

        data: NativeTrialData = trial.data
        return judge_pass(trial.name, data, bytes(outputs))


def load_language(name: str) -> CommandTarget:
    """The target whose name is the path of a TOML file. Raises UsageError and TaskError."""
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"target {name!r}: does not exist; expected the TOML file of a language")
    return CommandTarget(name, read_language(path))


def _refuse_run(given: str, remedy: str) -> Diagnostic:
    return Diagnostic("RUN", "run", given, WHOLE_RUN, remedy)
