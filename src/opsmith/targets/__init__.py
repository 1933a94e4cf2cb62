"""What a target language gives the rest of the system. Nothing outside a target's own folder knows its language.

`protocols` has all that a target is or may add, `capabilities` what becomes of one that does not add it, `lookup`
finds targets by name.
"""

from __future__ import annotations

from opsmith.targets.lookup import BUILT_IN, TARGETS, get_target, is_known_elsewhere, is_own
from opsmith.targets.programs import Build
from opsmith.targets.protocols import Built, Commanded, Executed, Hosted, Loaded, Policy, Sampler, Target
from opsmith.targets.trial import Checked, TaskFault, Trial, TrialResult, is_lack_of_memory, list_runnable

__all__ = [
    "BUILT_IN",
    "TARGETS",
    "Build",
    "Built",
    "Checked",
    "Commanded",
    "Executed",
    "Hosted",
    "Loaded",
    "Policy",
    "Sampler",
    "Target",
    "TaskFault",
    "Trial",
    "TrialResult",
    "get_target",
    "is_known_elsewhere",
    "is_lack_of_memory",
    "is_own",
    "list_runnable",
]
