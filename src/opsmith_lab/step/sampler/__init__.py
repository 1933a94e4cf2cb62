"""A program sampler for STeP: what the embedded chat model is built on. It is no language model.

The language is built in (types, shape primitives, moves, a cost prior); which move to make is learned from the programs
of one prompt. See `docs/design/embedded-model.md`.
"""

from __future__ import annotations

from opsmith_lab.step.sampler.policy import StepPolicy, StepSampler

__all__ = ["StepPolicy", "StepSampler"]
