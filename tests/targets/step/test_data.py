"""Data is drawn as the reference says, the same everywhere, and expected values are checked before anything runs."""

import pytest
import torch
from authors import SEED, bindings, output, stream, task

from opsmith.problems.decisions import MARGIN
from opsmith.problems.dims import make_symbol
from opsmith.problems.drawing import (
    draw_case,
    draw_data,
    draw_with_margins,
    draws_numbers,
    jitter_data,
    widen_data,
)
from opsmith.problems.problem import CaseSpec
from opsmith.problems.reference import compute_expected
from opsmith.targets import TaskFault
from opsmith.targets.step.execution.trials import make_trials

E2 = "E_value = 2\nctx[E] = E_value"
SIZED = task(
    global_code=E2,
    inputs=(stream("E0", "fp32 [E, N]"),),
    outputs=(output("S0", "fp32 [N]", "input_data['E0'].sum(-1)"),),
)


def test_data_is_drawn_in_file_order_after_one_seed():
    drawn = draw_data(task().problem, {}, 42).input_data
    torch.manual_seed(42)
    wanted = {"E0": torch.randn(7, 16), "W": torch.randn(16, 9), "b": torch.randn(16)}
    assert {name: tensor.tolist() for name, tensor in drawn.items()} == {k: v.tolist() for k, v in wanted.items()}


def test_multihot_rows_are_drawn_one_by_one_in_row_order():
    spec = task(inputs=(stream("E0", "Multihot(fp32, D) [N, M]", None, 1, 3),), parameters=())
    drawn = draw_data(spec.problem, {}, 7).input_data["E0"]
    torch.manual_seed(7)
    wanted = torch.zeros(35, 16)
    for row in wanted:
        count = int(torch.randint(1, 4, (1,)))
        row[torch.randperm(16)[:count]] = 1
    assert torch.equal(drawn, wanted.reshape(5, 7, 16))


@pytest.mark.parametrize(
    ("data_gen", "dtype", "check"),
    [
        ("torch.rand", "fp16", lambda x: x.dtype is torch.float16 and x.min() >= 0 and x.max() <= 1),
        ("torch.ones", "int32", lambda x: x.dtype is torch.int32 and bool((x == 1).all())),
        ("torch.zeros", "fp64", lambda x: x.dtype is torch.float64 and not x.any()),
        ("binary", "bool", lambda x: x.dtype is torch.bool and 0 < x.sum() < x.numel()),
        ("randint", "int64", lambda x: x.dtype is torch.int64 and set(x.unique().tolist()) == {-1, 0, 1}),
    ],
)
def test_generators(data_gen, dtype, check):
    spec = task(inputs=(stream("E0", f"{dtype} [D, N]", data_gen, -1, 1),))
    assert check(draw_data(spec.problem, {}, 1).input_data["E0"])


def test_the_process_keeps_its_random_state_and_default_dtype():
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    draw_with_margins(task(global_code="torch.rand(5)").problem, {}, "x")
    assert torch.equal(torch.rand(2), wanted)
    with pytest.raises(TaskFault):
        draw_data(task(global_code="1 / 0").problem, {}, 1)
    assert torch.get_default_dtype() is torch.float32


def test_wide_data_holds_the_same_numbers_as_float64():
    spec = task(global_code="third = torch.tensor(1.0) / 3")
    narrow, wide = bindings(spec), bindings(spec, wide=True)
    assert all(torch.equal(wide.input_data[name], narrow.input_data[name].double()) for name in ("E0", "W", "b"))
    assert wide.namespace["third"].item() == 1 / 3
    assert compute_expected(spec.problem, wide)[0][0].dtype is torch.float64
    assert compute_expected(spec.problem, narrow)[0][0].dtype is torch.float32


def test_global_gives_sizes_through_dims_and_names():
    bound = bindings(SIZED)
    assert bound.sizes["E"] == 2
    assert bound.input_data["E0"].shape == (7, 2)
    assert bound.namespace["ctx"][make_symbol("E")] == bound.namespace["ctx"]["E"] == bound.namespace["E_value"] == 2
    assert bound.namespace["E"] == make_symbol("E")


def test_an_override_wins_over_global_also_within_it():
    spec = task(global_code=f"{E2}\ntwice = 2 * E_value + ctx[E]", inputs=SIZED.inputs)
    bound = bindings(spec, overrides={"E": 5, "N": 3})
    assert bound.input_data["E0"].shape == (3, 5)
    assert bound.namespace["twice"] == 15
    assert bound.namespace["N_value"] == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": SIZED.inputs}, "symbol E: given no size"),
        ({"global_code": "E_value = 'two'", "inputs": SIZED.inputs}, "E = 'two'"),
        ({"global_code": "x = 1\ny = z"}, "global, line 2: given NameError: name 'z' is not defined"),
        ({"global_code": "x = ("}, "global, line 1: given '(' was never closed"),
        ({"inputs": (stream("E0", "fp32 [D/3]"),)}, "D/3 is not an integer: D = 16"),
        (
            {"inputs": (stream("E0", "Multihot(fp32, K) [N]", None, 0, 10),)},
            "min 0, max 10; expected 0 <= min <= max <= 9",
        ),
        ({"inputs": (stream("E0", "fp32 [N]", "torch.sin"),)}, "data_gen: given torch.sin"),
    ],
)
def test_a_task_whose_data_cannot_be_made_is_its_authors_fault(change, words):
    with pytest.raises(TaskFault) as caught:
        draw_data(task(**change).problem, {}, 1)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["input_data['E0'].sum(0)"], "given a tensor of shape (16,); expected shape (7,)"),
        (["input_data['E0'].sum(-1).half()"], "given torch.float16; expected torch.float32"),
        (["input_data['E0'].sum(-1) / 0 * 0"], "NaN in the reference"),
        (["3"], "given int"),
        (["x = 1\nfor i in ():\n  pass"], "given `for i in ():`; expected an expression"),
        (["a, b = 1, 2"], "given `a, b = 1, 2`"),
        (["# nothing"], "given no statement"),
        (["x = 1\ninput_data['E9']"], "data_transform[0], line 2: given KeyError: 'E9'"),
        (["1", "2"], "given 2 texts; expected 1, one per field of fp32"),
    ],
)
def test_a_reference_that_is_wrong_is_its_authors_fault(texts, words):
    spec = task(outputs=(output("S0", "fp32 [N]", *texts),))
    with pytest.raises(TaskFault) as caught:
        compute_expected(spec.problem, bindings(spec))
    assert caught.value.diagnostic.kind == "TASK"
    assert words in str(caught.value)


