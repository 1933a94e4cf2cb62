"""The words of a command: what texts in braces stand for, and how a list of values becomes words.

No torch, no pydantic: libraries that were exported run the same commands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PLACES = (
    "here",
    "python",
    "source",
    "inputs",
    "outputs",
    "sizes",
    "scalars",
    "shapes",
    "types",
)  # what texts in braces stand for
LISTS = frozenset(PLACES[3:])  # several words each; with `=`, as in {sizes=}, each with its name: M=48, x=48x300
PLACEHOLDER = re.compile(r"\{([a-z]+)(=?)\}")

Lists = Mapping[str, Mapping[str, str]]  # of each list, the values by name
Command = Sequence[str | Sequence[str]]  # words; a list of words is repeated for each value of the list that it names


@dataclass(frozen=True)
class CommandPlaces:
    """What the placeholders of one word stand for."""

    here: str  # the folder of the toolchain
    python: str
    source: str  # the program's file


def write_words(places: CommandPlaces, command: Command, lists: Lists) -> list[str]:
    """The words of a command, the program among them as it is written."""
    words: list[str] = []
    for word in command:
        words += _write_word(places, word, lists) if isinstance(word, str) else _repeat_words(places, word, lists)
    return words


def _write_word(places: CommandPlaces, word: str, lists: Lists) -> list[str]:
    """One that is nothing but a list's placeholder becomes several words, or none."""
    match = PLACEHOLDER.fullmatch(word)
    if match is not None and match[1] in LISTS:
        return _list_values(match[1], match[2], lists)
    return [fill_text(places, word, lists)]


def _repeat_words(places: CommandPlaces, group: Sequence[str], lists: Lists) -> list[str]:
    """The group once for each value of the list that it names: `["-i", "{inputs}"]` is `-i in_a.bin -i in_b.bin`."""
    name = next(match[1] for text in group for match in PLACEHOLDER.finditer(text) if match[1] in LISTS)
    values = [{name: {key: value}} for key, value in lists.get(name, {}).items()]
    return [fill_text(places, text, value) for value in values for text in group]


def fill_text(places: CommandPlaces, text: str, lists: Lists) -> str:
    """A text with values for its placeholders, those of a list joined with commas."""
    single = {"here": places.here, "python": places.python, "source": places.source}
    return PLACEHOLDER.sub(
        lambda match: single[match[1]] if match[1] in single else ",".join(_list_values(match[1], match[2], lists)),
        text,
    )


def _list_values(name: str, equals: str, lists: Lists) -> list[str]:
    values = lists.get(name, {})
    return [f"{key}={value}" for key, value in values.items()] if equals else list(values.values())
