"""A language's base prompt as sections with names, cut at the text's own marks and never written anew.

Two forms are known. YAML: each entry of a list that has a `name`, each paragraph of a `desc`, each further key.
Anything else is read as Markdown: headings, or else paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

MOST_NAME = 60  # characters of a section's name
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_HEAD = re.compile(r"[.:](?:\s|$)")  # ends the words that a paragraph is named by


def cut_sections(prompt: str) -> dict[str, str]:
    """The sections by name, in the order of the text.

    >>> cut_sections("general:\\n  desc: |\\n    Loops. There are none.\\nops:\\n- name: Map\\n  desc: one by one\\n")
    {'Loops': 'Loops. There are none.', 'Map': '- name: Map\\n  desc: one by one'}
    """
    sections: dict[str, str] = {}
    for name, text in _cut_yaml(prompt) or _cut_markdown(prompt):
        unique = name if name not in sections else f"{name} ({len(sections) + 1})"
        sections[unique] = text
    return sections


def _cut_yaml(prompt: str) -> list[tuple[str, str]]:
    """Nothing for a text that is no YAML mapping of texts and lists."""
    try:
        top = yaml.compose(prompt, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return []
    if not isinstance(top, yaml.MappingNode):
        return []
    return [section for key, node in top.value for section in _cut_node(prompt, str(key.value), key, node)]


def _cut_node(prompt: str, name: str, key: yaml.Node, node: yaml.Node) -> Iterator[tuple[str, str]]:
    if isinstance(node, yaml.ScalarNode) and name != "desc":
        yield name, _slice_text(prompt, key, node)
    elif isinstance(node, yaml.ScalarNode):
        yield from _cut_paragraphs(node.value)
    elif isinstance(node, yaml.MappingNode) and any(inner.value == "desc" for inner, _ in node.value):
        for inner, value in node.value:
            yield from _cut_node(prompt, str(inner.value), inner, value)
    elif isinstance(node, yaml.SequenceNode) and node.value and all(map(_read_name, node.value)):
        for entry in node.value:
            yield _read_name(entry), _slice_text(prompt, entry, entry)
    else:
        yield name, _slice_text(prompt, key, node)


def _read_name(node: yaml.Node) -> str:
    """The name of an entry of a list; "": it has none."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((str(value.value) for key, value in pairs if key.value == "name"), "")


def _slice_text(prompt: str, first: yaml.Node, last: yaml.Node) -> str:
    """The lines from where one node begins to where another ends."""
    lines = prompt.splitlines()
    end = last.end_mark.line + (last.end_mark.column > 0)
    return "\n".join(lines[first.start_mark.line : max(end, first.start_mark.line + 1)]).rstrip()


def _cut_markdown(prompt: str) -> list[tuple[str, str]]:
    headings = list(_HEADING.finditer(_blank_fences(prompt)))
    if not headings:
        return list(_cut_paragraphs(prompt))
    ends = [*(heading.start() for heading in headings[1:]), len(prompt)]
    before = [("Overview", prompt[: headings[0].start()].strip())]
    sections = [
        (heading[1][:MOST_NAME], prompt[heading.start() : end].strip())
        for heading, end in zip(headings, ends, strict=True)
    ]
    return [section for section in [*before, *sections] if section[1]]


def _blank_fences(text: str) -> str:
    """The text with blanks for fenced code, in which `#` begins a comment."""
    return re.sub(r"^```.*?^```", lambda match: " " * len(match[0]), text, flags=re.MULTILINE | re.DOTALL)


def _cut_paragraphs(text: str) -> Iterator[tuple[str, str]]:
    """A paragraph is named by its first words; one that is indented, as code is, belongs to the one before it."""
    paragraphs: list[str] = []
    for paragraph in re.split(r"\n[ \t]*\n", text.strip("\n")):
        if paragraphs and (paragraph[:1] in " \t`" or not paragraph.strip()):
            paragraphs[-1] += f"\n\n{paragraph}"
        else:
            paragraphs.append(paragraph)
    for paragraph in paragraphs:
        name = _HEAD.split(paragraph, maxsplit=1)[0].strip().replace("\n", " ")
        yield name[:MOST_NAME] or "Overview", paragraph.rstrip()
