"""Choice of the right answer that is kept for a task. The filter of Algorithm 1 (paper, section 3.1).

Right answers are grouped by isomorphic syntax tree (the target's canonical text). Of each group one answer is drawn at
random, every answer with the same chance; of those the shortest in pure code is kept. The draw is a hash of the
sample, so it depends on the run's seed and on nothing that happened in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opsmith.records import content_hash
from opsmith.store.queries import Answer


def choose_answer(answers: Sequence[Answer], canonical: Callable[[str], str], seed: int, comment: str = "#") -> Answer:
    """The answer that is kept, of at least one. `comment` opens a comment that runs to the end of its line."""

    def draw(answer: Answer) -> str:
        return content_hash(str(seed), answer.task, repr(answer.temperature), str(answer.number), answer.source)

    groups: dict[str, Answer] = {}
    for answer in sorted(answers, key=draw, reverse=True):  # the smallest hash of a group stays
        groups[canonical(answer.source)] = answer
    return min(groups.values(), key=lambda answer: (len(pure_code(answer.source, comment)), draw(answer)))


def pure_code(source: str, comment: str = "#") -> str:
    """The program without comments, empty lines and layout at the edges of lines."""
    lines = (_strip_comment(line, comment).strip() for line in source.splitlines())
    return "\n".join(line for line in lines if line)


def _strip_comment(line: str, comment: str) -> str:
    """The part of a line before a comment that does not stand in quotes."""
    quote = ""
    for column, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif line.startswith(comment, column):
            return line[:column]
        elif char in "\"'":
            quote = char
    return line
