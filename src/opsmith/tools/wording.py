"""How tools speak: texts within a length, and findings as a repair turn shows them."""

from __future__ import annotations

from opsmith.agents.reply import read_reply
from opsmith.errors import TargetError
from opsmith.records import Diagnostic, Task, printable
from opsmith.targets import Target
from opsmith.targets.capabilities import explain_message

MOST_TEXT = 12_000  # characters of a result
MOST_FINDINGS = 10  # the first ones


def bound_text(text: str, length: int = MOST_TEXT) -> str:
    """A text that can be printed and sent: what is cut at its end is said.

    >>> bound_text("abcdef", 4)
    'abcd\\n... (2 of 6 characters are cut here)'
    """
    visible = printable(text.encode("utf-8", "replace").decode("utf-8"), "\n\t")
    if len(visible) <= length:
        return visible
    return f"{visible[:length]}\n... ({len(visible) - length} of {len(visible)} characters are cut here)"


def write_findings(task: Task, errors: tuple[Diagnostic, ...]) -> str:
    """The first findings in block form, explained."""
    surplus = len(errors) - MOST_FINDINGS
    blocks = "\n".join(error.block() for error in errors[:MOST_FINDINGS])
    remainder = f"\n({surplus} more findings like these)" if surplus > 0 else ""
    return f"{explain_message(task, blocks)}{remainder}"


def unwrap_program(target: Target, task: Task, text: str) -> str:
    """The program in an argument, which may be written as an answer holds it; or else the text as it stands.

    The same text is always read as the same program, so that what was tried is what counts.
    """
    try:
        return read_reply(target, task, text).source or text
    except TargetError:  # of somebody's own target: what it checks will say so again
        return text
