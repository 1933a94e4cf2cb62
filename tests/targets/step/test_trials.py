"""A task is tried at every shape set that differs for it, base first and large last, and nothing is made before it is used.

A set of ours that the author's own code cannot run is left out, whatever the program.
"""

import pytest
import torch
from authors import function, output, stream, task

from opsmith.problems import draws
from opsmith.problems.problem import CaseSpec
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.targets import TaskFault, list_runnable
from opsmith.targets.step.execution import trials as module
from opsmith.targets.step.execution.trials import make_trials

ALL = ["base", "unit", "N1", "K1", "D2", "coprime", "wide", "tall", "equal", "tight", "large"]
DIV3 = task(inputs=(stream("E0", "fp32 [D/4, N]"),), parameters=())


def test_the_sets_that_concern_a_task():
    assert list(choose_shape_sets(task().problem)) == ALL
    assert choose_shape_sets(task().problem)["unit"] == {"N": 1, "K": 1, "D": 2}
    assert choose_shape_sets(task().problem)["base"] == {}
    only_n = task(inputs=(stream("E0", "fp32 [N]"),), parameters=())
    assert list(choose_shape_sets(only_n.problem)) == ["base", "unit", "coprime", "wide", "tall", "equal", "large"]


def test_a_task_file_adds_and_replaces_sets():
    spec = task(shapes={"large": {"N": 8}, "E1": {"N": 2}, "wide": {}})
    sets = choose_shape_sets(spec.problem)
    assert sets["large"] == {"N": 8}
    assert sets["E1"] == {"N": 2}
    assert "wide" not in sets
    assert list(sets)[-1] == "large"


def test_built_in_sets_without_a_whole_size_are_left_out():
    sets = choose_shape_sets(DIV3.problem)
    assert "coprime" not in sets
    assert "equal" in sets
    with pytest.raises(TaskFault, match="D/4 is not an integer: D = 6"):
        _ = next(
            t for t in make_trials(task(inputs=DIV3.inputs, shapes={"odd": {"D": 6}})) if "odd" in t.name
        ).data.stack


def test_order_names_and_precisions():
    suite = make_trials(task())
    names = [trial.name for trial in suite]
    assert names[:3] == ["base float64", "base declared precision", "unit float64"]
    assert names[-2:] == ["large float64", "large declared precision"]
    assert len(set(names)) == len(names) == 2 * len(ALL)
    assert [trial.draws for trial in suite] == [5, 1] + [3, 1] * (len(ALL) - 1)
    wide, declared = suite[0].data, suite[1].data
    assert [wide.label(0), wide.label(4)] == ["base seed 0 float64", "base seed 4 float64"]
    assert declared.label(0) == "base seed 0 declared precision"
    assert all(bindings.wide for bindings in wide.bindings)
    assert not declared.bindings[0].wide
    assert torch.equal(wide.stack.inputs["E0"][0], declared.stack.inputs["E0"][0].double())


def test_hand_made_inputs_are_tried_after_the_base_shape():
    suite = make_trials(task(cases=tuple(map(CaseSpec, ("input_data['E0'].zero_() == 0", "True")))))
    assert [(trial.name, trial.draws) for trial in suite[2:4]] == [
        ("cases float64", 2),
        ("cases declared precision", 2),
    ]
    case = suite[2].data
    assert [case.label(0), case.label(1)] == ["case 0 float64", "case 1 float64"]
    assert [bool(draw.any()) for draw in case.stack.inputs["E0"]] == [False, True]


def test_hand_made_inputs_of_a_shape_set_follow_it():
    suite = make_trials(
        task(
            shapes={"many": {"N": 33}, "same": {}},
            cases=(CaseSpec("True"), CaseSpec("input_data['E0'].shape[0] == 33", "many"), CaseSpec("True", "same")),
        )
    )
    names = [trial.name for trial in suite]
    assert names[2:4] == ["cases float64", "cases declared precision"]
    at = names.index("many float64")
    assert names[at : at + 4 : 2] == ["many float64", "cases of many float64"]
    assert suite[at + 2].data.label(0) == "case 1 at many float64"
    assert suite[at + 2].data.limits
    assert "cases of same float64" in names


