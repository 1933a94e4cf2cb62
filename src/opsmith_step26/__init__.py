"""`vf-eval opsmith-step26`: the name under which `verifiers` looks for the environment of `opsmith.bridges`."""

from opsmith.bridges.prime_verifiers import OneAnswer, StepEnv, StepTaskset

__all__ = ["OneAnswer", "StepEnv", "StepTaskset"]
