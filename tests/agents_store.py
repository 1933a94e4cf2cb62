"""A run with plans, tools and two models that was never run: for tests of how they are counted and shown.

Three tasks. `sum_0` was solved in round 0. `sum_1` stayed unsolved, was split into two children, and was joined. `sum_2`
was split; the contract of a child was changed, the child was given up, and the second split is open. Models a and b make
a sample each; of `sum_0` one sample of a called tools.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from tiny_target import TINY, register, tiny_task

from opsmith.models import Message, Reply, Request, ToolCall
from opsmith.records import Boundary, Candidate, Diagnostic, Experience, Outcome, Stage, Task, Usage, Verdict
from opsmith.splits import Border, PlanNode, Split
from opsmith.store import Store, rows, schema
from opsmith.store.plans import CONTRACT, StoredPlan, plan_rows
from opsmith.store.rows import JOIN, PROPOSER, Judged, RoundInfo, SampleKey

register()
RUN = "agents-s0-12345678"
OWN = {name: tiny_task(name, program) for name, program in (
    ("sum_0", "x y +"), ("sum_1", "x y + z +"), ("sum_2", "x y + z + u +"),
)}  # fmt: skip
MODELS = ("a", "b")
SETTINGS = {"models": list(MODELS), "plan": "static", "plan_after": 1, "splits": 2, "depth": 1, "tools": "check"}
HOSTILE = "<b>unsolved</b> & [bold]so[/bold]"


def write_run(path: Path) -> str:
    """The run's id."""
    with Store.open(path) as store:
        info = rows.RunInfo(RUN, "1", "a", True, TINY.name, 0, SETTINGS, {"opsmith": "1", "verifier": "tiny/1"})
        store.put([*rows.run_rows(info, list(OWN.values())), rows.session_row(RUN, SETTINGS, {}, None)])
        for number, attempted in enumerate(list_rounds()):
            planned = len(attempted) * len(MODELS)
            store.put([rows.round_row(RUN, RoundInfo(number, 0, "none", (), attempted, planned))])
        for plan in list_plans():
            store.put(plan_rows(RUN, plan))
        for key, source, passed in list_samples():
            store.put(_answer(key, source, passed))
        for number, solved in enumerate((("sum_0",), ("sum_1.first", "sum_1.second"), ("sum_1",), (), ())):
            store.put([rows.round_end_row(RUN, number, solved)])
        for row in _earn():
            store.put(row)
        store.put(_converse()).result()
    return RUN


def list_rounds() -> list[tuple[str, ...]]:
    """What each tries."""
    return [
        ("sum_0", "sum_1", "sum_2"),
        ("sum_1.first", "sum_1.second", "sum_2.head", "sum_2.tail"),
        ("sum_1", "sum_2.head_again", "sum_2.tail"),
        ("sum_2.tail",),
        ("sum_2.left", "sum_2.right"),
    ]


def list_plans() -> list[StoredPlan]:
    halves = make_split("first", "second")
    before, after = make_split("head", "tail"), make_split("head_again", "tail", dtype="fp64")
    return [
        StoredPlan("sum_1", 0, "static", "unsolved after 1 round", 1, halves, children=_children("sum_1", halves)),
        StoredPlan("sum_2", 0, "static", HOSTILE, 1, before, children=_children("sum_2", before)),
        StoredPlan(
            "sum_2", 1, CONTRACT, "head: no program met its contract in 1 round", 2, after, changed="head_again",
            children=_children("sum_2", after),
        ),
        StoredPlan(
            "sum_2", 2, "static", "split 1: head_again was given up", 4, make_split("left", "right"),
            children=_children("sum_2", make_split("left", "right")),
        ),
    ]  # fmt: skip


def make_split(first: str, second: str, dtype: str = "fp32") -> Split:
    """One child after the other."""
    middle, end = Border("h", dtype, ("N", "M")), Border("out", "fp32", ("N",))
    return Split(
        (
            PlanNode(first, ("x", "y"), (middle,), "h = input_data['x'] + input_data['y']", ("fn_add",)),
            PlanNode(second, ("h", "z"), (end,), "out = h + input_data['z']"),
        ),
        ("out",),
    )


