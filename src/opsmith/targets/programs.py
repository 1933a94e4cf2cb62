"""What a target makes of its programs: artefacts, a graph to draw, traits to count by, operators to package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from opsmith.records import Diagnostic, Task

TOOLCHAIN = "toolchain"  # a package's folder of what builds and runs its programs, where it holds that


@dataclass(frozen=True)
class Build:
    """What building a program gave: artefacts, or findings against the source, or what of ours failed."""

    artefacts: Mapping[str, bytes]  # by name; empty when it was refused or failed
    errors: tuple[Diagnostic, ...] = ()  # why the program is refused at COMPILE
    failure: str = ""  # what of ours failed, or cannot be done here, in words: the candidate stays unjudged
    toolchain: str = ""  # compiler with version, instruction set and flags: stored with the verdict
    threads: int = 1  # that its process may have
    needed: str = "a compiler that works"  # in place of a failure

    def __post_init__(self) -> None:
        if bool(self.artefacts) + bool(self.errors) + bool(self.failure) != 1:
            raise ValueError("Build: expected artefacts, or errors, or a failure")


@dataclass(frozen=True)
class DeployedEnd:
    """A process of a program's own that ended before it gave all outputs."""

    trial: int  # of those that it was given
    finding: Diagnostic


DescribeDevice = Callable[[Mapping[str, Any]], tuple[str, str]]  # digest and name, of what a machine says, or somebody


@dataclass(frozen=True)
class CallConvention:
    """How the stand-alone runner calls a language's programs, and what its figures are worth."""

    module: str  # of ours, which calls them there: `opsmith.timing.carried` says what is asked of it
    protocol: str  # as measurements name it: figures of different ones are not compared
    device: str  # the kind that they run on, as leases and measurements name it: cpu, cuda
    helpers: tuple[str, ...] = ()  # artefacts of a build that go there beside `program`
    is_disturbed: bool = True  # entries of inputs are drawn anew for each call; False: parts of draws are copied
    has_outside_clock: bool = True  # processes are timed from outside too; False: no program reaches the calls' clock
    full_processes: int | None = None  # of the full grade; None: as many as here
    torch_device: str = ""  # where torch can time references beside programs, as it calls that; "": not there
    describe_device: DescribeDevice | None = None  # None: it is the processor


@dataclass(frozen=True)
class CarriedBuild:
    """A right program built to be timed on another machine, which has the stand-alone runner and nothing of ours."""

    build: Build  # `program`, and what else the runner loads beside it
    needs: Mapping[str, Any]  # of the machine there: `machine`, `isa`, `features`, `architecture`

    def __post_init__(self) -> None:
        if self.build.artefacts and "program" not in self.build.artefacts:
            raise ValueError("CarriedBuild: no artefact `program`")


@dataclass(frozen=True)
class StandaloneProgram:
    """An executable that calls a program once on given data, and ends."""

    executable: bytes
    stdin: bytes  # the data
    isa: str  # the instruction set that it is built for
    source_name: str  # what its debugging information calls the program's text


NodeKind = Literal["input", "operation", "output", "unused"]


@dataclass(frozen=True)
class Node:
    """One application, or an end of the graph. `unused`: where a result goes that nothing consumes."""

    id: str
    label: str  # what it does: Map
    detail: str = ""  # with which function and numbers: fn_exp, b=1
    kind: NodeKind = "operation"


@dataclass(frozen=True)
class Edge:
    """What flows from one node to another."""

    source: str
    target: str
    type_text: str
    operand: int = 0  # its place among several of the target, from 1; 0: the only one


