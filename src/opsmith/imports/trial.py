"""Trials of a drafted problem file, in a confined worker: does its reference run at these sizes, twice the same?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from opsmith.imports.serving import serve_requests
from opsmith.problems.drawing import draw_data, make_seed, widen_data
from opsmith.problems.faults import TaskFault
from opsmith.problems.files.reading import read_problem
from opsmith.problems.precision import own_randomness, widen_floats
from opsmith.problems.problem import Problem
from opsmith.problems.reference import Values, compute_expected


def try_problem(request: Mapping[str, Any]) -> dict[str, Any]:
    """For each of `sets` of the problem file `text`: what is wrong there ("": nothing), and the seconds it took."""
    problem = read_problem(request["text"]).problem
    return {"trials": [_try_sizes(problem, sizes) for sizes in request["sets"]]}


def _try_sizes(problem: Problem, sizes: Mapping[str, int]) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        mistake = _find_mistake(problem, sizes)
    except TaskFault as fault:
        mistake = f"{fault.diagnostic.where}: {fault.diagnostic.given}"
    return {"mistake": mistake, "seconds": time.perf_counter() - start}


def _find_mistake(problem: Problem, sizes: Mapping[str, int]) -> str:
    """As a person should read it. Raises TaskFault."""
    seed = make_seed("import")
    wide = widen_data(problem, draw_data(problem, sizes, seed), seed)
    runs: list[Values] = []
    for number in (1, 2):
        with own_randomness(number):
            runs.append(compute_expected(problem, wide))
    pairs = (pair for rows in zip(*runs, strict=True) for pair in zip(*rows, strict=True))
    if all(torch.equal(widen_floats(x), widen_floats(y)) for x, y in pairs):
        return ""
    return "random: its reference gives other values for the same inputs"


serve_trials = partial(serve_requests, try_problem)
