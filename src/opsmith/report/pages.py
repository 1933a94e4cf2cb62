"""How a view becomes HTML. One Jinja environment for the report's file and for pages that are served.

Every text is escaped, and cleaned of what steers a terminal or turns the direction of reading; only our own SVG is not.
Templates need, beside their views, `links`: where a run, a task, a sample or a prompt is found.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any, Protocol

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from opsmith.records import content_hash, printable
from opsmith.report.attempts import CallView
from opsmith.report.conversations import is_tool_turn
from opsmith.report.languages import tabulate_by_language, tabulate_languages
from opsmith.report.run_tables import list_tables
from opsmith.report.speeds import list_builds, list_reasons, tabulate_speeds
from opsmith.report.tables import count_noun, explain_level, format_cost, format_duration, list_names
from opsmith.report.verdicts import name_fault
from opsmith.results.intervals import Estimate
from opsmith.store.rows import UNANSWERED


class Links(Protocol):
    """Where things are; a template links what has a place, and shows a prompt in place where it has none."""

    def run(self, run: str) -> str: ...

    def task(self, run: str, task: str) -> str | None: ...

    def node(self, run: str, task: str) -> str | None:
        """A node that a plan split off: a task that is none of the run's own."""

    def sample(self, run: str, sample: str) -> str | None: ...

    def prompt(self, run: str, call: CallView) -> str | None: ...


class Anchors:
    """Links within one file. Ids are hashes: a task's id may hold anything."""

    def run(self, run: str) -> str:
        return f"#{anchor_name('run', run)}"

    def task(self, run: str, task: str) -> str | None:
        return f"#{anchor_name('task', run, task)}"

    def node(self, run: str, task: str) -> str | None:
        return None

    def sample(self, run: str, sample: str) -> str | None:
        return None

    def prompt(self, run: str, call: CallView) -> str | None:
        return f"#{anchor_name('prompt', call.prompt)}"


def anchor_name(kind: str, *names: str) -> str:
    """The HTML id of a thing in a file."""
    return f"{kind}-{content_hash(*names)[:12]}"


def render_page(name: str, **data: Any) -> str:
    """A template of `opsmith.report` with these data."""
    return make_environment().get_template(name).render(**data)


@lru_cache(maxsize=4)
def make_environment(*packages: str) -> Environment:
    """The report's templates, and before them those in the folder `templates` of other packages."""
    loaders = [PackageLoader(package) for package in (*packages, "opsmith.report")]
    templates = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_clean_value,
    )
    templates.filters |= {
        "share": format_share,
        "interval": format_interval,
        "number": format_number,
        "noun": count_noun,
        "level": explain_level,
        "moment": format_moment,
        "svg": Markup,
    }
    templates.filters |= {
        "duration": format_duration,
        "cost": format_cost,
        "sentence": list_names,
        "builds": list_builds,
        "reasons": list_reasons,
        "agent": name_agent,
        "fault": name_fault,
    }
    templates.globals |= {"anchor": anchor_name, "style": read_style, "script": read_script}
    templates.globals |= {"list_tables": list_tables, "tabulate_speeds": tabulate_speeds}
    templates.globals |= {"tabulate_languages": tabulate_languages, "tabulate_by_language": tabulate_by_language}
    return templates


@lru_cache(maxsize=1)
def read_style() -> Markup:
    """The stylesheet, to stand in a page's `<style>`."""
    return Markup(files("opsmith.report").joinpath("static", "style.css").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def read_script() -> Markup:
    """The script that sorts and searches tables, to stand in a page's `<script>`."""
    return Markup(files("opsmith.report").joinpath("static", "pages.js").read_text(encoding="utf-8"))


def hash_script() -> str:
    """What a content security policy calls that script: a page with it runs this text and no other."""
    digest = hashlib.sha256(read_script().encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def format_share(value: float | None) -> str:
    """
    >>> format_share(0.25), format_share(None)
    ('0.250', '–')
    """
    return "–" if value is None else f"{value:.3f}"


def format_interval(estimate: Estimate | None) -> str:
    """`0.303 [0.272, 0.332]`; a dash where there is no estimate."""
    return "–" if estimate is None else str(estimate)


def format_number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def format_moment(seconds: float | None, until: str = "minutes") -> str:
    """
    >>> format_moment(0), format_moment(61.5, "seconds"), format_moment(None)
    ('1970-01-01 00:00 UTC', '1970-01-01 00:01:01 UTC', '–')
    """
    return (
        "–"
        if seconds is None
        else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M{':%S' * (until == 'seconds')}} UTC"
    )


def name_agent(name: str) -> str:
    """Who asked, in words.

    >>> name_agent("guardian"), name_agent("repair-2"), name_agent("guardian-2"), name_agent("unanswered-1")
    ('guardian', 'proposer in repair turn 2', 'guardian in repair turn 2', 'agent that got no answer')
    >>> name_agent("tools-1")
    'proposer after tools, turn 2'
    """
    who, _, turn = name.partition("-")
    if who == UNANSWERED:
        return "agent that got no answer"
    if is_tool_turn(name):
        return f"proposer after tools, turn {int(turn) + 1}" if turn.isdecimal() else name
    return f"{'proposer' if who == 'repair' else who} in repair turn {turn}" if turn else name


def _clean_value(value: Any) -> Any:
    """What Jinja does to each value before it escapes it; `Markup` is ours and stays."""
    return printable(value, keep="\n\t") if type(value) is str else value
