"""Right programs pass whatever the order of their sums; wrong ones fail and are told something useful."""

import pytest
from authors import output, stream, task

from opsmith.records import Stage
from opsmith.targets import TaskFault
from opsmith.targets.step.execution.compare import compare
from opsmith.targets.step.execution.trials import trials

INPUTS = (stream("E0", "fp32 [D, N]"),)
SQUARE = task(inputs=INPUTS, parameters=(), outputs=(output("S0", "fp32 [D, N]", "input_data['E0'] ** 2 + 1"),))
NORM = task(
    inputs=(stream("E0", "fp32 [D, N]", "torch.rand"),),
    parameters=(),
    outputs=(output("S0", "fp32 [D, N]", "torch.nn.functional.layer_norm(input_data['E0'], [D_value], eps=1e-5)"),),
)
INFINITE = task(inputs=INPUTS, parameters=(), outputs=(output("S0", "fp32 [D, N]", "1 / (input_data['E0'] > 0)"),))
MASK = task(
    inputs=INPUTS,
    parameters=(),
    outputs=(output("S0", "fp32 [D, N]", "(input_data['E0'] > 0).to(input_data['E0'].dtype)"),),
)
BASE, DECLARED = 0, 1


def first_draw(spec, at=BASE):
    """The first draw of a trial, as a case of its own."""
    return trials(spec)[at].data.singles[0]


def judged(spec, change, at=BASE):
    """The result of handing in the expected values of a trial's first draw, changed."""
    case = first_draw(spec, at)
    expected = case.draws[0].values[0][0].to(case.limits[0][0].dtype)
    return compare(spec, case, [[change(expected.clone()).unsqueeze(0)]])


def poke(value, *index):
    def change(tensor):
        tensor[index] = value
        return tensor

    return change


@pytest.mark.parametrize("at", [BASE, DECLARED])
@pytest.mark.parametrize(
    ("spec", "change", "words"),
    [
        (SQUARE, lambda x: x, None),
        (SQUARE, lambda x: x.t().contiguous().t(), None),
        (INFINITE, lambda x: x, None),
        (MASK, lambda x: x, None),
        (SQUARE, poke(float("nan"), 2, 3), "the result holds NaN"),
        (SQUARE, poke(float("inf"), 2, 3), "given inf at index [2, 3]; 1 of 112 entries differ"),
        (INFINITE, lambda x: -x, "of 112 entries differ"),
        (INFINITE, lambda x: x.nan_to_num(), "expected inf"),
        (SQUARE, lambda x: x + 1e-3, "every entry differs"),
        (SQUARE, lambda x: x * 2, "every entry is 2 times the expected one"),
        (SQUARE, lambda x: x * 0, "all zeros"),
        (SQUARE, lambda x: x * 0 + 1, "every entry of the result is the same"),
        (SQUARE, lambda x: x.flip(0), "the right values in another order"),
        (SQUARE, lambda x: x.flatten().reshape(16, 7).t().contiguous(), "the right values in another order"),
        (SQUARE, poke(9.0, 2, 3), "some entries are right"),
        (MASK, lambda x: x * (1 - 1e-6), "exactly"),
        (SQUARE, lambda x: x[0], "given a tensor of shape (16,)"),
        (SQUARE, lambda x: x.t(), "given a tensor of shape (16, 7)"),
        (SQUARE, lambda x: x[:, :1].expand(7, 16), "entries differ"),
        (SQUARE, lambda x: x.half(), "torch.float16; expected shape (7, 16)"),
        (SQUARE, lambda x: x.int(), "torch.int32"),
    ],
)
def test_the_table_of_results(spec, change, words, at):
    result = judged(spec, change, at)
    assert result.stage is Stage.MATCH
    if words is None:
        assert result.errors == ()
        assert result.max_abs_error is not None
        assert result.max_abs_error < 1e-6
    else:
        (error,) = result.errors
        assert error.kind in ("DATA", "OUT")
        assert words in str(error)
        assert "base seed 0" in error.where
        assert "S0" in error.where


def test_the_first_wrong_entry_is_named_with_both_values():
    (error,) = judged(SQUARE, lambda x: poke(5.5, 6, 1)(poke(7.25, 2, 3)(x))).errors
    assert error.given.startswith("7.25 at index [2, 3]; 2 of 112 entries differ, max abs error ")
    assert "fp32 [D, N]" in error.where


def test_another_shape_set_points_at_sizes():
    suite = trials(SQUARE)
    at = next(i for i, trial in enumerate(suite) if trial.name.startswith("coprime"))
    (error,) = judged(SQUARE, poke(9.0, 0, 0), at).errors
    assert "the base shape was right" in error.remedy


