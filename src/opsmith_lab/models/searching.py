"""The search model's work: the n-th program of a prompt's task, in a process of its own.

`python -m opsmith_lab.models.searching TARGET` answers JSON lines on stdin with JSON lines on stdout until stdin ends.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from opsmith.agents.prompt import read_prompt
from opsmith.errors import UsageError
from opsmith.models import Message
from opsmith.targets import Target, get_target
from opsmith.targets.protocols import Searched
from opsmith_lab.models.sampling import NO_TASK, fence_program
from opsmith_lab.models.workers import serve_lines

SEARCHES_KEPT = 2  # a search holds up to hundreds of megabytes; one that was dropped is made anew when asked again


@dataclass
class _Search:
    """One task's programs so far, and where the next one comes from."""

    source: Iterator[str]
    programs: list[str] = field(default_factory=list)

    def read_program(self, number: int) -> str | None:
        """The program of that number, from 0; None: there are not so many."""
        while len(self.programs) <= number:
            program = next(self.source, None)
            if program is None:
                return None
            self.programs.append(program)
        return self.programs[number]


class Searcher:
    """A target's search, asked by prompts. Raises UsageError for a target without one."""

    def __init__(self, target: Target) -> None:
        if not isinstance(target, Searched):
            raise UsageError(f"model 'search': target {target.name!r} has no search; try another model")
        self._target, self._programs = target, target.enumerate_programs
        self._searches: OrderedDict[str, _Search] = OrderedDict()
        self._read: Callable[[str], str] = lru_cache(maxsize=64)(self._read_task_text)

    def answer_request(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request. Raises OpsmithError where its task cannot be read."""
        task = next((text for _, content in reversed(body["messages"]) if (text := self._read(content))), "")
        program = self._open_search(task).read_program(body["attempt"]) if task else None
        if task and program is None:
            return {"exhausted": True}
        return {"texts": [NO_TASK if program is None else fence_program(program)] * body["n"]}

    def _read_task_text(self, content: str) -> str:
        """The text of the task that a message asks for; "": for none."""
        return read_prompt([Message("user", content)], self._target).task

    def _open_search(self, text: str) -> _Search:
        if text not in self._searches:
            self._searches[text] = _Search(self._programs(self._target.read_task(text, "prompt")))
            if len(self._searches) > SEARCHES_KEPT:
                self._searches.popitem(last=False)
        self._searches.move_to_end(text)
        return self._searches[text]


def main(target: str) -> None:
    """Answer requests until stdin ends."""
    serve_lines(Searcher(get_target(target)).answer_request)


if __name__ == "__main__":
    main(*sys.argv[1:])
