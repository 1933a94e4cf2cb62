"""Right kernels with numbers left open: what known minds write, and what a search over templates searches.

A template lies in a file `KERNEL.SUFFIX` with the suffix of its language. Its first line says the choices of each
number, `choices: tile=8,16,32 unroll=1,2`, rising; `$tile` stands for one in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from string import Template

from opsmith.errors import UsageError
from opsmith.targets import get_target
from opsmith.targets.protocols import Suffixed

_CHOICES = re.compile(r"(\w+)=(\d+(?:,\d+)*)")


@dataclass(frozen=True)
class KernelTemplate:
    """One kernel in one language."""

    choices: Mapping[str, tuple[int, ...]]
    text: str

    def write_program(self, numbers: Mapping[str, int]) -> str:
        return Template(self.text).substitute({name: str(number) for name, number in numbers.items()})


@lru_cache(maxsize=64)
def read_template(kernel: str, language: str) -> KernelTemplate:
    """Raises UsageError where there is none for the language."""
    target = get_target(language)
    suffix = target.suffix if isinstance(target, Suffixed) else ".none"
    file = Path(__file__).parent / f"{kernel}{suffix}"
    if not file.is_file():
        languages = sorted({each.suffix for each in file.parent.glob("*.*") if each.suffix != ".py"})
        raise UsageError(f"template of {kernel}: language {language!r} has none; expected one of {languages}")
    head, _, text = file.read_text("utf-8").partition("\n")
    choices = {name: tuple(map(int, numbers.split(","))) for name, numbers in _CHOICES.findall(head)}
    return KernelTemplate(choices, text)
