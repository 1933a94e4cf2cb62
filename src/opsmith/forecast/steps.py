"""What optimisation rounds would ask at most: every task stays open in every round, with as many programs as its beam.

Prompts are composed as they would be, around a program as long as the task's own or as a reply may be. What cannot be
known is taken from the worst side: the constants below.
"""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.agents.analysis import AnalystBrief, request_analysis
from opsmith.agents.generation import GeneratorBrief, request_program
from opsmith.forecast.prices import bill_requests
from opsmith.models import Message
from opsmith.models.roles import NO_MODEL
from opsmith.models.tokens import MESSAGE_TOKENS, estimate_tokens
from opsmith.records import Suggestion, Task, Usage
from opsmith.settings import Settings
from opsmith.targets import get_target

PROFILE_TOKENS = 4096  # of all profiles of a program
ATTEMPT_TOKENS = 2048  # of all earlier attempts that an analyst is told of
SUGGESTION = Suggestion("x" * 400, "x" * 200, "x" * 400, "x" * 200)


def bill_steps(settings: Settings, tasks: Sequence[Task], rounds: int | None = None) -> Usage:
    """Of the settings' optimisation rounds, or of the first ones; nothing where they ask for none."""
    optimisation = settings.optimisation
    beams = [
        1 if number == 0 or not optimisation.refine else optimisation.beam for number in range(optimisation.optimise)
    ][:rounds]
    steps = sum(beams) * optimisation.attempts
    return (
        Usage.total([_bill_sample(settings, task, steps) for task in tasks]) if steps and tasks else Usage(cost_usd=0.0)
    )


def _bill_sample(settings: Settings, task: Task, times: int) -> Usage:
    """Of one sample of a task with all its fixes, as many times."""
    reply, provider, prompt = settings.method.max_tokens, settings.provider, _count_generator(settings, task)
    turns = [prompt + turn * 2 * (reply + MESSAGE_TOKENS) for turn in range(settings.optimisation.fixes + 1)]
    bills = [bill_requests(settings, times, tokens, reply) for tokens in turns]
    analyst = settings.optimisation.analyst or provider.model
    if analyst != NO_MODEL:
        url = settings.optimisation.analyst_url or (provider.base_url if analyst == provider.model else None)
        bills.append(bill_requests(settings, times, _count_analyst(settings, task), reply, analyst, url))
    return Usage.total(bills)


def _count_generator(settings: Settings, task: Task) -> int:
    """The input tokens of a generator's request."""
    own = settings.optimisation.analyst != NO_MODEL
    generation = settings.generation
    brief = GeneratorBrief(
        task,
        settings.optimisation.objective,
        task.impl or "",
        SUGGESTION if own else None,
        has_example=generation.example_pair,
    )
    programs = generation.memory * 2 + (generation.reference is not None) + (task.impl is None)
    return _count_messages(request_program(get_target(task.target), brief)) + programs * settings.method.max_tokens


def _count_analyst(settings: Settings, task: Task) -> int:
    brief = AnalystBrief(task, settings.optimisation.objective, task.impl or "")
    program = 0 if task.impl is not None else settings.method.max_tokens
    return _count_messages(request_analysis(get_target(task.target), brief)) + program + PROFILE_TOKENS + ATTEMPT_TOKENS


def _count_messages(messages: Sequence[Message]) -> int:
    return sum(estimate_tokens(message.content) + MESSAGE_TOKENS for message in messages)