def _children(task: str, split: Split) -> tuple[Task, ...]:
    programs = ("x y +", "h z +")
    return tuple(tiny_task(f"{task}.{node.name}", program) for node, program in zip(split.nodes, programs, strict=True))


def list_samples() -> Iterator[tuple[SampleKey, str, bool]]:
    """Each with its program."""
    solved = {"sum_0", "sum_1.first", "sum_1.second"}
    for number, attempted in enumerate(list_rounds()):
        for task in attempted:
            if (number, task) == (2, "sum_1"):
                yield SampleKey(RUN, number, task, 0.0, 0, model=JOIN), "x y + z +", True
                continue
            for model in MODELS:
                passed = task in solved and model == "a"
                yield SampleKey(RUN, number, task, 0.7, 0, model=model), "x y +" if passed else "x y -", passed


def find_calling() -> SampleKey:
    """The sample that called tools."""
    return next(key for key, *_ in list_samples())


def _answer(key: SampleKey, source: str, passed: bool) -> list[tuple[object, dict[str, object]]]:
    usage = Usage() if key.model == JOIN else Usage(1, 100, 20, 0, 0.125 if key.model == "a" else 0.5, 5)
    prompt, texts = rows.prompt_rows(PROMPT)
    is_calling = key == find_calling()
    reply = Reply(("I check." if is_calling else f"impl: {source}",), usage, key.model, ("stop",))
    answered = rows.reply_rows(key, PROPOSER, prompt, Request(PROMPT, 0.7, seed=1), reply, 0.1)
    return [*texts, *answered, *rows.judged_rows(key, [_judge(source, passed, "tools-2" if is_calling else PROPOSER)])]


PROMPT = (Message("system", "Write a program."), Message("user", "task: ..."))


def _judge(source: str, passed: bool, agent: str) -> Judged:
    errors = () if passed else (Diagnostic("VALUES", "here", "1", "2"),)
    outcome = Outcome.PASSED if passed else Outcome.REFUSED
    return Judged(
        source, Verdict(Candidate(source).id, Stage.MATCH, outcome, Boundary.CANDIDATE, errors, trials=1), agent
    )


def _earn() -> Iterator[list[tuple[object, dict[str, object]]]]:
    """The solutions; the joined one's rate is the product of the children's."""
    children = {child.id: child for plan in list_plans() for child in plan.children}
    for key, source, passed in list_samples():
        if passed:
            task = OWN.get(key.task) or children[key.task]
            rate = 0.25 if key.model == JOIN else 0.5
            yield rows.experience_rows(RUN, Experience(task, source, rate, key.round, RUN), key.id, False)


def _converse() -> list[tuple[object, dict[str, object]]]:
    """Two turns of calls before the program: one tool answers, one refuses."""
    key = find_calling()
    calls = (("check", {"program": "x y\n+"}, "It is well formed.\n<i>so far</i>", "ok"),
             ("try", {"program": "x -"}, "It is refused: the stack is empty.", "ok"),
             ("cost", {"program": "x y +", "shape": 4}, "This language has no costs.", "refused"))  # fmt: skip
    turns = (PROPOSER, "tools-1", "tools-1")
    stored: list[tuple[object, dict[str, object]]] = []
    for number, (turn, (name, arguments, result, outcome)) in enumerate(zip(turns, calls, strict=True)):
        texts = [rows.text_row(json.dumps(arguments)), rows.text_row(result)]
        place = {"sample": key.id, "number": number, "run": RUN, "turn": turn, "name": name, "outcome": outcome}
        hashes = {"arguments": texts[0][1]["hash"], "result": texts[1][1]["hash"]}
        stored += [*texts, (schema.tool_call, {**place, **hashes, "seconds": 0.25, "at": time.time()})]
    for turn, words in (("tools-1", "It is well formed; now I try it."), ("tools-2", "impl: x y +")):
        call = ToolCall("1", "check", "{}")
        messages = (*PROMPT, Message("assistant", "I check.", calls=(call,)), Message("tool", "It is well formed."))
        prompt, texts = rows.prompt_rows(messages)
        reply = Reply((words,), Usage(1, 200, 20, 0, 0.125, 10), "a", ("stop",))
        stored += [*texts, *rows.reply_rows(key, turn, prompt, Request(messages, 0.7, seed=1), reply, 0.1)]
    return stored
