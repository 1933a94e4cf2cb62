"""A repair turn: the proposer is given the findings of its refused candidate, as a further turn of the conversation.

Pure functions: the caller sends the messages. What comes back is read like any reply of the proposer.
"""

from __future__ import annotations

from collections.abc import Callable

from opsmith.models import Message
from opsmith.records import Verdict

MAX_ERRORS = 10  # findings shown, the first ones
NO_TEXT = "(an empty reply)"  # stands for a turn without a word, which providers refuse to be sent


def request_repair(
    messages: tuple[Message, ...],
    reply: str,
    verdict: Verdict,
    rewritten: str | None = None,
    explain: Callable[[str], str] = str,
) -> tuple[Message, ...]:
    """The conversation so far, the reply, and what was wrong with it.

    `rewritten`: the program that was judged, where a guardian had changed the one in the reply. `explain` is given the
    findings, for words in them that only their target knows.
    """
    return (
        *messages,
        Message("assistant", reply if reply.strip() else NO_TEXT),
        Message("user", _describe_refusal(verdict, rewritten, explain)),
    )


def _describe_refusal(verdict: Verdict, rewritten: str | None, explain: Callable[[str], str]) -> str:
    program = f"The guardian made this of the program:\n\n{rewritten.rstrip()}\n\n" if rewritten is not None else ""
    errors = verdict.errors[:MAX_ERRORS]
    findings = "\n".join(error.block() for error in errors) or verdict.message
    surplus = len(verdict.errors) - len(errors)
    remainder = f"\n({surplus} more findings like these)" if surplus else ""
    return (
        f"{program}The answer was refused at {verdict.stage.name}.\n\n{explain(findings)}{remainder}\n\n"
        "Mend what is wrong and answer with the whole program again, in the same form as before.\n"
    )
