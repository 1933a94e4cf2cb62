"""Templates of what an export says to people: Markdown, in which nothing that comes from outside is markup."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from opsmith.records import printable


def render_page(template: str, facts: Mapping[str, Any]) -> str:
    return _make_environment().get_template(template).render(facts)


@cache
def _make_environment() -> Environment:
    environment = Environment(  # no HTML: texts from outside go through `escape_cell`
        loader=PackageLoader("opsmith.export"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,
    )
    environment.filters["cell"] = escape_cell
    return environment


def escape_cell(value: object) -> str:
    """A text from outside as plain text of a Markdown table: nothing in it is markup.

    >>> escape_cell("a|b <i>`x`")
    'a\\\\|b \\\\<i\\\\>\\\\`x\\\\`'
    """
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~])", r"\\\1", printable(str(value)))
