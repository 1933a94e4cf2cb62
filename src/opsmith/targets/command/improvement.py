"""What the agents of an optimisation round are told of a language of commands: what its file says, and what that means
for figures."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opsmith.targets.command.language import Language

_JOB = """\

Here you are given a right program under `program`, and you make it better by the `objective` (`cycles`: what the
simulator counts, lower is better; `time` means the same). Make the change under `suggestion`, completely; where it does
not apply to the program as it stands, make the nearest change that serves its purpose. Without a suggestion choose one
change yourself. `memory` are changes that made programs of other tasks better, with the figure before by the figure
after; `reference` is a right program for the same task in another language; `instructions`, `rules` and `sources` come
from the user and hold for every answer. It must stay right at every size. Answer with the whole program, in the form
that is said above.
"""


def describe_platform(language: Language) -> str:
    """What the file says of the platform, after what is known of any such language."""
    tables = language.tables
    counted = "The simulator counts cycles: lower is better." if tables.run.cycles else "Nothing counts cycles."
    compiled = (
        f"Programs are compiled by: {_write_command(tables.compile.commands[-1])}"
        if tables.compile
        else "Programs are run as they are."
    )
    run = f"They are run by: {_write_command(tables.run.command)}"
    body = language.platform or f"What the generator is told of the language:\n\n{language.prompt}"
    return f"Language: {tables.name}, version {tables.version}. {compiled}\n{run}\n{counted}\n\n{body}".rstrip() + "\n"


def write_improvement(language: Language, has_example: bool) -> str:
    """The language's prompt, the job, and the example of its file."""
    example = f"\nAn example of such a change.\n\n{language.example}" if has_example and language.example else ""
    return language.prompt.rstrip("\n") + "\n" + _JOB + example


def _write_command(words: Sequence[str | Sequence[str]]) -> str:
    """A command without the folders of this machine."""
    texts = [word if isinstance(word, str) else " ".join(word) for word in words]
    return re.sub(r"\{(here|python)\}/?", "", " ".join(texts)).strip()
