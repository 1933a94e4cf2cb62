"""What is wrong with a split, in words: its form, its contracts on data, and parts that do no work of their own.

It runs code of the task's author, and statements that a model may have written: in workers only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

import torch
from torch import Tensor

from opsmith.errors import TaskError
from opsmith.problems.bindings import Bindings
from opsmith.problems.drawing import draw_data, widen_data
from opsmith.problems.faults import TaskFault
from opsmith.problems.files.entries import is_name
from opsmith.problems.reference import Values, compute_expected
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.problems.tolerance import find_largest
from opsmith.records import Diagnostic, Stage
from opsmith.splits import PlanNode, Split
from opsmith.targets.step.execution.judge import judge_programs
from opsmith.targets.step.execution.trials import make_trials
from opsmith.targets.step.ir.code import list_mentions
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.spec import FnSpec, TaskSpec
from opsmith.targets.step.language.types import Field, Tuple, element_dims, fields_of
from opsmith.targets.step.planning.children import make_child_spec, parse_border
from opsmith.targets.trial import TrialResult

KIND = "PLAN"
MOST_NODES = 16
MOST_FIELDS = 4  # of a function that is tried as all of a part
MOST_CODE = 1 << 14
SAME = 1e-9  # of the largest value: by how much the results of two texts for one thing may differ in float64
SIZES = 3  # at which the split is compared with the task


def find_faults(spec: TaskSpec, split: Split) -> tuple[Diagnostic, ...]:
    """Every fault of a split, those of its form first; data is looked at only where its form is right."""
    faults = tuple(_find_form_faults(spec, split))
    if faults:
        return faults
    try:
        children = [make_child_spec(spec, split, node) for node in split.nodes]
    except TaskError as error:
        return (_say("the split", str(error), "types that can be read"),)
    return tuple(_find_data_faults(spec, split, children))


def _say(where: str, mistake: str, expected: str, remedy: str = "") -> Diagnostic:
    return Diagnostic(KIND, where, mistake, expected, remedy)


# -- form


def _find_form_faults(spec: TaskSpec, split: Split) -> Iterator[Diagnostic]:
    if not 2 <= len(split.nodes) <= MOST_NODES:
        yield _say("the split", f"{len(split.nodes)} parts", f"2 to {MOST_NODES}")
    own = {tensor.name for tensor in (*spec.inputs, *spec.parameters)}
    available = {tensor.name for tensor in spec.inputs}
    names: set[str] = set()
    for node in split.nodes:
        where = f"part {node.name}"
        if not is_name(node.name) or node.name in names:
            yield _say(where, repr(node.name), "a name of its own: letters, digits and _")
        names.add(node.name)
        yield from _find_node_faults(spec, node, available, own)
        available |= {border.name for border in node.gives}
    yield from _find_output_faults(spec, split)


def _find_node_faults(spec: TaskSpec, node: PlanNode, available: set[str], own: set[str]) -> Iterator[Diagnostic]:
    where = f"part {node.name}"
    tuples = {output.name for output in spec.outputs if isinstance(output.dtype, Tuple)}
    if not node.takes or not node.gives:
        yield _say(where, "nothing taken or nothing given", "at least one of both")
    for name in node.takes:
        if name not in available:
            expected = f"one of {', '.join(sorted(available))}, which are there by then"
            yield _say(f"{where}, takes", name, expected, "give it in an earlier part")
        elif name in tuples and name not in own:
            yield _say(f"{where}, takes", f"{name}, a tuple", "one tensor", "give its fields as borders of their own")
    if len(set(node.takes)) < len(node.takes):
        yield _say(f"{where}, takes", ", ".join(node.takes), "every name once")
    for border in node.gives:
        if border.name in available or border.name in own or not is_name(border.name):
            yield _say(f"{where}, gives", border.name, "a name that nothing else has")
        try:
            parse_border(border)
        except TaskError as error:
            yield _say(f"{where}, gives", str(error), "a type and dims of the language")
    for name in sorted(set(node.fns) - set(spec.fn_table)):
        yield _say(f"{where}, fns", name, f"functions of the task: {', '.join(spec.fn_table)}")
    yield from _find_code_faults(spec, node)


def _find_code_faults(spec: TaskSpec, node: PlanNode) -> Iterator[Diagnostic]:
    where = f"part {node.name}, code"
    try:
        if len(node.code) > MOST_CODE:
            raise ValueError(f"{len(node.code)} characters")
        tree = ast.parse(node.code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        yield _say(where, str(error)[:200], "PyTorch statements, at the left margin")
        return
    readable = {*node.takes, *(tensor.name for tensor in spec.parameters)}
    for name in sorted(set(list_mentions(tree)) - readable):
        remedy = f"add {name} to takes" if name in {tensor.name for tensor in spec.inputs} else ""
        yield _say(where, f"input_data[{name!r}]", f"what the part takes: {', '.join(sorted(readable))}", remedy)
    assigned = {name.id for name in ast.walk(tree) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    for border in node.gives:
        if border.name not in assigned:
            yield _say(where, f"no {border.name} = ...", f"statements that assign {border.name}")


def _find_output_faults(spec: TaskSpec, split: Split) -> Iterator[Diagnostic]:
    borders = {border.name: border for node in split.nodes for border in node.gives}
    needed = {name for node in split.nodes for name in node.takes}
    if len(split.outputs) != len(spec.outputs):
        yield _say("outputs", f"{len(split.outputs)}", f"{len(spec.outputs)}, as the task has")
    for name, output in zip(split.outputs, spec.outputs, strict=False):
        if name not in borders:
            yield _say("outputs", name, f"what a part gives: {', '.join(borders)}")
            continue
        try:
            dtype, dims = parse_border(borders[name])
        except TaskError:
            continue  # said with its part
        if (dtype, dims) != (output.dtype, output.dims):
            mistake = f"{name}: {borders[name].dtype} [{', '.join(borders[name].dims)}]"
            yield _say("outputs", mistake, f"{output.type}, the type of {output.name}")
    for name in sorted(set(borders) - needed - set(split.outputs)):
        yield _say(f"border {name}", "nobody takes it", "a border that a later part takes, or an output")


# -- data


def _find_data_faults(spec: TaskSpec, split: Split, children: Sequence[TaskSpec]) -> Iterator[Diagnostic]:
    sets = list(choose_shape_sets(spec.problem).values())[:SIZES]
    for number, sizes in enumerate(sets):
        try:
            bindings = draw_data(spec.problem, sizes, number)
            wide = widen_data(spec.problem, bindings, number)
            expected = compute_expected(spec.problem, wide)
        except TaskFault:
            continue  # the task's own, and left out of its trials
        faults = list(_compare_parts(spec, split, children, wide, expected))
        if faults:
            yield from faults
            return
    try:
        yield from _find_lazy_parts(spec, split, children)
    except TaskFault as fault:
        yield _say("the parts on the task's data", str(fault), "data and references that can be made")


def _compare_parts(
    spec: TaskSpec, split: Split, children: Sequence[TaskSpec], wide: Bindings, expected: Values
) -> Iterator[Diagnostic]:
    """The parts one after the other in float64, each checked against its contract, the last against the task."""
    values: dict[str, Tensor] = dict(wide.input_data)
    results_by_name: dict[str, tuple[Tensor, ...]] = {}
    for node, child in zip(split.nodes, children, strict=True):
        visible = {
            entry.name: values[entry.name] for entry in (*child.inputs, *child.parameters) if entry.name in values
        }
        try:
            results = compute_expected(child.problem, replace(wide, input_data=visible))
        except TaskFault as fault:
            finding = fault.diagnostic
            yield _say(f"part {node.name}", finding.given, finding.expected, finding.remedy)
            return
        for border, tensors in zip(node.gives, results, strict=True):
            results_by_name[border.name] = tensors
            if len(tensors) == 1:
                values[border.name] = tensors[0]
    for name, tensors_wanted in zip(split.outputs, expected, strict=True):
        pairs = list(zip(results_by_name[name], tensors_wanted, strict=True))
        if not all(_is_equal(*pair) for pair in pairs):
            yield _say(f"output {name}", "other values than the task's reference", "the same values", "check the code")


def _is_equal(first: Tensor, second: Tensor) -> bool:
    if first.shape != second.shape:
        return False
    if not second.is_floating_point():
        return torch.equal(first.to(second.dtype), second)
    first, second = first.double(), second.double()
    largest = find_largest(second)
    return torch.allclose(first, second, rtol=SAME * 100, atol=SAME * max(largest, 1e-30) * 100, equal_nan=True)


# -- parts that do no work


def _find_lazy_parts(spec: TaskSpec, split: Split, children: Sequence[TaskSpec]) -> Iterator[Diagnostic]:
    for node, child in zip(split.nodes, children, strict=True):
        where = f"part {node.name}"
        if not make_trials(child)[0].data.bindings:
            yield _say(where, "no data", "values at the base sizes")
        elif _is_parent(spec, split, node, child):
            yield _say(where, "the whole task", "a part of it", "let it take or give something else")
        elif _is_identity(child):
            remedy = "leave it out, or give it more of the work"
            yield _say(where, "what it takes, arranged anew", "a part that computes", remedy)
        elif (fn := _find_whole_fn(child)) is not None:
            mistake = f"{fn.func_name} applied once does all of it"
            yield _say(where, mistake, "work for two functions or more", "join it with the part beside it")


def _is_parent(spec: TaskSpec, split: Split, node: PlanNode, child: TaskSpec) -> bool:
    """Whether a part is the task under another name: it takes all that the task takes and gives all outputs, whatever
    else it is given."""
    own = {tensor.name for tensor in spec.inputs}
    gives = {border.name for border in node.gives}
    if not (own <= set(node.takes) and set(split.outputs) <= gives):
        return False
    draw = make_trials(child)[0].data.draws[0]
    rolled = {name: tensor if name in own else _change_values(tensor) for name, tensor in draw.wide.input_data.items()}
    try:
        values = compute_expected(child.problem, replace(draw.wide, input_data=rolled))
    except TaskFault:
        return False
    pairs = zip(draw.values, values, strict=True)
    return all(_is_equal(*both) for before, after in pairs for both in zip(before, after, strict=True))


def _change_values(tensor: Tensor) -> Tensor:
    """Other numbers of the same type."""
    return ~tensor if tensor.dtype == torch.bool else tensor.flip(tuple(range(tensor.ndim))) + 1


def _is_identity(child: TaskSpec) -> bool:
    """Whether all that a part gives is what it takes, up to the order of numbers."""
    draw = make_trials(child)[0].data.draws[0]
    inputs = [tensor for name, tensor in draw.wide.input_data.items() if name in {entry.name for entry in child.inputs}]
    tensors = [tensor for row in draw.values for tensor in row]
    return all(any(_holds_same(tensor, source) for source in inputs) for tensor in tensors)


def _holds_same(first: Tensor, second: Tensor) -> bool:
    if first.numel() != second.numel():
        if first.numel() == 0 or second.numel() == 0 or first.numel() % second.numel():
            return False
        return set(first.double().flatten().tolist()) == set(second.double().flatten().tolist())
    return torch.equal(first.double().flatten().sort().values, second.double().flatten().sort().values)


def _find_whole_fn(child: TaskSpec) -> FnSpec | None:
    """A function whose one application is all of a part, whatever the streams are arranged as."""
    trial = make_trials(child)[0].data
    for fn in child.fns:
        reports = [check_program(child, program) for program in _list_applications(child, fn)]
        graphs = [report.unrolled for report in reports if report.unrolled is not None]
        try:
            results = judge_programs(child, graphs, trial) if graphs else []
        except TaskFault:
            continue
        if any(
            isinstance(result, TrialResult) and result.stage == Stage.MATCH and not result.errors for result in results
        ):
            return fn
    return None


def _list_applications(child: TaskSpec, fn: FnSpec) -> Iterator[str]:
    """Programs of one application of a function, with the streams brought to its fields' types and back. The affine
    rule is left aside."""
    fields, names = fields_of(fn.input_dtype), [tensor.name for tensor in child.inputs]
    if len(child.outputs) != 1 or len(fields) > MOST_FIELDS or not set(names):
        return
    orders = (
        permutations(names) if len(fields) == len(names) else [tuple(names) * len(fields)] if len(names) == 1 else []
    )
    for order in orders:
        rows = [
            _write_argument(child, name, f"a{place}", own)
            for place, (name, own) in enumerate(zip(order, fields, strict=True))
        ]
        arguments = [f"a{place}" for place in range(len(fields))]
        for call in _list_calls(child, fn, arguments):
            for ending in ("result", "step.Streamify().apply(result)"):
                yield "\n".join([*rows, f"result = {call}", f"return {ending}"])


def _write_argument(child: TaskSpec, name: str, target: str, own: Field) -> str:
    tensor = next(tensor for tensor in child.inputs if tensor.name == name)
    count = len(element_dims(own)) - len(element_dims(fields_of(tensor.dtype)[0]))
    stream = f"step.Bufferize(a={count}).apply({name})" if count > 0 else name
    return f"{target} = {f'step.Streamify().apply({name})' if count < 0 else stream}"


def _list_calls(child: TaskSpec, fn: FnSpec, arguments: Sequence[str]) -> Iterator[str]:
    if not fn.stateful:
        joined = arguments[0] if len(arguments) == 1 else f"({', '.join(arguments)})"
        yield f"step.Map(fn={fn.func_name}).apply({joined})"
        return
    zipped = arguments[0]
    for argument in arguments[1:]:
        zipped = f"step.Zip().apply(({zipped}, {argument}))"
    for rank in range(1, max(len(tensor.dims) for tensor in child.inputs)):
        yield f"step.Accum(fn={fn.func_name}, b={rank}).apply({zipped})"
        yield f"step.Scan(fn={fn.func_name}, b={rank}).apply({zipped})"
