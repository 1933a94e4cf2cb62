"""What outputs of all passes say: right, wrong, beside an output, junk, or different for the same inputs."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
import torch

from opsmith.problems.faults import TaskFault
from opsmith.problems.files.reading import read_problem
from opsmith.problems.native import NativeData
from opsmith.records import Stage
from opsmith.targets.native.comparison import judge_outputs
from opsmith.targets.native.layout import PASSES, THREADED_PASSES, Damage, write_damage, write_outputs
from opsmith.targets.native.task import NativeOptions
from opsmith.targets.native.trials import NativeTrialData, NativeTrials
from opsmith.targets.trial import TrialResult

DOUBLE = """
problem: double
dims: {M: 3, N: 5}
inputs: [{name: x, dtype: fp32, shape: [M, N], data: normal}]
outputs: [{name: y, dtype: fp32, shape: [M, N]}, {name: positive, dtype: bool, shape: [M, N]}]
reference: |
  def double(x):
      return 2 * x, x > 0
shapes:
  odd: {M: 1, N: 7}
"""


def make_data(options: NativeOptions | None = None, text: str = DOUBLE) -> NativeTrialData:
    trials = NativeTrials(NativeData(read_problem(text).problem), options or NativeOptions()).trials
    data: NativeTrialData = trials[0].data
    return data


DATA = make_data()
Change = Callable[[bytearray, int], object]  # of the bytes of a pass, by its number


def compute_outputs(data: NativeTrialData, change: Change = lambda outputs, number: None) -> bytes:
    """What a right program answers, with every pass changed."""
    right = []
    for draw in data.draws:
        x = draw.declared.input_data["x"]
        right += [(2 * x).numpy().tobytes(), (x > 0).numpy().tobytes()]
    passes = [bytearray(b"".join(right)) for _ in (PASSES if data.options.threads == 1 else THREADED_PASSES)]
    for number, outputs in enumerate(passes):
        change(outputs, number)
    return write_outputs(map(bytes, passes))


def judge_changed(change: Change, data: NativeTrialData = DATA) -> TrialResult:
    return judge_outputs("base", data, compute_outputs(data, change))


def put_number(outputs: bytearray, value: float, place: int = 0) -> None:
    struct.pack_into("f", outputs, 4 * place, value)


def add_ulp(outputs: bytearray) -> None:
    put_number(outputs, float(torch.nextafter(torch.frombuffer(outputs[:4], dtype=torch.float32), torch.tensor(9.0))))


def test_right_outputs_pass() -> None:
    result = judge_outputs("base", DATA, compute_outputs(DATA))
    assert (result.stage, result.errors, result.max_abs_error) == (Stage.MATCH, (), 0.0)


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (lambda outputs, number: put_number(outputs, 99), ["DATA"]),  # wrong in every pass
        (lambda outputs, number: number == 1 and put_number(outputs, 3e36), ["MEMORY", "DATA"]),  # a canary was read
        (lambda outputs, number: number == 1 and put_number(outputs, 99), ["STATE", "DATA"]),
        (lambda outputs, number: number == 1 and add_ulp(outputs), ["STATE"]),  # right, and not the same
        (lambda outputs, number: number == 2 and put_number(outputs, 99), ["STATE", "DATA"]),  # other first values
        (lambda outputs, number: number == 2 and add_ulp(outputs), []),  # another artefact may round otherwise
    ],
)
def test_passes_are_compared_with_what_is_expected_and_with_each_other(change: Change, kinds: list[str]) -> None:
    result = judge_changed(change)
    assert (result.stage, [error.kind for error in result.errors]) == (Stage.MATCH, kinds)


def test_a_finding_says_place_values_and_what_to_try() -> None:
    (finding, *_) = judge_changed(lambda outputs, number: number == 1 and put_number(outputs, 3e36, 7)).errors
    assert finding.where == "output y (fp32 [M, N]) at index [1, 2], base seed 0"
    assert "3.00000004e+36 in another, for the same inputs" in finding.given
    assert "before they are written" in finding.remedy


@pytest.mark.parametrize("options", [NativeOptions(threads=2), NativeOptions(("-O3", "-ffast-math"))])
def test_where_sums_have_no_order_only_limits_count(options: NativeOptions) -> None:
    data = make_data(options)
    assert not judge_changed(lambda outputs, number: number == 1 and add_ulp(outputs), data).errors
    kind = "RACE" if options.threads > 1 else "STATE"
    errors = judge_changed(lambda outputs, number: number == 1 and put_number(outputs, 99), data).errors
    assert [error.kind for error in errors] == [kind, "DATA"]


def test_bools_are_zero_or_one() -> None:
    def write_two(outputs: bytearray, number: int) -> None:
        outputs[DATA.layout.draws[0].outputs[0]] = 2

    (finding,) = judge_changed(write_two).errors
    assert finding.where == "output positive at index [0, 0], base seed 0"
    assert (finding.given, finding.expected) == ("2", "0 or 1")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "0 bytes"),
        (compute_outputs(DATA)[:-1], "bytes of outputs in place of"),
        (write_damage(Damage(0, 1, 0, True, 4)), "a write 4 bytes behind its end"),
        (write_damage(Damage(0, 1, 1, False, 0)), "output positive (bool [M, N]), base seed 1"),
    ],
)
def test_junk_and_damage_are_refused_at_run(answer: bytes, words: str) -> None:
    result = judge_outputs("base", DATA, answer)
    assert (result.stage, len(result.errors)) == (Stage.RUN, 1)
    assert words in str(result.errors[0])


def test_large_draws_are_given_one_at_a_time() -> None:
    text = DOUBLE.replace("M: 3, N: 5", "M: 1000, N: 1200")
    trials = NativeTrials(NativeData(read_problem(text).problem), NativeOptions()).trials
    assert [(trial.name, trial.draws) for trial in trials] == [*[("base", 1)] * 5, ("odd", 3)]


def test_what_no_process_can_be_given_is_the_files_fault() -> None:
    data = make_data(text=DOUBLE.replace("M: 3, N: 5", "M: 5000, N: 5000"))
    with pytest.raises(TaskFault, match="arrays of 375065536 bytes"):
        _ = data.layout
