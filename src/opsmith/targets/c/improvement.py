"""What the agents of an optimisation round are told of C: the platform for the analyst, the job for the generator."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from string import Template

from opsmith.targets.c.prompt import TEXTS, describe_isa, write_flags, write_rules
from opsmith.targets.native.caches import CpuCache, list_caches
from opsmith.targets.native.flags import Isa
from opsmith.targets.native.prompt_texts import read_prompt_file, write_improvement_prompt

_REGISTERS = {"x86-64-v4": "32 vector registers", "x86-64": "16 vector registers", "arm": "32 vector registers"}


@lru_cache(maxsize=4)
def write_platform(isa: Isa) -> str:
    """What programs run on here, what usually helps, and what cannot be changed."""
    text = Template(read_prompt_file(TEXTS, "platform.txt"))
    return text.substitute(
        flags=write_flags(isa),
        isa=describe_isa(isa),
        registers=_REGISTERS.get(isa.name, _REGISTERS["arm" if isa.name.startswith("arm") else "x86-64"]),
        caches=describe_caches(list_caches()),
    )


def describe_caches(caches: Iterable[CpuCache]) -> str:
    """Those that hold data, with sizes.

    >>> describe_caches([CpuCache(1, "Data", 48 << 10, 1), CpuCache(3, "Unified", 32 << 20, 8)])
    'L1 48 KiB, L3 32 MiB shared by 8 cores'
    """
    rows = [
        f"L{cache.level} {_write_size(cache.size)}"
        + (f" shared by {cache.cores} cores" if cache.cores and cache.cores > 2 else "")
        for cache in caches
        if cache.kind != "Instruction"
    ]
    return ", ".join(rows) or "not known"


def _write_size(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def write_improvement(isa: Isa, has_example: bool) -> str:
    """The generator's prompt, one YAML mapping; the same for every task and whatever its options."""
    return write_improvement_prompt(TEXTS, write_rules(isa), has_example)
