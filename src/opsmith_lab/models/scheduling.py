"""The chat models `metaschedule` and `templates`: schedule searches that read prompts. They are no language models.

As analyst, one suggests decisions of a schedule: `metaschedule` mutates what the prompt shows as fastest, or draws
anew; `templates` asks Optuna's TPE, told of the attempts that the prompt shows. As generator it applies the decisions
that the suggestion names, or others that it draws. All state is in the prompt, and equal requests get equal replies.

`python -m opsmith_lab.models.scheduling TARGET ROLE` answers JSON lines on stdin with JSON lines on stdout until stdin
ends.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from opsmith.agents.analysis import read_analysis_prompt
from opsmith.agents.generation import read_generation_prompt
from opsmith.errors import UsageError
from opsmith.models import Message
from opsmith.models.order import Order
from opsmith.records import Suggestion, content_hash
from opsmith.targets import Target, get_target
from opsmith.targets.protocols import Scheduled, Scheduler
from opsmith_lab.models.advising import NOTHING_LEFT
from opsmith_lab.models.sampling import fence_program
from opsmith_lab.models.workers import ProgramModel, serve_lines

METASCHEDULE, TEMPLATES = "metaschedule", "templates"
NO_PROGRAM = "I schedule the program under `program:` of a YAML message, and this message holds none."
NO_SCHEDULE = "I know no other schedule of this program."
_DRAWS = 6  # decisions that are tried before there is no further program
_RANDOM_FIRST = 4  # attempts before TPE has a say
_FAILED = 3.0  # what TPE is told of a schedule without a figure: as slow as e^3 times the first program
_WIDEST_TILE = 16  # entries of all inner loops of a tile
_SIZE = re.compile(r"the size (\w+)")


class ScheduleWriter:
    """Answers prompts in a language. Raises UsageError for one without schedules."""

    def __init__(self, target: Target, role: str) -> None:
        if not isinstance(target, Scheduled):
            raise UsageError(
                f"model {role!r}: target {target.name!r} has no schedules; expected --target tvm; try: --model tuner"
            )
        self._scheduler, self._role = target.make_scheduler(), role
        if role == TEMPLATES:
            _import_optuna()

    def answer_request(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request, each reply by a seed of its own."""
        messages = [Message(role, content) for role, content in body["messages"]]
        seeds = [int(content_hash(str(body["seed"]), str(number))[:12], 16) for number in range(body["n"])]
        return {"texts": [self._write_reply(messages, seed) for seed in seeds]}

    def _write_reply(self, messages: Sequence[Message], seed: int) -> str:
        if (analysis := read_analysis_prompt(messages)) is not None:
            pairs = ((_read_decisions(each.suggestion), each.ratio) for each in analysis.attempts)
            tried = [(decisions, ratio) for decisions, ratio in pairs if decisions is not None]
            decisions = self._draw(analysis.source, _read_sizes(analysis.task), tried, seed)
            return NOTHING_LEFT if decisions is None else _word_suggestion(decisions, tried)
        if (prompt := read_generation_prompt(messages)) is None:
            return NO_PROGRAM
        sizes, answered = _read_sizes(prompt.task), {each.content for each in messages if each.role == "assistant"}
        named = _read_decisions(prompt.suggestion)
        for number in range(_DRAWS):
            decisions = named if named and not number else self._draw(prompt.source, sizes, [], seed + number)
            program = decisions and self._scheduler.write_program(prompt.source, sizes, decisions)
            if program and program != prompt.source and (reply := fence_program(program)) not in answered:
                return reply
        return NO_SCHEDULE

    def _draw(
        self, source: str, sizes: Mapping[str, int], tried: Sequence[tuple[str, float | None]], seed: int
    ) -> str | None:
        if self._role == TEMPLATES:
            return ask_optuna(self._scheduler, source, sizes, tried, seed)
        return self._scheduler.draw_decisions(source, sizes, tried, seed)


def ask_optuna(
    scheduler: Scheduler, source: str, sizes: Mapping[str, int], tried: Sequence[tuple[str, float | None]], seed: int
) -> str | None:
    """Decisions of the tile templates, by TPE at Optuna's defaults, told of what was tried."""
    optuna = _import_optuna()
    lists = scheduler.list_choices(source, sizes)
    if not lists:
        return None
    sampler = optuna.samplers.TPESampler(n_startup_trials=_RANDOM_FIRST, seed=seed % 2**32)
    study = optuna.create_study(sampler=sampler)
    for decisions, ratio in tried:
        number, chosen = json.loads(decisions)
        if number < len(lists):
            fixed = optuna.trial.FixedTrial(_name_parameters(number, lists[number], chosen))
            _choose_decisions(fixed, lists)
            value = -math.log(ratio) if ratio else _FAILED
            trial = optuna.trial.create_trial(params=fixed.params, distributions=fixed.distributions, value=value)
            study.add_trial(trial)
    known = {decisions for decisions, _ in tried}
    for _ in range(_DRAWS):
        decisions = json.dumps(_choose_decisions(study.ask(), lists))
        if decisions not in known:
            return decisions
    return None


