"""The texts that prompts for WGSL begin with, made from `prompts/`; and whether a text is a program at all."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

from opsmith.problems.files.reading import read_problem
from opsmith.problems.files.writing import write_block
from opsmith.targets.gpu.options import GpuOptions
from opsmith.targets.native.statement import write_statement
from opsmith.targets.wgsl.lexing import split_source

EXAMPLE = "log_sum_exp"
PLAIN = f"{EXAMPLE}_plain"  # the example before the change

_LARGEST = 1 << 17  # characters
_BEGINNING = re.compile(r"enable|requires|diagnostic|struct|alias|const|override|var|fn|const_assert|@")


@lru_cache(maxsize=2)
def write_prompt() -> str:
    """The whole text of the proposer's, one YAML mapping; the same for every task."""
    return f"{write_rules()}example:\n{_write_example()}"


def write_rules() -> str:
    """What a program of the language is, without an example: the entry `general` of a mapping."""
    return read_prompt_file("proposer.yaml")


@lru_cache(maxsize=2)
def write_improvement(has_example: bool) -> str:
    """The generator's prompt, one YAML mapping; the same for every task."""
    text = write_rules() + read_prompt_file("improvement.yaml")
    return f"{text}example:\n{_write_pair()}" if has_example else text


def _write_example() -> str:
    """A task as it is shown, with its program, indented as one mapping."""
    return _indent_rows([*_show_example(), *write_block("impl: ", read_prompt_file(f"{EXAMPLE}.wgsl"))])


def _write_pair() -> str:
    """A task as it is shown, a plain program, what was suggested, and what came of it, indented as one mapping."""
    rows = [*_show_example(), *write_block("before: ", read_prompt_file(f"{PLAIN}.wgsl"))]
    rows += ["suggestion:", *(f"  {row}" for row in read_prompt_file("suggestion.yaml").splitlines())]
    return _indent_rows([*rows, *write_block("after: ", read_prompt_file(f"{EXAMPLE}.wgsl"))])


def _show_example() -> list[str]:
    file = read_problem(read_prompt_file(f"{EXAMPLE}.yaml"))
    return write_statement(file.problem, GpuOptions(), file.name, shows_function=False).splitlines()


def _indent_rows(rows: list[str]) -> str:
    return "".join(f"  {row}\n" if row else "\n" for row in rows)


@lru_cache(maxsize=8)
def read_prompt_file(name: str) -> str:
    """A file of `prompts/`."""
    return files("opsmith.targets.wgsl").joinpath("prompts", name).read_text(encoding="utf-8")


def is_program(text: str) -> bool:
    """Whether it begins and ends as WGSL does, closes every brace that it opens, and has a kernel or tries to.

    >>> is_program("@compute @workgroup_size(1) fn f() { }"), is_program("Use @compute fn f() { }")
    (True, False)
    """
    if len(text) > _LARGEST or "fn" not in text:
        return False
    tokens = [token.text for token in split_source(text)]
    if not tokens or _BEGINNING.fullmatch(tokens[0]) is None or tokens[-1] not in ("}", ";"):
        return False
    depth = 0
    for token in tokens:
        depth += (token == "{") - (token == "}")
        if depth < 0:
            return False
    return depth == 0 and "fn" in tokens
