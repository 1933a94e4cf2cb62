"""The postfix calculator with tasks that can be split: a task file states its splits itself, as programs of nodes.

    splits:
    - {s: x y +, out: s z *}        each node's value, the last one the task's

The join writes a node's program in the place of its name, and repairs what is used twice.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import yaml
from tiny_target import BINARY, Tiny, parse, read_yaml

from opsmith.errors import TaskError
from opsmith.judging.plans import PlanAnswer, answer_plan, read_plans
from opsmith.judging.verifier import verify
from opsmith.records import Diagnostic, Level, Task, Verdict, to_json
from opsmith.splits import Border, PlanNode, Split
from opsmith.targets import TARGETS


class PlannedTiny(Tiny):
    """Fits `Planned` and `Contracted`."""

    name = "tiny_planned"
    task_keys = ("inputs", "want", "splits", "contracts")

    def read_task(self, text: str, task_id: str, path: str = "") -> Task:
        """A task that states no split has none."""
        content = yaml.safe_load(text)
        whole = {**content, **{name: content.get(name) or {} for name in self.task_keys}}
        return super().read_task(yaml.safe_dump(whole, sort_keys=False), task_id, path)

    def list_splits(self, task: Task) -> Iterator[Split]:
        for nodes in read_yaml(task.text).get("splits") or ():
            yield make_split(nodes, read_yaml(task.text)["inputs"])

    def make_children(self, task: Task, split: Split) -> tuple[Task, ...]:
        content = read_yaml(task.text)
        values: dict[str, list[int]] = dict(content["inputs"])
        children = []
        for node in split.nodes:
            words = node.code.split()
            inputs = {name: values[name] for name in node.takes}
            rows = [dict(zip(inputs, row, strict=True)) for row in zip(*inputs.values(), strict=True)]
            values[node.gives[0].name] = [self.evaluate_program(parse(" ".join(words)), row) for row in rows]
            deeper = (content.get("contracts") or {}).get(node.name, {}).get("splits")
            text = {"inputs": inputs, "want": values[node.gives[0].name], **({"splits": deeper} if deeper else {})}
            children.append(self.read_task(yaml.safe_dump(text, sort_keys=False), f"{task.id}.{node.name}"))
        return tuple(children)

    def renegotiate(self, task: Task, split: Split, node: str) -> Split | None:
        changed = (read_yaml(task.text).get("contracts") or {}).get(node, {}).get("instead")
        return make_split(changed, read_yaml(task.text)["inputs"]) if changed else None

    def find_split_faults(self, task: Task, split: Split) -> tuple[Diagnostic, ...]:
        try:
            last = self.make_children(task, split)[-1]
        except (KeyError, ValueError) as error:
            return (Diagnostic("TASK", "split", repr(error), "names of inputs and earlier nodes"),)
        if read_yaml(last.text)["want"] != read_yaml(task.text)["want"]:
            return (Diagnostic("TASK", "split", "other values", "those of the task"),)
        return ()

    def join_programs(self, task: Task, split: Split, sources: Mapping[str, str]) -> str:
        words: dict[str, list[str]] = {}
        for node in split.nodes:
            name = node.gives[0].name
            own = self.canonical_form(sources[node.name]).split()
            words[name] = [word for part in own for word in words.get(part, [part])]
        joined = " ".join(words[split.outputs[0]]) + "\n"
        if "unjoinable" in task.text:
            raise TaskError("this task cannot be joined")
        return self.repair_program(task, joined) or joined

    def describe_contracts(self) -> str:
        return "every value is an int without dims; a node's code is one postfix program\n"


def make_split(nodes: Mapping[str, str], inputs: Mapping[str, object]) -> Split:
    """From programs by the name of the value that each gives."""
    parts = []
    for name, code in nodes.items():
        takes = tuple(dict.fromkeys(word for word in code.split() if word not in BINARY))
        parts.append(PlanNode(name, takes, (Border(name, "int", ()),), code))
    return Split(tuple(parts), (parts[-1].name,))


TINY_PLANNED = PlannedTiny()


def planned_task(task_id: str, solution: str, splits: Sequence[Mapping[str, str]] = (), **more: object) -> Task:
    """A task whose wanted values are those of `solution`, with these splits."""
    rng = random.Random(task_id)
    names = sorted({word for word in parse(solution).words if word not in BINARY})
    rows = [{name: rng.randint(1, 50) for name in names} for _ in range(4)]
    inputs = {name: [row[name] for row in rows] for name in names}
    want = [TINY_PLANNED.evaluate_program(parse(solution), row) for row in rows]
    content = {"inputs": inputs, "want": want, **({"splits": list(splits)} if splits else {}), **more}
    return replace(TINY_PLANNED.read_task(yaml.safe_dump(content, sort_keys=False), task_id), target="tiny_planned")


class PlanningJudge:
    """The verifier and the target's splits, in this process: the tiny language runs no author's code."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        return verify(task, source)

    def plan(
        self, task: Task, question: str, split: Split | None = None, *, node: str = "", most: int = 8
    ) -> PlanAnswer:
        self.asked.append(f"{question} {task.id} {node}".strip())
        request = {"question": question, "split": to_json(split) if split else None, "node": node, "most": most}
        return read_plans(json.loads(json.dumps(answer_plan(task, request))))


def register_planned() -> None:
    """Make the target known by its name, in this process."""
    TARGETS["tiny_planned"] = lambda: TINY_PLANNED
