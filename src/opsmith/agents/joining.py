"""What the join model is asked: a task, how it was split, and a program for each node. And back again.

The messages are those of any sample: a system text, and one YAML mapping of `task`, `split` and `programs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsmith.agents.prompt import dump_task, indent_lines, list_mappings
from opsmith.agents.yaml_text import nest_list, nest_mapping, write_block, write_scalar
from opsmith.models import Message
from opsmith.records import Task
from opsmith.splits import Border, PlanNode, Split, split_from_json

_SYSTEM = """\
role: join
job: the task was split into nodes, and each node has a program that is right; answer with one program for the task
"""


@dataclass(frozen=True)
class JoinPrompt:
    """What the messages say."""

    task: str  # the text of the task as it is shown
    split: Split
    programs: Mapping[str, str]  # by the node's name


def request_join(task: Task, split: Split, programs: Mapping[str, str]) -> tuple[Message, ...]:
    """The messages that ask for one program from those of the nodes."""
    user = (
        f"task:\n{indent_lines(task.prompt_text)}"
        + nest_split(split)
        + nest_mapping("programs", {name: write_block(source) for name, source in programs.items()})
    )
    return Message("system", _SYSTEM), Message("user", user)


def write_split(split: Split) -> str:
    """A split as the entries of a YAML mapping."""
    outputs = "".join(f"- {write_scalar(name)}\n" for name in split.outputs)
    return nest_list("nodes", map(_write_node, split.nodes)) + f"outputs:\n{outputs}"


def nest_split(split: Split) -> str:
    """A split under the key of that name."""
    return f"split:\n{indent_lines(write_split(split))}"


def _write_node(node: PlanNode) -> str:
    names = f"takes: {_write_list(node.takes)}\n" + (f"fns: {_write_list(node.fns)}\n" if node.fns else "")
    gives = nest_list("gives", map(_write_border, node.gives))
    return f"name: {write_scalar(node.name)}\n{names}{gives}code: {write_block(node.code)}\n"


def _write_border(border: Border) -> str:
    dims = _write_list(border.dims)
    return f"name: {write_scalar(border.name)}\ndtype: {write_scalar(border.dtype)}\ndims: {dims}\n"


def _write_list(texts: Sequence[str]) -> str:
    return "[" + ", ".join(map(write_scalar, texts)) + "]"


def read_join(messages: Sequence[Message]) -> JoinPrompt | None:
    """What the messages ask to be joined; None: nothing."""
    for mapping in list_mappings(messages):
        if {"task", "split", "programs"} <= mapping.keys():
            split = mapping["split"]
            nodes = [{**node, "fns": node.get("fns", ())} for node in split["nodes"]]
            return JoinPrompt(
                dump_task(mapping["task"]),
                split_from_json({"nodes": nodes, "outputs": split["outputs"]}),
                dict(mapping["programs"]),
            )
    return None
