"""A task is tried at every shape set that differs for it, base first and large last, and nothing is made before it is used."""

import pytest
import torch
from authors import output, stream, task

from opsmith.targets import TaskFault
from opsmith.targets.step.execution import trials as module
from opsmith.targets.step.execution.trials import shape_sets, trials
from opsmith.targets.step.language.spec import CaseSpec

ALL = ["base", "unit", "N1", "K1", "D2", "coprime", "wide", "tall", "equal", "tight", "large"]
DIV3 = task(inputs=(stream("E0", "fp32 [D/4, N]"),), parameters=())


def test_the_sets_that_concern_a_task():
    assert list(shape_sets(task())) == ALL
    assert shape_sets(task())["unit"] == {"N": 1, "K": 1, "D": 2}
    assert shape_sets(task())["base"] == {}
    only_n = task(inputs=(stream("E0", "fp32 [N]"),), parameters=())
    assert list(shape_sets(only_n)) == ["base", "unit", "coprime", "wide", "tall", "equal", "large"]


def test_a_task_file_adds_and_replaces_sets():
    spec = task(shapes={"large": {"N": 8}, "E1": {"N": 2}, "wide": {}})
    sets = shape_sets(spec)
    assert sets["large"] == {"N": 8}
    assert sets["E1"] == {"N": 2}
    assert "wide" not in sets
    assert list(sets)[-1] == "large"


def test_built_in_sets_without_a_whole_size_are_left_out():
    sets = shape_sets(DIV3)
    assert "coprime" not in sets
    assert "equal" in sets
    with pytest.raises(TaskFault, match="D/4 is not an integer: D = 6"):
        _ = next(t for t in trials(task(inputs=DIV3.inputs, shapes={"odd": {"D": 6}})) if "odd" in t.name).data.stack


def test_order_names_and_precisions():
    suite = trials(task())
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
    suite = trials(task(cases=tuple(map(CaseSpec, ("input_data['E0'].zero_() == 0", "True")))))
    assert [(trial.name, trial.draws) for trial in suite[2:4]] == [
        ("cases float64", 2),
        ("cases declared precision", 2),
    ]
    case = suite[2].data
    assert [case.label(0), case.label(1)] == ["case 0 float64", "case 1 float64"]
    assert [bool(draw.any()) for draw in case.stack.inputs["E0"]] == [False, True]


def test_hand_made_inputs_of_a_shape_set_follow_it():
    suite = trials(
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
    suite = trials(task(global_code="noise = torch.rand(3)\nN_value = int(noise[0] * 3) + 2\nctx[N] = N_value"))
    assert [(trial.name, trial.draws) for trial in suite[:6]] == [("base float64", 1)] * 5 + [
        ("base declared precision", 1)
    ]
    assert len({trial.data.sizes["N"] for trial in suite[:5]}) > 1


def test_a_float64_task_has_no_second_precision():
    spec = task(
        inputs=(stream("E0", "fp64 [N]"),), parameters=(), outputs=(output("S0", "fp64 [N]", "input_data['E0']"),)
    )
    assert all("float64" in trial.name for trial in trials(spec))


def test_seeds_and_sets_give_different_data_that_never_changes():
    one, other = trials(task()), trials(task())
    assert one is not other
    draws = [entry for trial in one if "float64" in trial.name for entry in trial.data.stack.inputs["b"][:, 0].tolist()]
    assert len(set(draws)) == len(draws) == 5 + 3 * (len(ALL) - 1)
    assert draws == [
        entry for trial in other if "float64" in trial.name for entry in trial.data.stack.inputs["b"][:, 0].tolist()
    ]


def test_only_what_is_asked_for_is_made(monkeypatch):
    made = []
    original = module.draw_with_margins
    monkeypatch.setattr(module, "draw_with_margins", lambda *args: made.append(args[2]) or original(*args))
    suite = trials(task())
    assert made == []
    for _ in range(2):
        assert suite[0].data.limits
        assert suite[1].data.limits
    assert made == [f"base {seed}" for seed in range(5)]


def test_trials_are_kept_per_task_and_forgotten_in_order():
    specs = [task() for _ in range(module.TASKS_KEPT + 1)]
    first = trials(specs[0])
    assert trials(specs[0]) is first
    for spec in specs[1:]:
        trials(spec)
    assert trials(specs[0]) is not first
    assert len(module._KEPT) <= module.TASKS_KEPT


def test_a_fault_is_found_once(monkeypatch):
    calls = []
    original = module.draw_with_margins
    monkeypatch.setattr(module, "draw_with_margins", lambda *args: calls.append(1) or original(*args))
    case = trials(task(margins=("torch.zeros(1)",)))[0].data
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
    assert trials(spec).exact == [[True], [False], [False, True], [True]]
