"""What a language gives the rest of the system: `Target`, which every one has, and what one may add.

A target is one object that fits `Target`, named in `opsmith.targets.TARGETS` or by the packaging entry point
`opsmith.targets`. Each further protocol is a capability: a target has it when it has its methods. `capabilities` says
what the package does with a target that lacks one.

Methods that execute code of a task's author (`list_trials`, `run_programs`, `run_reference`, `audit_task`,
`estimate_cost`, `hidden_trials`, `encode_inputs`, `compare_outputs`) are called in confined worker processes only.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from opsmith.problems.problem import Problem
from opsmith.records import Diagnostic, Objective, Scrutiny, Task
from opsmith.splits import Split
from opsmith.targets.audit import Finding, Judge
from opsmith.targets.hidden import HiddenTrials
from opsmith.targets.programs import (
    Advice,
    Build,
    CallConvention,
    CarriedBuild,
    Dataflow,
    DeployedEnd,
    Solved,
    StandaloneProgram,
    TorchExtension,
    TorchModule,
    Traits,
    TuningMove,
)
from opsmith.targets.runs import CommandRun
from opsmith.targets.trial import Checked, TaskFault, Trial, TrialResult

PROPOSER, GUARDIAN = "proposer", "guardian"  # roles of agents


class Target(Protocol):
    """A language that candidates are written in: all that a run needs of one."""

    name: str
    verifier: str  # version of what a verdict means; stored with each
    comment: str  # what begins a comment that ends with its line
    stages: tuple[str, ...]  # where `check_program` refuses; the first is that of texts that are no program at all

    def read_task(self, text: str, task_id: str, path: str = "") -> Task:
        """A task file's text as a Task. Raises TaskError with line and column."""

    def base_prompt(self, role: str) -> str | None:
        """The static text that opens an agent's prompt; None: no agent of that role is asked about this language.

        PROPOSER: what the language is, its operations and usage patterns, with examples; every language has it.
        GUARDIAN: how the one mistake that a second model call may mend is mended.
        """

    def read_program(self, task: Task, text: str) -> str | None:
        """The program in `text` if the text as a whole is one, unwrapped where needed; None: it is not a program."""

    def check_program(self, task: Task, source: str) -> Checked:
        """All that can be said of a program before it runs; cheap, needs no tensors."""

    def list_trials(self, task: Task) -> Sequence[Trial]:
        """All trials in the order they are run, cheapest first; cached. Raises TaskFault."""

    def run_programs(self, programs: Sequence[Any], trial: Trial) -> Sequence[TrialResult | TaskFault]:
        """Execute checked programs of one task on one trial and compare: what each showed, in order.

        A fault that only some of them bring to light is given in their place; raises TaskFault for one of the trial.
        """


@runtime_checkable
class Improvable(Protocol):
    """Right programs can be made better: what the agents of an optimisation round are told of the language."""

    def describe_platform(self) -> str:
        """For the analyst: what programs run on, what usually helps there, and what cannot be changed."""

    def improvement_prompt(self, has_example: bool) -> str:
        """The static text that opens the generator's prompt: the language's rules, what makes programs better, and,
        with `has_example`, one program with a suggestion and the program that came of it."""


@runtime_checkable
class Planned(Protocol):
    """A task can be split into smaller ones, and programs for these joined to one for the task.

    All but `join_programs` may run authors' code: in confined workers only.
    """

    def list_splits(self, task: Task) -> Iterator[Split]:
        """What the reference's own statements and the functions offered suggest, the best first, all without faults."""

    def make_children(self, task: Task, split: Split) -> tuple[Task, ...]:
        """A task for each node, `TASK.NODE`, on the values that occur there in the task's data. Raises TaskError."""

    def renegotiate(self, task: Task, split: Split, node: str) -> Split | None:
        """The split with another contract for one node's borders; None: there is no other."""

    def find_split_faults(self, task: Task, split: Split) -> tuple[Diagnostic, ...]:
        """What is wrong with a split: types of contracts, values that nobody makes, nodes that do no work or all of it,
        a reference that is not the task's."""

    def join_programs(self, task: Task, split: Split, sources: Mapping[str, str]) -> str:
        """One program for the task from one for each node, by its name. Raises OpsmithError where there is none."""


