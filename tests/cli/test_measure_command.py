"""`opsmith measure`: what cannot be timed is said before anything is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("attn_0",), "cannot be timed here; try, for its problem: --target c"),
        (("kernels/softmax", "--target", "c", "--shapes", "small,nosuch"), "shape set 'nosuch'"),
        (("kernels", "--target", "c"), "expected one"),
    ],
)
def test_what_cannot_be_timed_is_said(opsmith: Callable[..., Any], arguments: tuple[str, ...], words: str) -> None:
    done = opsmith("measure", *arguments)
    assert done.code != 0
    assert words in done.err
    assert not done.out


def test_a_program_is_not_compared_with_itself(opsmith: Callable[..., Any], tmp_path: Path) -> None:
    program = tmp_path / "program.c"
    program.write_text("void kernel(void) {}\n", "utf-8")
    files = ("--impl", str(program), "--against", str(program))
    done = opsmith("measure", "kernels/softmax", "--target", "c", *files)
    assert "is the program itself" in done.err
