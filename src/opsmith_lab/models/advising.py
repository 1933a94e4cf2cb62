"""What the analyst suggests: the advice of the language's rules, less what was tried, drawn by the gain that it
promises."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import yaml

from opsmith.agents.analysis import AnalysisPrompt, EarlierAttempt
from opsmith.records import Suggestion
from opsmith.targets.programs import Advice
from opsmith.targets.protocols import Tuner
from opsmith_lab.models.rewriting import EVERYWHERE, read_line

LEAST_GAIN = 1.02  # of an attempt that has helped
NOTHING_LEFT = '{"nothing": "all that I know is tried"}'  # read as no suggestion, which a sentence would not be
_SHARPNESS = 2.0  # how much more often at temperature 1 a larger gain is chosen: gains to this power


class Adviser:
    """Suggestions by a language's rules."""

    def __init__(self, tuner: Tuner) -> None:
        self._tuner = tuner

    def write_suggestion(self, prompt: AnalysisPrompt, temperature: float, rng: random.Random) -> str:
        """One suggestion as the prompt asks for it, or that there is none."""
        profiles = {report.kind: report.body for report in prompt.profiles}
        failed = _list_failed(prompt.attempts)
        choices = [
            (advice, suggestion)
            for advice in self._tuner.list_advice(prompt.source, profiles)
            if _name_suggestion(suggestion := _word_advice(advice, prompt.source)) not in failed
        ]
        if not choices:
            return NOTHING_LEFT
        suggestion = _draw_choice(choices, temperature, rng)
        fields = {name: getattr(suggestion, name) for name in ("what", "where", "why", "effect")}
        text: str = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=2**20, default_style='"')
        return text


def _draw_choice(choices: Sequence[tuple[Advice, Suggestion]], temperature: float, rng: random.Random) -> Suggestion:
    """At temperature 0 the first of those with the largest gain."""
    largest = max(advice.gain for advice, _ in choices)
    if temperature <= 0:
        return next(suggestion for advice, suggestion in choices if advice.gain == largest)
    power = _SHARPNESS / temperature
    weights = [math.exp(power * math.log(advice.gain / largest)) for advice, _ in choices]
    return rng.choices(choices, weights)[0][1]


def _word_advice(advice: Advice, source: str) -> Suggestion:
    names = ", then ".join(advice.moves)
    parameters = "".join(f", {name} {value}" for name, value in advice.parameters.items())
    place = f"line {advice.line}: `{read_line(source, advice.line)}`" if advice.line else EVERYWHERE
    return Suggestion(
        f"{names}{parameters}: {advice.what}", place, advice.why, f"about {advice.gain:.1f} times as fast"
    )


def _list_failed(attempts: Sequence[EarlierAttempt]) -> set[tuple[str, str]]:
    """Suggestions that are not made again: their program was wrong or no faster, or it is what the rounds go on from.

    One that gained, but less than others of its time, may be made once more.
    """
    failed, tried, best = set(), set(), 1.0
    for attempt in attempts:
        if attempt.suggestion is None:
            continue
        name, ratio = _name_suggestion(attempt.suggestion), attempt.ratio
        if ratio is None or ratio < LEAST_GAIN or ratio > best or name in tried:
            failed.add(name)
        tried.add(name)
        best = max(best, ratio or 1.0)
    return failed


def _name_suggestion(suggestion: Suggestion) -> tuple[str, str]:
    """What tells it from others: the moves with their parameters, and the text of the line, whose number changes."""
    return suggestion.what.partition(":")[0].strip(), suggestion.where.partition(":")[2].strip()
