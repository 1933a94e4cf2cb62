"""Is what a run learned worth more than other text of that length? Arm by arm beside the true demonstrations.

The unit is the task: its share of right samples, a mean over seeds, less that of the same task with true
demonstrations, tested by turning signs. All arms have as many samples in their first rounds, which are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from statistics import fmean

import numpy as np

from opsmith.models.roles import shorten_model
from opsmith.records import SHOWN_FOR, Candidate
from opsmith.report.record import COUNT, RATIO, SHARE, TEXT, DataTable, Said, Value
from opsmith.report.rendering import COLUMNS
from opsmith.store import Store
from opsmith.store.refused import list_refused_programs
from opsmith_lab.evaluation.analysis import Analysis, Chart, Row, say_estimate
from opsmith_lab.evaluation.learners import EQUAL, HIGHER, LOWER, PLANTED, PREFIX
from opsmith_lab.evaluation.measure import MeanEstimate, average_tasks
from opsmith_lab.evaluation.permutation import FEW, PermutationResult, adjust_ps, permute_signs
from opsmith_lab.evaluation.repetition import (
    HONEST,
    LEVEL,
    draw_power,
    find_null_rate,
    find_power_of_differences,
    tabulate_power,
)
from opsmith_lab.evaluation.showing import NOTHING
from opsmith_lab.evaluation.study import ALL, ObservedRun, Study

RIGHT, SOLVED, COPIES = "right samples", "solved", "copies"
SIZES = (4, 6, 8, 12, 16, 20, 26)  # numbers of tasks
INTERVALS = (
    "Values are means over tasks and seeds, the value of each seed in parentheses. Brackets hold 95 % intervals over "
    "tasks and seeds, which are drawn anew, the same ones for both arms of a difference; there is none for fewer than "
    "5 tasks. p: two-sided, of a permutation test over tasks; that of Holm's method, for all arms of a model together, "
    "decides what is found."
)
NOTES = (
    "true: what the run `source` of the same model and seed learned, shown for all tasks but the one that is asked for",
    "shuffled: the same tasks with each other's programs; refused: programs that were refused, as if they had passed",
    "renamed: operators have names in the demonstrations that the manual does not know; all renamed: in the whole "
    "prompt, and the reply is read with these names; stored are prompts and replies with the language's own",
    "manual: as many characters of what is written on the language",
    "none: no demonstrations, and as many tokens in all, spent on the tasks that stay unsolved",
    f"{RIGHT}: of first rounds; {SOLVED}: tasks with a right sample in any round",
    f"{COPIES}: replies whose program is, to the letter, one that their prompt shows",
    "null rates: two arms of as many samples, both drawn with the rates of the true demonstrations",
    "power: of the same test on so many of the tasks, drawn anew 200 times",
)


Values = Sequence[Mapping[str, float]]  # [seeds] by task
Measured = Mapping[str, Mapping[str, Values]]  # by arm and measure


@dataclass(frozen=True)
class Comparison:
    """An arm beside the true demonstrations, by one measure."""

    difference: MeanEstimate | None
    by_task: Sequence[float]  # means over seeds
    result: PermutationResult
    p: float  # by Holm's method

    @property
    def finding(self) -> str:
        """As `PLANTED` says it."""
        return EQUAL if self.p >= LEVEL else LOWER if self.result.statistic < 0 else HIGHER


@dataclass(frozen=True)
class ModelOnTrial:
    """One model: the runs of its arms, what was measured of them, and each arm beside the base."""

    name: str
    base: str
    runs: Mapping[str, Sequence[ObservedRun]]  # by arm
    measured: Measured
    compared: Mapping[str, Mapping[str, Comparison]]  # by measure and arm

    @property
    def apart(self) -> dict[str, Comparison]:
        """The arms whose right samples are told from the base's."""
        return {arm: each for arm, each in self.compared[RIGHT].items() if each.finding != EQUAL}

    def average(self, arm: str, measure: str) -> MeanEstimate | None:
        """Over tasks and seeds."""
        return average_tasks(self.measured[arm][measure])

    @property
    def planted(self) -> Mapping[str, str]:
        """What is known beforehand by what an arm shows: of a mind, also behind a server (`openai/mind/reader`)."""
        return PLANTED.get(self.name.rpartition(PREFIX)[2], {}) if PREFIX in self.name else {}

    def find_planted(self, arm: str) -> str:
        """What is known beforehand of an arm's right samples; "": nothing."""
        return self.planted.get(_name_shown(self.runs[arm][0]), "")

    def label(self, arm: str) -> str:
        return f"{shorten_model(self.name)}, {arm}"


