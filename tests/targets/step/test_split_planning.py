"""Tasks of nobody's family are split: every child is a task of its own on the values that occur in the whole one."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from itertools import islice

import pytest
import torch
from odd_tasks import ORACLES, TEXTS, read_odd_task

from opsmith.errors import TaskError
from opsmith.judging.verifier import verify
from opsmith.problems.reference import compute_expected
from opsmith.splits import Border, PlanNode, Split
from opsmith.targets.step import STEP, spec_of
from opsmith.targets.step.planning.cuts import count_served
from opsmith.targets.step.planning.vocabulary import read_fn_words


def take_splits(name: str, count: int = 2) -> list[Split]:
    return list(islice(STEP.list_splits(read_odd_task(name)), count))


@pytest.mark.parametrize("name", TEXTS)
def test_children_are_tasks_whose_data_are_the_values_of_the_whole(name):
    task = read_odd_task(name)
    (split, *_) = take_splits(name, 1)
    whole = STEP.list_trials(task)[0].data.draws[0]
    made = dict(whole.declared.input_data)
    for node, child in zip(split.nodes, STEP.make_children(task, split), strict=True):
        assert STEP.read_task(child.prompt_text, child.id).text == child.prompt_text  # what is shown is a task too
        assert "drawn_from" not in child.prompt_text
        draw = STEP.list_trials(child)[0].data.draws[0]
        for taken in node.takes:
            assert torch.equal(draw.declared.input_data[taken], made[taken]), f"{child.id}: {taken}"
        for output, row in zip(spec_of(child.text).outputs, compute_expected(draw.problem, draw.declared), strict=True):
            made[output.name] = row[0]
    for output, row in zip(split.outputs, compute_expected(whole.problem, whole.declared), strict=True):
        assert torch.allclose(made[output].double(), row[0].double(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["standardised", "moments", "routed", "modular"])
def test_a_child_is_split_again_and_its_children_draw_from_the_root(name):
    task = read_odd_task(name)
    for child in STEP.make_children(task, take_splits(name, 1)[0]):
        try:
            split = next(STEP.list_splits(child))
        except TaskError:
            continue  # a part that is small enough
        for grandchild in STEP.make_children(child, split):
            origin = spec_of(grandchild.text).drawn_from
            assert origin is not None
            assert origin.inputs == spec_of(task.text).inputs
            assert [trial.data.limits for trial in STEP.list_trials(grandchild)[:1]]


def test_no_part_of_a_norm_needs_a_function_twice():
    """The whole needs the sum, and the quotient by D, twice."""
    (split,) = take_splits("standardised", 1)
    for child in STEP.make_children(read_odd_task("standardised"), split):
        from opsmith.targets.step.planning import make_material

        graph = make_material(spec_of(child.text))
        operations = [(number, word) for number, words in enumerate(graph.operations) for word in words]
        served, _ = count_served(graph, operations, [read_fn_words(fn) for fn in graph.spec.fns])
        assert served == len(operations)


@pytest.mark.parametrize("name", ORACLES)
def test_oracles_of_odd_tasks_are_right(name):
    task = read_odd_task(name)
    checked = STEP.check_program(task, textwrap.dedent(ORACLES[name]))
    (result,) = STEP.run_programs([checked.program], STEP.list_trials(task)[0])
    assert result.stage.name == "MATCH"
    assert not result.errors


def test_a_norm_is_solved_by_its_parts():
    task = read_odd_task("standardised")
    (split,) = take_splits("standardised", 1)
    first, second = split.nodes
    assert [border.name for border in first.gives] == ["centered"]
    sources = {
        first.name: "a, b = step.Copy().apply(X)\nb, c = step.Copy().apply(b)\n"
        "mean = step.Map(fn=u_per).apply(step.Accum(fn=u_sum, b=1).apply(a))\n"
        "return step.Map(fn=u_sub).apply((b, step.RepeatRef().apply((mean, c))))",
        second.name: "c, d = step.Copy().apply(centered)\nd, e = step.Copy().apply(d)\n"
        "var = step.Map(fn=u_per).apply(step.Accum(fn=u_sum, b=1).apply(step.Map(fn=u_sq).apply(c)))\n"
        "root = step.Map(fn=u_root).apply(var)\n"
        "return step.Map(fn=u_div).apply((d, step.RepeatRef().apply((root, e))))",
    }
    for child, node in zip(STEP.make_children(task, split), split.nodes, strict=True):
        assert verify(child, sources[node.name]).passed
    assert verify(task, STEP.join_programs(task, split, sources)).passed


def _change_first(split: Split, **changes) -> Split:
    return replace(split, nodes=(replace(split.nodes[0], **changes), *split.nodes[1:]))


def test_faults_of_a_split_say_what_is_wrong():
    task = read_odd_task("standardised")
    (split,) = take_splits("standardised", 1)
    node, border = split.nodes[0], split.nodes[0].gives[0]
    wrong = {
        "other values": _change_first(split, code=node.code + "centered = centered + 1\n"),
        "one of X": _change_first(split, takes=("Z",)),
        "what the part takes": _change_first(split, code="centered = input_data['Z'] * 1\n"),
        "shape": _change_first(split, gives=(replace(border, dims=("N", "D")),)),
        "type": _change_first(split, gives=(replace(border, dtype="fp33"),)),
        "functions of the task": _change_first(split, fns=("fn_none",)),
        "statements that assign": _change_first(split, code="x = input_data['X']\n"),
        "a part that computes": Split(
            (
                PlanNode("idle", ("X",), (Border("Z", "fp32", ("D", "N")),), "Z = input_data['X']\n"),
                PlanNode(
                    "busy",
                    ("Z",),
                    (Border("Y", "fp32", ("D", "N")),),
                    "Y = torch.nn.functional.layer_norm(input_data['Z'], (D_value,))\n",
                ),
            ),
            ("Y",),
        ),
        "a part of it": Split(
            (
                PlanNode("first", ("X",), (Border("Z", "fp32", ("D", "N")),), "Z = (input_data['X'] ** 2).cumsum(1)\n"),
                PlanNode(
                    "busy",
                    ("X", "Z"),
                    (Border("Y", "fp32", ("D", "N")),),
                    "Y = torch.nn.functional.layer_norm(input_data['X'], (D_value,)) + 0 * input_data['Z']\n",
                ),
            ),
            ("Y",),
        ),
        "work for two functions": Split(
            (
                PlanNode(
                    "squares",
                    ("X",),
                    (Border("Z", "fp32", ("D", "N")),),
                    "Z = (input_data['X'] - input_data['X'].mean(1, keepdim=True)) ** 2\n",
                ),
                PlanNode("sums", ("Z",), (Border("S", "fp32", ("N",)),), "S = input_data['Z'].sum(1)\n"),
                PlanNode(
                    "ends",
                    ("X", "S"),
                    (Border("Y", "fp32", ("D", "N")),),
                    "x = input_data['X']\nY = (x - x.mean(1, keepdim=True)) / (input_data['S'] / D_value + 1e-5).sqrt().unsqueeze(1)\n",
                ),
            ),
            ("Y",),
        ),
    }
    assert STEP.find_split_faults(task, split) == ()
    for words, changed in wrong.items():
        faults = STEP.find_split_faults(task, changed)
        assert any(words in str(fault) for fault in faults), (words, faults)


def test_another_contract_is_offered_for_a_border_and_keeps_the_values():
    task = read_odd_task("standardised")
    (split,) = take_splits("standardised", 1)
    changed = STEP.renegotiate(task, split, split.nodes[0].name)
    assert changed is not None
    assert changed.nodes[0].gives != split.nodes[0].gives
    assert STEP.find_split_faults(task, changed) == ()
    assert STEP.renegotiate(task, split, "nobody") is None


def test_a_task_of_one_operation_says_why_it_has_no_split():
    text = TEXTS["turned"].replace(
        "x = input_data['X'].exp().T\n        x / x.sum(-1, keepdim=True)", "input_data['X'].exp().T"
    )
    with pytest.raises(TaskError, match="no split: "):
        next(STEP.list_splits(STEP.read_task(text, "single_0")))


def test_the_split_that_planners_are_shown_is_read_and_has_no_faults():
    from opsmith.agents.planning import read_plan
    from opsmith.targets.step.planning.contracts import EXAMPLE_SPLIT, EXAMPLE_TASK

    task = STEP.read_task(EXAMPLE_TASK, "example_0")
    split = read_plan(f"```yaml\n{EXAMPLE_SPLIT}```\n")
    assert isinstance(split, Split), split
    assert EXAMPLE_SPLIT in STEP.describe_contracts()
    assert STEP.find_split_faults(task, split) == ()
