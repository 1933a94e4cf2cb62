"""What the workers of an import share: torch's meta device warmed up, once for all forks."""

from __future__ import annotations

import warnings
from importlib import import_module


def load_sampler() -> None:
    """What analyses import, and what torch imports when its meta device is first used: no file should pay for it."""
    import_module("opsmith.judging.preload").load_torch()
    warnings.simplefilter("ignore")
    import torch  # noqa: PLC0415 - a second, which no importer of this module should pay
    from torch import nn  # noqa: PLC0415

    from opsmith.imports.kernelbench import analysis  # noqa: F401, PLC0415

    with torch.device("meta"), torch.no_grad():
        image, row = torch.randn(2, 4, 8, 8), torch.randn(2, 8)
        block = nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.GroupNorm(2, 4), nn.GELU())
        block(image), nn.Linear(8, 8)(row).softmax(-1), nn.LayerNorm(8)(row), row @ row.t()
