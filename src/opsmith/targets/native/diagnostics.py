"""What gcc says of a source, as findings: the first errors, each with its line, and nothing of this machine.

gcc writes one line of JSON (`-fdiagnostics-format=json`); its linker and its driver write plain text. An error inside a
header is told at the line of the source that led there. Warnings are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.records import Diagnostic
from opsmith.running.compiler import CompileRefusal
from opsmith.targets.native.messages import Advice, choose_advice, cut_line, hide_paths, place_finding, show_line

KIND = "COMPILE"
MOST = 5  # findings of one compile

_TEMPORARY = re.compile(r"\b(?:cc|opsmith-compile-)[\w-]{6,12}\.(o|s)\b")
_UNDEFINED = re.compile(r"undefined reference to [`']([^'`]+)'")
_CRASH = re.compile(r"internal compiler error")
_FAR = re.compile(r"relocation truncated to fit|failed to convert GOTPCREL relocation")
_TWICE = re.compile(r"multiple definition of [`']([^'`]+)'")
_ADVICE: Advice = (
    (
        r"implicit declaration of function '(.+?)'",
        "a function of an included header, or of the program",
        "include the header that declares {0}, or define it above its use",
    ),
    (r"'(.+?)' undeclared", "a name that is declared above its use", "declare {0}, or correct its spelling"),
    (r"unknown type name '(.+?)'", "a type of C or of an included header", "include the header that defines {0}"),
    (
        r"read-only location",
        "a write to an output",
        "inputs are const: write to outputs and to arrays of the program",
    ),
    (r"^expected (.+?)(?: before | at |$)", "{0}", "close what is open on that line or on the one before"),
    (
        r"target specific option mismatch",
        "instructions of the stated instruction set",
        "use narrower intrinsics, or plain C that the compiler vectorises",
    ),
    (
        r"too (?:few|many) arguments to function '(.+?)'",
        "the number of arguments that {0} takes",
        "look at its declaration",
    ),
    (
        r"exceeds maximum object size|is too large|variably modified",
        "an array that fits into memory",
        "allocate it with malloc",
    ),
    (r"invalid operands to", "operands that the operator takes", "convert one of them"),
    (r"incompatible types?|makes (?:pointer|integer) from", "a value of that type", "convert it"),
    (r"redefinition of|redeclared as", "one definition of a name", "remove one of them"),
)


@dataclass(frozen=True)
class _Place:
    """Where in the source an error shows: from one column to another of a line, from 1, in bytes."""

    line: int
    column: int
    end: int


def explain_refusal(refusal: CompileRefusal, source: str, file: str, prototype: str) -> tuple[Diagnostic, ...]:
    """The findings of a compile that failed, one at least. `file`: the name that the compiler knew the source by."""
    lines = source.split("\n")
    findings = [*_read_errors(refusal.messages, lines, file, prototype), *_read_link_errors(refusal.messages, lines)]
    distinct = tuple(dict.fromkeys(findings))[:MOST]
    return distinct or (_explain_limit(refusal.limit) if refusal.limit else _explain_remainder(refusal.messages),)


def _explain_limit(limit: str) -> Diagnostic:
    return Diagnostic(
        KIND,
        "compiler",
        "a program that takes it more than its limit",
        f"at most {limit}",
        "write a shorter program: smaller constant arrays, macros that expand to less, less code in one function",
    )


def _read_errors(messages: str, lines: Sequence[str], file: str, prototype: str) -> Iterator[Diagnostic]:
    entries = [entry for line in messages.splitlines() if line.startswith("[") for entry in _read_json(line)]
    for number, entry in enumerate(entries):
        if "error" in str(entry.get("kind")):
            followers = _list_notes(entries[number + 1 :])
            places = (_find_place(candidate, file) for candidate in (entry, *followers))
            place = next((place for place in places if place is not None), None)
            yield _explain_error(str(entry.get("message", "")), place, lines, prototype)


def _read_json(line: str) -> list[Mapping[str, Any]]:
    """The entries of an array, those before the cut where it was cut off."""
    decoder, place, entries = json.JSONDecoder(), 1, []
    try:
        while line[place : place + 1] == "{":
            entry, end = decoder.raw_decode(line, place)
            entries.append(entry)
            place = end + len(", ")
    except (ValueError, RecursionError):
        pass
    return entries


def _list_notes(entries: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The notes that follow an error belong to it."""
    for entry in entries:
        if entry.get("kind") != "note":
            return
        yield entry


def _find_place(entry: Mapping[str, Any], file: str) -> _Place | None:
    """The first of its locations that is in the source."""
    for location in entry.get("locations") or ():
        caret, finish = location.get("caret", {}), location.get("finish", {})
        if caret.get("file") == file:
            column = int(caret.get("byte-column", caret.get("column", 1)))
            is_one_line = finish.get("line") == caret["line"]
            return _Place(int(caret["line"]), column, int(finish["byte-column"]) if is_one_line else column)
    return None


def _explain_error(message: str, place: _Place | None, lines: Sequence[str], prototype: str) -> Diagnostic:
    text = _clean_text(message)
    expected, remedy = _choose_advice(message, prototype)
    if place is None or not 1 <= place.line <= len(lines):
        return Diagnostic(KIND, "a header that the program includes", text, expected, remedy)
    line = lines[place.line - 1]
    token = line.encode()[place.column - 1 : place.end].decode(errors="replace").strip()
    where = f"at {_clean_text(token)}" if token else "at the end of the line"
    return Diagnostic(KIND, where, text, expected, remedy, place.line, place.column, show_line(lines, place.line))


def _choose_advice(message: str, prototype: str) -> tuple[str, str]:
    if re.search(r"conflicting types for 'kernel'", message):
        return prototype, "define kernel with these arguments, in this order"
    return choose_advice(message, _ADVICE, _clean_text, "C that the compiler takes")


def _read_link_errors(messages: str, lines: Sequence[str]) -> Iterator[Diagnostic]:
    for name in dict.fromkeys(_UNDEFINED.findall(messages)):
        given = f"a use of {_clean_text(name)}, which no library that is linked defines"
        expected, remedy = "a function of libc or libm, or one of the program", f"define {_clean_text(name)}"
        yield place_finding(Diagnostic(KIND, "linker", given, expected, remedy), rf"\b{re.escape(name)}\b", lines)
    for name in dict.fromkeys(_TWICE.findall(messages)):
        given, expected = f"a second definition of {_clean_text(name)}", "names of the program's own"
        finding = Diagnostic(KIND, "linker", given, expected, "take another name")
        yield place_finding(finding, rf"\b{re.escape(name)}\b", lines)


def _explain_remainder(messages: str) -> Diagnostic:
    """What is neither an error of the compiler nor one of the linker."""
    if _CRASH.search(messages):
        remedy = "write it more simply: less nesting, shorter expressions"
        return Diagnostic(KIND, "compiler", "a program on which it broke down", "one that it can compile", remedy)
    if _FAR.search(messages):
        given, expected = "static arrays of 2 GiB or more", "less: all of them are part of the program"
        return Diagnostic(KIND, "linker", given, expected, "take large arrays from malloc, or do without")
    plain = [line for line in messages.splitlines() if line.strip() and not line.startswith("[")]
    given = _clean_text(plain[0]) if plain else "a program that it refused without a word"
    return Diagnostic(KIND, "compiler", given, "C that the compiler takes")


def _clean_text(text: str) -> str:
    """One printable line of sensible length without paths of this machine."""
    return cut_line(_TEMPORARY.sub("the program", hide_paths(text)))
