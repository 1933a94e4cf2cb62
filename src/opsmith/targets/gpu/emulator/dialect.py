"""What the emulator is told of a language: a table of its words, its headers, and what rewrites a program for them.

A dialect's headers say its words in terms of `opsmith_runtime.h`, and end with `opsmith_call.h`. No torch, no numpy: a
candidate's process imports this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsmith.records import Diagnostic
from opsmith.running.toolchain import CXX_COMPILER

GNU_FLAGS = (
    "--param=tsan-distinguish-volatile=1",
    "-fno-tree-loop-distribute-patterns",
    "-fno-diagnostics-show-caret",
)


@dataclass(frozen=True)
class FindingWords:
    """What findings call things."""

    thread: str
    block: str  # of threads, which a barrier holds together
    warp: str  # threads of a block that exchange values
    shared: str  # memory of a block
    device: str  # memory of all blocks
    variable: str  # of the program, in that memory, with its article
    barrier: str  # of a block, as it is called
    warp_barrier: str
    full_mask: str  # of a warp whose lanes all take part
    trap: str
    read_only: str  # a read of what nobody writes in the launch
    operations: Sequence[str]  # of a warp, in the order of `OpsmithWarp`
    device_barrier: str = ""  # of a block, for memory of all blocks, where that is another


@dataclass(frozen=True, eq=False)
class ProgramCheck:
    """What a compiler is shown first, of a language that no compiler of its own has accepted: refusals are findings."""

    file: str  # that its messages are of
    flags: Sequence[str]  # before that file
    write: Callable[[str], str]  # the program as it is shown, line for line
    explain: Callable[[str, str], tuple[Diagnostic, ...]]  # its messages, and the source that they are about


@dataclass(frozen=True, eq=False)
class EmulatedDialect:
    """A language whose kernels a compiler takes as C++ over the runtime."""

    name: str  # of its builds in the cache
    program: str  # the file that findings and lines are of: kernel.cu
    headers: Path  # a folder
    includes: Mapping[str, re.Pattern[str] | None]  # headers, and what in a program asks for each; None: every program
    foreign: Sequence[tuple[re.Pattern[str], str]]  # what is not emulated, and that in words
    shared: str  # what declares memory of a block
    kernel: str  # the head of a kernel `{}`
    pointers: Mapping[str, str]  # to entries of each dtype
    rewrite: Callable[[str], str]  # a program as the headers take it, line for line
    words: FindingWords
    compiler: str = CXX_COMPILER
    flags: Sequence[str] = GNU_FLAGS  # that this compiler takes
    entry: str = "{}"  # what is called for a kernel
    check: ProgramCheck | None = None
