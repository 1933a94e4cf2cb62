"""Static checks that texts of C and of languages like it share, before any compiler sees them: findings of PARSE.

They look at sizes, characters, tokens that read differently to a compiler, macros and nesting. What a language allows
beside them is its own to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

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

Findings = Iterator[Diagnostic]
DirectiveChecks = Mapping[str, Callable[[Sequence[Token], int], Findings]]  # by the directive's word


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


def check_directive(line: LogicalLine, checks: DirectiveChecks) -> Findings:
    """Whether it is one that programs may have, and what the check of its kind says of what follows its word."""
    words, number = [token.text for token in line.tokens[1:2]], line.tokens[0].line
    if words and words[0] not in DIRECTIVES:
        expected = f"one of {', '.join(sorted(DIRECTIVES))}"
        yield Diagnostic(KIND, "directive", f"#{words[0]}", expected, "remove it", number)
    elif words and words[0] in checks:
        yield from checks[words[0]](line.tokens[2:], number)


def check_definition(tokens: Sequence[Token], number: int, is_reserved: Callable[[str], bool]) -> Findings:
    """Its own name and its parameters must not be ones that the checks rely on; its body must close what it opens."""
    name, body = tokens[0].text if tokens else "", list(tokens[1:])
    parameters = _list_parameters(body)
    for word in (name, *parameters):
        if is_reserved(word):
            yield Diagnostic(KIND, "#define", f"`{word}`", "a name of the program's own", "take another name", number)
    if not _is_balanced(body):
        remedy = "write the brackets where the macro is used"
        yield Diagnostic(KIND, "#define", f"`{name}`", "a body that closes every bracket it opens", remedy, number)


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
