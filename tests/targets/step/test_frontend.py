"""`from opsmith import step`: sizes that remember, streams with data, primitives that check and compute at once."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from opsmith import step
from opsmith.problems.dims import parse_dim
from opsmith.step.sizes import Quotient
from opsmith.targets.step.language.types import parse_stream

M, N, K, D, E = (step.Dim(name, size) for name, size in {"M": 3, "N": 2, "K": 2, "D": 4, "E": 2}.items())
FP32 = step.Scalar("fp32")


class Sum(step.Fn):
    def getInit(self) -> list[Any]:
        return [0]

    def apply(self, state: list[Tensor], input: list[Tensor]) -> list[Any]:
        return [state[0] + input[0]]


class Square(step.Fn):
    def apply(self, input: list[Tensor]) -> list[Any]:
        return [input[0] * input[0]]


class Add(step.Fn):
    def apply(self, input: list[Tensor]) -> list[Any]:
        return [input[0] + input[1]]


def context() -> step.Context:
    return step.Context({M: 3, N: 2, K: 2, D: 4, E: 2})


def stream(values: Any, dims: list[Any], ctx: step.Context, dtype: Any = FP32) -> step.Stream:
    return step.Stream("E0", dtype, dims, [torch.tensor(values, dtype=torch.float32)], ctx)


MN = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


# -------------------------------------------------------------------- dims and sizes
@pytest.mark.parametrize(
    ("made", "value", "dim"),
    [
        (step.Size(D) * step.Size(E), 8, "D*E"),
        (2 * step.Size(D), 8, "2*D"),
        (step.Size(D) // 2, 2, "D/2"),
        (step.Size(D) // 2 * 2, 4, "D"),
        (step.Size(D) // step.Size(E), 2, "D/E"),
        (8 // step.Size(D), 2, "8/D"),
        (step.Size(D) / 2, 2.0, "D/2"),
        (step.Size(D) / 2 * 2, 4.0, "D"),
        (8 / step.Size(D), 2.0, "8/D"),
    ],
)
def test_exact_arithmetic_remembers_its_dim(made: Any, value: float, dim: str) -> None:
    assert made == value
    assert made.dim == parse_dim(dim)


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (step.Size(D) + 1, 5),
        (step.Size(D) - step.Size(E), 2),
        (step.Size(D) // 3, 1),
        (step.Size(D) / 3, 4 / 3),
        (step.Size(D) * 0, 0),
        (step.Size(D) * 0.5, 2.0),
        (0.5 * step.Size(D), 2.0),
        (-step.Size(D), -4),
        (step.Size(D) ** 2, 16),
        (1 / step.Size(M), 1 / 3),
    ],
)
def test_other_arithmetic_gives_plain_numbers(made: Any, value: float) -> None:
    assert made == value
    assert type(made) in (int, float)


@pytest.mark.parametrize("operator", ["__mul__", "__truediv__", "__floordiv__", "__rtruediv__", "__add__", "__sub__"])
@pytest.mark.parametrize("other", [torch.ones(2), "D", None, [1], 0.5])
def test_a_size_leaves_what_it_does_not_know_to_the_other_side(operator: str, other: Any) -> None:
    assert getattr(step.Size(D), operator)(other) is NotImplemented


def test_a_size_is_a_number_to_torch() -> None:
    size = step.Size(D)
    assert torch.zeros(size, size).shape == (4, 4)
    assert torch.equal(torch.ones(2) / size, torch.full((2,), 0.25))
    assert torch.tensor(size / 2).dtype == torch.float32
    assert torch.arange(size)[size - 1] == 3


def test_a_dim_is_a_number_only_if_it_has_a_size() -> None:
    assert list(range(E)) == [0, 1]
    assert [10, 20, 30][step.Dim("I", 2)] == 30
    with pytest.raises(TypeError, match="has no size"):
        range(step.Dim("Q"))


def test_dims_and_sizes_mix_into_dims() -> None:
    assert M * N == N * M == parse_dim("M*N")
    assert D * step.Size(E) == step.Size(E) * D == parse_dim("D*E")
    assert D / step.Size(E) == parse_dim("D/E")
    assert step.Size(D) / E == step.Size(D) // E == parse_dim("D/E")
    assert 2 * D / 2 == D
    assert {M: 1}[parse_dim("M")] == 1
    with pytest.raises(TypeError):
        M * 0.5


def test_sizes_survive_pickling() -> None:
    size = pickle.loads(pickle.dumps(step.Size(D)))
    assert (size, size.dim) == (4, parse_dim("D"))
    assert isinstance(step.Size(D) / 2, Quotient)


def test_a_context_is_read_by_dim_and_by_name() -> None:
    ctx = context()
    ctx[step.Dim("Q")] = 7
    assert (ctx[M], ctx["M"], ctx["Q"], ctx.sizes["Q"]) == (3, 3, 7, 7)


# -------------------------------------------------------------------- the primitives, with the reference's numbers
def fns() -> dict[str, step.Fn]:
    return {
        "fn_sq": Square("fn_sq", FP32, FP32),
        "fn_sum": Sum("fn_sum", FP32, FP32),
        "fn_add": Add("fn_add", step.STuple([FP32, FP32]), FP32),
    }


@pytest.mark.parametrize(
    ("program", "dims", "values"),
    [
        ("step.Map(fn=fn_sq).apply(X)", "[M, N]", [[1, 4, 9], [16, 25, 36]]),
        ("step.Map(fn=fn_add).apply((X, X))", "[M, N]", [[2, 4, 6], [8, 10, 12]]),
        ("step.Accum(fn=fn_sum, b=1).apply(X)", "[N]", [6, 15]),
        ("step.Scan(fn=fn_sum, b=1).apply(X)", "[M, N]", [[1, 3, 6], [4, 9, 15]]),
        ("step.Promote(b=2).apply(X)", "[M, N, 1]", [MN]),
        ("step.Flatten(L=[1]).apply(X)", "[M*N]", [1, 2, 3, 4, 5, 6]),
        ("step.Reshape(S=1, L=[0]).apply(X)", "[1, M, N]", [[[1], [2], [3]], [[4], [5], [6]]]),
        ("step.Repeat(n=K).apply(step.Accum(fn=fn_sum, b=1).apply(X))", "[K, N]", [[6, 6], [15, 15]]),
        ("step.RepeatLast(n=K_value).apply(step.Accum(fn=fn_sum, b=1).apply(X))", "[K, N]", [[6, 6], [15, 15]]),
        ("step.RepeatRef().apply((step.Accum(fn=fn_sum, b=1).apply(X), X))", "[M, N]", [[6, 6, 6], [15, 15, 15]]),
        ("step.Streamify().apply(step.Bufferize(a=1).apply(X))", "[M, N]", MN),
        ("step.Copy().apply(X)[1]", "[M, N]", MN),
        ("step.Identity().apply(input=X, name='same')", "[M, N]", MN),
    ],
)
def test_primitives_compute_the_references_examples(program: str, dims: str, values: Any) -> None:
    ctx = context()
    made = eval(program, {"step": step, "X": stream(MN, [M, N], ctx), "K": K, "K_value": step.Size(K), **fns()})
    assert made.type == parse_stream(f"fp32 {dims}")
    assert torch.equal(made.data[0], torch.tensor(values, dtype=torch.float32))


def test_zip_and_bufferize_work_on_tuples() -> None:
    ctx = context()
    pair = step.Zip().apply((stream(MN, [M, N], ctx), stream(MN, [M, N], ctx)))
    assert str(step.Bufferize(a=1).apply(pair).type) == "[Buffer(fp32, [M]), Buffer(fp32, [M])] [N]"
    assert len(pair.data) == 2


INDEX = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
HOT = step.Multihot(FP32, E)


def test_partition_and_merge_route_as_in_the_reference() -> None:
    ctx = context()
    data, index = stream([10.0, 20.0, 30.0], [M], ctx), stream(INDEX, [M], ctx, HOT)
    parts = step.Partition(N=E).apply((data, index))
    assert [part.data[0].tolist() for part in parts] == [[10, 30], [20, 30]]
    merged = step.Merge(fn=fns()["fn_sum"]).apply((parts, index))
    assert merged.data[0].tolist() == [10, 20, 60]
    assert merged.type == parse_stream("fp32 [M]")


def test_two_partitions_of_one_context_are_kept_apart() -> None:
    ctx = context()
    index = stream(INDEX, [M], ctx, HOT)
    first = step.Partition(N=2).apply((stream([1.0, 2.0, 3.0], [M], ctx), index))
    second = step.Partition(N=2).apply((stream([4.0, 5.0, 6.0], [M], ctx), index))
    with pytest.raises(step.StepError, match="different Partitions"):
        step.Merge(fn=fns()["fn_sum"]).apply(([first[0], second[1]], index))
    assert step.Merge(fn=fns()["fn_sum"]).apply((first, index)).data[0].tolist() == [1, 2, 6]


def test_empty_experts_are_streams() -> None:
    ctx = context()
    index = stream([[1.0, 0.0]] * 3, [M], ctx, HOT)
    _, empty = step.Partition(N=2).apply((stream([1.0, 2.0, 3.0], [M], ctx), index))
    assert step.Map(fn=fns()["fn_sq"]).apply(empty).data[0].shape == (0,)


def test_an_index_that_is_another_expression_is_compared() -> None:
    ctx = context()
    index = stream(INDEX, [M], ctx, HOT)
    other = stream([[0.0, 1.0]] * 3, [M], ctx, HOT)
    parts = step.Partition(N=2).apply((stream([1.0, 2.0, 3.0], [M], ctx), index))
    with pytest.raises(step.StepError, match="expected: the index of Partition"):
        step.Merge(fn=fns()["fn_sum"]).apply((parts, other))
    changed = step.Map(fn=Square("fn_flip", HOT, HOT)).apply(other)
    with pytest.warns(UserWarning, match="another expression"), pytest.raises(step.StepError, match="differs"):
        step.Merge(fn=fns()["fn_sum"]).apply((parts, changed))


# -------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("step.Accum(fn=fn_sum, b=2).apply(X)", "1 <= b <= rank"),
        ("step.Map(fn=fn_sum).apply(X)", "a fn without init"),
        ("step.Map(fn=fn_add).apply(X)", "expected: \\[fp32, fp32\\]"),
        ("step.Map(fn=fn_sq).apply([X])", "a list of 1 streams"),
        ("step.Map(fn=3).apply(X)", "one of the task's fns"),
        ("step.Zip().apply((X, X, X))", "expected: 2 streams"),
        ("step.Zip().apply((X, step.Repeat(n=3).apply(X)))", "expected: dims"),
        ("step.Flatten(L=1).apply(X)", "expected: a list"),
        ("step.Streamify().apply(X)", "expected: a Buffer"),
        ("step.Repeat(n=0).apply(X)", "a dim >= 1"),
        ("step.Reshape(S=2, L=[0]).apply(X)", "a multiple of 2"),
        ("step.Partition(N=2).apply((X, X))", "a Multihot index"),
        ("step.Promote(c=1)", "expected: b"),
        ("step.Promote(b=1).apply(3)", "a stream"),
        ("step.Map(fn=fn_bad).apply(X)", "FN"),
    ],
)
def test_what_the_checker_refuses_is_refused_here(program: str, words: str) -> None:
    class Bad(step.Fn):
        def apply(self, input: list[Tensor]) -> list[Any]:
            return [input[0].expand(4)]

    names = {"step": step, "X": stream(MN, [M, N], context()), "fn_bad": Bad("fn_bad", FP32, FP32), **fns()}
    with pytest.raises(step.StepError, match=words):
        eval(program, names)


def test_a_refused_application_leaves_the_context_usable() -> None:
    X = stream(MN, [M, N], context())
    with pytest.raises(step.StepError):
        step.Streamify().apply(X)
    assert step.Accum(fn=fns()["fn_sum"], b=1).apply(X).data[0].tolist() == [6, 15]


def test_data_must_have_the_declared_shape_and_dtype() -> None:
    with pytest.raises(step.StepError, match=r"\(2, 3\)"):
        stream([[1.0, 2.0]], [M, N], context())
    with pytest.raises(step.StepError, match="float64"):
        step.Stream("E0", FP32, [N], [torch.zeros(2, dtype=torch.float64)], context())


def test_streams_of_two_contexts_do_not_mix() -> None:
    with pytest.raises(step.StepError, match="two contexts"):
        step.Zip().apply((stream(MN, [M, N], context()), stream(MN, [M, N], context())))


def test_start_values_are_numbers_or_tensors_of_the_fields_shape() -> None:
    class Last(Sum):
        def __init__(self, start: Any) -> None:
            super().__init__("fn_last", step.Buffer(FP32, [M]), step.Buffer(FP32, [M]))
            self.start = start

        def getInit(self) -> list[Any]:
            return [self.start]

    rows = step.Promote(b=1).apply(step.Bufferize(a=1).apply(stream(MN, [M, N], context())))
    summed = step.Accum(fn=Last(torch.tensor([1, 0, 0])), b=1).apply(rows)
    assert summed.data[0].tolist() == [[6, 7, 9]]
    with pytest.raises(step.StepError, match="getInit"):
        step.Accum(fn=Last(torch.zeros(2)), b=1).apply(rows)


def test_two_fns_of_one_name_are_two_fns() -> None:
    X = stream(MN, [M, N], context())
    one, two = Square("fn", FP32, FP32), Add("fn", step.STuple([FP32, FP32]), FP32)
    assert step.Map(fn=one).apply(X).data[0][0].tolist() == [1, 4, 9]
    assert step.Map(fn=two).apply((X, X)).data[0][0].tolist() == [2, 4, 6]
    assert step.Map(fn=one).apply(X).data[0][0].tolist() == [1, 4, 9]


# -------------------------------------------------------------------- whole programs, imports
PROGRAM = "E1, E2 = step.Copy().apply(E0)\nreturn step.Map(fn=fn_add).apply((E1, E2))"


def test_a_whole_program_is_checked_as_text() -> None:
    inputs, outputs = [stream(MN, [M, N], context())], {"S0": (FP32, [M, N])}
    step.check_program(PROGRAM, inputs, outputs, fns())
    with pytest.raises(step.StepError, match="AFFINE"):
        step.check_program("return step.Map(fn=fn_add).apply((E0, E0))", inputs, outputs, fns())
    with pytest.raises(step.StepError, match="OUT"):
        step.check_program(PROGRAM, inputs, {"S0": (FP32, [N, M])}, fns())


def test_importing_the_package_does_not_import_the_frontend() -> None:
    code = "import sys, opsmith; assert 'opsmith.step' not in sys.modules and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
