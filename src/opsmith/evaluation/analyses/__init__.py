"""Which analyses are there? A further one is a module with a function Study -> Analysis, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opsmith.evaluation.analyses.classes import classes
from opsmith.evaluation.analyses.curves import curves
from opsmith.evaluation.analyses.diversity import diversity
from opsmith.evaluation.analyses.groups import groups
from opsmith.evaluation.analyses.levels import levels
from opsmith.evaluation.analyses.methods import methods
from opsmith.evaluation.analyses.samples import samples
from opsmith.evaluation.found import Analysis
from opsmith.evaluation.study import Study

ANALYSES: Mapping[str, Callable[[Study], Analysis]] = {
    "methods": methods,  # each arm as a whole, and against one of them
    "groups": groups,  # by group of tasks
    "classes": classes,  # by what a task's own program needs, and what the guardian did
    "diversity": diversity,  # how different the answers are
    "curves": curves,  # round by round against input tokens
    "levels": levels,  # what the adaptive granularity costs and brings
    "samples": samples,  # against the number of samples
}
