"""How many examples does a fuzzing test draw, and from which texts does it start?"""

from __future__ import annotations

from pathlib import Path

import yaml
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from opsmith.suites import STEP_SUITES, load_tasks, task_files

times = 0  # how many times the usual number of examples are drawn, anew; 0: the usual ones, the same in every run

TASKS = load_tasks(STEP_SUITES)
TASK_FILES = [path.read_text(encoding="utf-8") for suite in STEP_SUITES for path in task_files(suite)]
_SHAPES = yaml.safe_load((Path(__file__).parents[1] / "agents" / "reply_shapes.yaml").read_text(encoding="utf-8"))
REPLIES = [shape["reply"] for shape in _SHAPES["shapes"]]
BITS = [
    "",
    "\n",
    "  ",
    "\t",
    ":",
    "- ",
    "|",
    ">",
    "&a ",
    "*a",
    "!!",
    "<<: ",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    "#",
    "'",
]
BITS += [
    '"',
    "```",
    "~~~",
    "---\n",
    "impl: |\n",
    "impl",
    "return ",
    "\r",
    "\x0c",
    "\0",
    "\ufeff",
    "\ud800",
    "é",
    "Ｅ0",
    "²",
]
BITS += [
    "0x",
    "9" * 30,
    "1e999",
    ".nan",
    ".inf",
    "-",
    "null",
    "true",
    "=",
    "_value",
    "global: ",
    "M",
    "?0.0",
    "\\",
    "%",
    "@",
]


def fuzz(few: int) -> settings:
    """The settings of one test, which draws `few` examples in the test suite."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(
        max_examples=few * max(times, 1),
        derandomize=not times,
        database=None,
        deadline=None,
        suppress_health_check=slow,
    )


@st.composite
def spoiled(draw: st.DrawFn, texts: list[str]) -> str:
    """One of the texts after some cuts, doublings and insertions, at the level of characters and of lines."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        text = draw(st.sampled_from([_pieces, _lines]))(draw, text)
    return text


def _pieces(draw: st.DrawFn, text: str) -> str:
    start = draw(st.integers(0, len(text)))
    end = min(len(text), start + draw(st.integers(0, 12)))
    middle = draw(st.sampled_from([*BITS, text[start:end] * 2]) | st.text(max_size=4))
    return text[:start] + middle + text[end:]


def _lines(draw: st.DrawFn, text: str) -> str:
    """One line taken away, moved or indented."""
    lines = text.splitlines(keepends=True) or [""]
    line = lines.pop(draw(st.integers(0, len(lines) - 1)))
    lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(["", line, "  " + line, line.lstrip()])))
    return "".join(lines)
