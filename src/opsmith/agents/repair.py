"""What is a proposer told of a candidate that was refused? The verdict's errors, as a further turn of the conversation.

Pure functions: the caller sends the messages. What comes back is read like any reply of the proposer.
"""

from __future__ import annotations

from opsmith.models import Message
from opsmith.records import Verdict

MAX_ERRORS = 10  # findings shown, the first ones
NO_TEXT = "(an empty reply)"  # stands for a turn without a word, which providers refuse to be sent


def request(
    messages: tuple[Message, ...], reply: str, verdict: Verdict, rewritten: str | None = None
) -> tuple[Message, ...]:
    """The conversation so far, the reply, and what was wrong with it.

    `rewritten`: the program that was judged, where a guardian had changed the one in the reply.
    """
    return (
        *messages,
        Message("assistant", reply if reply.strip() else NO_TEXT),
        Message("user", _words(verdict, rewritten)),
    )


def _words(verdict: Verdict, rewritten: str | None) -> str:
    program = f"The guardian made this of the program:\n\n{rewritten.rstrip()}\n\n" if rewritten is not None else ""
    shown = verdict.errors[:MAX_ERRORS]
    findings = "\n".join(error.block() for error in shown) or verdict.message
    more = (
        f"\n({len(verdict.errors) - len(shown)} more findings like these)" if len(shown) < len(verdict.errors) else ""
    )
    return (
        f"{program}The answer was refused at {verdict.stage.name}.\n\n{findings}{more}\n\n"
        "Mend what is wrong and answer with the whole program again, in the same form as before.\n"
    )
