"""Reads the launch plan of a program: comment lines before its first declaration, in any GPU language.

    // workspace tmp: fp32 [M, cdiv(N, 256)]
    // launch row_sum grid=(cdiv(N, 256), M) block=(256, 1, 1) shared=1024 args=(x, tmp, M, N)
    # launch row_sum grid=(cdiv(N, BLOCK), M) meta=(BLOCK=256, num_warps=4) args=(x, tmp, M, N)

A language says what begins its comments and which words it has (`PlanWords`).
Whatever the text, the result is a plan or findings of the stage PARSE, each with its line. Comments that only begin
with the word (`// launch one block for each row`) are prose. Which kernels there are is for the language to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice

from opsmith.problems.dtypes import DTYPES, NAMES_BY_WORD
from opsmith.records import Diagnostic, printable
from opsmith.targets.gpu.expressions import ExpressionError, parse_expression
from opsmith.targets.gpu.plan import PLAN_WORDS, Launch, LaunchPlan, PlanWords, Triple, Workspace

KIND = "PARSE"
MOST = 5  # findings of one program
MOST_LAUNCHES = 64
MOST_WORKSPACES = 32
MOST_ARGUMENTS = 64
MOST_META = 32
LONGEST_LINE = 2000  # characters

_NAME = re.compile(r"[^\W\d]\w*", re.ASCII)
_KEY = re.compile(r"([^\W\d]\w*)\s*=(?!=)", re.ASCII)
_NEARLY = re.compile(
    r"\s*(?:/{2,}!?|#+|/\*+|\*|--|;|%)?\s*@?(launch|workspace)s?\b[\s:]*(?P<rest>.*?)\s*(?:\*/)?\s*$",
    re.IGNORECASE | re.DOTALL,
)


class PlanError(ValueError):
    """What is wrong on one line of a plan."""

    def __init__(self, where: str, actual: str, expected: str, remedy: str = "", place: int | None = None) -> None:
        super().__init__(actual)
        self.where, self.given, self.expected, self.remedy, self.place = where, actual, expected, remedy, place


def read_plan(source: str, words: PlanWords = PLAN_WORDS) -> LaunchPlan | tuple[Diagnostic, ...]:
    """The plan of a program, or what is wrong with it, the first findings first."""
    reader = _PlanReader(words)
    findings = tuple(islice(reader.read_lines(source), MOST))
    return findings or LaunchPlan(tuple(reader.workspaces), tuple(reader.launches))


def add_texts(findings: Sequence[Diagnostic], source: str) -> tuple[Diagnostic, ...]:
    """The first findings, each with the text of its line."""
    texts = source.split("\n")
    return tuple(
        finding if finding.line is None else replace(finding, text=_print_line(texts[finding.line - 1]))
        for finding in findings[:MOST]
    )


def _print_line(text: str) -> str:
    return printable(text.strip()[:300])


# -- lines


@dataclass(frozen=True)
class _Line:
    number: int
    text: str
    is_before_code: bool  # before the first declaration


def _list_lines(source: str, words: PlanWords) -> Iterator[_Line]:
    """All but those that begin within a comment, without carriage returns."""
    is_before_code, is_in_comment, is_continued = True, False, False
    for number, row in enumerate(source.split("\n"), 1):
        text = row.rstrip("\r")
        is_inside = is_in_comment
        code, is_in_comment = _drop_comments(text, is_in_comment, words)
        is_before_code = is_before_code and (is_continued or words.preamble.match(code) is not None)
        is_continued = is_before_code and code.endswith("\\")  # of a directive
        if not is_inside:
            yield _Line(number, text, is_before_code)


def _drop_comments(text: str, is_in_comment: bool, words: PlanWords) -> tuple[str, bool]:
    """What of a line is no comment, and whether a comment goes on behind it."""
    openers = [re.escape(words.comment), *([r"/\*"] if words.has_block_comments else [])]
    pieces: list[str] = []
    place = 0
    while place < len(text):
        if is_in_comment:
            end = text.find("*/", place)
            if end < 0:
                return "".join(pieces), True
            place, is_in_comment = end + 2, False
            continue
        opener = re.compile("|".join(openers)).search(text, place)
        pieces.append(text[place : opener.start() if opener else len(text)])
        if opener is None or opener[0] == words.comment:
            break
        place, is_in_comment = opener.end(), True
    return "".join(pieces), is_in_comment


class _PlanReader:
    """Collects the plan of one program line by line."""

    def __init__(self, words: PlanWords) -> None:
        self._words = words
        self.workspaces: list[Workspace] = []
        self.launches: list[Launch] = []

    def read_lines(self, source: str) -> Iterator[Diagnostic]:
        is_refused = False
        for line in _list_lines(source, self._words):
            for error in self._read_line(line):
                is_refused = True
                yield _make_finding(error, line)
        if not self.launches and not is_refused:
            expected = f"at least one line such as `{self._words.example}` before the kernels"
            threads = " of blocks, its block of threads" if "block" in self._words.keys else ""
            remedy = f"each launch names a kernel, its grid{threads} and its arguments, on one line"
            yield _point_at_misspelt(source, self._words) or Diagnostic(
                KIND, "launch plan", "a program without a launch line", expected, remedy
            )

    def _read_line(self, line: _Line) -> Iterator[PlanError]:
        try:
            match = re.match(rf"{re.escape(self._words.comment)} (launch|workspace)\b", line.text)
            if line.is_before_code and match:
                self._read_plan_line(match[1], line)
            else:
                _refuse_nearly_right(line, self._words.comment, match is not None)
        except PlanError as error:
            yield error

    def _read_plan_line(self, word: str, line: _Line) -> None:
        body = line.text.partition(word)[2]
        if _is_prose(word, body):
            return
        if len(line.text) > LONGEST_LINE:
            raise PlanError(word, f"{len(line.text)} characters", f"at most {LONGEST_LINE}")
        if word == "launch":
            self.launches.append(_read_launch(line, self._words))
            _check_count("launches", self.launches, MOST_LAUNCHES)
        else:
            self.workspaces.append(_read_workspace(line, self._words.comment))
            _check_count("workspaces", self.workspaces, MOST_WORKSPACES)


def _point_at_misspelt(source: str, words: PlanWords) -> Diagnostic | None:
    """`// lanch row_sum grid=(M) ...`: a comment that has all of a launch but its first word."""
    comment = words.comment
    any_launch = re.compile(rf"{re.escape(comment)}\s*(?P<word>\w+)\s+(?P<rest>\w+\s+.*\bgrid\s*=.*)")
    for line in _list_lines(source, words):
        match = any_launch.match(line.text) if len(line.text) <= LONGEST_LINE else None
        if match is not None and get_close_matches(match["word"].lower(), ["launch"]):
            expected = f"a line that begins with `{comment} launch `"
            remedy = f"write `{comment} launch {match['rest'].strip()}`"
            error = PlanError("launch line", f"`{comment} {match['word']}`", expected, remedy)
            return _make_finding(error, line)
    return None


def _make_finding(error: PlanError, line: _Line) -> Diagnostic:
    column = None if error.place is None else error.place + 1
    words = (error.where, error.given, error.expected, error.remedy)
    return Diagnostic(KIND, *words, line.number, column, _print_line(line.text))


def _check_count(what: str, lines: Sequence[object], limit: int) -> None:
    if len(lines) > limit:
        raise PlanError("launch plan", f"more than {limit} {what}", f"at most {limit}")


def _is_prose(word: str, body: str) -> bool:
    """Whether a comment only happens to begin with a word of plans."""
    if word.lower() == "launch":
        return _KEY.search(body) is None and not re.match(r"\s*\w*\s*(<<<|\()", body)
    return ":" not in body and "[" not in body


def _refuse_nearly_right(line: _Line, comment: str, is_written_well: bool) -> None:
    """Raises PlanError for a line that was meant to be one of the plan; `is_written_well`: it only stands wrongly."""
    match = _NEARLY.match(line.text) if len(line.text) <= LONGEST_LINE else None
    if match is None or not _is_written_as_plan(match[1].lower(), match["rest"]):
        return
    word = match[1].lower()
    spelled = f"{comment} {word} {match['rest'].strip()}"
    if is_written_well:
        expected = "the plan before the first declaration"
        raise PlanError(f"{word} line", f"a {word} line behind code", expected, f"move it up: `{spelled}`")
    start = line.text[: match.start(1)]
    actual = f"`{start}{match[1]}`" if start.strip() else f"`{match[1]}` at column {len(start) + 1}"
    raise PlanError(f"{word} line", actual, f"a line that begins with `{comment} {word} `", f"write `{spelled}`")


def _is_written_as_plan(word: str, body: str) -> bool:
    """Stricter than `not _is_prose`: this may be a line of code."""
    if word == "launch":
        return re.match(r"[^\W\d]\w*\s*,?\s*(grid|block|args|shared)\s*[=:(]", body, re.IGNORECASE) is not None
    return re.match(r"[^\W\d]\w*\s*:\s*\w+\s*\[[^\]]*\]$", body) is not None


# -- workspaces


def _read_workspace(line: _Line, comment: str) -> Workspace:
    start = len(f"{comment} workspace")
    pattern = re.compile(r"\s+([^\W\d]\w*)\s*:\s*(\w+)\s*\[(.*)\]\s*$", re.ASCII)
    match = pattern.match(line.text, start)
    if match is None:
        actual = f"`{printable(line.text[start:].strip()[:80])}`"
        raise PlanError("workspace", actual, f"a name, a type and a shape: `{comment} workspace tmp: fp32 [M, N]`")
    name, dtype = match[1], match[2]
    where = f"workspace {name}"
    if dtype not in DTYPES:
        near = NAMES_BY_WORD.get(dtype) or next(iter(get_close_matches(dtype, DTYPES, 1)), "")
        remedy = f"write {near}" if near else ""
        raise PlanError(where, f"the type {dtype}", f"one of {', '.join(DTYPES)}", remedy, match.start(2))
    pieces = _split_entries(match[3], match.start(3))
    shape = tuple(_read_expression(where, text, place) for text, place in pieces)
    if not shape:
        raise PlanError(where, "an empty shape", "at least one size", "write [1] for one number", match.start(3))
    return Workspace(name, dtype, shape, line.number)


# -- launches


def _read_launch(line: _Line, words: PlanWords) -> Launch:
    start = len(f"{words.comment} launch")
    match = re.compile(r"\s+([^\W\d]\w*)", re.ASCII).match(line.text, start)
    if match is None or re.match(r"\s*=", line.text[match.end() :]):
        raise PlanError("launch", "no name of a kernel", f"a kernel first: `{words.example}`", "", start + 1)
    where = f"launch {match[1]}"
    values = _split_keys(where, line.text, match.end(), words)
    for key in words.needed:
        if key not in values:
            expected = f"{_join_words(words.needed)}: `{words.example}`"
            raise PlanError(where, f"no {key}=", expected, f"add {key}=(...)")
    absent = ("1", 0)
    return Launch(
        match[1],
        _read_triple(where, "grid", *values["grid"]),
        _read_triple(where, "block", *values.get("block", absent)),
        _read_expression(f"{where}, shared", *values.get("shared", ("0", 0))),
        _read_arguments(where, *values["args"]),
        line.number,
        _read_meta(where, *values["meta"]) if "meta" in values else (),
    )


def _join_words(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _split_keys(where: str, text: str, start: int, words: PlanWords) -> Mapping[str, tuple[str, int]]:
    """The text behind each `key=`, with its place in the line."""
    places = list(_list_keys(where, text, start))
    first = places[0].start() if places else len(text)
    if text[start:first].strip():
        actual = f"`{printable(text[start:first].strip()[:60])}`"
        expected = f"{_join_words([f'{key}=(...)' for key in words.needed])}: `{words.example}`"
        raise PlanError(where, actual, expected, "", start + 1)
    ends = [match.start() for match in places[1:]] + [len(text)]
    values: dict[str, tuple[str, int]] = {}
    for match, end in zip(places, ends, strict=True):
        key, value = match[1], text[match.end() : end].rstrip()
        _check_key(where, key, values, match.start(), words.keys)
        if value.endswith((",", ";")):
            place = match.end() + len(value) - 1
            raise PlanError(where, f"a `{value[-1]}` behind {key}", "spaces between keys", "remove it", place)
        values[key] = (value, match.end())
    return values


def _list_keys(where: str, text: str, start: int) -> Iterator[re.Match[str]]:
    """Those outside of brackets."""
    openers: list[int] = []
    place = start
    while place < len(text):
        char = text[place]
        if char in "([{":
            openers.append(place)
        elif char in ")]}":
            if not openers:
                raise PlanError(where, f"`{char}`, which closes nothing", "as many opening brackets", "", place)
            openers.pop()
        elif not openers and (match := _KEY.match(text, place)):
            yield match
            place = match.end()
            continue
        elif match := _NAME.match(text, place):
            place = match.end()
            continue
        place += 1
    if openers:
        expected = "as many closing brackets, on one line"
        raise PlanError(where, f"`{text[openers[-1]]}`, which nothing closes", expected, "", openers[-1])


def _check_key(where: str, key: str, values: Mapping[str, object], place: int, known: Sequence[str]) -> None:
    if key in values:
        raise PlanError(where, f"{key} twice", f"{key} once", "", place)
    if key not in known:
        near = get_close_matches(key.lower(), known, 1)
        remedy = f"write {near[0]}=" if near else ""
        raise PlanError(where, f"{key}=", f"one of {', '.join(known)}", remedy, place)


def _read_triple(where: str, key: str, text: str, place: int) -> Triple:
    """One to three expressions; 1 for those that are left out."""
    where = f"{where}, {key}"
    entries = _split_brackets(where, text, place) if text.lstrip()[:1] in ("(", "[", "{") else None
    if entries is None:
        entries = _split_entries(text, place)
        if len(entries) > 1:
            raise PlanError(where, f"`{printable(text.strip()[:60])}`", f"{key}=(x, y, z)", "add the brackets", place)
    if not 1 <= len(entries) <= 3:
        raise PlanError(where, f"{len(entries)} entries", "1 to 3: x, y, z", f"write {key}=(x, y, z)", place)
    words = [_read_expression(where, *entry) for entry in entries]
    first, second, third = [*words, "1", "1"][:3]
    return first, second, third


def _split_brackets(where: str, text: str, place: int) -> list[tuple[str, int]] | None:
    """The entries between the brackets around a text, each with its place; None: they enclose only its begin."""
    stripped = text.strip()
    start = place + len(text) - len(text.lstrip())
    if _find_closer(stripped) != len(stripped) - 1:
        return None
    if stripped[0] != "(":
        raise PlanError(where, f"`{stripped[0]}`", "round brackets: (x, y, z)", "", start)
    return _split_entries(stripped[1:-1], start + 1)


def _find_closer(text: str) -> int:
    """Where the bracket is closed that a text begins with."""
    depth = 0
    for place, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            return place
    return -1


def _split_entries(text: str, place: int) -> list[tuple[str, int]]:
    """What commas outside of brackets separate, each with its place; a last comma ends the list."""
    entries: list[tuple[str, int]] = []
    depth, start = 0, 0
    for end, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            entries.append((text[start:end], place + start))
            start = end + 1
    if text[start:].strip():
        entries.append((text[start:], place + start))
    return entries


def _read_expression(where: str, text: str, place: int) -> str:
    """Its canonical text."""
    try:
        return str(parse_expression(text))
    except ExpressionError as error:
        raise PlanError(where, error.given, error.expected, error.remedy, place + error.place) from error


def _read_list(where: str, text: str, place: int, example: str, what: str, limit: int) -> list[tuple[str, int]]:
    """The entries between brackets, each with its place."""
    entries = _split_brackets(where, text, place) if text.lstrip()[:1] in ("(", "[", "{") else None
    if entries is None:
        raise PlanError(where, f"`{printable(text.strip()[:60])}`", example, "add the brackets", place)
    if len(entries) > limit:
        raise PlanError(where, f"{len(entries)} {what}", f"at most {limit}", "", place)
    return entries


def _read_meta(where: str, text: str, place: int) -> tuple[tuple[str, str], ...]:
    where = f"{where}, meta"
    values: dict[str, str] = {}
    for entry, start in _read_list(where, text, place, "meta=(BLOCK=256)", "entries", MOST_META):
        match = _KEY.match(entry.lstrip())
        column = start + len(entry) - len(entry.lstrip())
        if match is None:
            actual = f"`{printable(entry.strip()[:60])}`"
            raise PlanError(where, actual, "a name and a size: BLOCK=next_pow2(N)", "", column)
        if match[1] in values:
            raise PlanError(where, f"{match[1]} twice", f"{match[1]} once", "", column)
        values[match[1]] = _read_expression(where, entry.lstrip()[match.end() :], column + match.end())
    return tuple(values.items())


def _read_arguments(where: str, text: str, place: int) -> tuple[str, ...]:
    where = f"{where}, args"
    entries = _read_list(where, text, place, "args=(x, y, N)", "arguments", MOST_ARGUMENTS)
    for entry, start in entries:
        if not _NAME.fullmatch(entry.strip()):
            remedy = "give the dims and compute in the kernel"
            actual = f"`{printable(entry.strip()[:60])}`"
            column = start + len(entry) - len(entry.lstrip())
            raise PlanError(where, actual, "names of arrays, dims and scalars", remedy, column)
    return tuple(entry.strip() for entry, _ in entries)
