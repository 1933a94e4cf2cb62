"""Scores within rounding of each other: right programs pass, wrong routings do not, whatever the task's margins are."""

import pytest
import yaml

from opsmith.judging.verifier import verify
from opsmith.records import Outcome
from opsmith.suites import read_task_file, task_files
from opsmith.targets.step.execution.trials import make_trials
from opsmith.targets.step.ir import read_spec_with_warnings

FILES = {path.stem: path for path in task_files("step26")}


@pytest.fixture
def task_without_margins(tmp_path):
    """A task whose scores crowd together near 1 at a shape set: float64 tells them apart, fp32 does not."""

    def make_task(name, changes=("", ""), **shapes):
        file = yaml.safe_load(FILES[name].read_text(encoding="utf-8").replace(*changes)) | {"shapes": shapes}
        del file["margins"]
        file["cases"] = [case for case in file["cases"] if isinstance(case, str)]
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(file, sort_keys=False), encoding="utf-8")
        return read_task_file(path)

    return make_task


def list_declared(task, shape):
    spec, _ = read_spec_with_warnings(task.text)
    return [trial.data for trial in make_trials(spec) if trial.name == f"{shape} declared precision"]


@pytest.mark.parametrize(
    ("name", "shape", "sizes", "undecided"),
    [
        ("index_2", "crowd22", {"M": 43, "K": 64}, False),  # too many entries of 43: drawn again
        ("index_2", "crowd2", {"M": 200, "K": 64}, True),  # few of 200
        ("index_1", "crowd6", {"M": 43, "K": 64}, True),
    ],
)
def test_a_right_program_passes_where_rounding_chooses(task_without_margins, name, shape, sizes, undecided):
    task = task_without_margins(name, **{shape: sizes})
    verdict = verify(task, task.impl)
    assert verdict.passed, verdict.message
    assert bool(verdict.undecided) == undecided
    assert ("undecided entries not judged" in verdict.message) == undecided


def test_values_that_hang_on_a_choice_are_drawn_again(task_without_margins):
    """Else the distance between two experts would be what a result may be off."""
    (case,) = list_declared(task_without_margins("etoe_2", crowd22={"M": 43, "K": 64}), "crowd22")
    assert float(case.limits[0][0].allowed.max()) < 1e-2


WRONG = {
    "one too many": "(place < 4)",
    "one too few": "(place < 2)",
    "the second best": "((place > 0) & (place < 4))",
    "the worst": "(place > len(place) - 4)",
    "the neighbours": "(place < 3).roll(1)",
    "the first ones": "(torch.arange(len(place)) < 3)",
    "the last of equal ones": "(torch.argsort(torch.argsort(input[0].flip(0), descending=True, stable=True)) < 3).flip(0)",
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
@pytest.mark.parametrize("shape", [{"crowd2": {"M": 200, "K": 64}}, {"crowd22": {"M": 43, "K": 64}}], ids=str)
def test_no_wrong_choice_passes_beside_undecided_entries(task_without_margins, shape, wrong):
    task = task_without_margins("index_2", changes=("(place < 3)", wrong), **shape)
    assert verify(task, task.impl).outcome is Outcome.REFUSED
