"""The texts that models read of CUDA: rules, plan and example pair for the proposer, the platform for the analyst, the
job for the generator."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template

from opsmith.problems.files.reading import read_problem
from opsmith.problems.files.writing import write_block
from opsmith.targets.cuda.options import DEFAULT_ARCH, CudaOptions
from opsmith.targets.native.statement import write_statement

EXAMPLE = "log_sum_exp"
PLAIN = f"{EXAMPLE}_plain"  # the example before the change


@cache
def write_prompt() -> str:
    """The whole text, one YAML mapping; the same for every task and whatever its options."""
    return f"{write_rules()}example:\n{write_example()}"


def write_rules() -> str:
    """What a program of the language is, without an example: the entry `general` of a mapping."""
    return Template(read_prompt_file("proposer.yaml")).substitute(arch=DEFAULT_ARCH)


def write_example() -> str:
    """A task as it is shown, with its program, indented as one mapping."""
    return _indent_rows([*_list_statement(), *write_block("impl: ", read_prompt_file(f"{EXAMPLE}.cu"))])


@cache
def write_platform() -> str:
    """What programs run on, what usually helps, and what cannot be changed."""
    return Template(read_prompt_file("platform.txt")).substitute(arch=DEFAULT_ARCH)


@cache
def write_improvement(has_example: bool) -> str:
    """The generator's prompt, one YAML mapping; the same for every task and whatever its options."""
    text = write_rules() + read_prompt_file("improvement.yaml")
    return f"{text}example:\n{write_pair()}" if has_example else text


def write_pair() -> str:
    """A task as it is shown, a plain program, what was suggested, and what came of it, indented as one mapping."""
    rows = _list_statement() + write_block("before: ", read_prompt_file(f"{PLAIN}.cu"))
    rows += ["suggestion:", *(f"  {row}" for row in read_prompt_file("suggestion.yaml").splitlines())]
    return _indent_rows([*rows, *write_block("after: ", read_prompt_file(f"{EXAMPLE}.cu"))])


def _list_statement() -> list[str]:
    file = read_problem(read_prompt_file(f"{EXAMPLE}.yaml"))
    return write_statement(file.problem, CudaOptions(), file.name, shows_function=False).splitlines()


def _indent_rows(rows: list[str]) -> str:
    return "".join(f"  {row}\n" if row else "\n" for row in rows)


@cache
def read_prompt_file(name: str) -> str:
    """A file of `prompts/`."""
    return files("opsmith.targets.cuda").joinpath("prompts", name).read_text(encoding="utf-8")