def analyse_learning(study: Study) -> Analysis:
    """Rates, tests, tokens, null rates and power of every model."""
    models = [model for series in study.series_names if (model := _try_model(study, series)) is not None]
    rows = [row for model in models for row in _list_rows(model)]
    own = [_say_finding(model) for model in models if not model.planted]
    planted = [
        each.finding == model.find_planted(arm)
        for model in models
        for arm, each in model.compared[RIGHT].items()
        if model.find_planted(arm)
    ]
    own += [f"known minds: {sum(planted)} of {len(planted)} comparisons as planted"] * bool(planted)
    own += dict.fromkeys(said for model in models if (said := say_lack_of_tasks(model.compared[RIGHT].values())))
    curves = {
        model.label(arm): find_power_of_differences(each.by_task, SIZES)
        for model in models
        for arm, each in model.apart.items()
    }
    arms = [(model, arm) for model in models for arm in model.runs]
    return Analysis(
        "; ".join(own),
        rows,
        [
            *(_tabulate_differences(arms, measure) for measure in (RIGHT, SOLVED)),
            DataTable("How equal are tokens?", _TOKENS, list(starmap(_list_tokens, arms))),
            DataTable(f"Null rates: p < {LEVEL} where nothing is", _NULLS, list(map(_test_null, models))),
            tabulate_power(curves, "apart", "tasks"),
        ],
        {**_draw_differences(models), "-power": draw_power(curves, "tasks")},
        NOTES,
        INTERVALS,
    )


def compare_arms(measured: Measured, base: str, measure: str) -> dict[str, Comparison]:
    """Every arm less the base, of the tasks and seeds that both have."""
    differences = {
        arm: [
            {task: value - other[task] for task, value in seed.items() if task in other}
            for seed, other in zip(values[measure], measured[base][measure], strict=False)
        ]
        for arm, values in measured.items()
        if arm != base
    }
    tasks = {arm: list(dict.fromkeys(task for seed in seeds for task in seed)) for arm, seeds in differences.items()}
    by_task = {
        arm: [fmean(seed[task] for seed in seeds if task in seed) for task in tasks[arm]]
        for arm, seeds in differences.items()
    }
    results = {arm: permute_signs(values, np.random.default_rng(0)) for arm, values in by_task.items()}
    adjusted = adjust_ps([result.p for result in results.values()])
    return {
        arm: Comparison(average_tasks(differences[arm]), by_task[arm], result, p)
        for (arm, result), p in zip(results.items(), adjusted, strict=True)
    }


def _name_shown(run: ObservedRun) -> str:
    """What an arm shows; "": it is none of those that are compared."""
    return run.arm.shows or (NOTHING if run.arm.settings.get("selection") == "none" else "")


def _try_model(study: Study, series: str) -> ModelOnTrial | None:
    """None: its true demonstrations were not tried yet."""
    base, of_arms = study.experiment.relative_to, {arm: study.select_runs(series, arm) for arm in study.arm_names}
    runs = {arm: own for arm, own in of_arms.items() if own and _name_shown(own[0])}
    if base not in runs:
        return None
    measured = {arm: _measure_runs(study.store, own) for arm, own in runs.items()}
    compared = {measure: compare_arms(measured, base, measure) for measure in (RIGHT, SOLVED)}
    return ModelOnTrial(series, base, runs, measured, compared)


def _measure_runs(store: Store, runs: Sequence[ObservedRun]) -> dict[str, Values]:
    """An entry for each seed."""
    measured: dict[str, list[dict[str, float]]] = {RIGHT: [], SOLVED: [], COPIES: []}
    for run in runs:
        first = {tally.task: tally for tally in run.tallies if not tally.round}
        copies = _count_copies(store, run.result.run)
        measured[RIGHT].append({task: own.right / own.judged for task, own in first.items()})
        measured[SOLVED].append(dict(run.mark_solved([*first])))
        measured[COPIES].append({task: copies[task] / own.judged for task, own in first.items()})
    return dict(measured)


def _count_copies(store: Store, run: str) -> Counter[str]:
    """By task, the samples of the first round whose program its prompt showed."""
    shown = {
        (each.experience.origin.removeprefix(SHOWN_FOR), Candidate(each.experience.source).id)
        for each in store.read_experiences(run)
    }
    counts = Counter[str]()
    for refused in list_refused_programs(store, run, 0):
        counts[refused.task] += refused.samples * ((refused.task, refused.program) in shown)
    for answer in store.read_answers(run, 0):
        counts[answer.task] += (answer.task, Candidate(answer.source).id) in shown
    return counts


def _list_rows(model: ModelOnTrial) -> Iterator[Row]:
    for arm, values in model.measured.items():
        yield from (Row(model.name, arm, measure, ALL, model.average(arm, measure)) for measure in values)
    for measure, compared in model.compared.items():
        for arm, each in compared.items():
            yield Row(model.name, arm, f"{measure} less {model.base}", ALL, each.difference)


def _tabulate_differences(arms: Sequence[tuple[ModelOnTrial, str]], measure: str) -> DataTable:
    """A line for each arm of a model: what was measured, and how much it is above the base."""
    lines: list[list[Value]] = []
    for model, arm in arms:
        of_arm = [tally for run in model.runs[arm] for tally in run.tallies if not tally.round or measure == SOLVED]
        each, copies = model.compared[measure].get(arm), say_estimate(model.average(arm, COPIES))
        cells: list[Value] = [model.label(arm), sum(tally.judged for tally in of_arm)]
        cells += [say_estimate(model.average(arm, measure)), *list_comparison(each)]
        lines.append([*cells, model.find_planted(arm) or None, copies] if measure == RIGHT else cells)
    columns = {"model, shown": TEXT, "samples": COUNT, measure: SHARE, "less true": SHARE, **COMPARED}
    columns |= {"planted": TEXT, COPIES: SHARE} if measure == RIGHT else {}
    titles = {RIGHT: "Right samples, beside those with true demonstrations", SOLVED: "Tasks solved at equal tokens"}
    return DataTable(titles[measure], columns, lines)


