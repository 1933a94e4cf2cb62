"""Which texts of a reply are the model's answer, and which are its provider's doing.

A text is an answer, also one that a limit of tokens cut: it is judged. An empty text is one where the model ended it by
itself: it had nothing to say. Calls of tools that were offered are an answer too (`Reply.calls` holds no others). All
else that stands in a text's place is no answer, and says nothing of the model: no text at all (null, a number, calls of
tools that nobody offered), an empty one that something else ended (reasoning that used up all tokens), and what the
provider broke off, however much of it came. Pure, and asked of nothing but a reply: the same is found in one that comes
and in one from the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from opsmith.models import Reply, ToolCall

OWN_END = frozenset({"stop", "stop_sequence", "end_turn", "eos", "eos_token"})
BROKEN_OFF = frozenset({"content_filter", "error", "abort", "cancelled", "insufficient_system_resource"})
CUT = "length"  # the limit of tokens ended it
NO_TEXT = "no text"  # how an ending begins that we found ourselves; what stood there instead follows
REPEATS = 5  # times that a text says the same at its end, at least, to repeat itself
LEAST_REPEATED = 200  # characters that it takes for that, at least
TAIL = 4_000  # characters that are looked at: the longest unit is a fifth of them
MAX_ENDING = 80  # characters of a server's word that are shown

_AGAIN = "start the same command again, which asks anew for what is missing in a round that has not ended"
_REMEDIES = {
    CUT: "a larger max_tokens in a settings file (reasoning counts too), or a model that reasons less",
    "content_filter": f"another model, or {_AGAIN}",
    "tool_calls": "a model or a server that calls no tools unasked",
    "tool_use": "a model or a server that calls no tools unasked",
}


def describe_missing_answer(reply: Reply) -> str:
    """What came in place of the first completion's answer, and what to try; "": it is an answer."""
    text, ending, calls = next(_pair_completions(reply), ("", NO_TEXT, ()))
    if _is_answer(text, ending, calls):
        return ""
    what = "broken off by the provider" if ending in BROKEN_OFF else "without text"
    reason = repr(ending[:MAX_ENDING]) if ending else "not told"
    spent = f": it {describe_cut(reply, ' while reasoning')}" if ending == CUT else ""
    remedy = _REMEDIES.get(ending, _AGAIN)
    return f"given a reply {what} (it ended: {reason}{spent}); expected a text; try: {remedy}"


def describe_cut(reply: Reply, when: str = "") -> str:
    """On what the tokens of a reply went that their limit cut, as its server counts them; "": it was not cut."""
    if reply.finish[:1] != (CUT,):
        return ""
    output, thoughts = reply.usage.output_tokens, reply.usage.reasoning_tokens
    about = f"about {output}, its share by length of {reply.shared} completions" if reply.shared else f"{output}"
    counts = f" after {about}" + (f", {thoughts} of them thoughts" if thoughts else "") if output else ""
    return f"ran out of tokens{when}{counts}"


def find_repetition(text: str) -> str:
    """What the end of a text says over and over, in so many letters as it takes; "": it does not repeat itself.

    >>> find_repetition("return E0; " + "and then E1, " * 20), find_repetition("return E0")
    ('and then E1,', '')
    """
    tail = text.rstrip()[-TAIL:]
    for period in range(1, len(tail) // REPEATS + 1):
        length = max(period * REPEATS, LEAST_REPEATED)
        if length <= len(tail) and tail[-length:-period] == tail[period - length :]:
            return tail[-period:].strip()
    return ""


def holds_answer(reply: Reply) -> bool:
    """Whether any completion of a reply is an answer."""
    return any(_is_answer(*completion) for completion in _pair_completions(reply))


def _pair_completions(reply: Reply) -> Iterator[tuple[str, str, Sequence[ToolCall]]]:
    """Texts with endings and calls; a model that tells no ending, as those in this process may, ended by itself."""
    return zip(reply.texts, chain(reply.finish, repeat("stop")), chain(reply.calls, repeat(())), strict=False)


def _is_answer(text: str, ending: str, calls: Sequence[ToolCall]) -> bool:
    return ending not in BROKEN_OFF and (bool(text.strip()) or ending in OWN_END or bool(calls))


def strip_thoughts(text: str) -> str:
    """The text after a reasoning model's thoughts; some servers strip the opening tag."""
    opened = text.lstrip().startswith("<think>")
    thoughts, closed, answer = text.rpartition("</think>")
    if not closed:
        return "" if opened else text
    return answer if opened or answer.strip() else thoughts
