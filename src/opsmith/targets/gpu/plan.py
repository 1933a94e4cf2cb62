"""A launch plan in its three forms: as it is written, bound to the arguments of a problem, and at the sizes of a draw.

Names in expressions are dims and whole scalars. Expressions stay canonical texts (`expressions`) until sizes are known.
No torch, no numpy: candidates' processes import this.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

Triple = tuple[str, str, str]

INPUT, OUTPUT, WORKSPACE, NUMBER = "input", "output", "workspace", "number"  # kinds of arguments
WHOLE, FLOATING = "int", "float"  # types of numbers


@dataclass(frozen=True)
class Workspace:
    """Memory that launches share. It holds nothing that may be read before a launch has written it."""

    name: str
    dtype: str
    shape: tuple[str, ...]  # outermost axis first
    line: int  # of the program, from 1


@dataclass(frozen=True)
class Launch:
    """One call of a kernel, as it is written."""

    kernel: str
    grid: Triple  # blocks along x, y, z
    block: Triple  # threads of a block along x, y, z
    shared: str  # bytes of dynamic shared memory
    args: tuple[str, ...]  # names
    line: int

    @property
    def expressions(self) -> tuple[str, ...]:
        return (*self.grid, *self.block, self.shared)


@dataclass(frozen=True)
class LaunchPlan:
    """What a program says of its host side. Launches follow one another: each sees what those before it wrote."""

    workspaces: tuple[Workspace, ...]
    launches: tuple[Launch, ...]

    def write_lines(self) -> str:
        """The plan as it is best written; equal for plans that mean the same with the same names."""
        rows = [f"// workspace {space.name}: {space.dtype} [{', '.join(space.shape)}]" for space in self.workspaces]
        return "".join(f"{row}\n" for row in [*rows, *map(_write_launch, self.launches)])


def _write_launch(launch: Launch) -> str:
    shared = "" if launch.shared == "0" else f" shared={launch.shared}"
    sizes = f"grid=({', '.join(launch.grid)}) block=({', '.join(launch.block)})"
    return f"// launch {launch.kernel} {sizes}{shared} args=({', '.join(launch.args)})"


# -- bound


@dataclass(frozen=True)
class BoundArgument:
    """What a kernel is given for one of its parameters."""

    name: str  # as the plan calls it
    kind: str  # INPUT, OUTPUT, WORKSPACE or NUMBER
    place: int  # among those of its kind, from 0
    type: str  # the dtype of an array's entries; WHOLE or FLOATING for a number

    @property
    def is_array(self) -> bool:
        return self.kind != NUMBER


@dataclass(frozen=True)
class BoundLaunch:
    """One call of a kernel with its arguments."""

    kernel: str
    grid: Triple
    block: Triple
    shared: str
    arguments: tuple[BoundArgument, ...]
    line: int

    @property
    def arrays(self) -> tuple[BoundArgument, ...]:
        return tuple(argument for argument in self.arguments if argument.is_array)

    @property
    def numbers(self) -> tuple[BoundArgument, ...]:
        return tuple(argument for argument in self.arguments if not argument.is_array)


@dataclass(frozen=True)
class BoundPlan:
    """A plan for the arguments of a problem: an artefact, since the process that runs it knows no problem."""

    inputs: tuple[str, ...]  # dtypes
    outputs: tuple[str, ...]
    numbers: tuple[tuple[str, str], ...]  # name and type, in the order of `DrawLayout.numbers`
    workspaces: tuple[Workspace, ...]
    launches: tuple[BoundLaunch, ...]

    def list_kernels(self) -> Iterator[str]:
        """Each once, in the order of their first launch."""
        yield from dict.fromkeys(launch.kernel for launch in self.launches)

    def write_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


def read_bound_plan(text: str | bytes) -> BoundPlan:
    """The inverse of `BoundPlan.write_json`. Raises what reading junk raises."""
    words = json.loads(text)
    workspaces = (Workspace(**{**space, "shape": tuple(space["shape"])}) for space in words["workspaces"])
    return BoundPlan(
        tuple(words["inputs"]),
        tuple(words["outputs"]),
        tuple((name, type_) for name, type_ in words["numbers"]),
        tuple(workspaces),
        tuple(map(_read_launch, words["launches"])),
    )


def _read_launch(words: dict[str, Any]) -> BoundLaunch:
    arguments = tuple(BoundArgument(**argument) for argument in words["arguments"])
    triples = {key: tuple(words[key]) for key in ("grid", "block")}
    return BoundLaunch(**{**words, **triples, "arguments": arguments})


# -- resolved


@dataclass(frozen=True)
class ResolvedLaunch:
    """One call of a kernel at the sizes of a draw."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int  # bytes
    arguments: tuple[BoundArgument, ...]
    line: int


@dataclass(frozen=True)
class ResolvedPlan:
    """A plan at the sizes of a draw."""

    workspaces: tuple[int, ...]  # bytes of each
    launches: tuple[ResolvedLaunch, ...]
