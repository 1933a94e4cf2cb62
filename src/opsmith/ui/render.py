"""How does a record become HTML? With the report's parts and filters, and the templates of live pages beside them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment

from opsmith.records import Outcome, Usage
from opsmith.report import pages
from opsmith.report.attempts import CallView
from opsmith.ui.board import State

STATIC = Path(__file__).parent / "static"
STYLE = Path(pages.__file__).parent / "static" / "style.css"
SIGNS = {
    State.RUNNING: "▶", State.PAUSED: "‖", State.STOPPED: "■", State.FINISHED: "✓",
    Outcome.PASSED: "✓", Outcome.REFUSED: "✗", Outcome.UNJUDGED: "?",
}  # fmt: skip


class Addresses:
    """Where the report's parts find things: on pages of their own."""

    def run(self, run: str) -> str:
        return run_url(run)

    def task(self, run: str, task: str) -> str:
        return run_url(run, "tasks", task)

    def sample(self, run: str, sample: str) -> str:
        return run_url(run, "samples", sample)

    def prompt(self, run: str, call: CallView) -> None:
        """It is shown in place."""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = pages.environment("opsmith.ui")
    made.filters.update(clock=clock, part_of=part_of, total=total)
    made.globals.update(run_url=run_url, sign=SIGNS.__getitem__, links=Addresses())
    return made


def render(template: str, **values: Any) -> str:
    """A template of live pages."""
    return _environment().get_template(f"live/{template}").render(**values)


def run_url(run: str, *parts: str, **query: Any) -> str:
    """
    >>> run_url("r-1", "samples", task="a b", round=None)
    '/runs/r-1/samples?task=a+b'
    """
    path = "/".join(quote(part, safe="") for part in ("runs", run, *parts))
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"/{path}?{urlencode(given)}" if given else f"/{path}"


def clock(at: float | None) -> str:
    """The time of day, with the date when that is another one; in this machine's time zone."""
    if at is None:
        return "-"
    local = time.localtime(at)
    today = local[:3] == time.localtime()[:3]
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M", local)


def part_of(part: float, whole: float) -> str:
    """
    >>> part_of(1, 8), part_of(0, 0)
    ('0.125', '-')
    """
    return f"{part / whole:.3f}" if whole else "-"


def total(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def fragments(names: Mapping[str, str], **values: Any) -> dict[str, str]:
    """Parts of a page by name; `names`: the template of each."""
    return {name: render(template, **values) for name, template in names.items()}
