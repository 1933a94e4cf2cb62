"""A repair turn: the proposer is given the findings of its refused candidate, as a further turn of the conversation.

Pure functions: the caller sends the messages. What comes back is read like any reply of the proposer.
"""

from __future__ import annotations

from collections.abc import Callable

from opsmith.agents.manual import Manual
from opsmith.agents.prompt import write_quotations
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
    manual: Manual | None = None,
) -> tuple[Message, ...]:
    """The conversation so far, the reply, what was wrong with it, and what the manual says of that.

    `rewritten`: the program that was judged, where a guardian had changed the one in the reply. `explain` is given the
    findings, for words in them that only their target knows.
    """
    refusal = _describe_refusal(verdict, rewritten, explain)
    if manual is not None:
        shown = "".join(message.content for message in messages)
        refusal += write_quotations(manual.quote_findings(write_findings(verdict), shown))
    answer = Message("assistant", reply if reply.strip() else NO_TEXT)
    return *messages, answer, Message("user", refusal)


def write_findings(verdict: Verdict) -> str:
    """The first findings in block form."""
    return "\n".join(error.block() for error in verdict.errors[:MAX_ERRORS]) or verdict.message


def _describe_refusal(verdict: Verdict, rewritten: str | None, explain: Callable[[str], str]) -> str:
    program = f"The guardian made this of the program:\n\n{rewritten.rstrip()}\n\n" if rewritten is not None else ""
    surplus = max(0, len(verdict.errors) - MAX_ERRORS)
    remainder = f"\n({surplus} more findings like these)" if surplus else ""
    return (
        f"{program}The answer was refused at {verdict.stage.name}.\n\n{explain(write_findings(verdict))}{remainder}\n\n"
        "Mend what is wrong and answer with the whole program again, in the same form as before.\n"
    )
