"""Patterns that a user denies or allows in programs: regular expressions over a program's text without its comments.

A match of a denied pattern that lies in no match of an allowed one is refused at the language's first stage, before the
language itself is asked. The patterns are the user's own and run on texts that a model wrote: one that takes time that
grows with the text's square takes it for every program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from opsmith.errors import UsageError
from opsmith.records import Boundary, Candidate, Diagnostic, Outcome, Stage, Verdict
from opsmith.targets import Target
from opsmith.targets.capabilities import blank_comments, name_verifier

MOST_FINDINGS = 5  # of one program
LONGEST_QUOTE = 80  # characters of a match that are shown


@dataclass(frozen=True)
class TextRules:
    """What no program may hold."""

    deny: tuple[re.Pattern[str], ...] = ()
    allow: tuple[re.Pattern[str], ...] = ()

    def list_findings(self, text: str) -> Iterator[Diagnostic]:
        """One for each denied match, in the order of the patterns. `text`: without comments."""
        allowed = [match.span() for pattern in self.allow for match in pattern.finditer(text)]
        for pattern in self.deny:
            for match in pattern.finditer(text):
                start, end = match.span()
                if not any(low <= start and end <= high for low, high in allowed):
                    yield _describe_match(pattern, text, start, match[0])

    def describe(self) -> str:
        """What a model is told; "" where everything may be written."""
        if not self.deny:
            return ""
        denied = "".join(f"- {pattern.pattern}\n" for pattern in self.deny)
        allowed = "".join(f"- {pattern.pattern}\n" for pattern in self.allow)
        but = f"but where the match lies within one of these:\n{allowed}" if allowed else ""
        return f"The program's text without comments may not match these regular expressions:\n{denied}{but}"


def compile_rules(deny: Sequence[str], allow: Sequence[str]) -> TextRules:
    """The patterns of the settings. Raises UsageError for one that is none."""
    return TextRules(
        tuple(_compile_pattern("deny", text) for text in deny), tuple(_compile_pattern("allow", text) for text in allow)
    )


def _compile_pattern(name: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        problem = f"{name}: given {text!r}: {error}; expected a regular expression"
        raise UsageError(f"{problem}; try: {re.escape(text)} for the text itself") from error


def refuse_text(rules: TextRules, target: Target, source: str) -> Verdict | None:
    """The verdict on a program that holds what is denied; None: it does not."""
    if not rules.deny:
        return None
    errors = tuple(islice(rules.list_findings(blank_comments(target, source)), MOST_FINDINGS))
    if not errors:
        return None
    name, stage = Candidate(source).id, Stage(target.stages[0])
    return Verdict(name, stage, Outcome.REFUSED, Boundary.CANDIDATE, errors, verifier=name_verifier(target))


def _describe_match(pattern: re.Pattern[str], text: str, start: int, match: str) -> Diagnostic:
    line = text.count("\n", 0, start) + 1
    quote = match if len(match) <= LONGEST_QUOTE else f"{match[:LONGEST_QUOTE]} ..."
    return Diagnostic(
        "RULE",
        "the user's rules",
        repr(quote),
        f"no match of the pattern {pattern.pattern}",
        "write it in another way",
        line,
        text=text.split("\n")[line - 1].strip(),
    )