@pytest.mark.parametrize(
    "case", [case for trial in trials(NORM) for case in trial.data.singles], ids=lambda c: c.label(0)
)
def test_order_of_evaluation_passes_and_a_missing_eps_fails_everywhere(case):
    (bindings,) = case.bindings
    x = bindings.input_data["E0"]
    d = x.shape[-1]
    total = sum(x[:, i : i + 1] for i in reversed(range(d)))
    centred = x - total / d
    two_pass = (centred * centred).sum(-1, keepdim=True) / d
    one_pass = (x * x).sum(-1, keepdim=True) / d - (total / d) ** 2
    for variance in (two_pass, one_pass):
        assert compare(NORM, case, [[(centred / (variance + 1e-5).sqrt())[None]]]).errors == ()
    if case.is_wide:
        for wrong in (two_pass.sqrt(), two_pass.sqrt() + 1e-5, (two_pass + 1e-6).sqrt()):
            assert compare(NORM, case, [[(centred / wrong)[None]]]).errors


def test_any_order_of_long_sums_passes_at_large():
    spec = task(outputs=(output("S0", "fp32 [K, N]", "input_data['E0'] @ input_data['W']"),))
    for case in [case for trial in trials(spec)[-2:] for case in trial.data.singles]:
        (bindings,) = case.bindings
        x, w = bindings.input_data["E0"], bindings.input_data["W"]
        backwards = sum(x[:, i : i + 1] * w[i] for i in reversed(range(x.shape[1])))
        assert compare(spec, case, [[backwards[None]]]).errors == ()
        assert compare(spec, case, [[(backwards - x[:, :1] * w[0] * 1e-4)[None]]]).errors


def test_the_first_wrong_draw_is_the_one_that_is_told():
    case = trials(SQUARE)[BASE].data
    expected = case.limits[0][0].expected
    assert expected.shape == (5, 7, 16)
    assert compare(SQUARE, case, [[expected.clone()]]).errors == ()
    wrong = expected.clone()
    wrong[2, 1, 1] = wrong[4, 0, 0] = 7.5
    result = compare(SQUARE, case, [[wrong]])
    (error,) = result.errors
    assert "base seed 2 float64" in error.where
    assert error.given.startswith("7.5 at index [1, 1]; 1 of 112 entries differ")
    assert result.max_abs_error == (wrong - expected).abs().max()


def test_own_tolerances_prevail():
    loose = task(inputs=INPUTS, outputs=(output("S0", "fp32 [D, N]", "input_data['E0']", rtol=0.0, atol=0.5),))
    for at in (BASE, DECLARED):
        assert judged(loose, lambda x: x + 0.4, at).errors == ()
        assert judged(loose, lambda x: x + 0.6, at).errors


def test_number_of_streams_and_fields():
    case = first_draw(SQUARE)
    x = case.limits[0][0].expected
    assert "given 2 streams; expected 1 (S0)" in str(compare(SQUARE, case, [[x], [x]]).errors[0])
    assert "given 0 streams" in str(compare(SQUARE, case, []).errors[0])
    assert "given 2 fields; expected 1" in str(compare(SQUARE, case, [[x, x]]).errors[0])


def test_every_field_of_every_output_is_compared():
    spec = task(
        inputs=INPUTS,
        outputs=(
            output("S0", "[fp32, Buffer(fp32, [D])] [N]", "input_data['E0'].sum(-1)", "input_data['E0']"),
            output("S1", "int64 [N]", "torch.arange(N_value)"),
        ),
    )
    case = trials(spec)[BASE].data
    (total, rows), (numbers,) = [[limit.expected for limit in row] for row in case.limits]
    assert compare(spec, case, [[total, rows], [numbers]]).errors == ()
    wrong = compare(spec, case, [[total, rows + 1], [numbers + 1]])
    assert ["S0, field 1" in wrong.errors[0].where, "S1" in wrong.errors[1].where] == [True, True]
    assert wrong.max_abs_error == 1


def test_a_reference_that_overflows_where_float64_does_not_is_its_authors_fault():
    spec = task(
        inputs=(stream("E0", "fp16 [N]", "torch.ones"),),
        parameters=(),
        outputs=(output("S0", "fp16 [N]", "input_data['E0'] * 1e6"),),
    )
    with pytest.raises(TaskFault, match="infinite values"):
        _ = trials(spec)[DECLARED].data.limits


def test_a_reference_that_narrows_on_purpose_is_allowed_its_rounding():
    spec = task(inputs=INPUTS, outputs=(output("S0", "fp32 [D, N]", "(input_data['E0'] / 3).float()"),))
    case = trials(spec)[BASE].data
    assert compare(spec, case, [[case.stack.inputs["E0"] / 3]]).errors == ()
