"""The program sampler: its types are the language's, its programs check, and it learns from given programs only."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsmith.problems.dims import Dim, make_symbol
from opsmith.records import Stage
from opsmith.suites import load_tasks
from opsmith.targets.step import STEP, spec_of
from opsmith.targets.step.ir import write_spec
from opsmith.targets.step.language import ops
from opsmith.targets.step.language.ops import OpError
from opsmith.targets.step.language.types import StreamType, parse_stream
from opsmith_lab.step.sampler import StepSampler
from opsmith_lab.step.sampler.kinds import Kinds

SIZES = {"M": 5, "N": 7, "K": 9, "D": 16, "E": 3}
TYPES = [
    "fp32 [M, N]",
    "fp32 [D]",
    "fp32 [M*N, K, 2]",
    "Buffer(fp32, [D]) [M, N]",
    "Buffer(Multihot(fp32, E), [K]) [M, 1, N]",
    "Multihot(fp32, E) [N, M]",
    "[fp32, Buffer(fp32, [D])] [M, N]",
    "[Buffer(fp32, [D]), Buffer(fp32, [D])] [K, N]",
    "[Buffer(fp32, [D]), Buffer(fp32, [M])] [K, N]",
]
TASKS = load_tasks(("step26", "step_extra"))


def rule(step: tuple, kind: StreamType, number_to_dim) -> StreamType | None:
    """The language's own answer."""
    op, *arguments = step
    try:
        if op == "Repeat":
            return ops.infer_repeat(kind, number_to_dim(arguments[0]))
        if op == "Reshape":
            return ops.infer_reshape(kind, number_to_dim(arguments[0]), [arguments[1]], SIZES)
        if op == "Flatten":
            return ops.infer_flatten(kind, list(range(arguments[0], arguments[1] + 1)))
        return {"Bufferize": ops.infer_bufferize, "Promote": ops.infer_promote, "Streamify": ops.infer_streamify}[op](
            kind, *arguments
        )
    except OpError:
        return None


STEPS = st.one_of(
    st.tuples(st.just("Bufferize"), st.integers(0, 3)),
    st.tuples(st.just("Streamify")),
    st.tuples(st.just("Promote"), st.integers(-1, 4)),
    st.tuples(st.just("Repeat"), st.sampled_from(["M", "D"])),
    st.tuples(st.just("Flatten"), st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.just("Reshape"), st.sampled_from(["2", "M", "K"]), st.integers(-1, 3)),
)


@given(st.sampled_from(TYPES), st.lists(STEPS, max_size=6))
def test_its_inference_is_that_of_the_language(text, steps):
    kinds = Kinds(SIZES)
    language = parse_stream(text)
    kind = kinds.encode_stream(language)
    for op, *arguments in steps:
        if op in ("Repeat", "Reshape"):
            dim: Dim = make_symbol(arguments[0]) if arguments[0].isalpha() else Dim(int(arguments[0]))
            arguments[0] = kinds.encode_dim(dim)
        found = kinds.infer_kind(kind, (op, *arguments))
        wanted = (
            rule((op, *arguments), language, kinds.decode_dim)
            if op != "Flatten" or arguments[0] <= arguments[1]
            else None
        )
        assert (None if found is None else kinds.decode_stream(found)) == wanted
        if found is None or wanted is None:
            return
        kind, language = found, wanted


@pytest.mark.parametrize("task", TASKS[::3], ids=lambda task: task.id)
def test_every_sampled_program_is_typed_and_affine(task):
    """All that may be wrong before it runs: a draw that came to no end returns what it has."""
    policy = StepSampler().fit_policy([])
    programs = {policy.sample_program(task, 1.0, random.Random(seed)) for seed in range(3)}
    reports = [STEP.check_program(task, program) for program in programs]
    assert {error.kind for report in reports for error in report.errors} <= {"OUT"}
    assert Stage.RUN in {report.stage for report in reports}


def test_the_same_arguments_give_the_same_program():
    task = TASKS[0]
    policies = [StepSampler().fit_policy([(other, other.impl) for other in TASKS[5:8]]) for _ in range(2)]
    first, second = (policy.sample_program(task, 0.7, random.Random(3)) for policy in policies)
    assert first == second


def test_an_example_of_the_same_shape_makes_its_program_likelier():
    rows, columns = (task for task in TASKS if task.id in ("rope_0", "rope_1"))
    bare, taught = StepSampler().fit_policy([]), StepSampler().fit_policy([(columns, columns.impl)] * 2)

    def rate(policy):
        programs = [policy.sample_program(rows, 1.0, random.Random(seed)) for seed in range(24)]
        wanted = STEP.canonical_form(rows.impl)
        return sum(STEP.canonical_form(program) == wanted for program in programs)

    assert rate(taught) > rate(bare)


def test_programs_that_do_not_check_teach_nothing():
    task, other = TASKS[0], TASKS[1]
    empty, wrong = StepSampler().fit_policy([]), StepSampler().fit_policy([(other, "return E9")])
    assert [p.sample_program(task, 1.0, random.Random(1)) for p in (empty, wrong)] == [
        empty.sample_program(task, 1.0, random.Random(1))
    ] * 2


def test_the_names_of_functions_are_written_as_the_task_has_them():
    spec = spec_of(next(task for task in TASKS if task.id == "gemm_2").text)
    renamed = write_spec(spec).replace("fn_mul", "fn_zz")
    task = STEP.read_task(renamed, "renamed_0")
    programs = [StepSampler().fit_policy([]).sample_program(task, 1.0, random.Random(seed)) for seed in range(12)]
    assert any("fn=fn_zz" in program for program in programs)
    assert not any("fn_mul" in program for program in programs)
