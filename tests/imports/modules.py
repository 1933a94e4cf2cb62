"""Modules in KernelBench's form, for tests of their import."""

from textwrap import dedent

HEAD = """\
import torch
import torch.nn as nn
"""

SOFTMAX = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.softmax(x, dim=1)

batch_size = 64
dim = 4096 * 4

def get_inputs():
    return [torch.randn(batch_size, dim)]

def get_init_inputs():
    return []
"""

CHAIN = """
class Model(nn.Module):
    \"\"\"A strided convolution of a part of the channels, normalised over the batch, scaled.\"\"\"

    def __init__(self, in_channels, out_channels, kernel_size, groups):
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, kernel_size, stride=2, padding=1, groups=groups)
        self.bn = nn.BatchNorm1d(out_channels)
        self.scale = nn.Parameter(torch.randn(out_channels, 1))

    def forward(self, x, factor, mode):
        y = self.bn(self.conv(x)) * self.scale * factor
        return y if mode == "plain" else -y

batch_size = 128
in_channels, out_channels = 64, 96
length = 4096 * 8
kernel_size = 5
groups = 4

def get_inputs():
    return [torch.rand(batch_size, in_channels, length), 1.5, "plain"]

def get_init_inputs():
    return [in_channels, out_channels, kernel_size, groups]

if __name__ == "__main__":
    print(Model(*get_init_inputs())(*get_inputs()))
"""

NESTED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)))

    def forward(self, pair, index):
        a, b = pair
        a.add_(1)
        return (a @ self.mask, torch.argmax(b[index], dim=-1))

shape = (2048, 8)
rows = 300

def get_inputs():
    a = torch.rand(*shape)
    return [(a, a * 2 - 1), torch.randint(0, shape[0], (rows,))]

def get_init_inputs():
    return []
"""

MANY = """
torch.manual_seed(0)
FACTOR = torch.tensor(2.0, dtype=torch.float32)
TABLE = nn.functional.relu(torch.linspace(-1, 1, 6, dtype=torch.float32))

class Model(nn.Module):
    \"\"\"More weights than a signature bears, and constants of a type of their own.\"\"\"

    def __init__(self, count):
        super().__init__()
        self.rows = nn.ParameterList([nn.Parameter(torch.randn(6)) for _ in range(count)])
        self.norm = nn.LayerNorm(6)
        self.table = torch.stack([TABLE] * 6).to(torch.float32)

    def forward(self, x):
        for row in self.rows:
            x = x + 0.1 * row
        return self.norm(x @ self.table * FACTOR)

batch_size = 32
count = 130

def get_inputs():
    return [torch.randn(batch_size, 6)]

def get_init_inputs():
    return [count]
"""


def write_module(body: str, *changes: tuple[str, str]) -> str:
    """The text of a file; each change replaces what is in the body."""
    for before, after in changes:
        assert before in body
        body = body.replace(before, after)
    return HEAD + dedent(body)
