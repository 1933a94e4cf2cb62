"""What agents are told of a GPU language, out of its folder `prompts`."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from types import MappingProxyType

from opsmith.targets.gpu.options import GpuOptions
from opsmith.targets.native.prompt_texts import (
    PromptTexts,
    append_example,
    read_prompt_file,
    write_improvement_prompt,
)
from opsmith.targets.protocols import PROPOSER


class GpuPrompts:
    """The part of a GPU language that words prompts: fits `Improvable` and `Exemplified`."""

    name: str
    suffix: str
    options: type[GpuOptions]
    prompt_values: Mapping[str, str] = MappingProxyType({})  # what `$name` stands for in its files

    @property
    def prompt_texts(self) -> PromptTexts:
        return PromptTexts(f"opsmith.targets.{self.name}", self.suffix, self.options(), write_function=None)

    def base_prompt(self, role: str) -> str | None:
        return append_example(self.prompt_texts, self.prompt_without_example()) if role == PROPOSER else None

    def prompt_without_example(self) -> str:
        return self._fill_file("proposer.yaml")

    def describe_platform(self) -> str:
        return self._fill_file("platform.txt")

    def improvement_prompt(self, has_example: bool) -> str:
        return write_improvement_prompt(self.prompt_texts, self.prompt_without_example(), has_example)

    def _fill_file(self, name: str) -> str:
        return Template(read_prompt_file(self.prompt_texts, name)).substitute(self.prompt_values)
