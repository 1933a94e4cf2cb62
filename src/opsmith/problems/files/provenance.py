"""The section `source:` of a problem file: read strictly, written canonically."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from opsmith.problems.files.entries import Entry, describe_node
from opsmith.problems.files.nodes import Located
from opsmith.problems.files.writing import write_block, write_flow, write_scalar
from opsmith.problems.problem import NO_LICENCE, Provenance

SOURCE_KEYS = ("format", "file", "sha256", "licence", "text", "arguments", "weights", "sizes")
FORMATS = ("kernelbench", "flashinfer")

_SHA256 = re.compile(r"[0-9a-f]{64}")


def read_provenance(entry: Entry, arguments: Collection[str], inputs: Collection[str]) -> Provenance | None:
    """The section, whose `arguments` are inputs and scalars of the file and whose `weights` are inputs."""
    words = {key: _read_word(entry, key) for key in ("format", "file", "sha256")}
    licence, text = (entry.take_kind(key, str, "a text") for key in ("licence", "text"))
    _check_words(entry, words)
    return Provenance(
        **{key: word or "" for key, word in words.items()},
        licence=str(licence.value) if licence is not None else NO_LICENCE,
        text=str(text.value) if text is not None else "",
        arguments=_read_arguments(entry, arguments),
        weights=_read_weights(entry, inputs),
        sizes=_read_sizes(entry),
    )


def _read_word(entry: Entry, key: str) -> str | None:
    node = entry.take_kind(key, str, "a text", "quote it", needed="a text")
    return None if node is None else str(node.value)


def _check_words(entry: Entry, words: Mapping[str, str | None]) -> None:
    if words["format"] is not None and words["format"] not in FORMATS:
        entry.report_error(entry.get("format"), "format", repr(words["format"])[:80], f"one of {', '.join(FORMATS)}")
    if words["sha256"] is not None and not _SHA256.fullmatch(words["sha256"]):
        entry.report_error(entry.get("sha256"), "sha256", repr(words["sha256"])[:80], "64 hexadecimal digits")


def _read_arguments(entry: Entry, arguments: Collection[str]) -> tuple[str, ...]:
    names = []
    for number, node in enumerate(entry.list_items("arguments")):
        if node.value not in arguments:
            place = f"arguments[{number}]"
            entry.report_error(node, place, describe_node(node), f"an input or a scalar: {', '.join(arguments)}")
        names.append(str(node.value))
    return tuple(names)


def _read_weights(entry: Entry, inputs: Collection[str]) -> dict[str, str]:
    weights = {}
    for name, node in _read_mapping(entry, "weights"):
        if name not in inputs or not isinstance(node.value, str):
            mistake = f"{name}: {describe_node(node)}"
            entry.report_error(node, f"weights.{name}", mistake, "an input and a key of the module's state")
        weights[name] = str(node.value)
    return weights


def _read_sizes(entry: Entry) -> dict[str, int]:
    sizes = {}
    for name, node in _read_mapping(entry, "sizes"):
        if type(node.value) is not int or node.value < 1:
            entry.report_error(node, f"sizes.{name}", describe_node(node), "an int of at least 1")
            continue
        sizes[name] = node.value
    return sizes


def _read_mapping(entry: Entry, key: str) -> list[tuple[str, Located]]:
    node = entry.take_kind(key, dict, "a mapping")
    return [] if node is None else list(node.value.items())


def write_provenance(source: Provenance | None) -> list[str]:
    """The rows of the section; none without one."""
    if source is None:
        return []
    rows = [f"{key}: {write_scalar(getattr(source, key))}" for key in ("format", "file", "sha256", "licence")]
    rows += write_block("text: ", source.text) if source.text else []
    rows += [f"arguments: {write_flow(source.arguments)}"] if source.arguments else []
    for key, words in (("weights", source.weights), ("sizes", source.sizes)):
        entries = ", ".join(f"{write_scalar(name)}: {_write_word(word)}" for name, word in words.items())
        rows += [f"{key}: {{{entries}}}"] if words else []
    return ["source:", *(f"  {row}" if row else "" for row in rows)]


def _write_word(word: str | int) -> str:
    return str(word) if isinstance(word, int) else write_scalar(word)