def _choose_decisions(trial: Any, lists: Sequence[Sequence[Mapping[str, int]]]) -> list[Any]:
    """What a trial of Optuna's names: the inner factors of each tile, as far as they divide what is left."""
    number = trial.suggest_categorical("list", list(range(len(lists))))
    chosen: list[Any] = []
    for place, choice in enumerate(lists[number]):
        if "parts" not in choice:
            options = choice["options"]
            drawn = trial.suggest_categorical(f"{number}.{place}", list(range(options))) if options else None
            chosen.append(choice["default"] if drawn is None else drawn)
            continue
        left, tile = math.gcd(choice["extent"], _WIDEST_TILE), list[int]()
        factors = [factor for factor in range(1, left + 1) if left % factor == 0]
        for part in reversed(range(1, choice["parts"])):
            factor = trial.suggest_categorical(f"{number}.{place}.{part}", factors)
            tile.insert(0, math.gcd(left, factor))
            left //= tile[0]
        chosen.append([choice["extent"] // math.prod(tile), *tile])
    return [number, chosen]


def _name_parameters(number: int, choices: Sequence[Mapping[str, int]], chosen: Sequence[Any]) -> dict[str, Any]:
    """The inverse of `_choose_decisions`."""
    names: dict[str, Any] = {"list": number}
    for place, (choice, decision) in enumerate(zip(choices, chosen, strict=True)):
        if "parts" in choice:
            names |= {f"{number}.{place}.{part}": decision[part] for part in range(1, choice["parts"])}
        elif choice["options"]:
            names[f"{number}.{place}"] = decision
    return names


def _import_optuna() -> Any:
    try:
        import optuna  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(f"model {TEMPLATES!r}: {error}; expected Optuna; try: pip install 'opsmith[study]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


# -- texts


def _word_suggestion(decisions: str, tried: Sequence[tuple[str, float | None]]) -> str:
    best = max((ratio or 0.0 for _, ratio in tried), default=0.0)
    fields = {
        "what": f"schedule by decisions {decisions}",
        "where": "everywhere",
        "why": f"{len(tried)} schedules of this program are known, the best one {best:.2f} times as fast",
        "effect": "unknown until it is measured",
    }
    text: str = yaml.safe_dump(fields, sort_keys=False, width=2**20, default_style='"')
    return text


def _read_decisions(suggestion: Suggestion | None) -> str | None:
    """The decisions that a suggestion names; None: it is no schedule's."""
    text = suggestion.what.partition("decisions ")[2].strip() if suggestion is not None else ""
    try:
        number, chosen = json.loads(text)
        fits = isinstance(number, int) and all(
            isinstance(each, int) or all(isinstance(part, int) for part in each) for each in chosen
        )
    except (ValueError, TypeError):
        return None
    return json.dumps([number, chosen]) if fits else None


def _read_sizes(task: str) -> dict[str, int]:
    """The sizes that a prompt shows, by the names of the function's parameters."""
    mapping = yaml.safe_load(task)
    sizes, arguments = mapping.get("sizes") or {}, mapping.get("arguments") or {}
    symbols = {name: match[1] for name, text in arguments.items() if (match := _SIZE.fullmatch(str(text)))}
    return {str(name): int(sizes[symbol]) for name, symbol in symbols.items() if symbol in sizes}


# -- the model


def make_scheduling(order: Order) -> ProgramModel:
    """The one of the two that the settings of a run ask for. Raises UsageError."""
    order.refuse_base_url()
    target, role = order.require_target("schedule"), order.settings.provider.model
    arguments = ("opsmith_lab.models.scheduling", target.name, role)
    return ProgramModel(
        role, target, ScheduleWriter(target, role).answer_request, arguments, order.settings.place.workers
    )


def main(target: str, role: str) -> None:
    """Answer requests until stdin ends."""
    serve_lines(ScheduleWriter(get_target(target), role).answer_request)


if __name__ == "__main__":
    main(*sys.argv[1:])
