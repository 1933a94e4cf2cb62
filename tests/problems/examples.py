"""Problem files that the tests of `problems/` share."""

from opsmith.problems.files.reading import read_problem
from opsmith.problems.problem import Problem

SOFTMAX = """
problem: softmax
dims: {M: 6, N: 40}
inputs: [{name: x, dtype: fp32, shape: [M, N], data: normal}]
outputs: [{name: y, dtype: fp32, shape: [M, N]}]
reference: |
  def softmax(x):
      return torch.softmax(x, -1)
shapes: {odd: {M: 3, N: 129}}
"""

RMS_NORM = """
# Root mean square normalisation of every row.
problem: rms_norm
group: norm
dims: {M: 8, N: 300}
inputs:
  - {name: x, dtype: bf16, shape: [M, N], data: normal}
  - {name: weight, dtype: bf16, shape: [N], data: "uniform(0.5, 1.5)"}
scalars: {eps: 1.0e-5}
outputs: [{name: y, dtype: bf16, shape: [M, N]}]
reference: |
  def rms_norm(x, weight, eps):
      return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight
shapes: {odd: {M: 7, N: 129}}
cases:
  - |
    input_data['x'].mul_(1e-3)
    input_data['x'].abs().max() < 0.1
accumulation: fp32
bench: {small: {M: 64}, odd: {M: 63, N: 511}, large: {M: 512, N: 1024}}
"""

TOP_TWO = """
problem: top_two
dims: {M: 5, N: 9}
inputs: [{name: x, dtype: fp32, shape: [M, 2*N], data: normal}]
outputs:
  - {name: value, dtype: fp32, shape: [M, 2]}
  - {name: position, dtype: int64, shape: [M, 2]}
reference: |
  def top_two(x):
      return x.topk(2)
margins: ["value[:, 0] - value[:, 1]"]
"""


def read_example(text: str, *changes: tuple[str, str]) -> Problem:
    """The problem of an example with parts of its text replaced."""
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return read_problem(text).problem


CONVOLUTION = """
problem: convolution
dims: {C: 3, O: 4, H: 9, H_out: 5}
inputs:
  - {name: x, dtype: fp32, shape: [C, H], data: normal}
  - {name: weight, dtype: fp32, shape: [O, C, 3], data: "make_model().state_dict()['weight']"}
scalars: {slope: 0.5}
outputs: [{name: y, dtype: fp32, shape: [O, H_out]}]
setup: |
  import functools

  @functools.cache
  def make_model():
      return torch.nn.Conv1d(C, O, 3, bias=False)
reference: |
  def convolution(x, weight, slope):
      y = torch.nn.functional.conv1d(x, weight, stride=2, padding=1)
      return torch.where(y > 0, y, y * slope)
constraints: [H_out == (H + 2*1 - 3)//2 + 1]
shapes: {odd: {C: 5, O: 7, H: 33, H_out: 17}}
source:
  format: kernelbench
  file: level1/1_Convolution.py
  sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
  licence: MIT
  text: |

    import torch
      # an odd indentation
  arguments: [x, slope]
  weights: {weight: conv.weight}
  sizes: {H: 4096}
"""
