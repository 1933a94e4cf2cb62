"""What the agents of an optimisation round are told of C: the platform for the analyst, the job for the generator."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from string import Template

from opsmith.problems.files.reading import read_problem
from opsmith.problems.files.writing import write_block
from opsmith.targets.c.prompt import EXAMPLE, describe_isa, read_prompt_file, write_flags, write_rules
from opsmith.targets.native.caches import CpuCache, list_caches
from opsmith.targets.native.flags import Isa
from opsmith.targets.native.statement import write_statement
from opsmith.targets.native.task import NativeOptions

PLAIN = f"{EXAMPLE}_plain"  # the example before the change

_REGISTERS = {"x86-64-v4": "32 vector registers", "x86-64": "16 vector registers", "arm": "32 vector registers"}


@lru_cache(maxsize=4)
def write_platform(isa: Isa) -> str:
    """What programs run on here, what usually helps, and what cannot be changed."""
    text = Template(read_prompt_file("platform.txt"))
    return text.substitute(
        flags=write_flags(isa),
        isa=describe_isa(isa),
        registers=_describe_registers(isa),
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


def _describe_registers(isa: Isa) -> str:
    family = "arm" if isa.name.startswith("arm") else "x86-64"
    return _REGISTERS.get(isa.name, _REGISTERS[family])


@lru_cache(maxsize=8)
def write_improvement(isa: Isa, has_example: bool) -> str:
    """The generator's prompt, one YAML mapping; the same for every task and whatever its options."""
    text = write_rules(isa) + read_prompt_file("improvement.yaml")
    return f"{text}example:\n{write_pair()}" if has_example else text


def write_pair() -> str:
    """A task as it is shown, a plain program, what was suggested, and what came of it, indented as one mapping."""
    file = read_problem(read_prompt_file(f"{EXAMPLE}.yaml"))
    rows = write_statement(file.problem, NativeOptions(), file.name).splitlines()
    rows += write_block("before: ", read_prompt_file(f"{PLAIN}.c"))
    rows += ["suggestion:", *(f"  {row}" for row in read_prompt_file("suggestion.yaml").splitlines())]
    rows += write_block("after: ", read_prompt_file(f"{EXAMPLE}.c"))
    return "".join(f"  {row}\n" if row else "\n" for row in rows)
