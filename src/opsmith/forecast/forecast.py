"""What runs would ask and cost, before anything is spent: their first rounds, what is expected, and an upper bound.

Counted with the rule of thumb of prompts (characters / 4); every provider counts differently. The bound takes what
cannot be known from the worst side: `list_assumptions` says how.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import mean

from opsmith.agents.manual import find_manual
from opsmith.agents.prompt import compose_prompt
from opsmith.forecast.prices import bill_requests
from opsmith.forecast.steps import bill_steps
from opsmith.learn.compose import choose_style
from opsmith.learn.optimisation import choose_objective
from opsmith.models.table import (
    check_family,
    check_team,
    check_thinking,
    check_tools,
    choose_analyst,
    choose_proposers,
)
from opsmith.models.tokens import MESSAGE_TOKENS, estimate_tokens
from opsmith.records import Task, Usage
from opsmith.results.precedents import (
    Precedent,
    describe_basis,
    find_pace,
    guess_rounds,
    name_runs,
    read_precedents,
)
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.spending import RunPace
from opsmith.targets import get_target
from opsmith.targets.protocols import GUARDIAN

RESULT_TOKENS = 1024  # of what a tool says


@dataclass(frozen=True)
class Duration:
    """How long requests take, and judging their programs, at the pace of a stored run. In seconds."""

    pace: RunPace
    requests: int
    at_once: int  # requests
    workers: int

    @property
    def asking(self) -> tuple[float, float]:
        """With as many at once as are allowed, and as that run's replies came one after another."""
        alone = self.requests * self.pace.request_s / max(1, min(self.at_once, self.requests))
        return alone, max(self.pace.request_s, self.requests * self.pace.reply_s)

    @property
    def judging(self) -> float:
        """Of as many different programs for a request as that run had; while others are asked for."""
        programs = self.requests * self.pace.programs / self.pace.requests
        return programs * self.pace.program_s / max(1, min(self.workers, programs))


@dataclass(frozen=True)
class Forecast:
    """One run. `cost_usd` None: the price of its model is not known."""

    arm: str
    model: str
    seed: int
    first: Usage  # of its first round
    rounds: int | None  # at most; None: another run's spending is the measure
    most: Usage
    expected_rounds: float | None  # the mean over the precedents; None: another run's spending is the measure
    expected: Usage
    precedents: tuple[str, ...]  # the stored runs that tell what is expected; (): a guess, or a measure
    is_guessed: bool = False  # the expected replies are half of max_tokens: no precedent has any of its model
    duration: Duration | None = None  # of what is expected; None: no stored run of its model tells


@dataclass(frozen=True)
class Measure:
    """What a run may spend whose measure is another one: what that may spend at most, and what is expected of it."""

    most: Usage
    expected: Usage


