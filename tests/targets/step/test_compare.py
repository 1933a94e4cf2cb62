"""Right programs pass whatever the order of their sums; wrong ones fail and are told something useful."""

import pytest
import torch
from authors import output, stream, task

from opsmith.judging.verifier import verify, verify_many
from opsmith.records import Stage
from opsmith.results.refusals import describe_finding, mask_names
from opsmith.suites import load_tasks
from opsmith.targets import TaskFault
from opsmith.targets.step.execution.compare import compare_streams
from opsmith.targets.step.execution.trials import make_trials

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
    return make_trials(spec)[at].data.singles[0]


def judged(spec, change, at=BASE):
    """The result of handing in the expected values of a trial's first draw, changed."""
    case = first_draw(spec, at)
    expected = case.draws[0].values[0][0].to(case.limits[0][0].dtype)
    return compare_streams(case, [[change(expected.clone()).unsqueeze(0)]])


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
        (SQUARE, lambda x: x[:, torch.arange(16).roll(5)], "the right values in another order"),
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
    assert result.stage == Stage.MATCH
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
    suite = make_trials(SQUARE)
    at = next(i for i, trial in enumerate(suite) if trial.name.startswith("coprime"))
    (error,) = judged(SQUARE, poke(9.0, 0, 0), at).errors
    assert "the base shape was right" in error.remedy


@pytest.mark.parametrize(
    "case", [case for trial in make_trials(NORM) for case in trial.data.singles], ids=lambda c: c.label(0)
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
        assert compare_streams(case, [[(centred / (variance + 1e-5).sqrt())[None]]]).errors == ()
    if case.is_wide:
        for wrong in (two_pass.sqrt(), two_pass.sqrt() + 1e-5, (two_pass + 1e-6).sqrt()):
            assert compare_streams(case, [[(centred / wrong)[None]]]).errors


def test_any_order_of_long_sums_passes_at_large():
    spec = task(outputs=(output("S0", "fp32 [K, N]", "input_data['E0'] @ input_data['W']"),))
    for case in [case for trial in make_trials(spec)[-2:] for case in trial.data.singles]:
        (bindings,) = case.bindings
        x, w = bindings.input_data["E0"], bindings.input_data["W"]
        backwards = sum(x[:, i : i + 1] * w[i] for i in reversed(range(x.shape[1])))
        assert compare_streams(case, [[backwards[None]]]).errors == ()
        assert compare_streams(case, [[(backwards - x[:, :1] * w[0] * 1e-4)[None]]]).errors


def test_the_first_wrong_draw_is_the_one_that_is_told():
    case = make_trials(SQUARE)[BASE].data
    expected = case.limits[0][0].expected
    assert expected.shape == (5, 7, 16)
    assert compare_streams(case, [[expected.clone()]]).errors == ()
    wrong = expected.clone()
    wrong[2, 1, 1] = wrong[4, 0, 0] = 7.5
    result = compare_streams(case, [[wrong]])
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
    assert "given 2 streams; expected 1 (S0)" in str(compare_streams(case, [[x], [x]]).errors[0])
    assert "given 0 streams" in str(compare_streams(case, []).errors[0])
    assert "given 2 fields; expected 1" in str(compare_streams(case, [[x, x]]).errors[0])


def test_every_field_of_every_output_is_compared():
    spec = task(
        inputs=INPUTS,
        outputs=(
            output("S0", "[fp32, Buffer(fp32, [D])] [N]", "input_data['E0'].sum(-1)", "input_data['E0']"),
            output("S1", "int64 [N]", "torch.arange(N_value)"),
        ),
    )
    case = make_trials(spec)[BASE].data
    (total, rows), (numbers,) = [[limit.expected for limit in row] for row in case.limits]
    assert compare_streams(case, [[total, rows], [numbers]]).errors == ()
    wrong = compare_streams(case, [[total, rows + 1], [numbers + 1]])
    assert ["S0, field 1" in wrong.errors[0].where, "S1" in wrong.errors[1].where] == [True, True]
    assert wrong.max_abs_error == 1


def test_a_reference_that_overflows_where_float64_does_not_is_its_authors_fault():
    spec = task(
        inputs=(stream("E0", "fp16 [N]", "torch.ones"),),
        parameters=(),
        outputs=(output("S0", "fp16 [N]", "input_data['E0'] * 1e6"),),
    )
    with pytest.raises(TaskFault, match="infinite values"):
        _ = make_trials(spec)[DECLARED].data.limits


def test_a_reference_that_narrows_on_purpose_is_allowed_its_rounding():
    spec = task(inputs=INPUTS, outputs=(output("S0", "fp32 [D, N]", "(input_data['E0'] / 3).float()"),))
    case = make_trials(spec)[BASE].data
    assert compare_streams(case, [[case.stack.inputs["E0"] / 3]]).errors == ()


# ---- the remedy "another order"

ORDER = "another order"
RANKS = task(inputs=INPUTS, outputs=(output("S0", "int64 [D, N]", "input_data['E0'].argsort(-1).argsort(-1)"),))
IDS = task(
    inputs=INPUTS, outputs=(output("S0", "int64 [D, N]", "torch.arange(D_value * N_value).reshape(N_value, -1)"),)
)
NARROW = task(inputs=INPUTS, outputs=(output("S0", "fp32 [D, N]", "1000 + 1e-3 * input_data['E0']"),))
COPIES = task(inputs=INPUTS, outputs=(output("S0", "fp32 [D, N]", "input_data['E0'][:, :1].expand(-1, D_value)"),))
HALVES = task(inputs=INPUTS, outputs=(output("S0", "fp32 [D, N]", "(input_data['E0'] > 0) + 0.5"),))


def swapped(x):
    x[0, 0], x[3, 5] = x[3, 5].clone(), x[0, 0].clone()
    return x


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        (SQUARE, lambda x: x.flip(1)),
        (SQUARE, lambda x: x[torch.tensor([1, 0, 2, 3, 4, 5, 6])]),  # two rows exchanged
        (SQUARE, lambda x: x.flatten().roll(1).reshape(x.shape)),
        (SQUARE, lambda x: x.flip(0) * (1 + 1e-12)),
        (SQUARE, lambda x: -(-x).sort(-1).values),
        (NARROW, lambda x: x.flip(0)),  # far apart beside their range, if not beside their size
        (COPIES, lambda x: x.flip(0)),  # seven values, each sixteen times
        (IDS, lambda x: x.flip(0)),
    ],
)
def test_the_right_values_at_other_places_are_told_so(spec, change):
    (error,) = judged(spec, change).errors
    assert ORDER in error.remedy


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        (SQUARE, lambda x: x + 1e-6 * torch.randn_like(x)),  # each at its place, rounded
        (SQUARE, lambda x: x.float().double()),
        (SQUARE, lambda x: x.sort(-1).values * 1.001 + 1e-3),
        (NARROW, lambda x: x + 1e-4 * torch.randn_like(x)),
        (NARROW, lambda x: x * 0 + 1000 + 1e-3 * torch.randn(x.shape, dtype=x.dtype)),  # as near as 1e-6 in any order
        (SQUARE, swapped),  # two entries, which many a mistake exchanges
        (MASK, lambda x: 1 - x.flip(0).flip(1)),
        (MASK, lambda x: x.flip(0)),
        (HALVES, lambda x: x.flip(0)),
        (RANKS, lambda x: 15 - x),  # ranks are the same numbers in any order
        (SQUARE, lambda x: x.flip(0) + 1e-4),  # the order is not all that is wrong
        (SQUARE, lambda x: x.square()),
    ],
)
def test_other_wrong_values_are_not(spec, change):
    torch.manual_seed(0)
    (error,) = judged(spec, change).errors
    assert ORDER not in error.remedy