@runtime_checkable
class Contracted(Protocol):
    """A model may be asked for splits."""

    def describe_contracts(self) -> str:
        """For the planner: how the language writes types of values that pass between programs, what a node's code may
        say, which nodes are refused, and one example of a task with a good split."""


@runtime_checkable
class Exemplified(Protocol):
    """The proposer's base prompt ends with an example, a task with its program, which can be left out."""

    def prompt_without_example(self) -> str:
        """The same text up to the example."""


@runtime_checkable
class Documented(Protocol):
    """More is written on the language than its base prompt holds: what the tool `language` looks up beside that."""

    def describe_constructs(self) -> Mapping[str, str]:
        """By the construct's name: its exact rule, in words."""


@runtime_checkable
class HasManual(Protocol):
    """A manual may be given with the language: prompts quote what of it is like their task."""

    @property
    def manual_tokens(self) -> int:
        """That a prompt has for it at most."""

    def read_manual(self) -> Mapping[str, str]:
        """Its passages by title, in its order; empty: none is given."""


# -- how candidates are judged


@runtime_checkable
class Outlined(Protocol):
    """What a plan for a program of this language works out."""

    outline_words: str  # part of a sentence: continues "plan the program, that is: ..."


@runtime_checkable
class Executed(Protocol):
    """Candidates are executed instead of interpreted, each apart from its task: `Target.run_programs` is not called.

    A candidate is given a trial's inputs as bytes, and neither the task nor an expected value. What comes out is bytes,
    which are compared elsewhere: a forged answer is only another answer. How it is executed: `Hosted` or `Loaded`.
    """

    def encode_inputs(self, trial: Trial) -> bytes:
        """In the task's worker: what a candidate is given for a trial: its inputs, without anything that tells the
        outputs. Equal for all candidates of the task."""

    def compare_outputs(self, trial: Trial, outputs: bytes) -> TrialResult:
        """In the task's worker: whether these are the trial's outputs; bytes that are none are refused at RUN. Raises
        TaskFault."""


@runtime_checkable
class Hosted(Protocol):
    """Sources are executed by the target's own Python code, in a process for each candidate."""

    def runtime_paths(self) -> Sequence[Path]:
        """Files and folders that a candidate may read: its language's runtime. Never a folder of tasks."""

    def execute_program(self, source: str, inputs: bytes) -> bytes:
        """In the candidate's process, confined: the source's outputs. An exception is a failure of the candidate at
        RUN."""


@runtime_checkable
class Built(Protocol):
    """Programs are compiled before they run: the last of the target's `stages` is COMPILE."""

    def build_program(self, task: Task, source: str) -> Build:
        """In our own process, by several threads at once: what `check_program` passed, built.

        It runs no code of the source's author or of the task's: a compiler is started confined (`running`).
        """


@runtime_checkable
class BuildsDeployed(Protocol):
    """Programs that would be kept are built once more, as who takes them away builds them."""

    def build_deployed(self, task: Task, source: str) -> Build:
        """As `build_program`, with more artefacts: for `run_deployed`, or for passes that are ordinary. Findings
        against what it is linked with are errors."""


@runtime_checkable
class Deployed(BuildsDeployed, Protocol):
    """... and are also run in a process of their own."""

    def run_deployed(self, build: Build, trials: Sequence[bytes], seconds: float) -> Sequence[bytes] | DeployedEnd:
        """In our own process: what calls in a confined process of the program's own gave for each trial's inputs;
        b"": it was left out."""

    def compare_calls(self, trial: Trial, outputs: bytes) -> TrialResult:
        """In the task's worker: what those outputs show."""


