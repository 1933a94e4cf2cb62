"""What would runs ask and cost, before anything is spent? Their first rounds, and an upper bound for all of them.

Counted with the rule of thumb of prompts (characters / 4); every provider counts differently. The bound takes what
cannot be known from the worst side: `ASSUMED` says how.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opsmith.agents.prompt import MESSAGE_TOKENS, Prompt, compose, estimate_tokens
from opsmith.evaluation.plan import Planned
from opsmith.models.batch import DISCOUNT
from opsmith.models.price import cost_usd
from opsmith.models.table import family_of, find_family
from opsmith.records import Task, Usage
from opsmith.settings import Settings
from opsmith.targets import get_target

ASSUMED = (
    "Tokens are characters / 4; every reply is as long as max_tokens allows; no prompt cache is assumed.",
    "A request for several completions reads its prompt once; --batch costs half.",
    "The guardian (llm) is asked once for each answer; each turn of repair is asked, with findings as long as a reply.",
    "At most: every cycle solves one task, in its last round; each further round shows all solved tasks, with programs "
    "as long as a reply. Runs end far earlier.",
    "A run that may spend as many tokens as another is cut at the mean of its samples so far: it may miss by a few.",
    "A run that the store holds already is found there and costs nothing again.",
)


@dataclass(frozen=True)
class Forecast:
    """One run. `cost_usd` None: the price of its model is not known."""

    arm: str
    model: str
    seed: int
    first: Usage  # of its first round
    rounds: int | None  # at most; None: another run's spending is the measure
    most: Usage


@dataclass(frozen=True)
class _Round:
    tasks: int
    demonstrations: int


def forecast(planned: Sequence[Planned], tasks: Sequence[Task]) -> tuple[Forecast, ...]:
    """In the order of the runs."""
    found: list[Forecast] = []
    for item in planned:
        measure = next((f.most for f in found if _is_measure(f, item)), None)
        found.append(of_run(item.arm.name, item.settings, tasks, measure))
    return tuple(found)


def of_run(name: str, settings: Settings, tasks: Sequence[Task], measure: Usage | None = None) -> Forecast:
    """One run. `measure`: what another run has spent, or may spend at most, if this one may spend as much.

    Raises UsageError where the model cannot do what the settings ask for.
    """
    family_of(settings)
    first = _spent(settings, tasks, [_Round(len(tasks), 0)])
    rounds = list(_rounds(settings, len(tasks)))
    count, most = (len(rounds), _spent(settings, tasks, rounds)) if measure is None else (None, measure)
    return Forecast(name, settings.model, settings.seed, first, count, most)


def price(model: str, base_url: str | None, requests: int, input_tokens: int, output_tokens: int) -> float | None:
    """USD of as many equal requests; 0 for a model that asks no server, None where no price is listed.

    Raises UsageError for a name that is no model's: it would look free.
    """
    prefix, family = find_family(model)
    server = family.server
    if server is None:
        return 0.0
    if base_url is not None and base_url.rstrip("/") != server.url:
        return None
    one = cost_usd(server.prices, (model.removeprefix(prefix),), Usage(1, input_tokens, output_tokens))
    return None if one is None else one * requests


def _is_measure(other: Forecast, item: Planned) -> bool:
    return (other.arm, other.model, other.seed) == (item.measure, item.settings.model, item.settings.seed)


def _rounds(settings: Settings, tasks: int) -> Iterator[_Round]:
    """The longest run there can be: one task is solved in the last round of every cycle."""
    most = settings.max_rounds
    wanted = [_Round(tasks, 0)]
    if settings.selection == "none":
        wanted *= most or 1
    else:
        levels = 1 if settings.selection == "all" else settings.levels
        wanted += [_Round(tasks - n, n) for n in range(1, tasks) for _ in range(min(levels, n))]
    yield from wanted[:most]


def _spent(settings: Settings, tasks: Sequence[Task], rounds: Sequence[_Round]) -> Usage:
    """What the rounds ask of the model and its guardian."""
    prompts = [_prompt(task, settings) for task in tasks]
    prompt = sum(found.tokens for found in prompts) // len(prompts)
    shown = max(estimate_tokens(found.messages[-1].content) for found in prompts) + settings.max_tokens
    total = Usage(cost_usd=0.0)
    for one in rounds:
        asked = prompt + one.demonstrations * shown
        cells = one.tasks * len(settings.temperatures)
        for number, tokens in enumerate(_requests(settings, tasks[0], asked)):
            for size, count in _sizes(settings.samples, 1 if number else settings.completions):
                total += _bill(settings, cells * count, tokens, size * settings.max_tokens)
    return total


def _bill(settings: Settings, requests: int, read: int, written: int) -> Usage:
    """Of as many equal requests, each of so many input and output tokens."""
    usd = price(settings.model, settings.base_url, requests, read, written)
    if usd is not None and settings.batch:
        usd *= DISCOUNT
    return Usage(requests, requests * read, requests * written, 0, usd)


def _sizes(samples: int, completions: int) -> Iterator[tuple[int, int]]:
    """(completions of a request, how many such requests) that make so many samples.

    >>> list(_sizes(64, 1)), list(_sizes(64, 10))
    ([(1, 64)], [(10, 6), (4, 1)])
    """
    if samples >= completions:
        yield completions, samples // completions
    if samples % completions:
        yield samples % completions, 1


def _requests(settings: Settings, task: Task, prompt: int) -> Iterator[int]:
    """The input tokens of each request that one sample may make; the first is the proposer's."""
    guardian = get_target(task.target).guardian_prompt() if settings.guardian == "llm" else None
    for turn in range(settings.repair + 1):
        yield prompt + turn * 2 * (settings.max_tokens + MESSAGE_TOKENS)
        if guardian is not None and settings.agents == "agent":
            yield estimate_tokens(guardian) + settings.max_tokens + 2 * MESSAGE_TOKENS


def _prompt(task: Task, settings: Settings) -> Prompt:
    """The first round's."""
    return compose(task, (), get_target(task.target), None, 0, style=settings.prompt)
