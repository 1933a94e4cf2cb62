"""The text that opens a prompt for C: rules, call, what counts as right, this machine's processor, one example pair."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from string import Template

from opsmith.problems.files.reading import read_problem
from opsmith.problems.files.writing import write_block
from opsmith.targets.native.flags import LANGUAGE_FLAGS, Isa
from opsmith.targets.native.statement import write_statement
from opsmith.targets.native.task import NativeOptions

EXAMPLE = "log_sum_exp"

_VECTORS = {  # what such a processor computes with at once
    "x86-64-v4": "AVX-512: 16 floats or 8 doubles at once, fused multiply-add",
    "x86-64-v3": "AVX2: 8 floats or 4 doubles at once, fused multiply-add",
    "x86-64-v2": "SSE4.2: 4 floats or 2 doubles at once, no fused multiply-add",
    "x86-64": "SSE2: 4 floats or 2 doubles at once, no fused multiply-add",
}
_ARM = "NEON: 4 floats or 2 doubles at once, fused multiply-add"


@lru_cache(maxsize=4)
def write_prompt(isa: Isa) -> str:
    """The whole text, one YAML mapping; the same for every task and whatever its options."""
    return f"{write_rules(isa)}example:\n{write_example()}"


def write_rules(isa: Isa) -> str:
    """What a program of the language is, without an example: the entry `general` of a mapping."""
    return Template(read_prompt_file("proposer.yaml")).substitute(isa=describe_isa(isa), flags=write_flags(isa))


def write_flags(isa: Isa) -> str:
    """What a task without options is compiled with."""
    return " ".join((*LANGUAGE_FLAGS, "-fopenmp-simd", isa.flag, *NativeOptions().flags))


def describe_isa(isa: Isa) -> str:
    """Its name and what it computes with at once."""
    return f"{isa.name} ({_VECTORS.get(isa.name, _ARM)})"


def write_example() -> str:
    """A task as it is shown, with its program, indented as one mapping."""
    file = read_problem(read_prompt_file(f"{EXAMPLE}.yaml"))
    rows = write_statement(file.problem, NativeOptions(), file.name).splitlines()
    rows += write_block("impl: ", read_prompt_file(f"{EXAMPLE}.c"))
    return "".join(f"  {row}\n" if row else "\n" for row in rows)


@lru_cache(maxsize=4)
def read_prompt_file(name: str) -> str:
    """A file of `prompts/`."""
    return files("opsmith.targets.c").joinpath("prompts", name).read_text(encoding="utf-8")