@runtime_checkable
class Loaded(Protocol):
    """The artefacts of a build are loaded into a process for each candidate, which starts without torch."""

    def runtime_paths(self) -> Sequence[Path]:
        """Files and folders that a candidate may read: what a late `dlopen` needs. Never a folder of tasks."""

    def execute_artefacts(self, artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
        """In the candidate's process, confined: the outputs for a trial's inputs. An exception is a failure of the
        candidate at RUN.

        `artefacts`: by name, paths that can be read and loaded (`/proc/self/fd/7`). `inputs` may be shared memory.
        """


@runtime_checkable
class Timed(Protocol):
    """Programs can be timed on this machine: called in a loop of ours, on arrays in shared memory."""

    def build_timed(self, task: Task, source: str) -> Build:
        """In our own process: a right program as its user would build it, and the loop (`targets.native.driver`)."""


@runtime_checkable
class Carried(Protocol):
    """Programs can be timed on other machines, by the stand-alone runner (`opsmith.remote.runner`)."""

    convention: CallConvention

    def build_carried(self, task: Task, source: str) -> CarriedBuild:
        """In our own process: a right program as its user would build it, for the runner."""

    def plan_call(self, build: Build, numbers: Sequence[float]) -> Mapping[str, Any]:
        """What the runner does for a call with these numbers, as JSON; nothing where it has no choice. Raises
        OpsmithError where there is no such call."""


@runtime_checkable
class Commanded(Protocol):
    """The artefacts of a build are run by commands, as a simulator runs them: each run is a confined process of its
    own."""

    def plan_runs(self, task: Task, artefacts: Mapping[str, bytes], inputs: bytes | memoryview) -> Sequence[CommandRun]:
        """In our own process, by several threads at once: the runs that compute a trial's outputs, which are what they
        give, one after the other. Nothing is executed here.

        Raises ValueError for inputs that `encode_inputs` did not write: they come from a process of the task's author.
        """


@runtime_checkable
class Counting(Protocol):
    """It is known before a run whether the commands say cycles; without it they may."""

    @property
    def counts_cycles(self) -> bool: ...


@runtime_checkable
class HidesSizes(Protocol):
    """Candidates are also tried at sizes that nobody states: the hidden sizes, drawn with a secret.

    `Trial.name` says the sizes, to people only. A TaskFault at a hidden size is nobody's fault: it is left out.
    """

    def hidden_trials(self, task: Task, program: Any, scrutiny: Scrutiny) -> HiddenTrials | None:
        """Those for a program that `check_program` passed; None: the task's own trials say it all.

        Their sizes and data come from the task and the scrutiny, so that they are the same for all programs that are
        tried at the same; of the program they may depend on no more than on what it computes.
        """


@runtime_checkable
class Equipped(Protocol):
    """It needs something of the machine that judges, beside Python: a compiler, an optional package."""

    def explain_lack(self) -> str:
        """What is missing here, in one sentence that says what to try; "": nothing. Asked before each verdict."""


@runtime_checkable
class Preloaded(Protocol):
    """A built-in target that has something to import before workers are forked, once for all of them."""

    def preload_modules(self) -> None: ...


@runtime_checkable
class Driven(Protocol):
    """A built-in target whose artefacts are run by a driver or another large library of this machine."""

    def preload_runtime(self) -> None:
        """Load it in the nursery of candidates' processes, once for all of them. No thread may be started."""


@runtime_checkable
class Referenced(Protocol):
    """Expected values come from a reference, beside which the time of a verdict is measured."""

    def run_reference(self, trial: Trial) -> object:
        """Compute what a trial expects once more, and nothing else."""


@runtime_checkable
class Versioned(Protocol):
    """What its verdicts mean depends on programs of this machine too: a compiler, a simulator."""

    def describe_toolchain(self) -> str:
        """In our own process: which they are, with versions and instruction set, in one short line."""


@runtime_checkable
class Audited(Protocol):
    """It can judge a task file: whether a wrong answer would pass, and what does not matter."""

    def audit_task(self, task: Task, source: str | None, judge: Judge) -> Iterable[Finding]:
        """All findings on `task`, whose own program is `source`. Executes code of the task's author."""


# -- what is known of a program


@runtime_checkable
class Canonical(Protocol):
    """It can tell programs that differ in names only. Without it, comments and blank lines are all that is dropped."""

    def canonical_form(self, source: str) -> str:
        """A text that is equal for isomorphic programs: locals renamed, comments and layout dropped."""


@runtime_checkable
class Commented(Protocol):
    """Its comments are more than those that end with their line."""

    def blank_comments(self, source: str) -> str:
        """The text with blanks for comments; what is left stands on the line on which it began."""


@runtime_checkable
class Repaired(Protocol):
    """Errors of one stage can be mended by rule. (STeP: a stream that is consumed twice, by Copy.)"""

    repaired_stage: str  # where such errors are refused, one of `Target.stages`

    def repair_program(self, task: Task, source: str) -> str | None:
        """A rewrite that mends these errors and nothing else, or None when there is nothing to mend."""


@runtime_checkable
class Explained(Protocol):
    """Findings have words of their own: `D2` of a finding is a shape set with D = 2.

    Asked where a message is shown to a person or to a model; what is stored and counted stays as it is.
    """

    def explain_message(self, task: Task, message: str) -> str:
        """The message with such words explained; explaining it once more changes nothing."""


@runtime_checkable
class Diagnosing(Protocol):
    """It can say more of a program that failed when it ran: what a sanitizer sees, with the line."""

    explained_kinds: Collection[str]  # of a first finding that it looks into: RUN, and kinds of its own

    def explain_failure(
        self, task: Task, source: str, inputs: bytes | memoryview, finding: Diagnostic
    ) -> tuple[Diagnostic, ...]:
        """In our own process, by several threads at once: findings that are added to this one; none: nothing is
        known. It runs no code but in processes that are confined.

        `inputs`: of the trial that failed, which a worker of the task's author has given.
        """


@runtime_checkable
class Locating(Protocol):
    """What runs its programs is ours, and says in words where one fails."""

    def locate_failure(self, source: str, finding: Diagnostic) -> Diagnostic:
        """In our own process: a finding of RUN, whose `given` are words of the candidate's process, with line and
        remedy apart. Words that say nothing of the kind are the program's own: the finding as it is."""


@runtime_checkable
class Drawn(Protocol):
    """Programs are graphs."""

    def build_dataflow(self, task: Task, source: str) -> Dataflow | None:
        """The program's graph; None where it has none: it does not parse, or is not well typed."""


@runtime_checkable
class Classified(Protocol):
    """Kinds of programs can be told apart (paper, table 2)."""

    def find_traits(self, task: Task, source: str) -> Traits | None:
        """The traits of a program for `task`; None when it is no right program of the language."""


@runtime_checkable
class Parametrised(Protocol):
    """A program says in numbers how it divides its work: what studies compare programs by."""

    def read_parameters(self, source: str) -> Mapping[str, tuple[int, ...]]:
        """By kinds of `programs.PARAMETERS`, each of its numbers once, rising; kinds without any are left out. The text
        is read only: what a program computes when it runs is none. Nothing for a text that is no program."""


@runtime_checkable
class Costed(Protocol):
    """It has a cost model."""

    def estimate_cost(self, task: Task, source: str) -> Mapping[str, Any]:
        """Its figures, by name."""


@runtime_checkable
class Weighed(Costed, Protocol):
    """Its cost model's figures say which of two right programs is the better one."""

    @property
    def objectives(self) -> Sequence[Objective]:
        """The figures that do, by the names of `estimate_cost`; the usual one first."""


@runtime_checkable
class Remarked(Protocol):
    """Its compiler says what it made of a program."""

    def describe_build(self, task: Task, source: str) -> str:
        """In our own process: what the compiler, which is confined, says of a program that compiles, by line; every
        figure is explained. Raises OpsmithError where it says nothing."""


@runtime_checkable
class Assembled(Protocol):
    """Programs are built to machine code of a processor."""

    def write_assembly(self, task: Task, source: str) -> tuple[str, str]:
        """In our own process: the assembly of a program that compiles, with `.loc` of its lines, and the name of the
        instruction set. The compiler is confined. Raises OpsmithError where there is none."""


@runtime_checkable
class StandingAlone(Protocol):
    """Programs can be built as an executable that calls them once on given data."""

    def build_standalone(self, task: Task, source: str, inputs: bytes | memoryview) -> StandaloneProgram:
        """In our own process, by a compiler that is confined. `inputs`: of the task's data worker. Raises OpsmithError
        where it cannot be built, ValueError or the like for inputs that are none."""


@runtime_checkable
class SelfProfiled(Protocol):
    """Its simulator says more of a run's time than cycles (`RunOutputs.profile`)."""

    @property
    def profile_words(self) -> str:
        """What the figures mean; "": it says no more."""


# -- where programs come from


class Policy(Protocol):
    """A program sampler that was fitted on the programs of one prompt."""

    def sample_program(self, task: Task, temperature: float, rng: random.Random) -> str:
        """The text of one program for `task`; depends on nothing but the arguments and the examples fitted on."""


class Sampler(Protocol):
    """The program sampler of a language."""

    def fit_policy(self, examples: Sequence[tuple[Task, str]]) -> Policy:
        """A policy fitted on (task, program) pairs; deterministic."""


@runtime_checkable
class Sampled(Protocol):
    """The embedded chat model can answer in this language."""

    def make_sampler(self) -> Sampler: ...


@runtime_checkable
class Searched(Protocol):
    """Programs can be enumerated without a model: `opsmith run --model search`."""

    def enumerate_programs(self, task: Task) -> Iterator[str]:
        """Well-typed programs for a task, each once, the best first; the same on every call. It may end."""


@runtime_checkable
class Scheduled(Protocol):
    """Right programs have schedules that can be searched without a model: `opsmith optimise --model metaschedule`."""

    def make_scheduler(self) -> Scheduler:
        """Raises UsageError where what it needs is not installed."""


class Scheduler(Protocol):
    """Schedules of right programs, by decisions: JSON of the number of a list of choices, and of what is chosen.

    A program that a schedule made has the schedules of the one that it was made of. Equal arguments give equal answers.
    """

    def list_choices(self, source: str, sizes: Mapping[str, int]) -> Sequence[Sequence[Mapping[str, int]]]:
        """What can be chosen: `parts` of a tile, factors of its `extent`; one of `options`, or else the `default`.
        Nothing for a program without schedules."""

    def draw_decisions(
        self, source: str, sizes: Mapping[str, int], tried: Sequence[tuple[str, float | None]], seed: int
    ) -> str | None:
        """By the search of the language's own compiler. `tried`: decisions and how many times as fast they made it."""

    def write_program(self, source: str, sizes: Mapping[str, int], decisions: str) -> str | None:
        """The scheduled program; None: the decisions do not apply."""


@runtime_checkable
class Numbered(Protocol):
    """Programs can be told apart that compute the same: what measures builds makes as many as it needs."""

    def number_program(self, source: str, number: int) -> str:
        """The program, another text to every cache than with any other number."""


@runtime_checkable
class Tuned(Protocol):
    """Programs can be rewritten without a model: `opsmith optimise --model tuner`."""

    def make_tuner(self) -> Tuner:
        """Raises UsageError where what it needs is not installed."""


class Tuner(Protocol):
    """Reads and writes texts of programs only. Equal texts give equal answers."""

    def list_moves(self, source: str) -> Sequence[TuningMove]:
        """All rewritings that apply, in the order of the program; none for a text that is no program."""

    def apply_move(self, source: str, move: TuningMove) -> str | None:
        """The program after a move of `list_moves`; None: it does not apply after all."""

    def list_advice(self, source: str, profiles: Mapping[str, str]) -> Sequence[Advice]:
        """What is worth trying, the largest expected gain first. `profiles`: texts by the profiler's name."""

    def rename_variables(self, source: str, seed: int) -> str:
        """The same program with drawn names for all that nobody outside sees."""

    def name_version(self) -> str:
        """Another one wherever the tuner may answer otherwise."""


@runtime_checkable
class Bare(Protocol):
    """Tasks can be shown as plain code of the host language, without structural IR: the texts of a bare prompt.

    All are made from the same sources as those of the structural one.
    """

    bare_reply: str  # what a reply should be, in words: for the message about one that holds no program

    def bare_prompt(self) -> str:
        """The static base prompt; its examples are fenced `bare_task` texts."""

    def bare_task(self, task: Task, source: str | None) -> str:
        """A task as code with this program in it; None: with the place that is left for it."""

    def bare_answer(self, task: Task, source: str) -> str:
        """A program as a reply to a bare prompt would give it; `read_program` takes it."""

    def read_bare(self, text: str) -> tuple[str, str | None] | None:
        """The inverse of `bare_task`, from the text alone: a task text as prompts show it, and its program or None.

        None: the text is nothing that `bare_task` wrote. Never executes anything.
        """


# -- what is taken away, or shared with other languages


@runtime_checkable
class Scripted(Protocol):
    """A program can be written as a script that tests it without Opsmith: `opsmith codegen`."""

    def write_script(self, task: Task, source: str) -> str:
        """A self-contained test script for the task with this program."""


@runtime_checkable
class Packaged(Protocol):
    """Programs can be taken away as a Python package that runs without Opsmith."""

    requirements: Sequence[str]  # what the package needs beside Python, as pip knows them

    def write_package(self, name: str, operators: Sequence[Solved]) -> Mapping[str, str | bytes]:
        """The files of a package `name` by path, bytes where they are no texts: `NAME/...`, which defines a function
        for each operator and imports nothing but itself and the requirements, and `tests/...`, which need pytest too.
        A program stands in a file of its own, as it was written, or is part of the operator's module.

        Equal arguments give equal files. Texts of tasks and programs never become code other than what they are as
        functions and references of a task's author.
        """

    def describe_usage(self, name: str, operators: Sequence[Solved]) -> str:
        """What a reader of the package's README has to know of this language's operators, in Markdown."""

    def describe_proof(self, name: str) -> str:
        """What the package's tests compare, in Markdown."""

    def describe_ownership(self, name: str) -> str:
        """Whose code runs when an operator is called or tested, in Markdown."""


@runtime_checkable
class Translated(Protocol):
    """What a package holds of a program is written anew, in the package's own language, and tried before."""

    def plan_translation(self, task: Task, source: str, name: str) -> dict[str, Any]:
        """What `write_package` needs to write a right program as the function `name`, as JSON. In worker processes
        only: it runs code of the task's author. Raises UsageError where what is written would not be equal."""


@runtime_checkable
class Modular(Protocol):
    """Programs can be taken away as a module of torch each: one file with host code of ours around the program."""

    def write_torch_module(self, solved: Solved) -> TorchModule:
        """Equal arguments give equal texts. Raises UsageError for a task that has no such form."""


@runtime_checkable
class Bindable(Protocol):
    """Programs can be taken away as sources that torch's extension builder makes a module with `run` of."""

    def write_torch_extension(self, solved: Solved) -> TorchExtension:
        """`run` is given inputs and scalars in the order of the problem's source, then the outputs, which it writes.

        Equal arguments give equal texts. Raises UsageError for a task that has no such form.
        """


@runtime_checkable
class Portable(Protocol):
    """Task files state problems that can be asked for in another language too."""

    def problem_digest(self, task: Task) -> str:
        """The hash of what `task` asks for in any language: equal for one problem in two languages.

        `Task.digest` names a task: a problem as one language is asked for it.
        """


@runtime_checkable
class Stating(Portable, Protocol):
    """Tasks state their problem as a record: what languages of arrays are asked for."""

    def find_problem(self, task: Task) -> Problem:
        """What `task` asks for in any language."""


@runtime_checkable
class Adapting(Protocol):
    """Problems that task files of other targets state can be asked for in this language."""

    def adapt_task(self, task: Task) -> Task:
        """The problem of another target's task as a task of this one, with the same id and group.

        The problem of a file that states none of a language's own is a task of the target `problem`. Raises TaskError
        for a problem that this language cannot be asked for.
        """


@runtime_checkable
class Configured(Protocol):
    """Tasks can be asked for with options that say how programs are built and run: `--option threads=2`."""

    def configure_task(self, task: Task, options: Mapping[str, Any]) -> Task:
        """The task of this target with these options over its own; another digest if they differ.

        Values are those of the command line (texts) or of a TOML table. Raises UsageError for an option or a value that
        there is not.
        """


@runtime_checkable
class Framed(Protocol):
    """Programs have a frame, which a person may begin with."""

    def write_frame(self, task: Task) -> str:
        """What a program for the task is given and gives, in comments, and as much of a program as is the same for all
        of them; it is refused until it is written."""


@runtime_checkable
class Suffixed(Protocol):
    """Programs lie in files of their own: a task file's in `plain/` beside it, with the file's name."""

    suffix: str  # of such a file: .c
