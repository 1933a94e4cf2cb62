"""The tool `examples`: what the run has solved by now, never the task itself.

Left out are the task under any id and in any language, its children and their parents, and everything that the run was
not given: only its own experiences are looked at, which are those of earlier rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from opsmith.agents.prompt import get_form
from opsmith.agents.similarity import most_similar_first
from opsmith.errors import OpsmithError
from opsmith.records import Experience, Task
from opsmith.targets import Target
from opsmith.targets.protocols import Portable
from opsmith.tools import ToolContext, ToolOutcome, ToolResult
from opsmith.tools.arguments import ToolArguments

MOST_LISTED = 50  # other solved tasks that are named


class ExampleArguments(ToolArguments):
    """Which examples, and how many."""

    task: str = Field(
        default="", max_length=200, description="The id of a solved task; empty: those most like the task at hand."
    )
    number: int = Field(default=2, ge=1, le=5, description="How many, where no task is named.")


class ExamplesTool:
    """Shows other tasks that are solved, with their programs."""

    name = "examples"
    description = (
        "Other tasks that were solved in earlier rounds, each with a right program: by id, or those most like the task "
        "at hand. Further ids are listed. The task itself and parts of it are never among them."
    )
    arguments = ExampleArguments

    async def run(self, context: ToolContext, arguments: ExampleArguments) -> ToolResult:
        experiences = list_experiences(context)
        if not experiences:
            return ToolResult("Nothing else is solved yet; go on without examples.", ToolOutcome.REFUSED)
        ids = ", ".join(experience.task.id for experience in experiences[:MOST_LISTED])
        if arguments.task:
            chosen = [experience for experience in experiences if experience.task.id == arguments.task]
            if not chosen:
                text = f"No solved task is called {arguments.task!r} here; expected one of {ids}"
                return ToolResult(text, ToolOutcome.REFUSED)
        else:
            chosen = list(experiences[: arguments.number])
        form = get_form(context.target, context.style)
        return ToolResult("".join(map(form.write_example, chosen)) + f"\nSolved by now: {ids}")


def list_experiences(context: ToolContext) -> Sequence[Experience]:
    """Those of the run that may be shown, the most similar first."""
    if context.store is None or context.run is None:
        return ()
    stored = (entry.experience for entry in context.store.read_experiences(context.run))
    return most_similar_first(context.task, list(_leave_out(context.target, context.task, stored)))


def _leave_out(target: Target, task: Task, experiences: Iterator[Experience]) -> Iterator[Experience]:
    """Less whatever tells of the task's own solution."""
    problem = _name_problem(target, task)
    for experience in experiences:
        earlier = experience.task
        is_same = earlier.digest == task.digest or (problem and _name_problem(target, earlier) == problem)
        if earlier.target == task.target and not is_same and not are_related(earlier.id, task.id):
            yield experience


def are_related(first: str, second: str) -> bool:
    """Whether two ids are one, or one is that of a part of the other: `attn_0.n1` of `attn_0`."""
    return first == second or first.startswith(f"{second}.") or second.startswith(f"{first}.")


def _name_problem(target: Target, task: Task) -> str:
    """What a task asks for in any language; "": its target does not tell."""
    try:
        return target.problem_digest(task) if isinstance(target, Portable) else ""
    except OpsmithError:
        return ""
