"""Static checks that texts of C and of languages like it share, before any compiler sees them: findings of PARSE.

They look at sizes, characters, tokens that read differently to a compiler, macros and nesting. What a language allows
beside them is its own to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise

from opsmith.records import Diagnostic, printable
from opsmith.targets.native.tokens import LogicalLine, Token, TokenKind, split_lines

KIND = "PARSE"
LARGEST_SOURCE = 1 << 16  # bytes
LONGEST_LINE = 2000  # characters
DEEPEST = 100  # brackets within brackets
MOST = 5  # findings of one source
DIRECTIVES = frozenset("include define undef if ifdef ifndef elif else endif pragma error".split())  # noqa: SIM905
_ODD_CHARACTER = re.compile(r"[^\t\x20-\x7e\x80-\U0010ffff]|[\ud800-\udfff]")
_OPENERS, _CLOSERS = {"(": ")", "[": "]", "{": "}"}, frozenset(")]}")
_CONDITIONALS = frozenset({"if", "ifdef", "ifndef", "elif"})

Findings = Iterator[Diagnostic]
Reason = tuple[str, str]  # what is expected instead, and what to try
HOST_CODE: Reason = (
    "kernels and their helpers only",
    "leave out all host code: a plan in comment lines takes its place",
)


@dataclass(frozen=True)
class SourceRules:
    """What a language like C allows in the text of a program."""

    language: str  # as findings call it
    headers: Sequence[str]  # those that findings name
    pragmas: re.Pattern[str]  # all that follows the word, a blank between tokens
    pragma_forms: str  # as findings name them
    is_reserved: Callable[[str], bool]  # whether a word is one that the checks or the language rely on
    find_reason: Callable[[str], Reason | None]  # why a name is refused
    other_headers: re.Pattern[str] = re.compile("(?!)")
    unread: Mapping[str, Reason] = field(default_factory=dict)  # tokens that no macro may hold
    pairs: Mapping[tuple[str, str], tuple[str, str, str]] = field(default_factory=dict)  # refused side by side
    has_conditions: bool = False  # whether #if may ask for names that the program does not define


def run_checks(source: str, check_lines: Callable[[Sequence[LogicalLine]], Findings]) -> tuple[Diagnostic, ...]:
    """What is refused, the first findings first; none: a compiler may see it. Never raises, whatever the text."""
    return run_text_checks(source, lambda text: check_lines(split_lines(text)))


def run_text_checks(source: str, check_text: Callable[[str], Findings]) -> tuple[Diagnostic, ...]:
    """The same for a language whose tokens are its own. `check_text` sees no text whose layout is refused."""
    findings = tuple(islice(_check_layout(source), MOST))
    return findings or tuple(islice(_add_texts(check_text(source), source), MOST))


def _add_texts(findings: Findings, source: str) -> Findings:
    """Each finding once, with the text of its line."""
    texts = source.split("\n")
    yielded: set[Diagnostic] = set()
    for finding in findings:
        if finding in yielded:
            continue
        yielded.add(finding)
        text = texts[finding.line - 1].strip()[:300] if finding.line else ""
        yield replace(finding, text=printable(text))


# -- the text


def _check_layout(source: str) -> Findings:
    size = len(source.encode("utf-8", "replace"))
    if size > LARGEST_SOURCE:
        expected = f"at most {LARGEST_SOURCE}"
        yield Diagnostic(KIND, "program", f"{size} bytes", expected, "compute tables instead of writing them out")
        return
    for number, line in enumerate(source.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            expected = f"at most {LONGEST_LINE}"
            yield Diagnostic(KIND, "line", f"{len(line)} characters", expected, "break the line", number)
        if character := _ODD_CHARACTER.search(line.removesuffix("\r")):
            given = f"the character U+{ord(character[0]):04X}"
            yield Diagnostic(KIND, "line", given, "text, tabs and line feeds", "remove it", number)


# -- the tokens


def check_oddities(lines: Sequence[LogicalLine], language: str) -> Findings:
    for token in (token for line in lines for token in line.tokens):
        if token.kind is TokenKind.ODD:
            remedy = f"write plain {language}: no raw strings, trigraphs, digraphs or characters outside ASCII in code"
            yield Diagnostic(
                KIND, "text", f"`{printable(token.text[:20])}`", f"a token of {language}", remedy, token.line
            )
        elif token.text == "##":
            remedy = "write the names out, or pass them to the macro whole"
            yield Diagnostic(KIND, "macro", "`##`", "names that can be read in the program", remedy, token.line)


def check_text(lines: Sequence[LogicalLine], rules: SourceRules) -> Findings:
    """Tokens, directives and names of a program."""
    yield from check_oddities(lines, rules.language)
    own: set[str] = set()
    for place, line in enumerate(lines):
        yield from check_directive(line, rules)
        words = [token.text for token in line.tokens[1:]] if line.is_directive else []
        if words and words[0] in _CONDITIONALS and not rules.has_conditions and not _is_guard(lines[place : place + 3]):
            yield from _check_condition(line.tokens[2:], own, line.tokens[0].line)
        if words[:1] == ["define"]:
            own.update(words[1:2])
    for line in lines:
        yield from check_words(line.tokens, rules)


def _is_guard(lines: Sequence[LogicalLine]) -> bool:
    """Whether they are #ifndef X, #define X and #endif, and nothing else."""
    rows = [[token.text for token in line.tokens[:3]] for line in lines]
    words = [row[1:2] for row in rows if row[:1] == ["#"]]
    return words == [["ifndef"], ["define"], ["endif"]] and rows[0][2:] == rows[1][2:]


