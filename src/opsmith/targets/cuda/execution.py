"""Runs a built program in the candidate's process: the library of the emulator, by its plan. No torch, no numpy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from opsmith.targets.cuda.emulator.running import run_emulated
from opsmith.targets.gpu.plan import read_bound_plan

EMULATED, PLAN = "emulated", "plan"


def run_artefacts(artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
    """The outputs of all passes over a trial's draws. What the emulator finds is raised, in words."""
    return run_emulated(artefacts[EMULATED], read_bound_plan(artefacts[PLAN].read_bytes()), inputs)
