"""Prompts of a language out of the files of its folder `prompts`: rules, an example pair, and one of an improvement.

`proposer.yaml` and `improvement.yaml` begin one YAML mapping; the example, a problem with a plain program and a better
one, ends it, shown as a task is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from opsmith.problems.files.reading import read_problem
from opsmith.problems.files.writing import write_block
from opsmith.problems.problem import Problem
from opsmith.targets.native.signature import write_prototype
from opsmith.targets.native.statement import write_statement
from opsmith.targets.native.task import TaskOptions

EXAMPLE = "log_sum_exp"
PLAIN = f"{EXAMPLE}_plain"  # the example before the change


@dataclass(frozen=True)
class PromptTexts:
    """Where a language's texts lie, and how it shows a task."""

    package: str  # opsmith.targets.c
    suffix: str  # of programs
    options: TaskOptions  # of the example
    write_function: Callable[[Problem], str] | None = write_prototype


@lru_cache(maxsize=32)
def read_prompt_file(texts: PromptTexts, name: str) -> str:
    """A file of `prompts/`."""
    return files(texts.package).joinpath("prompts", name).read_text(encoding="utf-8")


@lru_cache(maxsize=8)
def append_example(texts: PromptTexts, rules: str) -> str:
    """The proposer's whole text, one YAML mapping; the same for every task and whatever its options."""
    rows = [*_show_example(texts), *write_block("impl: ", read_prompt_file(texts, f"{EXAMPLE}{texts.suffix}"))]
    return f"{rules}example:\n{_indent_rows(rows)}"


@lru_cache(maxsize=8)
def write_improvement_prompt(texts: PromptTexts, rules: str, has_example: bool) -> str:
    """The generator's, one YAML mapping; its example has a plain program, what was suggested, and what came of it."""
    text = rules + read_prompt_file(texts, "improvement.yaml")
    if not has_example:
        return text
    rows = [*_show_example(texts), *write_block("before: ", read_prompt_file(texts, f"{PLAIN}{texts.suffix}"))]
    rows += ["suggestion:", *(f"  {row}" for row in read_prompt_file(texts, "suggestion.yaml").splitlines())]
    rows += write_block("after: ", read_prompt_file(texts, f"{EXAMPLE}{texts.suffix}"))
    return f"{text}example:\n{_indent_rows(rows)}"


def _show_example(texts: PromptTexts) -> list[str]:
    file = read_problem(read_prompt_file(texts, f"{EXAMPLE}.yaml"))
    return write_statement(file.problem, texts.options, file.name, texts.write_function).splitlines()


def _indent_rows(rows: Sequence[str]) -> str:
    return "".join(f"  {row}\n" if row else "\n" for row in rows)
