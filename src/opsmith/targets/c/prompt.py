"""The text that opens a prompt for C: rules, call, what counts as right, this machine's processor, one example pair."""

from __future__ import annotations

from string import Template

from opsmith.targets.native.flags import LANGUAGE_FLAGS, Isa
from opsmith.targets.native.prompt_texts import PromptTexts, append_example, read_prompt_file
from opsmith.targets.native.task import NativeOptions

TEXTS = PromptTexts("opsmith.targets.c", ".c", NativeOptions())

_VECTORS = {  # what such a processor computes with at once
    "x86-64-v4": "AVX-512: 16 floats or 8 doubles at once, fused multiply-add",
    "x86-64-v3": "AVX2: 8 floats or 4 doubles at once, fused multiply-add",
    "x86-64-v2": "SSE4.2: 4 floats or 2 doubles at once, no fused multiply-add",
    "x86-64": "SSE2: 4 floats or 2 doubles at once, no fused multiply-add",
}
_ARM = "NEON: 4 floats or 2 doubles at once, fused multiply-add"


def write_prompt(isa: Isa) -> str:
    """The whole text, one YAML mapping; the same for every task and whatever its options."""
    return append_example(TEXTS, write_rules(isa))


def write_rules(isa: Isa) -> str:
    """What a program of the language is, without an example: the entry `general` of a mapping."""
    return Template(read_prompt_file(TEXTS, "proposer.yaml")).substitute(isa=describe_isa(isa), flags=write_flags(isa))


def write_flags(isa: Isa) -> str:
    """What a task without options is compiled with."""
    return " ".join((*LANGUAGE_FLAGS, "-fopenmp-simd", isa.flag, *NativeOptions().flags))


def describe_isa(isa: Isa) -> str:
    """Its name and what it computes with at once."""
    return f"{isa.name} ({_VECTORS.get(isa.name, _ARM)})"