@dataclass(frozen=True)
class _Round:
    tasks: int
    demonstrations: int

    def bound(self, tasks: int, demonstrations: int) -> _Round:
        """A round with so many, or as many as ask for no more than this one does."""
        asked = min(tasks, self.tasks)
        return _Round(asked, min(demonstrations, self.tasks * self.demonstrations // asked))


def forecast_run(
    name: str,
    settings: Settings,
    tasks: Sequence[Task],
    measure: Measure | None = None,
    begins_right: bool = False,
    store: Store | None = None,
    given: int = 0,
) -> Forecast:
    """One run. `measure`: what another run has spent, or may spend, if this one may spend as much; `begins_right`: with
    a right program of every task, so that there is nothing to solve; `store`: whose runs tell what to expect; `given`:
    known programs that it shows from the first round on.

    Raises UsageError where the model or the language cannot do what the settings ask for.
    """
    check_family(settings.provider)
    check_team(settings)
    check_tools(settings)
    check_thinking(settings)
    settings = choose_objective(choose_analyst(settings), tasks)
    steps, optimise = bill_steps(settings, tasks), settings.optimisation.optimise
    listed = [] if begins_right else _list_rounds(settings, len(tasks), given)
    first = bill_steps(settings, tasks, 1) if begins_right else _bill_team(settings, tasks, listed[:1])
    limit = _bill_team(settings, tasks, listed) if listed else Usage(cost_usd=0.0)
    model, seed = settings.provider.model, settings.seed
    if measure is not None:
        duration = expect_duration(settings, tasks, measure.expected, store)
        return Forecast(name, model, seed, first, None, measure.most, None, measure.expected, (), duration=duration)
    precedents = list_precedents(settings, tasks, store)
    held, expected = expect_run(settings, tasks, precedents, listed)
    runs, duration = name_runs(precedents), expect_duration(settings, tasks, expected, store)
    bounds, is_guessed = (len(listed) + optimise, limit + steps), not _list_replies(settings, precedents)
    return Forecast(name, model, seed, first, *bounds, held, expected, runs, is_guessed, duration)


def list_precedents(settings: Settings, tasks: Sequence[Task], store: Store | None) -> tuple[Precedent, ...]:
    """The stored runs that tell what to expect of one with these settings; else the guess."""
    target, names = get_target(tasks[0].target).name, [task.id for task in tasks]
    stored = read_precedents(store, settings.as_flat("json"), target, names) if store is not None else ()
    return stored or (guess_rounds(settings.method.levels, settings.optimisation.optimise),)


def expect_run(
    settings: Settings, tasks: Sequence[Task], precedents: Sequence[Precedent], longest: Sequence[_Round]
) -> tuple[float, Usage]:
    """Rounds and usage of a run that goes as these did, the mean: with replies as long as its model's, or of half the
    limit. Never more than in the rounds of the longest run."""
    limit, count = settings.method.max_tokens, len(precedents)
    own = _list_replies(settings, precedents)
    usual = settings.replace(max_tokens=max(1, min(limit, round(mean(own) if own else limit / 2))))
    solving = [
        most.bound(*each)
        for precedent in precedents
        for most, each in zip(longest, precedent.list_rounds(len(tasks), None), strict=False)
    ]
    usage = _bill_team(usual, tasks, solving).scale(1 / count) if solving else Usage(cost_usd=0.0)
    optimise = settings.optimisation.optimise
    improving = mean(min(each.improved, optimise) for each in precedents)
    if improving:
        usage += bill_steps(usual, tasks).scale(improving / optimise)
    return len(solving) / count + improving, usage


def _list_replies(settings: Settings, precedents: Sequence[Precedent]) -> list[float]:
    """The mean tokens of a reply, of those with its model."""
    return [each.reply_tokens for each in precedents if each.reply_tokens and each.model == settings.provider.model]


def expect_duration(settings: Settings, tasks: Sequence[Task], expected: Usage, store: Store | None) -> Duration | None:
    """Of so many requests; None: no run of the store has asked the model."""
    target = get_target(tasks[0].target).name
    pace = find_pace(store, settings.as_flat("json"), target) if store is not None else None
    own = settings.provider.concurrency, settings.place.workers
    return None if pace is None else Duration(pace, expected.requests, *own)


def describe_expectation(forecasts: Sequence[Forecast]) -> str:
    """Where the expected numbers come from, a line for each source."""
    own = [forecast for forecast in forecasts if forecast.expected_rounds is not None]
    if not own:
        return "Expected: what the run spent that is the measure."
    sources = dict.fromkeys(forecast.precedents for forecast in own)
    arms = {runs: sorted({each.arm for each in own if each.precedents == runs}) for runs in sources}
    names = {runs: f" of {', '.join(arms[runs])}" if len(sources) > 1 else "" for runs in sources}
    lines = [f"Expected rounds{names[runs]}: {describe_basis(runs)}." for runs in sources]
    if guessed := sorted({f"{each.arm} ({each.model})" for each in own if each.is_guessed}):
        lines.append(
            f"Expected replies of {', '.join(guessed)}: half of max_tokens, as no such run of the model is stored."
        )
    free = sorted({each.model for each in own if each.expected.cost_usd is None})
    if free:
        lines.append(f"No price of {', '.join(free)} is known; of a server of your own: --price-in and --price-out.")
    return "\n".join(lines)


def list_assumptions(runs: Sequence[Settings]) -> tuple[str, ...]:
    """What the forecasts of runs with these settings rest on, a sentence each; what none of them does is left out."""
    million = ((1000, 0), (0, 1000))  # tokens of each of 1,000 requests
    prices = {own.provider.model: [bill_requests(own, 1000, *each).cost_usd for each in million] for own in runs}
    methods, teams = [settings.method for settings in runs], [settings.teamwork for settings in runs]
    said = {
        "Tokens: characters / 4, without a prompt cache.": True,
        "Replies: as long as max_tokens allows; expected, where nothing else is said: as those of stored runs of "
        "the model.": True,
        **{
            f"Price of {name}: {read:g} USD a million input tokens, {written:g} of output.": True
            for name, (read, written) in prices.items()
            if read and written
        },
        "Not tried: whether the server answers, knows the model and takes the key.": any(
            usd != [0.0, 0.0] for usd in prices.values()
        ),
        "At most: the tasks are solved one by one, each in the last round that is left for it. Runs end far "
        "earlier.": True,
        "A request for several completions reads its prompt once.": any(own.provider.completions > 1 for own in runs),
        "--batch costs half.": any(own.provider.batch for own in runs),
        "The guardian (llm) is asked once for each answer.": any(
            own.guardian == "llm" and own.agents == "agent" for own in methods
        ),
        "Each turn of repair is asked, with findings as long as a reply.": any(own.repair for own in methods),
        f"With tools every sample makes all its calls, one in each turn, and reads results of {RESULT_TOKENS:,} "
        "tokens.": any(own.tooling.tools != "none" for own in teams),
        "Of several models each makes every sample, with policy bandit the dearest one does.": any(
            own.team.models for own in teams
        ),
        "Parts that a plan splits tasks into, and requests of a planner, are not counted: how many is not known "
        "before.": any(own.planning.plan != "none" for own in teams),
        "Optimisation rounds: every task stays open, profiles take 4,096 tokens, every fix is asked for.": any(
            own.optimisation.optimise for own in runs
        ),
        "A run that may spend as many tokens as another is cut at the mean of its samples so far: it may miss by a "
        "few.": any(own.spending.tokens_from for own in runs),
        "A run that the store holds already goes on or is taken as it is: what it asked is not paid again.": True,
    }
    return tuple(sentence for sentence, is_theirs in said.items() if is_theirs)


def _list_rounds(settings: Settings, tasks: int, given: int) -> list[_Round]:
    """The longest run there can be: one task is solved in the last round of every cycle. Its prompts show what costs
    most: had more tasks been solved by then, fewer would be asked for, and shown more."""
    limit = settings.method.max_rounds
    if settings.method.selection == "none":
        return [_Round(tasks, 0)] * (limit or 1)
    levels = 1 if settings.method.selection == "all" else settings.method.levels
    solved = [n for n in range(tasks) for _ in range(max(1, min(levels, n + given)))]
    shown = {n: max((tasks - more) * (more + given) for more in range(n, tasks)) for n in solved[1:limit]}
    later = [_Round(tasks - n, ceil(shown[n] / (tasks - n))) for n in solved[1:limit]]
    return [_Round(tasks, given), *later]


def _bill_team(settings: Settings, tasks: Sequence[Task], rounds: Sequence[_Round]) -> Usage:
    """What the rounds ask of all proposers and their guardian."""
    bills = [_bill_rounds(own, tasks, rounds) for own in choose_proposers(settings).values() or (settings,)]
    if settings.teamwork.team.policy != "bandit":
        return Usage.total(bills)
    costs = [bill.cost_usd for bill in bills if bill.cost_usd is not None]
    return replace(bills[0], cost_usd=max(costs) if len(costs) == len(bills) else None)


def _bill_rounds(settings: Settings, tasks: Sequence[Task], rounds: Sequence[_Round]) -> Usage:
    """What the rounds ask of the model and its guardian."""
    target, showing, style = get_target(tasks[0].target), settings.teamwork.showing, choose_style(settings)
    manual = find_manual(target, showing.manual, showing.manual_tokens, showing.manual_sections, settings.seed)
    prompts = [compose_prompt(task, (), get_target(task.target), None, 0, style=style, manual=manual) for task in tasks]
    prompt = sum(composed.input_tokens for composed in prompts) // len(prompts)
    prompt += settings.method.max_tokens if settings.teamwork.showing.translate else 0  # as long as a reply
    demonstration_tokens = (
        max(estimate_tokens(composed.messages[-1].content) for composed in prompts) + settings.method.max_tokens
    )
    total = Usage(cost_usd=0.0)
    for planned_round in rounds:
        prompt_tokens = prompt + planned_round.demonstrations * demonstration_tokens
        cells = planned_round.tasks * len(settings.method.temperatures)
        for number, tokens in enumerate(
            _list_requests(settings, tasks[0], prompt_tokens, manual.tokens // 2 if manual else 0)
        ):
            for size, count in _split_samples(settings.method.samples, 1 if number else settings.provider.completions):
                total += bill_requests(settings, cells * count, tokens, size * settings.method.max_tokens)
    return total


def _split_samples(samples: int, completions: int) -> Iterator[tuple[int, int]]:
    """(completions of a request, how many such requests) that make so many samples.

    >>> list(_split_samples(64, 1)), list(_split_samples(64, 10))
    ([(1, 64)], [(10, 6), (4, 1)])
    """
    if samples >= completions:
        yield completions, samples // completions
    if samples % completions:
        yield samples % completions, 1


def _list_requests(settings: Settings, task: Task, prompt: int, quoted: int) -> Iterator[int]:
    """The input tokens of each request that one sample may make; the first is the proposer's. `quoted`: those of a
    manual that go back with findings."""
    guardian = get_target(task.target).base_prompt(GUARDIAN) if settings.method.guardian == "llm" else None
    tooling, reply = settings.teamwork.tooling, settings.method.max_tokens + MESSAGE_TOKENS
    calls = 0 if tooling.tools == "none" else tooling.tool_calls
    spoken = calls * (reply + RESULT_TOKENS + MESSAGE_TOKENS)  # of a whole conversation with tools
    for turn in range(settings.method.repair + 1):
        start = prompt + turn * (2 * reply + quoted) + (spoken if turn else 0)
        yield start
        if not turn:
            yield from (start + call * spoken // calls for call in range(1, calls + 1))
        if guardian is not None and settings.method.agents == "agent":
            yield estimate_tokens(guardian) + settings.method.max_tokens + 2 * MESSAGE_TOKENS