def test_entries_that_nearly_tie_are_no_other_order():
    steps = "torch.arange(D_value * N_value).reshape(N_value, -1)"
    spec = task(inputs=INPUTS, outputs=(output("S0", "fp32 [D, N]", f"1e-6 * {steps} + ({steps} > 20)"),))
    (error,) = judged(spec, lambda x: torch.cat([x.flatten()[:8].flip(0), x.flatten()[8:]]).reshape(x.shape)).errors
    assert ORDER not in error.remedy


def normed(x, eps, outside=0.0):
    centred = x - x.mean(-1, keepdim=True)
    return centred / ((centred.square().mean(-1, keepdim=True) + eps).sqrt() + outside)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda x: normed(x, 0), "the reference without its 1e-05 in line 1 gives these values"),
        (lambda x: normed(x, 1e-6), "the reference with 1e-06 in place of 1e-05 in line 1 gives these values"),
        (lambda x: normed(x, 0, 1e-5), "every entry differs"),
        (lambda x: 1.0001 * normed(x, 1e-5), "every entry differs"),
        (lambda x: 1.1 * normed(x, 1e-5), "every entry is 1.1 times the expected one"),
    ],
)
def test_a_small_constant_is_named_before_a_factor_is_advised(result, words):
    case = first_draw(NORM)
    (error,) = compare_streams(case, [[result(case.stack.inputs["E0"])]]).errors
    assert error.remedy.startswith(words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("E3 = step.Map(fn=fn_mean)", "E3 = step.Map(fn=fn_square)"), "value 1 of 7 of the reference, mean of E0 in line 1: torch"),
        (("fn_minus).apply((E2, E3))", "fn_div).apply((E2, E3))"), "value 2 of 7 of the reference, sub of E0 and mean in"),
        (("E8 = step.Map(fn=fn_mean)", "E8 = step.Map(fn=fn_sqrt)"), "value 4 of 7 of the reference, mean of square in"),
        (("E10 = step.Map(fn=fn_sqrt)", "E10 = step.Map(fn=fn_square)"), "value 6 of 7 of the reference, sqrt of add in"),
    ],
)  # fmt: skip
def test_the_first_value_of_the_reference_that_no_stream_holds_is_named(change, words):
    task = load_tasks(["norm_0"])[0]
    (error,) = verify(task, (task.impl or "").replace(*change)).errors
    assert f"every entry differs; no stream holds {words}" in error.remedy
    assert mask_names(describe_finding(error)).startswith(
        f"every entry differs; the program never computes step {words[6]}"
    )


def test_streams_of_other_programs_of_a_batch_are_not_a_programs_own():
    task = load_tasks(["norm_0"])[0]
    right = task.impl or ""
    wrong = [right.replace("E8 = step.Map(fn=fn_mean)", f"E8 = step.Map(fn={fn})") for fn in ("fn_sqrt", "fn_addeps")]
    assert [verdict.errors for verdict in verify_many(task, [right, *wrong])[1:]] == [
        verify(task, source).errors for source in wrong
    ]
