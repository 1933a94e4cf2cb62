"""The type rules of STeP's primitives as texts: what each takes and gives, and when it is refused."""

from __future__ import annotations

import inspect
import re

from opsmith.targets.step.language import ops


def describe_constructs() -> dict[str, str]:
    """By primitive: how it is called, and its rule as it stands beside the code that checks it."""
    heads = {name: ", ".join(f"{keyword}=..." for keyword in own) for name, own in ops.KEYWORDS.items()}
    return {name: f"step.{name}({head})\n{_read_rule(name)}" for name, head in heads.items()}


def _read_rule(name: str) -> str:
    """Less its examples, which are Python of ours and no programs of the language."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    rule = inspect.getdoc(getattr(ops, f"infer_{snake}")) or ""
    return rule.partition("\n>>>")[0].rstrip()
