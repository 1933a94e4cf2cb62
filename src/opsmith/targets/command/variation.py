"""Programs without a model: those of a folder, as they are or with one word exchanged. It exercises a toolchain."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opsmith.errors import UsageError
from opsmith.outside import read_text
from opsmith.records import Task

_WORD = re.compile(r"[^\s,()]+")


@dataclass(frozen=True)
class VariedPrograms:
    """A sampler, and the policy that it fits: examples teach it nothing."""

    programs: Sequence[str]

    def fit_policy(self, examples: Sequence[tuple[Task, str]]) -> VariedPrograms:
        return self

    def sample_program(self, task: Task, temperature: float, rng: random.Random) -> str:
        """One of the programs; a word of it is another program's in a share of `temperature`, at most."""
        program = rng.choice(self.programs)
        return _exchange_word(program, rng.choice(self.programs), rng) if rng.random() < temperature / 2 else program


def _exchange_word(program: str, donor: str, rng: random.Random) -> str:
    places, words = list(_WORD.finditer(program)), _WORD.findall(donor)
    if not places or not words:
        return program
    place = rng.choice(places)
    chosen: str = rng.choice(words)
    return program[: place.start()] + chosen + program[place.end() :]


def read_programs(folder: Path, suffix: str) -> VariedPrograms:
    """Those of a folder, by name. Raises UsageError where there are none."""
    programs = [read_text(path) for path in sorted(folder.glob(f"*{suffix}"))]
    if not programs:
        raise UsageError(f"model 'embedded': given {folder}; expected a folder with programs, *{suffix}")
    return VariedPrograms(tuple(programs))