def _check_condition(tokens: Sequence[Token], own: set[str], number: int) -> Findings:
    """Several compilers may see one program, which must not be able to tell which of them does."""
    for token in tokens:
        if token.kind is TokenKind.NAME and token.text not in own | {"defined", "true", "false"}:
            expected = "names that the program defines above"
            yield Diagnostic(KIND, "directive", f"`{token.text}`", expected, "decide without #if", number)


def check_words(tokens: Sequence[Token], rules: SourceRules) -> Findings:
    for token in tokens:
        if token.kind is TokenKind.NAME and (reason := rules.find_reason(token.text)):
            yield Diagnostic(KIND, "program", f"`{printable(token.text[:60])}`", *reason, token.line)
    for token, after in pairwise(tokens):
        if (token.text, after.text) in rules.pairs:
            yield Diagnostic(KIND, "program", *rules.pairs[token.text, after.text], token.line)


def list_reasons(*rows: tuple[str, str, str]) -> dict[str, Reason]:
    """By each name of a third part what stands before it."""
    return {name: (expected, remedy) for expected, remedy, names in rows for name in names.split()}


def check_directive(line: LogicalLine, rules: SourceRules) -> Findings:
    """Whether a line is no directive, or one that programs may have."""
    if not line.is_directive or len(line.tokens) < 2:
        return
    word, tokens, number = line.tokens[1].text, line.tokens[2:], line.tokens[0].line
    if word not in DIRECTIVES:
        expected = f"one of {', '.join(sorted(DIRECTIVES))}"
        yield Diagnostic(KIND, "directive", f"#{word}", expected, "remove it", number)
    elif word == "include":
        yield from _check_include(tokens, number, rules)
    elif word in ("define", "undef"):
        yield from _check_definition(tokens, number, rules)
    elif word == "pragma" and not rules.pragmas.fullmatch(words := " ".join(token.text for token in tokens)):
        given = printable(f"#pragma {words[:80]}")
        yield Diagnostic(KIND, "directive", given, rules.pragma_forms, "remove it", number)


def _check_include(tokens: Sequence[Token], number: int, rules: SourceRules) -> Findings:
    path = "".join(token.text for token in tokens)
    name = path[1:-1]
    if path != f"<{name}>" or not (name in rules.headers or rules.other_headers.fullmatch(name)):
        remedy = f"write <{name}>" if name in rules.headers else "remove it"
        expected = "one of " * (len(rules.headers) > 1) + ", ".join(f"<{header}>" for header in rules.headers)
        yield Diagnostic(KIND, "#include", printable(path[:80]) or "nothing", expected, remedy, number)


def _check_definition(tokens: Sequence[Token], number: int, rules: SourceRules) -> Findings:
    """Its own name and its parameters must not be ones that the checks rely on; its body must close what it opens."""
    name, body = tokens[0].text if tokens else "", list(tokens[1:])
    parameters = _list_parameters(body)
    for word in (name, *parameters):
        if rules.is_reserved(word):
            yield Diagnostic(KIND, "#define", f"`{word}`", "a name of the program's own", "take another name", number)
    if not _is_balanced(body):
        remedy = "write the brackets where the macro is used"
        yield Diagnostic(KIND, "#define", f"`{name}`", "a body that closes every bracket it opens", remedy, number)
    for token in tokens:
        if token.text in rules.unread:
            yield Diagnostic(KIND, "macro", f"`{token.text}`", *rules.unread[token.text], number)


def _list_parameters(body: Sequence[Token]) -> list[str]:
    """Those between a first bracket and its end; of a macro without parameters that is a part of its body."""
    if not body or body[0].text != "(":
        return []
    end = next((place for place, token in enumerate(body) if token.text == ")"), len(body))
    return [token.text for token in body[1:end] if token.kind is TokenKind.NAME]


def _is_balanced(tokens: Sequence[Token]) -> bool:
    open_brackets: list[str] = []
    for token in tokens:
        if token.text in _OPENERS:
            open_brackets.append(_OPENERS[token.text])
        elif token.text in _CLOSERS and (not open_brackets or open_brackets.pop() != token.text):
            return False
    return not open_brackets


def check_nesting(tokens: Sequence[Token]) -> Findings:
    depth = 0
    for token in tokens:
        depth += (token.text in _OPENERS) - (token.text in _CLOSERS)
        if depth > DEEPEST:
            remedy = "move code to functions of its own"
            yield Diagnostic(
                KIND, "program", f"{depth} brackets", f"at most {DEEPEST} open at once", remedy, token.line
            )
            return


def check_attributes(tokens: Sequence[Token], allowed: Collection[str], has_brackets: bool = False) -> Findings:
    """`__attribute__((...))`, and with `has_brackets` `[[...]]`."""
    for place, token in enumerate(tokens):
        is_standard = has_brackets and [each.text for each in tokens[place : place + 2]] == ["[", "["]
        if is_standard or token.text in ("__attribute__", "__attribute"):
            for name in _list_attributes(tokens[place + (not is_standard) :]):
                if name.strip("_") not in allowed:
                    expected = f"one of {', '.join(sorted(allowed))}"
                    yield Diagnostic(KIND, "attribute", printable(name[:80]), expected, "remove it", token.line)


def _list_attributes(tokens: Sequence[Token]) -> Iterator[str]:
    """What stands first and behind commas at the second level of brackets; what is none of these as it stands."""
    opener = tokens[0].text if tokens else ""
    if [token.text for token in tokens[:2]] not in (["(", "("], ["[", "["]):
        yield "an attribute without its two brackets"
        return
    depth, is_first = 0, True
    for token in tokens:
        if depth == 2 and is_first and token.text not in (",", ")", "]"):
            yield token.text
            is_first = False
        depth += (token.text in ("(", opener)) - (token.text in (")", _OPENERS[opener]))
        is_first = is_first or (depth == 2 and token.text == ",")
        if depth == 0:
            return
    yield "an attribute without its end"
