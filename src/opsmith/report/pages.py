"""How does a view become HTML? One Jinja environment for the report's file and for pages that are served.

Every text is escaped, and cleaned of what steers a terminal or turns the direction of reading; only our own SVG is not.
Templates need, beside their views, `links`: where a run, a task, a sample or a prompt is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any, Protocol

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from opsmith.learn.intervals import Estimate
from opsmith.records import content_hash, printable
from opsmith.report.attempts import CallView
from opsmith.report.tables import cost, duration


class Links(Protocol):
    """Where things are; a template links what has a place, and shows a prompt in place where it has none."""

    def run(self, run: str) -> str: ...

    def task(self, run: str, task: str) -> str | None: ...

    def sample(self, run: str, sample: str) -> str | None: ...

    def prompt(self, run: str, call: CallView) -> str | None: ...


class Anchors:
    """Links within one file. Ids are hashes: a task's id may hold anything."""

    def run(self, run: str) -> str:
        return f"#{anchor('run', run)}"

    def task(self, run: str, task: str) -> str | None:
        return f"#{anchor('task', run, task)}"

    def sample(self, run: str, sample: str) -> str | None:
        return None

    def prompt(self, run: str, call: CallView) -> str | None:
        return f"#{anchor('prompt', call.prompt)}"


def anchor(kind: str, *names: str) -> str:
    """The HTML id of a thing in a file."""
    return f"{kind}-{content_hash(*names)[:12]}"


def render(name: str, **data: Any) -> str:
    """A template of `opsmith.report` with these data."""
    return environment().get_template(name).render(**data)


@lru_cache(maxsize=4)
def environment(*packages: str) -> Environment:
    """The report's templates, and before them those in the folder `templates` of other packages."""
    loaders = [PackageLoader(package) for package in (*packages, "opsmith.report")]
    made = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_clean,
    )
    made.filters |= {"share": share, "interval": interval, "number": number, "moment": moment, "svg": Markup}
    made.filters |= {"duration": duration, "cost": cost, "sentence": sentence, "agent": agent}
    made.globals |= {"anchor": anchor, "style": style}
    return made


@lru_cache(maxsize=1)
def style() -> Markup:
    """The stylesheet, to stand in a page's `<style>`."""
    return Markup(files("opsmith.report").joinpath("static", "style.css").read_text(encoding="utf-8"))


def share(value: float | None) -> str:
    """
    >>> share(0.25), share(None)
    ('0.250', '–')
    """
    return "–" if value is None else f"{value:.3f}"


def interval(found: Estimate | None) -> str:
    """`0.303 [0.272, 0.332]`; a dash where there is no estimate."""
    return "–" if found is None else str(found)


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def agent(name: str) -> str:
    """Who asked, in words.

    >>> agent("guardian"), agent("repair-2"), agent("guardian-2")
    ('guardian', 'proposer in repair turn 2', 'guardian in repair turn 2')
    """
    who, _, turn = name.partition("-")
    return f"{'proposer' if who == 'repair' else who} in repair turn {turn}" if turn else name


def sentence(names: Sequence[str], most: int = 12) -> str:
    """Names with commas; a long list is cut, and says so."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _clean(value: Any) -> Any:
    """What Jinja does to each value before it escapes it; `Markup` is ours and stays."""
    if type(value) is not str or value.replace("\n", "").replace("\t", "").isprintable():
        return value
    return printable(value, keep="\n\t")
