"""What program is in a model's reply? Only a program may come from a reply: every other key is dropped and reported.

Candidates are the fenced blocks from last to first, then the whole text. A candidate is taken if it is a YAML mapping
with a text under `impl`, or a line `impl:` followed by a program, or itself a program (the target says so). The text
of a program is never edited: only a fence and common indentation are removed. `read_reply` never raises and is bounded
in time and memory for every text; whether the program is any good is the verifier's question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from opsmith.agents.fences import fenced_blocks
from opsmith.agents.layout import dedent
from opsmith.agents.yaml_reply import dropped_lines, key_line, read_mapping
from opsmith.records import Boundary, Diagnostic, Outcome, Stage, Task, Verdict
from opsmith.targets import Target

MAX_REPLY = 2**20  # characters; a longer reply is refused unread
MAX_BLOCKS = 32  # fenced blocks looked at, the last ones
MAX_CUTS = 8  # places tried as the end of a program that prose follows, and as its start after prose
MAX_PARSED = 2**18  # characters of one reply that the target is asked to parse, over all attempts

_BOM = "\ufeff"  # YAML skips it, but counts it where it says at which character a value starts
_NEXT_KEY = re.compile(r"[A-Za-z_]\w*:(?:\s.*)?")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True)
class ReadReply:
    """The program in a reply, or why there is none. `dropped` names the other keys that the reply tried to set."""

    source: str | None
    dropped: tuple[str, ...] = ()
    errors: tuple[Diagnostic, ...] = ()  # empty exactly when there is a source

    def refusal(self, verifier: str = "") -> Verdict:
        """The verdict on a reply without a program: it counts as a sample, refused at FORMAT."""
        return Verdict("", Stage.FORMAT, Outcome.REFUSED, Boundary.CANDIDATE, self.errors, verifier=verifier)


def read_reply(
    target: Target, task: Task, text: str, keys: Sequence[str] = ("impl",), wanted: tuple[str, str] | None = None
) -> ReadReply:
    """The program for `task` in a reply; `keys` are the YAML keys that may hold it, the preferred one first.

    `wanted`: what was asked for where that is no YAML, and what to try; said of a reply without a program.
    """
    wanted = wanted or _yaml_wanted(keys)
    if len(text) > MAX_REPLY:
        return _nothing(f"a reply of {len(text)} characters", wanted)
    if not _is_unicode(text):
        return _nothing("text with lone surrogates, which is not Unicode", wanted)
    reader, answer = _Reader(target, task, keys), _answer(text.removeprefix(_BOM))
    blocks = fenced_blocks(answer)
    for block in [*islice(reversed(blocks), MAX_BLOCKS), answer]:
        found = reader.candidate(block)
        if found is not None:
            return found
    program = None if blocks else reader.between_paragraphs(answer)
    return ReadReply(program) if program else _nothing(reader.problem or _given(text, answer, len(blocks)), wanted)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _answer(text: str) -> str:
    """The text after a reasoning model's thoughts; some servers strip the opening tag."""
    opened = text.lstrip().startswith("<think>")
    thoughts, closed, rest = text.rpartition("</think>")
    if not closed:
        return "" if opened else text
    return rest if opened or rest.strip() else thoughts


@dataclass
class _Reader:
    """The attempts on one reply; they share one budget of text to parse and remember the first thing found wrong."""

    target: Target
    task: Task
    keys: Sequence[str]
    problem: str = ""
    left: int = field(default=MAX_PARSED)

    def program(self, text: str) -> str | None:
        """The text as a program, if the target reads it as one."""
        if not text.strip() or len(text) > self.left:
            return None
        self.left -= len(text)
        return self.target.read_program(self.task, dedent(text))

    def candidate(self, block: str) -> ReadReply | None:
        if not any(key in block for key in self.keys):
            program = self.program(block)
            return ReadReply(program) if program else None
        mapping = read_mapping(block, self.keys)
        if mapping and mapping.value is not None:
            return ReadReply(self.unwrapped(mapping.value), mapping.dropped)
        if mapping and not mapping.folded:
            self.problem = self.problem or mapping.problem
            return None
        return self.after_key(block) or (ReadReply(whole) if (whole := self.program(block)) else None)

    def unwrapped(self, value: str) -> str:
        """The text under `impl` as the target reads it, or as it stands when the target cannot read it."""
        inner = fenced_blocks(value) if value.lstrip().startswith(("```", "~~~")) else []
        text = inner[0] if len(inner) == 1 else value
        return self.program(text) or dedent(text)

    def after_key(self, block: str) -> ReadReply | None:
        """The program after the last line `impl:` that has one: an indented run, or else all that follows."""
        matches = list(key_line(self.keys).finditer(block))
        for match in reversed(matches[-MAX_CUTS:]):
            rest = block[match.end() :].removeprefix("\n")
            run = _indented_run(rest, len(match[1].expandtabs()))
            program = self.longest_program(run) or self.longest_program(rest)
            if program or (run or rest).strip():
                return ReadReply(program or self.unwrapped(run or rest), dropped_lines(block[: match.start()]))
        return None

    def longest_program(self, text: str) -> str | None:
        """The longest start of `text` that is a program and ends with the text, before a blank line or before a key."""
        programs = (self.program(text[:end]) for end in (len(text), *islice(_cuts(text), MAX_CUTS)))
        return next((program for program in programs if program), None)

    def between_paragraphs(self, text: str) -> str | None:
        """A program that stands between paragraphs of prose without any fence or key."""
        starts = [match.end() for match in islice(_PARAGRAPH.finditer(text), MAX_CUTS)]
        programs = (self.longest_program(text[start:]) for start in (0, *starts))
        return next((program for program in programs if program), None)


def _indented_run(text: str, column: int) -> str:
    """The leading lines that stand further right than `column`, blank lines between them included."""
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        spread = line.expandtabs()
        if spread.strip() and len(spread) - len(spread.lstrip()) <= column:
            return "".join(lines[:at])
    return text


def _cuts(text: str) -> Iterator[int]:
    """Offsets of the lines, last to first, that may be the first one after a program."""
    lines = text.splitlines(keepends=True)
    at = len(text)
    for i in range(len(lines) - 1, 0, -1):
        at -= len(lines[i])
        if not lines[i - 1].strip() or _NEXT_KEY.fullmatch(lines[i].strip()):
            yield at


def _given(text: str, answer: str, blocks: int) -> str:
    if not answer.strip():
        return "a train of thought without an answer" if text.strip() else "an empty reply"
    fences = f"{blocks} fenced block{'s' * (blocks != 1)}" if blocks else "no fenced block"
    return f"{len(text)} characters with {fences} and no program"


def _yaml_wanted(keys: Sequence[str]) -> tuple[str, str]:
    remedy = f"answer with `{keys[0]}: |` and under it the whole program, indented by two spaces"
    return f"a YAML mapping whose only key is `{keys[0]}`", remedy


def _nothing(given: str, wanted: tuple[str, str]) -> ReadReply:
    return ReadReply(None, (), (Diagnostic("FORMAT", "reply: no implementation found", given, *wanted),))
