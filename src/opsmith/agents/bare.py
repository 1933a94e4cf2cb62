"""Bare prompts: task and demonstrations in the host language, without structural IR, written and read.

`system` is the target's bare base prompt. `user` shows every demonstration and then the task, each as one fenced block
of the target's host language. Pure functions of texts, like `prompt`, which calls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from opsmith.agents.fences import list_fenced_blocks
from opsmith.records import Experience, Task
from opsmith.targets.protocols import Bare

EXAMPLES, TASK = "Examples, each with its `body`:\n\n", "The task. Write its `body`:\n\n"


class BareForm:
    """The texts of a bare prompt."""

    def __init__(self, target: Bare) -> None:
        self.target = target

    def write_system(self) -> str:
        return self.target.bare_prompt()

    def write_example(self, demonstration: Experience) -> str:
        return _fence_code(self.target.bare_task(demonstration.task, demonstration.source)) + "\n"

    def write_user(self, examples: Sequence[str], task: Task) -> str:
        head = EXAMPLES + "".join(examples) if examples else ""
        return f"{head}{TASK}{_fence_code(self.target.bare_task(task, None))}"


@lru_cache(maxsize=256)
def read_message(target: Bare, content: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """(task text, program) of every example of a message, and the text of the task to solve ("": there is none)."""
    blocks = [read for block in list_fenced_blocks(content) if (read := target.read_bare(block)) is not None]
    examples = tuple((task, program) for task, program in blocks if program is not None)
    return examples, next((task for task, program in reversed(blocks) if program is None), "")


def expected_reply(target: Bare) -> tuple[str, str]:
    """What a reply should hold, and what to try: for one that holds no program."""
    return target.bare_reply, "answer with one block ```python that holds it, whole"


def _fence_code(code: str) -> str:
    return f"```python\n{code}```\n"
