"""The analyses by name. A further one is a function Study -> Analysis, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opsmith_lab.evaluation.analyses import shares
from opsmith_lab.evaluation.analyses.curves import analyse_curves
from opsmith_lab.evaluation.analyses.diversity import analyse_diversity
from opsmith_lab.evaluation.analyses.feedback import analyse_feedback
from opsmith_lab.evaluation.analyses.gains import analyse_gains
from opsmith_lab.evaluation.analyses.learning import analyse_learning
from opsmith_lab.evaluation.analyses.solved import analyse_solved
from opsmith_lab.evaluation.analysis import Analysis
from opsmith_lab.evaluation.study import Study

ANALYSES: Mapping[str, Callable[[Study], Analysis]] = {
    "methods": shares.analyse_methods,  # each arm as a whole, and against one of them
    "groups": shares.analyse_groups,  # by group of tasks
    "classes": shares.analyse_classes,  # by what a task's own program needs, and what the guardian did
    "diversity": analyse_diversity,  # how different the answers are
    "curves": analyse_curves,  # round by round against input tokens
    "levels": shares.analyse_levels,  # what the adaptive granularity costs and brings
    "samples": shares.analyse_samples,  # against the number of samples
    "solved": analyse_solved,  # which tasks each arm solves, and how many more than one of them, pair by pair
    "learning": analyse_learning,  # is what was learned worth more than other text of that length?
    "feedback": analyse_feedback,  # are programs better after what was said of earlier ones, language by language?
    "gains": analyse_gains,  # how much better right programs become
}