def test_transforms_share_one_namespace_and_work_on_clones():
    spec = task(
        outputs=(
            output(
                "S0", "[fp32, Buffer(fp32, [D])] [N]", "x = input_data['E0']\nx.mul_(2)\ntotal = x.sum(-1)  # kept", "x"
            ),
            output("S1", "fp32 [N]", "total\n# a comment after the value"),
        )
    )
    bound = bindings(spec)
    before = bound.input_data["E0"].clone()
    (first, second), (third,) = compute_expected(spec.problem, bound)
    assert torch.equal(first, third)
    assert torch.equal(second, 2 * before)
    assert torch.equal(bound.input_data["E0"], before)


def test_jitter_moves_continuous_numbers_by_one_rounding_error():
    spec = task(inputs=(stream("E0", "fp32 [D, N]"), stream("E1", "fp32 [N]", "binary")))
    drawn = draw_data(spec.problem, {}, SEED)
    wide, moved = widen_data(spec.problem, drawn, SEED), jitter_data(spec.problem, drawn, SEED)
    change = (moved.input_data["E0"] / wide.input_data["E0"] - 1).abs()
    assert torch.allclose(change, torch.full_like(change, torch.finfo(torch.float32).eps), rtol=1e-6)
    assert torch.equal(moved.input_data["E1"], wide.input_data["E1"])


MARGIN_TEXT = "score = torch.sigmoid(input_data['E0'])\n(score - 0.5).abs()"


def test_data_is_redrawn_until_decisions_are_clear_in_both_precisions():
    spec = task(margins=(MARGIN_TEXT,))
    for seed in range(5):
        first = draw_with_margins(spec.problem, {}, str(seed))
        again = draw_with_margins(spec.problem, {}, str(seed))
        for one, other in zip(first, again, strict=True):
            assert torch.equal(one.input_data["E0"], other.input_data["E0"])
            assert (torch.sigmoid(one.input_data["E0"]) - 0.5).abs().min() >= MARGIN
        assert torch.equal(first[0].input_data["E0"].double(), first[1].input_data["E0"])


def test_whole_numbers_that_rounding_decides_need_a_tolerance_of_their_own():
    text = "(1e7 * input_data['E0'].sum(-1)).round().long()"
    tolerant, exact = (task(outputs=(output("S0", "int64 [N]", text, **own),)) for own in ({"atol": 99.0}, {}))
    assert make_trials(tolerant)[1].data.limits[0][0].undecided is None
    with pytest.raises(TaskFault, match="of 7 discrete entries that rounding decides in all of 200 draws"):
        _ = make_trials(exact)[1].data.limits


def test_a_margin_sees_the_names_of_the_transforms_and_may_be_empty():
    spec = task(margins=("total[:0]",), outputs=(output("S0", "fp32 [N]", "total = input_data['E0'].sum(-1)"),))
    assert draw_with_margins(spec.problem, {}, "x")


def test_a_margin_that_no_draw_keeps_is_named():
    spec = task(margins=("torch.ones(3)", "torch.zeros(1)"))
    with pytest.raises(TaskFault) as caught:
        draw_with_margins(spec.problem, {}, "x")
    assert caught.value.diagnostic.text == "torch.zeros(1)"
    assert "all of 200 draws at D = 16, K = 9, N = 7" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["import random\nnoise = random.random()", "import numpy\nnoise = float(numpy.random.rand())"]
)
def test_random_numbers_that_no_seed_brings_back_are_the_authors_fault(text):
    with pytest.raises(TaskFault, match="another noise when it runs again"):
        draws_numbers(task(global_code=text).problem)


@pytest.mark.parametrize(("text", "drawn"), [("", False), ("x = float('nan')", False), ("x = torch.rand(2)", True)])
def test_what_torch_draws_is_known(text, drawn):
    assert draws_numbers(task(global_code=text).problem) is drawn


@pytest.mark.parametrize("text", ["None", "'yes'", "input_data.update({})", "[]"])
def test_a_hand_made_input_without_a_property_is_the_authors_fault(text):
    with pytest.raises(TaskFault, match=r"cases\[0\]: given data without the property"):
        draw_case(task(cases=(CaseSpec(text),)).problem, {}, 0)


def test_margins_are_numbers():
    with pytest.raises(TaskFault, match=r"margins\[0\]: given NoneType; expected a tensor of distances"):
        draw_with_margins(task(margins=("None",)).problem, {}, "x")
