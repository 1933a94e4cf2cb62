"""Optimisers that ask no model, each at its usual settings: what a chat model is compared with.

All search the unit cube of the domain, begin at random, and have a stream of random numbers of their own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from opsmith.errors import UsageError
from opsmith_lab.study.arms import BUDGET, HistoryArm, Script, ScriptedArm, SearchArm
from opsmith_lab.study.minds import MINDS, Proposer
from opsmith_lab.study.trajectory import Array, Domain

STEP = 0.1  # of each range: the deviation of the greedy arm's steps
SIGMA = 1 / 3  # of each range: CMA-ES's first deviation
_MISSING = "expected the packages of the extra `study`; try: pip install 'opsmith[study]'"


def draw_uniform(shares: Array, values: Array, rng: np.random.Generator) -> Array:
    """Anywhere."""
    return np.asarray(rng.random(shares.shape[1]))


def step_from_best(shares: Array, values: Array, rng: np.random.Generator) -> Array:
    """Normal steps of STEP about the best point so far, of whatever worth the others are."""
    if not len(values):
        return draw_uniform(shares, values, rng)
    point: Array = rng.normal(shares[np.argmin(values)], STEP)
    return point


def make_sobol(domain: Domain, seed: int) -> SearchArm:
    """Scrambled Sobol points."""
    engine = torch.quasirandom.SobolEngine(domain.dimension, True, seed % 2**63)  # type: ignore[no-untyped-call]
    points = engine.draw(BUDGET, dtype=torch.float64).numpy()
    return HistoryArm(domain, seed, lambda shares, values, rng: points[len(shares)])


def make_cma(domain: Domain, seed: int) -> Any:
    """CMA-ES from a random start, in the cube. Raises UsageError where `cma` is missing."""
    try:
        with warnings.catch_warnings():  # it draws no figures here
            warnings.simplefilter("ignore")
            import cma  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(f"arm cma: {error}; {_MISSING}") from None
    rng = np.random.default_rng(seed)
    options = {"bounds": [0, 1], "verbose": -9, "seed": np.nan, "randn": lambda *shape: rng.standard_normal(shape)}
    return cma.CMAEvolutionStrategy(rng.random(domain.dimension), SIGMA, options)


def run_cma(domain: Domain, seed: int) -> Script:
    strategy = make_cma(domain, seed)
    while True:
        generation, values = strategy.ask(), []
        for shares in generation:
            values.append((yield domain.from_unit(shares)))
        strategy.tell(generation, values)


def run_optuna(sampler: str, domain: Domain, seed: int) -> Script:
    """A sampler of Optuna's at its defaults. Raises UsageError where a package is missing."""
    try:
        import optuna  # noqa: PLC0415 - an extra

        if sampler == "GPSampler":
            import scipy  # noqa: F401, PLC0415 - which Optuna imports on use
    except ImportError as error:
        raise UsageError(f"arm of Optuna's {sampler}: {error}; {_MISSING}") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=getattr(optuna.samplers, sampler)(seed=seed % 2**32))
    space: dict[str, Any] = {
        f"x{axis}": optuna.distributions.FloatDistribution(0, 1) for axis in range(domain.dimension)
    }
    while True:
        trial = study.ask(space)
        value = yield domain.from_unit(np.array([trial.params[name] for name in space]))
        study.tell(trial, value)


def _from_history(propose: Proposer) -> Callable[[Domain, int], SearchArm]:
    return lambda domain, seed: HistoryArm(domain, seed, propose)


OPTIMISERS: Mapping[str, Callable[[Domain, int], SearchArm]] = {
    "random": _from_history(draw_uniform),
    "quasi-random": make_sobol,
    "greedy": _from_history(step_from_best),
    "cma": lambda domain, seed: ScriptedArm(run_cma(domain, seed)),
    "tpe": lambda domain, seed: ScriptedArm(run_optuna("TPESampler", domain, seed)),
    "gp": lambda domain, seed: ScriptedArm(run_optuna("GPSampler", domain, seed)),
} | {name: _from_history(propose) for name, propose in MINDS.items()}
