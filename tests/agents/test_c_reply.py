"""Replies with C programs, in YAML, fences or neither: the program is found, and nothing else of a reply is one."""

from pathlib import Path

import pytest
import yaml
from clocks import lasts_at_most

from opsmith.agents.reply import read_reply
from opsmith.api import load_task
from opsmith.targets import get_target

TABLE = yaml.safe_load((Path(__file__).parent / "c_reply_shapes.yaml").read_text(encoding="utf-8"))
SHAPES = {shape["name"]: shape for shape in TABLE["shapes"]}
C, TASK = get_target("c"), load_task("softmax", "c")


def list_words(text: str, is_shifted: bool) -> list[str]:
    """The lines; where a program was shifted unevenly its indentation does not count."""
    return [line.strip() if is_shifted else line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("name", SHAPES)
def test_a_reply_of_each_shape_is_read(name):
    shape = SHAPES[name]
    reply = read_reply(C, TASK, shape["reply"])
    if "refused" in shape:
        assert reply.source is None
        assert shape["refused"] in reply.errors[0].given
    else:
        is_shifted = shape.get("is_shifted", False)
        program = shape.get("source", TABLE["program"])
        assert list_words(reply.source or "", is_shifted) == list_words(program, is_shifted)
        assert reply.dropped == ()


@pytest.mark.parametrize(
    "text",
    [
        "void kernel(" * 20_000,
        "```c\n" + "/*" * 60_000 + "kernel\n```",
        '"' * 100_000 + "kernel",
        "#define kernel kernel\n" * 10_000,
        "impl: |\n" + "  void kernel(int a) { }\n\n" * 5_000 + "x",
        "{" * 100_000 + "kernel" + "}" * 100_000,
        "void kernel(\\\n" * 10_000,
    ],
)
def test_hostile_texts_are_read_in_bounded_time(text):
    with lasts_at_most(10.0):
        read_reply(C, TASK, text)
