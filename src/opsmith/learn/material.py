"""What a user gives the generator beside the task: instructions by round, sources, and rules for a program's text.

All files are read once, at the start of a session; `digest` names what they said, so that a run whose files have
changed is another run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opsmith.agents.generation import AttachedSource
from opsmith.errors import UsageError
from opsmith.learn.text_rules import TextRules, compile_rules
from opsmith.outside import read_text
from opsmith.records import content_hash
from opsmith.settings import Generation

SUFFIXES = (".md", ".txt")
LARGEST_SOURCE = 64 << 10  # characters of one file
LARGEST_ALL = 192 << 10  # of all sources and instructions of a prompt
_ROUND = re.compile(r"round-([1-9]\d{0,4})")


@dataclass(frozen=True)
class GenerationMaterial:
    """What the files and patterns of the settings say."""

    instructions: str = ""  # for every round
    of_round: Mapping[int, str] = field(default_factory=dict)  # further ones, by number of optimisation round, from 1
    sources: tuple[AttachedSource, ...] = ()
    rules: TextRules = field(default_factory=TextRules)

    def find_instructions(self, number: int) -> str:
        """Those of the optimisation round of that number, which counts from 1."""
        texts = (self.instructions, self.of_round.get(number, ""))
        return "\n\n".join(text for text in texts if text.strip())

    @property
    def digest(self) -> str:
        """Equal where the same texts are shown; "": there are none. Patterns are settings, which name a run anyway."""
        texts = [self.instructions, *(f"{number} {text}" for number, text in sorted(self.of_round.items()))]
        texts += [text for source in self.sources for text in (source.name, source.text)]
        return content_hash(*texts) if any(texts) else ""


def read_material(settings: Generation) -> GenerationMaterial:
    """The files and patterns of the settings.

    `instructions` is a file, whose text is for every round, or a folder: `all.md` for every round, `round-1.md` for the
    first optimisation round only, and so on (.txt too). Raises UsageError and TaskError.
    """
    every, of_round = _read_instructions(Path(settings.instructions)) if settings.instructions else ("", {})
    sources = tuple(_read_sources(settings.sources))
    size = sum(len(source.text) for source in sources) + len(every) + max(map(len, of_round.values()), default=0)
    if size > LARGEST_ALL:
        raise UsageError(
            f"sources and instructions: given {size} characters; expected at most {LARGEST_ALL}, since every prompt "
            "holds them; try: attach what matters of them"
        )
    return GenerationMaterial(every, of_round, sources, compile_rules(settings.deny, settings.allow))


def _read_instructions(path: Path) -> tuple[str, dict[int, str]]:
    """What is for every round, and what for one."""
    if not path.is_dir():
        return read_text(path), {}
    files = {file.stem: file for file in sorted(path.iterdir()) if file.suffix in SUFFIXES}
    numbers = {name: match for name in files if (match := _ROUND.fullmatch(name))}
    strange = sorted(files.keys() - numbers.keys() - {"all"})
    if strange or not files:
        text = files[strange[0]].name if strange else "no text"
        raise UsageError(f"instructions {path}: given {text}; expected all.md, round-1.md, round-2.md and so on")
    of_round = {int(match[1]): read_text(files[name]) for name, match in numbers.items()}
    return read_text(files["all"]) if "all" in files else "", of_round


def _read_sources(paths: Sequence[str]) -> Iterator[AttachedSource]:
    names: set[str] = set()
    for path in map(Path, paths):
        text = read_text(path)
        if len(text) > LARGEST_SOURCE:
            raise UsageError(f"source {path}: given {len(text)} characters; expected at most {LARGEST_SOURCE}")
        if path.name in names:
            raise UsageError(f"source {path}: another source is called {path.name}; try: rename one of them")
        names.add(path.name)
        yield AttachedSource(path.name, text)
