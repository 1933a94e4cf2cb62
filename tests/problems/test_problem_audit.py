"""The neutral checks say of a problem file whether its data tells right from wrong."""

import textwrap
from pathlib import Path

import pytest
from problems.examples import RMS_NORM, SOFTMAX, TOP_TWO, read_example

from opsmith.problems.audit.findings import Finding, State
from opsmith.problems.audit.problem import audit_problem
from opsmith.problems.files.reading import read_problem

PAGE = Path(__file__).parents[2] / "docs" / "problem-files.md"


def find_faults(text: str, *changes: tuple[str, str]) -> list[Finding]:
    """All but notes: those say which distributions a problem cannot be judged on."""
    findings = audit_problem(read_example(text, *changes))
    return [finding for finding in findings if finding.state not in (State.FINE, State.NOTE)]


def read_page() -> str:
    _, _, block = PAGE.read_text("utf-8").partition("```yaml\n")
    return textwrap.dedent(block.partition("```")[0])


@pytest.mark.parametrize("text", [SOFTMAX, RMS_NORM, TOP_TWO, read_page()])
def test_a_sound_file_is_fine(text: str) -> None:
    assert find_faults(text) == []


@pytest.mark.parametrize(
    ("before", "after", "check", "words"),
    [
        ("torch.softmax(x, -1)", "torch.zeros_like(x)", "answers", "y = zeros"),
        ("torch.softmax(x, -1)", "torch.softmax(x, -1) * torch.rand(1)", "reference", "it is random"),
        ("data: normal", 'data: "torch.ones(M, N)"', "inputs", "a `data` that draws"),
        ("torch.softmax(x, -1)", "(x - x) / (x - x)", "data", "NaN in the reference"),
    ],
)
def test_a_weak_file_is_told_what_to_do(before: str, after: str, check: str, words: str) -> None:
    findings = find_faults(SOFTMAX, (before, after))
    texts = [f"{row.tried} {row.found} {row.remedy}" for row in findings if row.check == check]
    assert any(words in text for text in texts), findings
    assert not any("data_transform" in text or "data_gen" in text for text in texts)


def test_an_input_that_no_output_needs_is_found() -> None:
    more = ("data: normal}]", "data: normal}, {name: bias, dtype: fp32, shape: [N], data: normal}]")
    (finding,) = find_faults(SOFTMAX, more, ("softmax(x):", "softmax(x, bias):"))
    assert finding.check == "inputs"
    assert "may ignore bias" in finding.found


DECIDED = """
problem: decided
dims: {M: 8, N: 30}
inputs: [{name: x, dtype: fp32, shape: [M, N], data: normal}]
outputs: [{name: best, dtype: int64, shape: [M]}, {name: over, dtype: bool, shape: [M, N]}]
reference: |
  def decided(x):
      return x.argmax(-1), x > 0.5
"""


def find_ties(text: str) -> list[Finding]:
    notes = [finding for finding in audit_problem(read_problem(text).problem) if finding.state is State.NOTE]
    return [finding for finding in notes if finding.check == "answers"]


def test_equal_numbers_that_no_draw_has_are_told_with_the_case_to_add() -> None:
    comparison, order = find_ties(DECIDED)
    assert (comparison.check, comparison.state, "`>=` for `>`" in comparison.tried) == ("answers", State.NOTE, True)
    assert "ties: of equal ones the first" in order.remedy
    pasted = order.remedy.partition("\n")[2]
    assert find_ties(f"{DECIDED}{pasted}\n") == []


def test_a_comparison_whose_sides_are_equal_anyway_is_no_tie() -> None:
    assert find_ties(SOFTMAX.replace("torch.softmax(x, -1)", "torch.where(x > 0, x, 0)")) == []
