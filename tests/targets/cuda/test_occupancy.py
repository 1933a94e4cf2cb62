"""Theoretical occupancy is what NVIDIA's tables and calculator say of an architecture."""

import pytest

from opsmith.targets.gpu.nvidia.occupancy import ARCHITECTURES, KernelLoad, compute_occupancy


@pytest.mark.parametrize(
    ("arch", "load", "blocks", "warps"),
    [  # threads, registers, shared memory, barriers: figures of the occupancy calculator
        ("sm_80", KernelLoad(256, 32, 0), 8, 64),
        ("sm_80", KernelLoad(256, 64, 0), 4, 32),
        ("sm_80", KernelLoad(128, 255, 0), 2, 8),
        ("sm_80", KernelLoad(1024, 64, 0), 1, 32),
        ("sm_80", KernelLoad(1024, 65, 0), 0, 0),
        ("sm_80", KernelLoad(64, 16, 0), 32, 64),
        ("sm_80", KernelLoad(32, 16, 0), 32, 32),
        ("sm_80", KernelLoad(256, 32, 48 << 10), 3, 24),
        ("sm_80", KernelLoad(256, 32, 163 << 10), 1, 8),
        ("sm_80", KernelLoad(256, 32, (163 << 10) + 1), 0, 0),
        ("sm_86", KernelLoad(1024, 32, 0), 1, 32),
        ("sm_86", KernelLoad(768, 32, 0), 2, 48),
        ("sm_86", KernelLoad(64, 32, 0), 16, 32),
        ("sm_86", KernelLoad(128, 40, 0), 12, 48),
        ("sm_86", KernelLoad(128, 41, 0), 10, 40),
        ("sm_89", KernelLoad(64, 32, 0), 24, 48),
        ("sm_89", KernelLoad(128, 32, 99 << 10), 1, 4),
        ("sm_90", KernelLoad(384, 168, 0), 1, 12),
        ("sm_90", KernelLoad(128, 32, 227 << 10), 1, 4),
        ("sm_90", KernelLoad(256, 37, 17 << 10, 1), 6, 48),
        ("sm_100", KernelLoad(512, 32, 0, 1), 4, 64),
        ("sm_100", KernelLoad(96, 32, 0, 16), 4, 12),
    ],
)
def test_it_is_that_of_nvidias_calculator(arch, load, blocks, warps):
    occupancy = compute_occupancy(arch, load)
    assert (occupancy.blocks, occupancy.warps) == (blocks, warps)
    assert occupancy.share == warps / ARCHITECTURES[arch].warps


def test_what_keeps_it_low_is_named():
    assert compute_occupancy("sm_90", KernelLoad(256, 128, 0)).bounds == ["registers"]
    assert compute_occupancy("sm_90", KernelLoad(256, 32, 100 << 10)).bounds == ["shared memory"]
    assert compute_occupancy("sm_90", KernelLoad(32, 16, 0)).bounds == ["blocks"]
    assert compute_occupancy("sm_90", KernelLoad(64, 32, 0)).bounds == ["warps", "blocks", "registers"]