def test_draws_whose_global_draws_numbers_are_trials_of_their_own():
    suite = make_trials(task(global_code="noise = torch.rand(3)\nN_value = int(noise[0] * 3) + 2\nctx[N] = N_value"))
    assert [(trial.name, trial.draws) for trial in suite[:6]] == [("base float64", 1)] * 5 + [
        ("base declared precision", 1)
    ]
    assert len({trial.data.sizes["N"] for trial in suite[:5]}) > 1


def test_a_float64_task_has_no_second_precision():
    spec = task(
        inputs=(stream("E0", "fp64 [N]"),), parameters=(), outputs=(output("S0", "fp64 [N]", "input_data['E0']"),)
    )
    assert all("float64" in trial.name for trial in make_trials(spec))


def test_seeds_and_sets_give_different_data_that_never_changes():
    one, other = make_trials(task()), make_trials(task())
    assert one is not other
    draws = [entry for trial in one if "float64" in trial.name for entry in trial.data.stack.inputs["b"][:, 0].tolist()]
    assert len(set(draws)) == len(draws) == 5 + 3 * (len(ALL) - 1)
    assert draws == [
        entry for trial in other if "float64" in trial.name for entry in trial.data.stack.inputs["b"][:, 0].tolist()
    ]


def test_only_what_is_asked_for_is_made(monkeypatch):
    made = []
    original = draws.draw_with_margins
    monkeypatch.setattr(draws, "draw_with_margins", lambda *args: made.append(args[2]) or original(*args))
    suite = make_trials(task())
    assert made == []
    for _ in range(2):
        assert suite[0].data.limits
        assert suite[1].data.limits
    assert made == [f"base {seed}" for seed in range(5)]


def test_trials_are_kept_per_task_and_forgotten_in_order():
    specs = [task() for _ in range(module.TASKS_KEPT + 1)]
    first = make_trials(specs[0])
    assert make_trials(specs[0]) is first
    for spec in specs[1:]:
        make_trials(spec)
    assert make_trials(specs[0]) is not first
    assert len(module._KEPT) <= module.TASKS_KEPT


def test_a_fault_is_found_once(monkeypatch):
    calls = []
    original = draws.draw_with_margins
    monkeypatch.setattr(draws, "draw_with_margins", lambda *args: calls.append(1) or original(*args))
    case = make_trials(task(margins=("torch.zeros(1)",)))[0].data
    for _ in range(3):
        with pytest.raises(TaskFault, match="200 draws"):
            _ = case.bindings
    assert len(calls) == 1


def test_which_outputs_are_compared_exactly():
    spec = task(
        outputs=(
            output("S0", "fp32 [D, N]", "(input_data['E0'] > 0).to(input_data['E0'].dtype)"),
            output("S1", "fp32 [D, N]", "torch.ones_like(input_data['E0'])"),
            output("S2", "[fp32, int32] [D, N]", "input_data['E0']", "input_data['E0'].int()"),
            output("S3", "Multihot(fp32, D) [N]", "torch.ones_like(input_data['E0'])"),
        )
    )
    assert make_trials(spec).data.exact == [[True], [False], [False, True], [True]]


THREE = "torch.topk(input_data['E0'], 3, dim=0).values[:1].expand(N_value, -1)"


def reduced(text, **changes):
    return task(outputs=(output("S0", "fp32 [D, N]", text),), **changes)


def left_out(spec):
    return list(dict.fromkeys(filter(None, (trial.left_out() for trial in make_trials(spec)))))


def names(given):
    return [trial.name.split()[0] for trial in given][::2]


