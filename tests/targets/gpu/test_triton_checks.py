"""What is refused of a program in Triton before anything reads it as Python, and what a model is told of the language."""

from __future__ import annotations

import pytest
import yaml

from opsmith.models.tokens import estimate_tokens
from opsmith.suites import load_tasks
from opsmith.targets.protocols import PROPOSER
from opsmith.targets.triton import TRITON
from opsmith.targets.triton.source import is_program, write_canonical

(TASK,) = load_tasks(["kernels/row_sum"], "triton", {})
RIGHT = TASK.impl or ""


def refuse(old: str, new: str) -> str:
    """The first finding of PARSE once a part of the right program is another."""
    assert old in RIGHT
    checked = TRITON.check_program(TASK, RIGHT.replace(old, new, 1))
    assert checked.errors
    return str(checked.errors[0])


def test_a_right_program_is_refused_by_nothing() -> None:
    assert not TRITON.check_program(TASK, RIGHT).errors


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("print(N)", "print"),
        ("tl.device_print('x', N)", "tl.device_print"),
        ("a = tl.inline_asm_elementwise(N)", "tl.inline_asm_elementwise"),
        ("a = x.__class__", "x.__class__"),
        ("a = tl.core.__builtins__", "tl.core"),
        ("a = f'{N}'", "an f-string"),
        ("import os", "import"),
        ("a = [N, N]", "a list"),
        ("a = [n for n in range(4)]", "ListComp"),
        ("a = lambda v: v", "lambda"),
        ("a = open('/etc/passwd')", "open"),
        ("global N", "Global"),
        ("a = tl.load(x, cache_modifier='__import__(\"os\")')", "the text"),
        ("a = triton.runtime", "triton.runtime"),
        ("tl = x", "`tl` alone"),
        ("a = tl.make_block_ptr(x)", "pointer + offsets"),
        ("a = N ** 2", "`**`"),
        ("a = b = N", "an assignment to more than names"),
        ("x[0] = N", "an assignment to more than names"),
        ("a = missing + N", "missing: nothing of that name"),
        ("a = (lambda: 1)()", "a call of a value"),
        ("a: int = 3", ": int"),
        ("with x: pass", "With"),
        ("raise N", "Raise"),
        ("a = tl.rand(N, N)", "tl.rand"),
    ],
)
def test_what_is_not_on_the_list_is_refused(statement: str, words: str) -> None:
    lines = RIGHT.split("\n")
    place = next(number for number, line in enumerate(lines) if line.startswith("def ")) + 1
    checked = TRITON.check_program(TASK, "\n".join([*lines[:place], f"    {statement}", *lines[place:]]))
    assert words in str(checked.errors[0])
    assert checked.errors[0].line == place + 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("@triton.jit", "@triton.autotune", "@triton.jit"),
        ("import triton\n", "import os\n", "import os"),
        ("import triton\n", "LIMIT = 4\nimport triton\n", "constants are entries of meta"),
        ("args=(", "args=(M, ", "one for each of"),
        ("meta=(", "meta=(OTHER=1, ", "declare OTHER: tl.constexpr"),
        ("grid=(M)", "block=(32) grid=(M)", "one of grid, meta, args"),
        (": tl.constexpr", ": int", "remove the annotation"),
    ],
)
def test_a_head_that_does_not_fit_is_refused(old: str, new: str, words: str) -> None:
    assert words in refuse(old, new)


def test_names_and_layout_do_not_make_another_program() -> None:
    renamed = RIGHT.replace("total", "sum_of_all").replace("\n    ", "\n\n    ")
    assert write_canonical(renamed) == write_canonical(RIGHT)
    assert write_canonical(RIGHT.replace("num_warps=4", "num_warps=8")) != write_canonical(RIGHT)
    assert write_canonical(RIGHT.replace("tl.sum", "tl.max")) != write_canonical(RIGHT)


def test_the_prompts_are_short_and_their_example_is_a_program() -> None:
    assert estimate_tokens(TRITON.base_prompt(PROPOSER) or "") <= 3000
    assert estimate_tokens(TRITON.improvement_prompt(has_example=True)) <= 3000
    example = yaml.safe_load(TRITON.improvement_prompt(has_example=True))["example"]
    assert is_program(example["before"])
    assert is_program(example["after"])


@pytest.mark.parametrize(
    "text", ["", "def", "@triton.jit", "@triton.jit\ndef f(", "(" * 3000, "\\", "# launch", "x = 1"]
)
def test_no_text_makes_the_checks_fail(text: str) -> None:
    assert TRITON.check_program(TASK, text).errors
