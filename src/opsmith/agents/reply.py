"""The program in a model's reply. Only a program may come from a reply: every other key is dropped and reported.

Looked at are the fenced blocks from last to first, then the whole text. A block is taken if it is a YAML mapping
with a text under `impl`, or a line `impl:` followed by a program, or itself a program (the target says so). The text
of a program is never edited: only a fence and common indentation are removed. `read_reply` never raises and is bounded
in time and memory for every text; whether the program is any good is the verifier's question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from opsmith.agents.fences import list_fenced_blocks
from opsmith.agents.indentation import strip_indentation
from opsmith.agents.outline import drop_outline, is_of_outline
from opsmith.agents.yaml_reply import compile_key_line, list_dropped_lines, read_mapping
from opsmith.models.answers import find_repetition, strip_thoughts
from opsmith.records import Boundary, Diagnostic, Outcome, Stage, Task, Verdict
from opsmith.targets import Target
from opsmith.targets.faults import charged_to_target

MAX_REPLY = 2**20  # characters; a longer reply is refused unread
MAX_BLOCKS = 32  # fenced blocks looked at, the last ones
MAX_CUTS = 8  # places tried as the end of a program that prose follows, and as its start after prose
MAX_PARSED = 2**18  # characters of one reply that the target is asked to parse, over all attempts

CUT_SHORT = "reply: cut by the limit of tokens"  # where it failed: of a verdict that the limit is to blame for
REPEATED = "reply: repeats itself"  # until the limit of tokens ended it
MAX_UNIT = 60  # characters that are shown of what it repeats
_WITHOUT_CIRCLES = (
    "a reply that ends with its program",
    "write each line of the program once, then stop; another temperature or model may help, more tokens do not",
)
_WITHIN_LIMIT = (
    "a reply that ends before the limit of tokens",
    "answer with the program at once and without prose, or set a larger max_tokens in a settings file",
)
_BOM = "\ufeff"  # YAML skips it, but counts it where it says at which character a value starts
_NEXT_KEY = re.compile(r"[A-Za-z_]\w*:(?:\s.*)?")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True)
class ReadReply:
    """The program in a reply, or why there is none. `dropped` names the other keys that the reply tried to set."""

    source: str | None
    dropped: tuple[str, ...] = ()
    errors: tuple[Diagnostic, ...] = ()  # empty exactly when there is a source

    def leave_outline(self) -> ReadReply:
        """Without the keys of a plan among those that were dropped: it was asked for."""
        return replace(self, dropped=tuple(name for name in self.dropped if not is_of_outline(name)))

    def blame_limit(self, spent: str, text: str) -> ReadReply:
        """Where there is no program in the text, the finding that the limit of tokens cut the reply, or that it went in
        circles until then; `spent`: on what they went, "" where it did not."""
        if self.source is not None or not spent:
            return self
        if unit := find_repetition(text):
            given = f"{self.errors[0].given}; it says {unit[:MAX_UNIT]!r} over and over and {spent}"
            return replace(self, errors=(Diagnostic("FORMAT", REPEATED, given, *_WITHOUT_CIRCLES),))
        given = f"{self.errors[0].given}; it {spent}"
        return replace(self, errors=(Diagnostic("FORMAT", CUT_SHORT, given, *_WITHIN_LIMIT),))

    def make_refusal(self, verifier: str = "") -> Verdict:
        """The verdict on a reply without a program: it counts as a sample, refused at FORMAT."""
        return Verdict("", Stage.FORMAT, Outcome.REFUSED, Boundary.CANDIDATE, self.errors, verifier=verifier)


@dataclass(frozen=True)
class ReplyForm:
    """What a reply was asked to be."""

    expected: tuple[str, str] | None = None  # what, where it is no YAML, and what to try: said of one without a program
    outlined: bool = False  # with a plan before the program


PLAIN = ReplyForm()


def read_reply(
    target: Target, task: Task, text: str, keys: Sequence[str] = ("impl",), form: ReplyForm = PLAIN
) -> ReadReply:
    """The program for `task` in a reply; `keys` are the YAML keys that may hold it, the preferred one first."""
    remedy = f"answer with `{keys[0]}: |` and under it the whole program, indented by two spaces"
    expected = form.expected or (f"a YAML mapping whose only key is `{keys[0]}`", remedy)
    if len(text) > MAX_REPLY:
        return _refuse_reply(f"a reply of {len(text)} characters", expected)
    if not _is_unicode(text):
        return _refuse_reply("text with lone surrogates, which is not Unicode", expected)
    if not form.outlined:
        return _find_program(target, task, text, keys, expected)
    answer = strip_thoughts(text.removeprefix(_BOM))
    program_text = drop_outline(answer, keys, form.expected is None)
    if answer.strip() and not program_text.strip():
        return _refuse_reply("a plan without a program after it", expected)
    has_more = program_text != answer
    return _find_program(target, task, program_text if has_more else text, keys, expected).leave_outline()


def _find_program(target: Target, task: Task, text: str, keys: Sequence[str], expected: tuple[str, str]) -> ReadReply:
    reader, answer = _Reader(target, task, keys), strip_thoughts(text.removeprefix(_BOM))
    blocks = list_fenced_blocks(answer)
    for block in [*islice(reversed(blocks), MAX_BLOCKS), answer]:
        program_reply = reader.read_block(block)
        if program_reply is not None:
            return program_reply
    program = None if blocks else reader.find_between_paragraphs(answer)
    return (
        ReadReply(program)
        if program
        else _refuse_reply(reader.problem or _describe_reply(text, answer, len(blocks)), expected)
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass
class _Reader:
    """The attempts on one reply; they share one budget of text to parse and remember the first thing found wrong."""

    target: Target
    task: Task
    keys: Sequence[str]
    problem: str = ""
    budget: int = field(default=MAX_PARSED)

    def read_program(self, text: str) -> str | None:
        """The text as a program, if the target reads it as one."""
        if not text.strip() or len(text) > self.budget:
            return None
        self.budget -= len(text)
        with charged_to_target(self.task.target, "read_program"):
            return self.target.read_program(self.task, strip_indentation(text))

    def read_block(self, block: str) -> ReadReply | None:
        if not any(key in block for key in self.keys):
            program = self.read_program(block)
            return ReadReply(program) if program else None
        mapping = read_mapping(block, self.keys)
        if mapping and mapping.value is not None:
            return ReadReply(self.unwrap_program(mapping.value), mapping.dropped)
        if mapping and not mapping.folded:
            self.problem = self.problem or mapping.problem
            return None
        return self.read_after_key(block) or (ReadReply(program) if (program := self.read_program(block)) else None)

    def unwrap_program(self, value: str) -> str:
        """The text under `impl` as the target reads it, or as it stands when the target cannot read it."""
        inner = list_fenced_blocks(value) if value.lstrip().startswith(("```", "~~~")) else []
        text = inner[0] if len(inner) == 1 else value
        return self.read_program(text) or strip_indentation(text)

    def read_after_key(self, block: str) -> ReadReply | None:
        """The program after the last line `impl:` that has one: an indented run, or else all that follows."""
        matches = list(compile_key_line(self.keys).finditer(block))
        for match in reversed(matches[-MAX_CUTS:]):
            tail = block[match.end() :].removeprefix("\n")
            run = _take_indented(tail, len(match[1].expandtabs()))
            program = self.find_longest_program(run) or self.find_longest_program(tail)
            if program or (run or tail).strip():
                return ReadReply(
                    program or self.unwrap_program(run or tail), list_dropped_lines(block[: match.start()])
                )
        return None

    def find_longest_program(self, text: str) -> str | None:
        """The longest start of `text` that is a program and ends with the text, before a blank line or before a key."""
        programs = (self.read_program(text[:end]) for end in (len(text), *islice(_list_cuts(text), MAX_CUTS)))
        return next((program for program in programs if program), None)

    def find_between_paragraphs(self, text: str) -> str | None:
        """A program that stands between paragraphs of prose without any fence or key."""
        starts = [match.end() for match in islice(_PARAGRAPH.finditer(text), MAX_CUTS)]
        programs = (self.find_longest_program(text[start:]) for start in (0, *starts))
        return next((program for program in programs if program), None)


def _take_indented(text: str, column: int) -> str:
    """The leading lines that stand further right than `column`, blank lines between them included."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        spread = line.expandtabs()
        if spread.strip() and len(spread) - len(spread.lstrip()) <= column:
            return "".join(lines[:number])
    return text


def _list_cuts(text: str) -> Iterator[int]:
    """Offsets of the lines, last to first, that may be the first one after a program."""
    lines = text.splitlines(keepends=True)
    offset = len(text)
    for i in range(len(lines) - 1, 0, -1):
        offset -= len(lines[i])
        if not lines[i - 1].strip() or _NEXT_KEY.fullmatch(lines[i].strip()):
            yield offset


def _describe_reply(text: str, answer: str, blocks: int) -> str:
    if not answer.strip():
        return "a train of thought without an answer" if text.strip() else "an empty reply"
    fences = f"{blocks} fenced block{'s' * (blocks != 1)}" if blocks else "no fenced block"
    return f"{len(text)} characters with {fences} and no program"


def _refuse_reply(problem: str, expected: tuple[str, str]) -> ReadReply:
    return ReadReply(None, (), (Diagnostic("FORMAT", "reply: no implementation found", problem, *expected),))
