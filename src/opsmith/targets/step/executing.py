"""What executes programs and code of a task's author, all on torch: trials and verdicts, the audit, the cost."""

from opsmith.targets.step.audit import audit_task
from opsmith.targets.step.cost import cost_of
from opsmith.targets.step.execution.judge import judge_programs
from opsmith.targets.step.execution.trials import make_trials
from opsmith.targets.step.hidden.trials import hidden_trials
from opsmith.targets.step.library.translation import plan_translation


class StepExecution:
    """In worker processes only."""

    make_trials = staticmethod(make_trials)
    judge_programs = staticmethod(judge_programs)
    hidden_trials = staticmethod(hidden_trials)
    audit_task = staticmethod(audit_task)
    cost_of = staticmethod(cost_of)
    plan_translation = staticmethod(plan_translation)
