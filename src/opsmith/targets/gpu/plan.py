"""A launch plan in its three forms: as it is written, bound to the arguments of a problem, and at the sizes of a draw.

Names in expressions are dims and whole scalars. Expressions stay canonical texts (`expressions`) until sizes are known.
No torch, no numpy: candidates' processes import this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Triple = tuple[str, str, str]

INPUT, OUTPUT, WORKSPACE, NUMBER = "input", "output", "workspace", "number"  # kinds of arguments
WHOLE, FLOATING = "int", "float"  # types of numbers

_KEY_EXAMPLES = {  # what stands behind each key of a launch
    **{"grid": "(M, 1, 1)", "block": "(256, 1, 1)", "meta": "(BLOCK=next_pow2(N), num_warps=4)"},
    "args": "(x, y, M, N)",
}


@dataclass(frozen=True)
class PlanWords:
    """How a language writes its plans: what begins a comment, and which words a launch has."""

    comment: str = "//"  # that ends with its line
    has_block_comments: bool = True  # /* ... */
    keys: Sequence[str] = ("grid", "block", "shared", "args")  # of these and `meta`
    needed: Sequence[str] = ("grid", "block", "args")
    preamble: re.Pattern[str] = re.compile(r"\s*(#|enable\b|requires\b|diagnostic\b|$)")  # lines that declare nothing

    @property
    def example(self) -> str:
        """A launch."""
        words = (f"{key}={text}" for key, text in _KEY_EXAMPLES.items() if key in self.keys)
        return f"{self.comment} launch row_sum {' '.join(words)}"


PLAN_WORDS = PlanWords()  # of CUDA, WGSL, Metal and their like


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
    meta: tuple[tuple[str, str], ...] = ()  # numbers that the kernel is compiled for: name and expression

    @property
    def expressions(self) -> tuple[str, ...]:
        return (*self.grid, *self.block, self.shared)


@dataclass(frozen=True)
class LaunchPlan:
    """What a program says of its host side. Launches follow one another: each sees what those before it wrote."""

    workspaces: tuple[Workspace, ...]
    launches: tuple[Launch, ...]

    def write_lines(self, words: PlanWords = PLAN_WORDS) -> str:
        """The plan as it is best written; equal for plans that mean the same with the same names."""
        rows = [f"workspace {space.name}: {space.dtype} [{', '.join(space.shape)}]" for space in self.workspaces]
        rows += [_write_launch(launch, words) for launch in self.launches]
        return "".join(f"{words.comment} {row}\n" for row in rows)


def _write_launch(launch: Launch, words: PlanWords) -> str:
    block = f" block=({', '.join(launch.block)})" if "block" in words.keys else ""
    shared = "" if launch.shared == "0" else f" shared={launch.shared}"
    meta = f" meta=({', '.join(f'{name}={text}' for name, text in launch.meta)})" if launch.meta else ""
    return (
        f"launch {launch.kernel} grid=({', '.join(launch.grid)}){block}{shared}{meta} args=({', '.join(launch.args)})"
    )


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

    @property
    def described(self) -> str:
        if self.is_array:
            return f"{self.kind}, {self.type}"
        return "a whole number" if self.type == WHOLE else "a number"


@dataclass(frozen=True)
class BoundLaunch:
    """One call of a kernel with its arguments."""

    kernel: str
    grid: Triple
    block: Triple
    shared: str
    arguments: tuple[BoundArgument, ...]
    line: int
    meta: tuple[tuple[str, str], ...] = ()

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
        words = asdict(self)
        words["launches"] = [
            {key: word for key, word in launch.items() if word or key != "meta"} for launch in words["launches"]
        ]
        return json.dumps(words, separators=(",", ":"))


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
    meta = tuple((name, text) for name, text in words.get("meta", ()))
    return BoundLaunch(**{**words, **triples, "arguments": arguments, "meta": meta})


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
    meta: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class ResolvedPlan:
    """A plan at the sizes of a draw."""

    workspaces: tuple[int, ...]  # bytes of each
    launches: tuple[ResolvedLaunch, ...]
