"""The text under a key of a YAML reply, and the names of its other keys, read from text that nobody vouches for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

from opsmith.agents.indentation import strip_indentation
from opsmith.models.bounded_yaml import parse_bounded

MAX_NAMES = 20  # keys reported as dropped

_RESOLVER: Any = yaml.SafeLoader("")
_STR = "tag:yaml.org,2002:str"
_KEY = re.compile(r"^([A-Za-z_]\w*):(?:\s|$)", re.MULTILINE)

Path = tuple[str, ...]


@dataclass(frozen=True)
class MappingText:
    """What is under the first of the keys asked for: its text, or `problem` in words."""

    value: str | None
    dropped: tuple[str, ...] = ()  # the other keys beside and above that one, as dotted paths
    problem: str = ""
    folded: bool = False  # the lines are there, but YAML would join them into one: read the text itself


def read_mapping(text: str, keys: Sequence[str]) -> MappingText | None:
    """The text under the first of `keys` at the top level, else under the only such key below it; None: none."""
    walk = _Walk(keys)
    try:
        for parsed in parse_bounded(text):
            walk.read_event(parsed)
    except (yaml.YAMLError, ValueError):
        return None
    if not walk.values:
        return None
    path, event = _choose_value(walk)
    if event is None:
        return MappingText(None, (), f"{len(walk.values)} nested keys `{'`, `'.join(keys)}`")
    dropped = dict.fromkeys(".".join(key_path)[:60] for key_path in walk.paths if _is_beside(key_path, path))
    return _read_value(text, event, path[-1], tuple(dropped)[:MAX_NAMES])


@lru_cache(maxsize=8)
def _compile_names(names: str) -> re.Pattern[str]:
    return re.compile(  # no two neighbours match the same character, or a long line would cost its square
        rf"^([ \t]*+)[-*_`\"'# \t]*+(?:{names})[*_`\"']*+[ \t]*+:[*_`\"']*+[ \t]*+(?:[|>][-+\d]*+[ \t]*+)?(?:#.*)?\r?$",
        re.MULTILINE,
    )


def compile_key_line(keys: Sequence[str]) -> re.Pattern[str]:
    """A line that holds nothing but a wanted key, its colon and perhaps a block indicator; group 1: its indentation."""
    return _compile_names("|".join(map(re.escape, keys)))


def list_dropped_lines(text: str) -> tuple[str, ...]:
    """Names that stand as top-level keys in a text that YAML cannot read."""
    return tuple(dict.fromkeys(name[:60] for name in _KEY.findall(text)))[:MAX_NAMES]


@dataclass
class _Level:
    """A mapping or list that is open; a list's items have their list's path."""

    is_mapping: bool
    path: Path
    key: str = ""
    expects_key: bool = True


@dataclass
class _Walk:
    """The paths of all keys, and the events that start the values of the wanted ones."""

    keys: Sequence[str]
    levels: list[_Level] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    values: list[tuple[Path, Any]] = field(default_factory=list)

    def read_event(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self.note_node(event, event.value)
        elif isinstance(event, yaml.CollectionStartEvent):
            path = self.note_node(event, "?")
            self.levels.append(_Level(isinstance(event, yaml.MappingStartEvent), path))
        elif isinstance(event, yaml.CollectionEndEvent):
            self.levels.pop()

    def note_node(self, event: Any, name: str) -> Path:
        """Note a key, a value or an item; the path of what stands there. `name` is the key's, if it is one."""
        level = self.levels[-1] if self.levels else _Level(False, ())
        if not level.is_mapping:
            return level.path
        level.expects_key = not level.expects_key
        if not level.expects_key:
            level.key = name
            self.paths.append((*level.path, name))
        elif level.key in self.keys:
            self.values.append(((*level.path, level.key), event))
        return (*level.path, level.key)


def _is_beside(key_path: Path, path: Path) -> bool:
    """Whether `key_path` hangs on the way to `path`, not on it: its parent is one of the mappings passed."""
    return key_path != path[: len(key_path)] and key_path[:-1] == path[: len(key_path) - 1]


def _choose_value(walk: _Walk) -> tuple[Path, Any]:
    for key in walk.keys:
        for start in ((), ("task",)):
            top = [(path, event) for path, event in walk.values if path == (*start, key)]
            if top:
                return top[-1]
        nested = [(path, event) for path, event in walk.values if path[-1] == key]
        if len(nested) == 1:
            return nested[0]
    return (), None


def _read_value(text: str, event: Any, key: str, dropped: tuple[str, ...]) -> MappingText:
    problem = _describe_problem(event, key)
    if problem:
        return MappingText(None, dropped, problem)
    if event.style == ">" or (not event.style and event.start_mark.line != event.end_mark.line):
        return MappingText(None, dropped, f"a `{key}` whose lines YAML folds into one", folded=True)
    return MappingText(_unquote_value(text, event) if event.style in ('"', "'") else event.value, dropped)


def _describe_problem(event: Any, key: str) -> str:
    """Why the node under a wanted key is no text; empty when it is one."""
    if not isinstance(event, yaml.ScalarEvent):
        return f"`{key}` with a list or a mapping under it, not a text"
    if not event.value.strip():
        return f"an empty `{key}`"
    if not event.style and _RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False)) != _STR:
        return f"`{key}: {event.value[:40]}`, which is not a text"
    return ""


def _unquote_value(text: str, event: Any) -> str:
    """A quoted value; real line breaks inside it, which YAML would fold, stay line breaks."""
    raw = text[event.start_mark.index + 1 : event.end_mark.index - 1]
    if "\n" not in raw or "\\" in raw or event.style * 2 in raw:
        return str(event.value)
    first, _, tail = raw.partition("\n")
    return f"{first.lstrip()}\n{strip_indentation(tail)}"
