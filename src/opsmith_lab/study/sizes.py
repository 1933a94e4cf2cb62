"""What zero-shot kernels are asked for: problems, their sizes, and two prompts that differ in one sentence.

Every common size has an uncommon one beside it that is about as much work. The sizes at which programs are tried, which
prompts of a language state, are left out: the sentence is all that a model is told of sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from opsmith.agents.prompt import compose_prompt
from opsmith.models import Message
from opsmith.records import Task
from opsmith.suites import load_task
from opsmith.targets import get_target

TOLD, UNTOLD = "told", "untold"
TEMPERATURES = (0.1, 0.5, 0.8)
SAMPLES = 20  # of each kernel, size, prompt and temperature
COMMON, UNCOMMON = "common", "uncommon"

Sizes = tuple[tuple[str, int], ...]


_ROWS: tuple[Sizes, ...] = tuple(
    (("M", m), ("N", n))
    for m, n in (
        *((64, 256), (61, 251), (128, 512), (127, 509), (32, 1024), (33, 1021), (256, 128), (253, 131)),
        *((16, 2048), (17, 2039)),
    )
)
_PRODUCTS: tuple[Sizes, ...] = tuple(
    (("M", m), ("N", n), ("K", k))
    for m, n, k in (
        *((64, 64, 64), (61, 67, 59), (128, 128, 128), (127, 131, 113), (32, 256, 64), (31, 251, 67)),
        *((256, 32, 128), (253, 29, 127), (192, 192, 192), (191, 193, 179)),
    )
)
KERNELS: Mapping[str, tuple[Sizes, ...]] = {"softmax": _ROWS, "gemm_at": _PRODUCTS, "layer_norm": _ROWS}
SIZE_SETS: Mapping[str, int] = {"ten": 10, "four": 4, "two": 2}  # how many of each kernel's sizes, half of them common

_FREELY = (
    "Write the fastest program that you can. It is right at every size; you choose how it divides its work: tiles, "
    "blocks, unrolled turns, stages."
)
_TOLD = " It is timed at {sizes}."
_READ_TOLD = re.compile(re.escape(_TOLD).replace(r"\{sizes\}", r"([^.\n]*)"))
_STATED = re.compile(r"^  sizes: .*\n", re.MULTILINE)


@dataclass(frozen=True)
class KernelCell:
    """What is asked for several times: one kernel in one language at one size, with one prompt and temperature."""

    language: str
    kernel: str
    sizes: Sizes
    prompt: str  # TOLD or UNTOLD
    temperature: float

    @property
    def kind(self) -> str:
        return name_kind(self.sizes)

    @property
    def place(self) -> str:
        """Kernel and size in a word."""
        return f"{self.kernel} {name_sizes(self.sizes)}"


def name_sizes(sizes: Sizes) -> str:
    """`127 x 509`."""
    return " x ".join(str(extent) for _, extent in sizes)


def name_kind(sizes: Sizes) -> str:
    """Whether all extents are multiples of 16."""
    return UNCOMMON if any(extent % 16 for _, extent in sizes) else COMMON


def list_cells(
    languages: Sequence[str], kernels: Sequence[str], number: int, prompts: Sequence[str]
) -> Iterator[KernelCell]:
    """All of them, with so many of each kernel's sizes, from the first on."""
    for language in languages:
        for kernel in kernels:
            for sizes in KERNELS[kernel][:number]:
                for prompt in prompts:
                    yield from (KernelCell(language, kernel, sizes, prompt, each) for each in TEMPERATURES)


@lru_cache(maxsize=64)
def find_task(kernel: str, language: str) -> Task:
    """Raises UsageError for a language that there is not, UnaskableError for one without this kernel."""
    return load_task(kernel, language)


@lru_cache(maxsize=256)
def write_messages(kernel: str, language: str, told_sizes: Sizes | None) -> tuple[Message, ...]:
    """The language's own prompt without any size of the task's, and what the study asks for. None: untold."""
    system, user = compose_prompt(find_task(kernel, language), [], get_target(language), None, 0).messages
    named = ", ".join(f"{name} = {extent}" for name, extent in told_sizes) if told_sizes is not None else ""
    wish = _FREELY + (_TOLD.format(sizes=named) if told_sizes is not None else "")
    return system, Message("user", f"{_STATED.sub('', user.content)}timing: |\n  {wish}\n")


def read_told(text: str) -> Sizes | None:
    """The sizes that a prompt tells; None: it tells none."""
    match = _READ_TOLD.search(text)
    if match is None:
        return None
    return tuple((name.strip(), int(extent)) for name, extent in (pair.split("=") for pair in match[1].split(",")))
