"""A model behind the OpenAI interface on loopback, which answers each task with given replies in turn."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from learn.tiny_run import TinyModel
from models.servers import OpenAIServer

from opsmith.agents.prompt import compose_prompt
from opsmith.api import improve
from opsmith.records import Experience
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.suites import load_tasks, resolve_names
from opsmith.targets import get_target

FAST = Path(__file__).parents[1] / "fixtures" / "kernels" / "fast"
WRONG_SUM = """
void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N) {
  for (int64_t m = 0; m < M; m++) y[m] = 0;
}
"""  # compiles, and is wrong
NOTHING = "I do not know how to write this."
WRONG = "```yaml\nimpl: |\n  return E0\n```"  # a program, but not the one that was asked for


def oracle(name: str, target: str | None = None) -> str:
    """A reply with the task file's own program."""
    (task,) = load_tasks([name], target)
    assert task.impl is not None
    return reply_with(task.impl)


def reply_with(program: str) -> str:
    return "Here it is.\n```yaml\nimpl: |\n" + "".join(f"  {line}\n" for line in program.splitlines()) + "```\n"


def question(name: str, target: str | None = None) -> str:
    """What the user message about a task ends with: all of it, when there are no demonstrations."""
    (task,) = load_tasks([name], target)
    return compose_prompt(task, [], get_target(task.target), None, 0).messages[1].content


def serving(replies: Mapping[str, Sequence[str]], target: str | None = None) -> OpenAIServer:
    """A server with the replies to each task, one after the other and then again; to any other task, NOTHING."""
    texts = {question(name, target): itertools.cycle(found) for name, found in replies.items()}
    lock = threading.Lock()

    def answer(body: dict[str, Any]) -> str:
        asked = text_of(body["messages"][-1])
        with lock:
            return next((next(found) for end, found in texts.items() if asked.endswith(end)), NOTHING)

    return OpenAIServer(answer)


def text_of(message: Mapping[str, Any]) -> str:
    """A message's text, which the interface takes as a text or as parts."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def faulty(folder: Path) -> Path:
    """A task file whose own function fails: whatever is answered, no verdict is possible."""
    (source,) = resolve_names(["gemm_0"])
    text = source.read_text(encoding="utf-8")
    fails = text.replace("return [input[0] * input[1]]", "return [input[0].forgotten(input[1])]")
    assert fails != text
    path = folder / "faulty_0.yaml"
    path.write_text(fails, encoding="utf-8")
    return path


def solved_run(folder: Path, names: Sequence[str]) -> str:
    """A run in the store of this folder that has these tasks solved, the first one hardest; no model was asked."""
    tasks = load_tasks(names)
    kept = [Experience(task, task.impl or "", 0.1 * (at + 1), -1, "import") for at, task in enumerate(tasks)]
    with Store.open(folder) as store:
        return improve(tasks, TinyModel(), Settings(), store, experiences=kept).run
