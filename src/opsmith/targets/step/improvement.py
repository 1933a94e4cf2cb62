"""What the agents of an optimisation round are told of STeP: the platform for the analyst, the job for the generator.

The platform is the cost model. The generator's prompt has the proposer's rules and operations without their examples:
a right program is before its eyes.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import yaml


@lru_cache(maxsize=1)
def describe_platform() -> str:
    """What the cost model counts, what usually lowers it, and what cannot be changed."""
    return _read_file("platform.txt")


@lru_cache(maxsize=2)
def write_improvement(has_example: bool) -> str:
    """The generator's prompt, one YAML mapping."""
    job, _, example = _read_file("improvement.yaml").partition("example:\n")
    return f"{_write_language()}{job}" + (f"example:\n{example}" if has_example else "")


def _write_language() -> str:
    """The proposer's text without what only examples show."""
    text = _read_file("proposer.yaml")
    general, _, _ = text.partition("ops:\n")
    ops = yaml.safe_load(text)["ops"]
    return f"{general}ops:\n" + "".join(f"- name: {op['name']}\n  desc: |\n{_indent_text(op['desc'])}" for op in ops)


def _indent_text(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.strip("\n").split("\n"))


def _read_file(name: str) -> str:
    return files("opsmith.targets.step").joinpath("prompts", name).read_text(encoding="utf-8")
