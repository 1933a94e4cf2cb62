"""torch, imported by a nursery before its first fork, once for all of them. Nobody else imports this module."""

from __future__ import annotations

import contextlib
import tempfile

import torch

with contextlib.suppress(ImportError):  # an extra, which files of others use; no fork can read it
    import einops  # noqa: F401


def load_torch() -> None:
    """What every fork needs that computes with torch."""
    torch.set_num_threads(1)
    torch.backends.cpu.get_cpu_capability()  # read from /proc, which forks cannot: without it no vector instructions
    tempfile.gettempdir()  # found by writing, which no fork can; parts of torch ask for it when they are first used
