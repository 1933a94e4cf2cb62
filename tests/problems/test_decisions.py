"""Where rounding decides: entries that are not judged, draws that are drawn again, one rule for verdicts and measuring."""

import pytest
import torch
from problems.examples import TOP_TWO

from opsmith.measuring.data_worker import STEPS, encode_draw
from opsmith.problems.drawing import draw_data, make_seed, widen_data
from opsmith.problems.faults import TaskFault
from opsmith.problems.files.reading import read_problem
from opsmith.problems.native import NativeData, NativeDraw
from opsmith.records import Stage, Task
from opsmith.targets.native.comparison import judge_outputs
from opsmith.targets.native.layout import read_inputs, write_inputs, write_outputs
from opsmith.targets.native.trials import make_trials
from opsmith.targets.trial import TrialResult

BEST = """
problem: best_score
dims: {M: 2000, K: 64}
inputs:
  - {name: x, dtype: fp32, shape: [M, K], data: normal}
  - {name: w, dtype: fp32, shape: [K, 8], data: normal}
outputs: [{name: best, dtype: int64, shape: [M]}]
reference: |
  def best_score(x, w):  # near 1, where fp32 has fewer numbers than float64
      return torch.sigmoid(x @ w).argmax(-1)
"""
CHOICE = "torch.sigmoid(x @ w).argmax(-1)"
CONTINUOUS = BEST.replace("best, dtype: int64", "y, dtype: fp32")


def compute_rows(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The scores in fp32, by another order of sums than the reference's."""
    return torch.stack([(x[:, k, None] * w[k]) for k in reversed(range(x.shape[1]))]).sum(0)


def test_undecided_entries_are_counted_and_not_compared() -> None:
    trial = make_trials(BEST).trials[0]
    outputs = []
    for draw in trial.data.draws:
        best = torch.sigmoid(compute_rows(**draw.declared.input_data)).argmax(-1)
        assert not torch.equal(best, draw.expected[0][0])
        outputs.append(best)

    def judge(outputs: list[torch.Tensor]) -> TrialResult:
        passes = [b"".join(best.numpy().tobytes() for best in outputs)] * 3
        return judge_outputs("base", trial.data, write_outputs(passes))

    right = judge(outputs)
    assert (right.stage, right.errors, right.max_abs_error) == (Stage.MATCH, (), 0.0)
    assert right.undecided == trial.data.undecided > 0
    wrong = (lambda best: best.roll(1), lambda best: (best + 1) % 8, lambda best: best * 0)
    assert all(judge([change(best) for best in outputs]).errors for change in wrong)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            BEST.replace("x @ w", "2 * x @ w"),
            "of 2000 discrete entries that rounding decides in all of 3 draws at K = 64",
        ),
        (
            CONTINUOUS.replace(CHOICE, f"w.T.gather(0, {CHOICE}[:, None]).squeeze(1)"),
            "values that hang on a decision which rounding makes in all of 3 draws",
        ),
    ],
)
def test_data_that_rounding_decides_is_drawn_again_and_given_up(
    text: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NativeDraw, "attempts", 3)
    with pytest.raises(TaskFault, match="`margins` that keep decisions away") as caught:
        _ = NativeData(read_problem(text).problem).sets[0].draws[0].declared
    assert words in str(caught.value)


@pytest.mark.parametrize("body", ["torch.where(x @ w > 0, x @ w, 0.0)[:, 0]", "(x @ w).sort(-1).values[:, 0]"])
def test_decisions_that_change_nothing_are_none(body: str) -> None:
    """Either side of 0, and any order of equal numbers, is the same result: the data is the first that was drawn."""
    problem = read_problem(CONTINUOUS.replace(CHOICE, body)).problem
    draw = NativeData(problem).sets[0].draws[0]
    first = draw_data(problem, {}, make_seed("base 0"))
    assert draw.find_unclear(first, widen_data(problem, first, 0)) is None
    assert torch.equal(draw.declared.input_data["x"], first.input_data["x"])


@pytest.mark.parametrize(("text", "factor"), [(BEST, 2.0), (TOP_TWO, 0.0)])
def test_what_a_verdict_would_draw_again_is_undecided_while_it_is_timed(text: str, factor: float) -> None:
    sizes = dict(read_problem(text).problem.sizes)
    layout, (arrays,) = read_inputs(memoryview(encode_draw(text, sizes, 0)))
    first = torch.frombuffer(bytearray(arrays[0]), dtype=torch.float32) * factor
    inputs = write_inputs(layout, [first.numpy().tobytes(), *map(bytes, arrays[1:])])
    request = {"sizes": sizes, "blobs": [inputs, b""]}
    assert STEPS["check_timed"](Task("t", "c", text), request) == {"is_undecided": True, "errors": []}
