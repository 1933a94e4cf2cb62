"""A wrong primitive is noticed: the right programs, run by an interpreter with one wrong rule, fail on the tasks' data.

The interpreter is the arbiter, which works element by element; a rule is spoiled by changing its elements before or
after it. Each mistake stands beside a task that must notice it.
"""

import pytest
import torch
from targets.step import arbiter

from opsmith.api import load_task
from opsmith.problems.audit.material import Material
from opsmith.targets.step import STEP, spec_of
from opsmith.targets.step.execution.trials import make_trials


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


# -- changes of a stream's elements


def backwards(stream):
    """The innermost index the other way round."""
    shape, values = stream
    return shape, {i: values[(*i[:-1], shape[-1] - 1 - i[-1])] for i in values}


def column_first(stream):
    """Filled along the outermost index first."""
    shape, values = stream
    places = sorted(values, key=lambda i: i[::-1])
    return shape, dict(zip(places, (values[i] for i in sorted(values)), strict=True))


def tiled(stream):
    """The elements one after another, again and again, in place of each one several times."""
    shape, values = stream
    firsts = [values[i] for i in sorted(values) if i[-1] == 0]
    return shape, {i: firsts[n % len(firsts)] for n, i in enumerate(sorted(values))}


def zeros(stream):
    shape, values = stream
    return shape, {i: [torch.zeros_like(field) for field in fields] for i, fields in values.items()}


def shortened(stream):
    shape, values = stream
    return (*shape[:-1], shape[-1] - 1), {i: fields for i, fields in values.items() if i[-1] < shape[-1] - 1}


# -- wrong rules


def first_operand(change):
    return lambda rule: lambda g, n, operands, b, s: rule(g, n, [change(operands[0]), *operands[1:]], b, s)


def results(change):
    return lambda rule: lambda g, n, operands, b, s: [change(stream) for stream in rule(g, n, operands, b, s)]


def last_result(change):
    def wrong(rule):
        def spoiled(g, n, operands, b, s):
            *others, last = rule(g, n, operands, b, s)
            return [*others, change(last)]

        return spoiled

    return wrong


def operands_exchanged(rule):
    return lambda g, n, operands, b, s: rule(g, n, operands[::-1], b, s)


def started_once(rule):
    """A fold that goes on with the state of the row before."""

    def spoiled(g, n, operands, b, s):
        shape, values = operands[0]
        rest = len(shape) - n.ints[0]
        state, states = arbiter.start(b, n.fn), {}
        for i in arbiter.indices(shape):
            state = states[i if n.op == "Scan" else i[:rest]] = arbiter.call(b, n.fn, state, values[i])
        return [(shape if n.op == "Scan" else shape[:rest], states)]

    return spoiled


def exclusive(rule):
    """A scan whose results do not hold their own element."""

    def spoiled(g, n, operands, b, s):
        ((shape, values),) = rule(g, n, operands, b, s)
        start = arbiter.start(b, n.fn)
        return [(shape, {i: values[(*i[:-1], i[-1] - 1)] if i[-1] else start for i in values})]

    return spoiled


def index_changed(change):
    """Partition or Merge that reads another index than it is given; the item streams are as they are."""

    def wrong(rule):
        def spoiled(g, n, operands, b, s):
            *items, (shape, rows) = operands
            return rule(g, n, [*items, (shape, {i: [change(row[0])] for i, row in rows.items()})], b, s)

        return spoiled

    return wrong


def first_only(row):
    return row * (row.cumsum(0) == 1)


def merged(start=None, descending=False, keep_last=False):
    """Merge with another start value, order or reduction."""

    def wrong(_):
        def spoiled(g, n, operands, b, s):
            *items, (outer, index) = operands
            cursors, result, init = [0] * len(items), {}, arbiter.start(b, n.fn)
            for position in arbiter.indices(outer):
                chosen = [e for e in range(len(items)) if index[position][0][e] == 1]
                for c in arbiter.indices(items[0][0][1:]):
                    state = init if chosen or start is None else [torch.full_like(field, start) for field in init]
                    for e in chosen[::-1] if descending else chosen:
                        state = arbiter.call(b, n.fn, init if keep_last else state, items[e][1][(cursors[e], *c)])
                    result[position + c] = state
                for e in chosen:
                    cursors[e] += 1
            return [((*outer, *items[0][0][1:]), result)]

        return spoiled

    return wrong


WRONG = [
    ("Map", "takes its streams in the other order", operands_exchanged, "norm_0"),
    ("Zip", "takes its streams in the other order", operands_exchanged, "extrema_0"),
    ("Accum", "starts at the end", first_operand(backwards), "attn_1"),
    ("Accum", "leaves the last element out", first_operand(shortened), "gemm_2"),
    ("Accum", "keeps its state from row to row", started_once, "gemm_2"),
    ("Scan", "starts at the end", first_operand(backwards), "prefix_0"),
    ("Scan", "keeps its state from row to row", started_once, "rope_0"),
    ("Scan", "leaves the own element out", exclusive, "powers_0"),
    ("Flatten", "goes along the outer dim first", results(column_first), "prefix_0"),
    ("Reshape", "takes every S-th element", results(column_first), "blocks_0"),
    ("Promote", "turns a stream round", results(column_first), "transpose_0"),
    ("Repeat", "repeats the stream, not the element", results(tiled), "powers_0"),
    ("RepeatRef", "repeats the stream, not the element", results(tiled), "rope_2"),
    ("Bufferize", "fills from the end", first_operand(backwards), "bmm_0"),
    ("Streamify", "reads from the end", results(backwards), "transpose_0"),
    ("Copy", "has nothing in its second half", last_result(zeros), "norm_0"),
    ("Identity", "loses the data", results(zeros), "skip_0"),
    ("Partition", "serves the first of several experts only", index_changed(first_only), "totals_0"),
    ("Partition", "sends its items in the other order", first_operand(backwards), "expert_2"),
    ("Merge", "keeps the last item", merged(keep_last=True), "expert_1"),
    ("Merge", "keeps the last item", merged(keep_last=True), "etoe_1"),
    ("Merge", "goes from the last expert to the first", merged(descending=True), "digits_0"),
    ("Merge", "gives 0 where no expert was chosen", merged(start=0), "digits_0"),
]


def refusals(task):
    """The names of those trials at the base shape, hand-made inputs included, that the arbiter's results fail."""
    loaded = load_task(task)
    material = Material.of_all(make_trials(spec_of(loaded.text)).data)
    graph = STEP.check_program(loaded, loaded.impl).program.report.graph
    trials = [trial for trial in material.wide_trials if trial.draw.shape_set in {"base", "case"}]
    outputs = {trial.name: arbiter.interpret(graph, trial.draw.bound_wide) for trial in trials}
    return [trial.name for trial in trials if not trial.accepts_answer(outputs[trial.name])]


@pytest.mark.parametrize("task", sorted({task for *_, task in WRONG}))
def test_right_rules_pass(task):
    assert refusals(task) == []


NAMES = [f"{primitive} {mistake}: {task}" for primitive, mistake, _, task in WRONG]


@pytest.mark.parametrize(("primitive", "mistake", "wrong", "task"), WRONG, ids=NAMES)
def test_a_wrong_rule_is_noticed(monkeypatch, primitive, mistake, wrong, task):
    monkeypatch.setitem(arbiter._RULES, primitive, wrong(arbiter._RULES[primitive]))
    assert refusals(task), f"{primitive} {mistake}"
