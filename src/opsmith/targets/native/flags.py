"""The flags of a build: those of the language, the stated instruction set, and what the link leaves out.

A compiler's own idea of the processor is not asked for (gcc 12 takes an AVX-512 EPYC for one without): the instruction
set is stated, kept with verdicts and measurements, and part of the name of what was built.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opsmith.errors import UsageError

LANGUAGE_FLAGS = ("-std=gnu17", "-ffp-contract=fast")
DEFAULT_FLAGS = ("-O3",)
STRICT_FLAGS = ("-Werror=implicit-function-declaration", "-Werror=implicit-int", "-Werror=int-conversion")

_X86_LEVELS = (  # by what /proc/cpuinfo calls them; each has all of those below it
    ("x86-64-v4", ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
    ("x86-64-v3", ("abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")),
    ("x86-64-v2", ("cx16", "popcnt", "sse4_1", "sse4_2", "ssse3")),
    ("x86-64", ()),
)
_ARM_EXTENSIONS = (("asimdhp", "fp16"), ("asimddp", "dotprod"), ("sve", "sve"))
_TUNING = re.compile(
    r"-(O([0-3s]|fast)?|f(no-)?[a-z0-9-]+(=[\w.-]+)?|m(no-)?[a-z0-9.-]+(=[\w.,+-]+)?|W(no-)?[a-z0-9-]+"
    r"|D[A-Za-z]\w*(=[\w.+-]*)?|-param=[a-z-]+=\d+)"
)
_FORBIDDEN = re.compile(  # names files, changes what is written, or states another instruction set
    r"-march|-mcpu|-f(plugin|dump|diagnostics|profile|auto-profile|lto|use-ld|compare|callgraph|stack-usage|save)"
)
_STARTS_FAST_MATH = re.compile(r"-(Ofast|ffast-math|funsafe-math-optimizations|mdaz-ftz|mpc\d+)")


def check_flags(flags: Sequence[str]) -> None:
    """Raises UsageError for a flag that is more than one of optimisation, warnings or a macro."""
    for flag in flags:
        if not _TUNING.fullmatch(flag) or _FORBIDDEN.match(flag):
            raise UsageError(f"compiler flag: given {flag!r}; expected one such as -O2, -ffast-math or -mfma")


def is_reordering(flags: Sequence[str]) -> bool:
    """Whether the compiler may add in an order of its own, so that equal calls need not agree to the last bit."""
    return any(_STARTS_FAST_MATH.match(flag) or flag == "-fassociative-math" for flag in flags)


@dataclass(frozen=True)
class Isa:
    """An instruction set by the compiler's name for it."""

    name: str  # x86-64-v3, armv8-a+fp16

    @property
    def flag(self) -> str:
        return f"-march={self.name}"


@dataclass(frozen=True)
class BuildFlags:
    """All that a build depends on beside source and compiler."""

    isa: Isa
    flags: tuple[str, ...] = DEFAULT_FLAGS  # a setting; may hold -ffast-math
    has_threads: bool = False  # OpenMP with threads, for a task that asks for them

    def __post_init__(self) -> None:
        """Raises UsageError."""
        check_flags(self.flags)

    @property
    def compile_flags(self) -> tuple[str, ...]:
        openmp = "-fopenmp" if self.has_threads else "-fopenmp-simd"
        return (*LANGUAGE_FLAGS, openmp, self.isa.flag, *self.flags, *STRICT_FLAGS)

    @property
    def link_flags(self) -> tuple[str, ...]:
        """What is linked knows nothing of fast-math: its start files change the rounding of the whole process."""
        quiet = tuple(flag for flag in self.flags if not _STARTS_FAST_MATH.match(flag) and not flag.startswith("-W"))
        threads = ("-fopenmp",) if self.has_threads else ()
        vectors = ("-lmvec",) if self.isa.name.startswith("x86") else ()  # vector forms of libm's functions
        return ("-shared", *threads, *quiet, "-Wl,-z,defs", "-Wl,-Bsymbolic", *vectors, "-lm")

    @property
    def key(self) -> str:
        """A text that is equal for equal builds of one source."""
        return " ".join((*self.compile_flags, "|", *self.link_flags))


def choose_isa(architecture: str, features: Collection[str]) -> Isa:
    """The widest that such a processor has; `features` as /proc/cpuinfo names them.

    >>> choose_isa("x86_64", "sse4_1 sse4_2 ssse3 popcnt cx16 avx2".split()).flag
    '-march=x86-64-v2'
    """
    if architecture == "aarch64":
        names = [extension for feature, extension in _ARM_EXTENSIONS if feature in features]
        return Isa("+".join(["armv8.2-a" if "dotprod" in names or "fp16" in names else "armv8-a", *names]))
    if architecture != "x86_64":
        raise UsageError(f"processor: given {architecture}; expected x86_64 or aarch64")
    return Isa(next(name for place, (name, _) in enumerate(_X86_LEVELS) if _has_levels(features, _X86_LEVELS[place:])))


@cache
def find_isa() -> Isa:
    """That of this machine. Raises UsageError for a processor that is not known."""
    return choose_isa(platform.machine(), read_features())


def _has_levels(features: Collection[str], levels: Sequence[tuple[str, Sequence[str]]]) -> bool:
    return all(feature in features for _, needed in levels for feature in needed)


def list_features(isa: str) -> list[str]:
    """What a processor needs for an instruction set, by the names of /proc/cpuinfo."""
    names = [name for name, _ in _X86_LEVELS]
    levels = _X86_LEVELS[names.index(isa) :] if isa in names else ()
    needed = {feature for _, level in levels for feature in level}
    return sorted(needed | {feature for feature, extension in _ARM_EXTENSIONS if extension in isa.split("+")[1:]})


def find_missing_features(isa: str, features: Collection[str]) -> list[str]:
    """What an instruction set needs that a processor lacks.

    >>> find_missing_features("x86-64-v2", "cx16 popcnt sse4_1 ssse3".split())
    ['sse4_2']
    """
    return [feature for feature in list_features(isa) if feature not in features]


def read_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """What this machine's first processor can do; empty where that cannot be read."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(line[1].split()) if line else frozenset()
