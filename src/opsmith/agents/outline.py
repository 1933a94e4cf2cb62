"""A plan that a reply makes before its program (`--think`): asked for, and left out where programs are looked for.

A plan is a fenced block whose info word is `plan`, with all that is fenced in it; or what follows a line `plan:`, up to
the next key where it is indented as YAML has it, or else up to the last line with the program's key. A plan that no key
ends is all that follows: what it quotes is no program. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from opsmith.agents.fences import drop_fenced
from opsmith.targets import Target
from opsmith.targets.protocols import Outlined

KEY = "plan"
_PLAN_LINE = re.compile(rf"^([ \t]*+)[#*_`]*+[ ]?+{KEY}[*_`]*+:[*_`]*+(?=\s|$)", re.MULTILINE | re.IGNORECASE)
_WORDS = "which operations compute each output, and the types and shapes of what they pass on to each other"


def request_outline(target: Target, style: str) -> str:
    """What is added to the static part of a prompt, so that the model plans first."""
    words = target.outline_words if isinstance(target, Outlined) else _WORDS
    nothing = "Nothing of the plan is executed."
    if style == "bare":
        block = f"Plan first, in a block ```{KEY} of its own: {words}."
        return f"\n{block} Then write the program as you were told to, whole. {nothing}\n"
    keys = f"Answer with two keys instead of one: `{KEY}`, a text in which you plan the program"
    return f"{KEY}: |\n  {keys} ({words}), and after it `impl` with the whole program. {nothing}\n"


def drop_outline(text: str, keys: Sequence[str], is_yaml: bool) -> str:
    """A reply without its plan. `keys`: of the program; `is_yaml`: the plan may stand under a key too."""
    text = drop_fenced(text, KEY)
    match = _PLAN_LINE.search(text) if is_yaml else None
    return text if match is None else text[: match.start()] + text[_find_end(text, match, keys) :]


def _find_end(text: str, plan: re.Match[str], keys: Sequence[str]) -> int:
    """Where a plan ends that begins with a line `plan:`."""
    column = re.escape(plan[1])
    indented = re.compile(rf"[^\n]*+\n(?:{column}[ \t]+[^\n]*+\n|[ \t]*+\n)*+(?={column}[A-Za-z_]\w*+:)").match(
        text, plan.end()
    )
    if indented:
        return indented.end()
    names = "|".join(map(re.escape, keys))
    lines = re.compile(rf"^{column}[*_`\"']*+(?:{names})[*_`\"']*+[ \t]*+:", re.MULTILINE)
    return max((line.start() for line in lines.finditer(text, plan.end())), default=len(text))


def is_of_outline(name: str) -> bool:
    """Whether a key of a reply, as a dotted path, is the plan's or one below it."""
    return name.partition(".")[0].lower() == KEY