def list_comparison(each: Comparison | None) -> list[Value]:
    """The cells of a comparison: the difference, those of `COMPARED`; empty ones of the base itself."""
    if each is None:
        return [None] * (1 + len(COMPARED))
    ps = (Said(each.result.say_p(), each.result.p), Said(each.result.say_p(each.p), each.p))
    return [say_estimate(each.difference), *ps, each.finding]


def _list_tokens(model: ModelOnTrial, arm: str) -> list[Value]:
    """Input tokens of a prompt, and all tokens of a run: means, and how many times those of the base."""
    runs, of_base = model.runs[arm], model.runs[model.base]
    pairs = [
        (own, other.tokens[0][task])
        for run, other in zip(runs, of_base, strict=False)
        for task, own in run.tokens.get(0, {}).items()
        if other.tokens.get(0, {}).get(task)
    ]
    ratios = [own / other for own, other in pairs]
    said = Said(f"{fmean(ratios):.3f} [{min(ratios):.3f}, {max(ratios):.3f}]", fmean(ratios)) if ratios else None
    spent, base = (fmean(each.usage.input_tokens + each.usage.output_tokens for each in own) for own in (runs, of_base))
    prompt = round(fmean(own for own, _ in pairs)) if pairs else None
    return [model.label(arm), prompt, said, round(spent), spent / base if base else None]


def _say_finding(model: ModelOnTrial) -> str:
    """`embedded: right samples true 0.51, told from none 0.31, not told from refused 0.50`."""
    said = {arm: f"{arm} {rate.value:.2f}" for arm in model.runs if (rate := model.average(arm, RIGHT))}
    equal = [said[arm] for arm in model.compared[RIGHT] if arm not in model.apart]
    words = [f"{shorten_model(model.name)}: right samples {said[model.base]}"]
    words += [f"told from {', '.join(said[arm] for arm in model.apart)}"] if model.apart else []
    return ", ".join([*words, *([f"not told from {', '.join(equal)}"] if equal else [])])


def say_lack_of_tasks(compared: Collection[Comparison]) -> str:
    """That no result could be told from chance, however clear; "": some could."""
    tasks = max((len(each.by_task) for each in compared), default=0)
    least = min(1.0, len(compared) * 2.0 ** (1 - tasks))  # all differences have one sign
    return "" if least < LEVEL else f"{tasks} tasks are too few for any finding: Holm's p is at least {least:.2f}"


def _test_null(model: ModelOnTrial) -> list[Value]:
    """How often the test finds something between two arms that both have the rates of the base, by task."""
    judged, right = Counter[str](), Counter[str]()
    for tally in (tally for run in model.runs[model.base] for tally in run.tallies):
        judged[tally.task] += tally.judged
        right[tally.task] += tally.right
    samples, rates = np.array([*judged.values()]), np.array([right[task] / judged[task] for task in judged])

    def draw_test(rng: np.random.Generator) -> PermutationResult:
        drawn = rng.binomial(samples, rates, (2, len(samples))) / samples
        return permute_signs((drawn[0] - drawn[1]).tolist(), rng)

    null = find_null_rate(draw_test)
    is_small = null.arrangements < FEW and null.rate <= HONEST[1]
    honest = "yes" if null.is_honest else "yes: some have few arrangements, at most 5 %" if is_small else "NO"
    return [shorten_model(model.name), f"{null.rate:.2%}", null.repetitions, honest]


def _draw_differences(models: Sequence[ModelOnTrial]) -> dict[str, Chart]:
    """How much the right samples of every arm are above those of the base; known minds have a figure of their own."""
    points: dict[str, list[dict[str, str | float | None]]] = {}
    for model in models:
        for arm, each in model.compared[RIGHT].items():
            row = Row(model.name, arm, RIGHT, ALL, each.difference)
            point = {"x": arm, "series": shorten_model(model.name), **row.scale_ends()}
            points.setdefault("-minds" if PREFIX in model.name else "", []).append(point)
    words = {"title": "Right samples by what is shown, less those with true demonstrations", "x_title": "shown"}
    options = {**words, "y_title": "difference of shares", "reference": 0.0, "is_linear": True, "width": COLUMNS}
    return {suffix: Chart("intervals", own, options, ("over tasks and seeds",)) for suffix, own in points.items()}


COMPARED = {"p": TEXT, "p (Holm)": TEXT, "found": TEXT}
_TOKENS = {"model, shown": TEXT, "tokens of a prompt": COUNT, "times true [least, most]": TEXT}
_TOKENS |= {"tokens of a run": COUNT, "times true": RATIO}
_NULLS = {"model": TEXT, "rate": TEXT, "repetitions": COUNT, "honest": TEXT}