def test_a_set_of_ours_at_which_the_reference_fails_is_left_out():
    spec = reduced(THREE)
    reasons = left_out(spec)
    assert [reason.split()[2] for reason in reasons] == ["unit", "N1", "tight"]
    assert reasons[1].startswith(
        "shape set N1 (N = 1) is left out: outputs, S0, data_transform[0], line 1: RuntimeError:"
    )
    assert names(list_runnable(make_trials(spec))) == [name for name in ALL if name not in ("unit", "N1", "tight")]
    assert len(make_trials(spec)) == 2 * len(ALL)
    assert left_out(task()) == []


@pytest.mark.parametrize(
    "text",
    [
        "input_data['E0'] / input_data['E0'].std(0)",  # NaN where N is 1
        "input_data['E0'].squeeze()",  # another shape where N is 1
        "1 / 0 if N_value == 1 else input_data['E0']",
        "input_data['E0'].to(torch.int32) if N_value == 1 else input_data['E0']",
    ],
    ids=["NaN", "shape", "error", "dtype"],
)
def test_whatever_keeps_a_trial_from_being_made_leaves_its_set_out(text):
    assert {"unit", "N1", "tight"} <= {reason.split()[2] for reason in left_out(reduced(text))}


def test_margins_that_no_draw_keeps_at_a_set_leave_it_out():
    assert {"unit", "N1", "tight"} == {
        reason.split()[2] for reason in left_out(task(margins=("torch.tensor(float(N_value > 1))",)))
    }


def test_a_failure_at_the_sizes_of_the_file_is_its_authors():
    base = reduced("torch.topk(input_data['E0'], 8, dim=0).values")
    assert make_trials(base)[0].left_out() == ""
    with pytest.raises(TaskFault, match="selected index"):
        _ = make_trials(base)[0].data.limits
    stated = reduced(THREE, shapes={"N1": {"N": 2}, "few": {"N": 1}})
    assert [reason.split()[2] for reason in left_out(stated)] == ["unit", "tight"]
    for name in ("N1", "few"):
        with pytest.raises(TaskFault, match="selected index"):
            _ = next(trial for trial in make_trials(stated) if trial.name.startswith(name)).data.limits


def test_a_task_of_which_little_is_left_is_faulty():
    """It fails at seven of eleven sets; the sixth is one too many."""
    spec = reduced("1 / 0 if D_value < 16 else input_data['E0']")
    reasons = []
    with pytest.raises(TaskFault, match=r"fails at 6 of 11.*expected base and at least half") as fault:
        reasons += [trial.left_out() for trial in make_trials(spec)]
    assert "shapes: {M1: {M: 3}}" in str(fault.value)
    again = make_trials(spec)
    assert again[4 * 2].left_out()  # D2 alone: five sets may be missing up to there
    assert not again[2 * 2].left_out()


def test_a_fn_that_fails_at_a_set_and_not_at_base_leaves_it_out():
    three = function("Buffer(fp32, [N])", "fp32", "return [torch.topk(input[0], 3).values.sum()]")
    assert [reason.split()[2] for reason in left_out(task(fns=(three,)))] == ["unit", "N1", "tight"]
    never = function("Buffer(fp32, [N])", "fp32", "return [torch.topk(input[0], 8).values.sum()]")
    assert left_out(task(fns=(never,))) == []  # who uses it will be told
    picky = function("fp32", "fp32", "assert input[0] < 3, 'a large number'\nreturn [input[0]]")
    assert left_out(task(fns=(picky,))) == []  # a fault of some data is no fault of a size


def test_lack_of_memory_leaves_nothing_out():
    spec = reduced("if N_value == 1: raise MemoryError()\ninput_data['E0']")
    with pytest.raises(TaskFault, match="MemoryError"):
        left_out(spec)


def test_the_base_shape_asks_nothing_of_other_sets(monkeypatch):
    made = []
    original = draws.draw_with_margins
    monkeypatch.setattr(draws, "draw_with_margins", lambda *args: made.append(args[2]) or original(*args))
    suite = make_trials(task())
    assert (suite[0].left_out(), suite[1].left_out(), made) == ("", "", [])
    assert suite[2].left_out() == ""
    assert {text.split()[0] for text in made} == {"base", "unit"}  # base says which outputs are decisions
