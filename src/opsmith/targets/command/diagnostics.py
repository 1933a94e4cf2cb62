"""What a language's own tools say of a program, as findings: by the pattern of its file, or else their words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opsmith.records import WHOLE_RUN, Diagnostic, printable
from opsmith.running.commands import CommandResult
from opsmith.targets.native.messages import LONGEST, cut_line, join_line

KIND = "COMPILE"
MOST = 5  # findings of one program
LONGEST_LINE, MOST_LINES = 1000, 1000  # of messages that patterns are tried on
_LINES = 6  # of messages that no pattern knows


def explain_compile(pattern: str, result: CommandResult, source: str, language: str) -> tuple[Diagnostic, ...]:
    """The findings on a program that a compiler refused: the first ones that the pattern finds, at least one."""
    if result.limit:
        remedy = "write it more simply"
        return (Diagnostic(KIND, "compiler", f"a program that takes more than {result.limit}", "less of it", remedy),)
    messages = cut_messages(result.messages + "\n" + result.printed.decode(errors="replace"))
    findings = list(_read_findings(pattern, messages, source.splitlines(), language)) if pattern else []
    if findings:
        return tuple(dict.fromkeys(findings))[:MOST]
    words = quote_messages(messages) or "a program that it refused without a word"
    return (Diagnostic(KIND, "compiler", words, f"{language} that the compiler takes"),)


def explain_obstacles(result: CommandResult) -> tuple[Diagnostic, ...]:
    """The findings on a program whose build left something else where files belong."""
    return tuple(
        Diagnostic(KIND, "compiler", f"{obstacle} in place of the file {name}", "a plain file that can be read")
        for name, obstacle in result.obstacles.items()
    )


def cut_messages(messages: str) -> str:
    """What patterns are tried on: a program may have its compiler print lines on which they take for ever."""
    lines = messages.split("\n")
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES // 2], *lines[-MOST_LINES // 2 :]]
    return "\n".join(line[:LONGEST_LINE] for line in lines)


def explain_run(pattern: str, result: CommandResult, source: str) -> Diagnostic | None:
    """The first finding that the pattern finds in what a run said that ended badly; None: there is none."""
    messages = cut_messages(result.messages + "\n" + result.printed.decode(errors="replace"))
    findings = _read_findings(pattern, messages, source.splitlines(), "", "RUN") if pattern else iter(())
    return next(findings, None)


def _read_findings(
    pattern: str, messages: str, lines: Sequence[str], language: str, kind: str = KIND
) -> Iterator[Diagnostic]:
    for match in re.finditer(pattern, messages, re.MULTILINE):
        groups = {name: cut_line(join_line(value)) for name, value in match.groupdict().items() if value is not None}
        number = _read_number(groups.get("line"))
        text = lines[number - 1].strip() if number is not None and number <= len(lines) else ""
        yield Diagnostic(
            kind,
            groups.get("file", "program"),
            groups.get("message", cut_line(join_line(match[0]))),
            groups.get("expected", f"{language} that the compiler takes" if kind == KIND else WHOLE_RUN),
            groups.get("remedy", ""),
            number,
            _read_number(groups.get("column")),
            printable(text)[:LONGEST],
        )


def _read_number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"0*[1-9]\d{0,8}", text) else None


def quote_messages(messages: str) -> str:
    """The last lines of what was said, as one text; "": nothing was."""
    lines = [line[:LONGEST_LINE] for line in messages.splitlines() if line.strip()]
    return cut_line(join_line(" / ".join(lines[-_LINES:])))
