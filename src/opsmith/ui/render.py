"""Records as HTML: the report's parts and filters, and the templates of live pages beside them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment

from opsmith.records import Outcome, Usage
from opsmith.report import pages
from opsmith.report.attempts import CallView
from opsmith.ui.snapshot import RunState

STATIC = Path(__file__).parent / "static"
SHARED = Path(pages.__file__).parent / "static"  # style and script of the report, which the live pages have too
SIGNS = {
    RunState.RUNNING: "▶", RunState.PAUSED: "‖", RunState.STOPPED: "■", RunState.FINISHED: "✓",
    Outcome.PASSED: "✓", Outcome.REFUSED: "✗", Outcome.UNJUDGED: "?",
}  # fmt: skip


class Addresses:
    """Where the report's parts find things: on pages of their own."""

    def run(self, run: str) -> str:
        return make_url(run)

    def task(self, run: str, task: str) -> str:
        return make_url(run, "tasks", task)

    def node(self, run: str, task: str) -> str:
        return self.task(run, task)

    def sample(self, run: str, sample: str) -> str:
        return make_url(run, "samples", sample)

    def prompt(self, run: str, call: CallView) -> None:
        """It is shown in place."""


@lru_cache(maxsize=1)
def _make_environment() -> Environment:
    environment = pages.make_environment("opsmith.ui")
    environment.filters.update(part_of=format_share, total=count_tokens)
    environment.globals.update(run_url=make_url, sign=SIGNS.__getitem__, links=Addresses())
    return environment


def render_template(template: str, **values: Any) -> str:
    """A template of live pages."""
    return _make_environment().get_template(f"live/{template}").render(**values)


def make_url(run: str, *steps: str, **query: Any) -> str:
    """
    >>> make_url("r-1", "samples", task="a b", round=None)
    '/runs/r-1/samples?task=a+b'
    """
    path = "/".join(quote(step, safe="") for step in ("runs", run, *steps))
    arguments = {name: value for name, value in query.items() if value not in (None, "")}
    return f"/{path}?{urlencode(arguments)}" if arguments else f"/{path}"


def format_share(count: float, total: float) -> str:
    """
    >>> format_share(1, 8), format_share(0, 0)
    ('0.125', '-')
    """
    return f"{count / total:.3f}" if total else "-"


def count_tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def render_fragments(names: Mapping[str, str], **values: Any) -> dict[str, str]:
    """Parts of a page by name; `names`: the template of each."""
    return {name: render_template(template, **values) for name, template in names.items()}
