"""YAML in a model's reply, which nobody vouches for, within limits.

It is read as a stream of events and never constructed: no aliases, no deep nesting, no more events than a reply can
need. So neither time, memory nor the recursion limit can be exhausted, and no object can be made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import yaml

MAX_TEXT = 2**17  # characters of one YAML text
MAX_DEPTH = 16  # of nested mappings and lists
MAX_EVENTS = 4000  # a whole task echoed has some hundreds
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_bounded(text: str) -> Iterator[Any]:
    """The events of a text. Raises ValueError or YAMLError for what is not YAML, or more than a reply needs."""
    if len(text) > MAX_TEXT:
        raise ValueError("too long")
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if getattr(event, "anchor", None) or count > MAX_EVENTS or depth > MAX_DEPTH:
            raise ValueError("too large")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        yield event


def load_bounded(text: str, read_scalar: Callable[[Any], Any] = lambda node: node.value) -> Any:
    """A text as mappings, lists and what `read_scalar` makes of the nodes of others: their texts; None: it is none.

    >>> load_bounded("what: unroll\\nwhere: [12, 14]")
    {'what': 'unroll', 'where': ['12', '14']}
    """

    def compose_value(node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return {str(compose_value(key)): compose_value(value) for key, value in node.value}
        if isinstance(node, yaml.SequenceNode):
            return [compose_value(entry) for entry in node.value]
        return None if node is None else read_scalar(node)

    try:
        for _ in parse_bounded(text):
            pass
        return compose_value(yaml.compose(text, Loader=_LOADER))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
