"""Functions of a user's, in a file of his."""

from pathlib import Path

import pytest

FUNCTIONS = '''
import functools
import math
from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-5
TABLE = torch.ones(3)


def centred(x: Tensor) -> Tensor:
    return x - x.amax(-1, keepdim=True)


def row_softmax(x: Tensor, dim: int = -1) -> "Tensor":
    """Softmax over rows, written out."""
    e = centred(x).exp()  # at most 1
    return e / (e.sum(dim, keepdim=True) + 0 * EPS)


def linear(x, w, b):
    return F.relu(x @ w + b)


def rotated(x):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.cat([a * math.cos(1.0) - b, a + b], -1)


def rotary(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def annotated(x: "N, D", y: Annotated[Tensor, "N"], *, by=2.0):
    return x * y[:, None] * by


def two(x, y):
    return x.sum(-1), (x > y).sum(0)


def heads(x):
    return x.reshape(x.shape[0], 4, 8).sum(1)


def picked(table, idx):
    return table[idx]


def doubled(f):
    @functools.wraps(f)
    def g(*given):
        return 2 * f(*given)
    return g


@doubled
def decorated(x):
    return x + 1


def total(x): return x.sum()
def flat(x): return x.flatten()
def logs(x): return torch.log(x)
def masked(x, mask): return torch.where(mask, x, 0)
def third(x): return x.topk(3, dim=-1).values
def sums(x): return (x * x).sum(-1), x.amin(-1), x.amax(-1)
def diffs(x): return x.diff(dim=-1)
def positive(x): return x[x > 0]
def noisy(x): return x + torch.randn_like(x)
def fails(x): raise ValueError("no\\nway")
def count(x): return len(x)
def pair(x): return {"a": x}
def turned(x): return torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
def reads(x): return x + TABLE
def rolled(x): return x.roll(1, 0)
def variable(*tensors): return tensors[0]
unnamed = lambda x: x
NUMBER = 3


def causal(x):
    row = torch.arange(x.shape[0])[:, None]
    later = torch.arange(x.shape[1]) > row
    return x.masked_fill(later, float("-inf"))


def normed(x, w):
    mean = x.float().square().mean(-1, keepdim=True)
    return (x * torch.rsqrt(mean + 1e-6)).to(x.dtype) * w


def signs(x, keep): return torch.where(x > 0, x, -1) * keep, (x == 0).sum(-1), 1 - x
def clipped(x): return x.clamp(min=0).pow(3)
def best(x): return x.topk(2, dim=-1)
def counted(idx): return torch.zeros(7).scatter_add(0, idx, torch.ones(idx.shape))
def joined(x, y): return torch.cat([x, y], -1)
def chosen(x): return x if x.sum() > 0 else -x
def odd(x): return torch.special.bessel_j0(x)


def dropped(x):
    y = 2 * x
    return torch.nn.functional.dropout(y, 0.5)


def padded(x):
    y = 2 * x
    return torch.nn.functional.pad(y, (1, 1))


def named(x):
    N, D = x.shape
    print("called")
    return x.reshape(D, N)


class Layer(torch.nn.Module):
    def forward(self, x):
        return x
'''


@pytest.fixture(scope="session")
def functions(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("mine") / "my_functions.py"
    file.write_text(FUNCTIONS)
    return file