@dataclass(frozen=True)
class Dataflow:
    """A program as a graph. The nodes stand in an order in which they can run, so that there is no circle."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        place = {node.id: index for index, node in enumerate(self.nodes)}
        if len(place) < len(self.nodes):
            raise ValueError("Dataflow: two nodes have one id")
        for edge in self.edges:
            if edge.source not in place or edge.target not in place or place[edge.source] >= place[edge.target]:
                raise ValueError(f"Dataflow: edge {edge.source} -> {edge.target} leads to no later node")


@dataclass(frozen=True)
class Traits:
    """Two properties of a right program, by which results are told apart."""

    shapes: bool  # it manipulates shapes, beyond computing
    reuses: bool  # it uses something more than once that the language lets be used once

    @property
    def name(self) -> str:
        """`Arith-Once`, `Arith-Reuse`, `Shape-Once` or `Shape-Reuse`, as the paper calls them."""
        return f"{'Shape' if self.shapes else 'Arith'}-{'Reuse' if self.reuses else 'Once'}"


@dataclass(frozen=True)
class SizedProgram:
    """One of several programs of an operator: the one for calls whose sizes are nearest to some that were measured."""

    source: str
    build: str
    sizes: Mapping[str, Mapping[str, int]]  # by shape set: at these it was the fastest


@dataclass(frozen=True)
class Solved:
    """An operator to be packaged."""

    name: str  # of its function: an identifier in lower case, another one for each operator of a package
    task: Task
    source: str  # a program that passed
    facts: Mapping[str, str]  # where it comes from, in words, for its documentation
    build: str = ""  # the toolchain of its verdict; "": nothing was built
    by_size: tuple[SizedProgram, ...] = ()  # several programs in place of `source`; (): there is one
    secret: str = ""  # what the hidden sizes of its proof are drawn from
    translation: Mapping[str, Any] = field(default_factory=dict)  # of a `Translated` target: its plan


@dataclass(frozen=True)
class TorchModule:
    """A right program in files of KernelBench's kind."""

    name: str  # of both files, without their suffix
    text: str  # that which defines `ModelNew`: the program with host code around it
    reference: str  # that which defines `Model`, `get_inputs` and `get_init_inputs`
    device: str = "cpu"  # cpu or cuda: where its tensors lie
    compiler: str = "gcc"  # what builds it


@dataclass(frozen=True)
class TorchExtension:
    """A right program as sources that torch's extension builder makes a module with `run` of."""

    language: str  # as FlashInfer Trace calls it: cpp, cuda
    sources: Mapping[str, str]  # by file name; the first defines `run`
    dependencies: tuple[str, ...]  # that must be installed
    device: str  # cpu or cuda: where its tensors lie
    description: str  # in a sentence

    @property
    def entry(self) -> str:
        """The file and the function that is called."""
        return f"{next(iter(self.sources))}::run"


PARAMETERS: Mapping[str, str] = {  # by kind: which constants of a program are numbers of it
    "tile": "steps and extents of loops, and what kernels of GPUs are compiled for",
    "block": "threads of a block, or entries along the axes of arrays that a piece of work keeps to itself",
    "unroll": "turns of a loop that are written out side by side",
    "stage": "pieces that are under way at once",
}


def sort_parameters(pairs: Iterable[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    """Kinds with numbers as `Parametrised` gives them; 1 and less divide nothing.

    >>> sort_parameters([("unroll", 4), ("tile", 32), ("tile", 8), ("tile", 1)])
    {'tile': (8, 32), 'unroll': (4,)}
    """
    numbers: dict[str, set[int]] = {kind: set() for kind in PARAMETERS}
    for kind, number in pairs:
        if number > 1:
            numbers[kind].add(number)
    return {kind: tuple(sorted(own)) for kind, own in numbers.items() if own}


@dataclass(frozen=True)
class TuningMove:
    """One rewriting of a program that keeps what it computes."""

    name: str  # a word that stays what it is: unroll
    line: int  # of the program, from 1: where it is applied
    description: str  # what it does there, in words
    parameters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Advice:
    """What a target's own rules would do to a program next."""

    moves: tuple[str, ...]  # names of moves, in the order in which they are applied
    line: int  # of the program, from 1; 0: everywhere
    gain: float  # by how much it is expected to be faster, a guess
    what: str  # the moves in words
    why: str
    parameters: Mapping[str, int] = field(default_factory=dict)
