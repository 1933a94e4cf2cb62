"""What feedback is worth, language by language: programs that follow one on which something was said, beside
independent samples of the same task.

The unit is the task: its share of right programs after a wrong one (the diagnosis is what the verdict found), after all
feedback on five samples, or after a right one (an adviser says what to change), less that of independent samples. A
model that ignores what it is told says the same things again, so that all differences are 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opsmith.models.roles import shorten_model
from opsmith.report.record import COUNT, RATIO, SHARE, TEXT, DataTable, Said, Value
from opsmith.report.rendering import COLUMNS
from opsmith.results.lineage import read_optimised
from opsmith.results.optimisation import read_optimisation
from opsmith.results.states import AttemptState, name_state
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.rows import OPTIMISATION, turn_of
from opsmith_lab.evaluation.analyses.learning import (
    COMPARED,
    SIZES,
    Comparison,
    Values,
    compare_arms,
    list_comparison,
    say_lack_of_tasks,
)
from opsmith_lab.evaluation.analysis import Analysis, Chart, Row, say_estimate
from opsmith_lab.evaluation.learners import EQUAL, FEEDBACK_PLANTED, KEPT, MENDED, PREFIX, SIXTH
from opsmith_lab.evaluation.measure import average_tasks
from opsmith_lab.evaluation.permutation import FEW, PermutationResult, permute_signs
from opsmith_lab.evaluation.repetition import (
    HONEST,
    LEVEL,
    draw_power,
    find_null_rate,
    find_power_of_differences,
    tabulate_power,
)
from opsmith_lab.evaluation.study import ALL, ObservedRun, Study

SAMPLES, ALL_FEEDBACK, LOOP, IMPROVING, REPEATING = "samples", "sixth", "loop", "improving", "repeating"  # arms
RIGHT, SOLVED, GAIN = "right programs", "solved", "gain"
AGAIN = "no program, or one that was said before"
INTERVALS = (
    "Values are means over tasks and seeds (geometric ones of gains), the value of each seed in parentheses. Brackets "
    "hold 95 % intervals over tasks and seeds, which are drawn anew, the same ones for both sides of a difference; "
    "there is none for fewer than 5 tasks. p: two-sided, of a permutation test over tasks; that of Holm's method, for "
    "all comparisons of a model in a language together, decides what is found."
)
NOTES = (
    f"{SAMPLES}: independent samples, with which the others are compared; {ALL_FEEDBACK}: one more, which is shown all "
    "of them, each with what its verdict says",
    f"{LOOP}: a wrong program goes back with what the verdict found, until there are five; {IMPROVING}: from the right "
    "programs of the loop on, an adviser and a coder by turns, five rounds",
    f"resampling, adaptive (Algorithm 1): at most as many tokens as {LOOP}; who has solved all tasks stops. "
    f"{REPEATING}: as many as {IMPROVING}, each attempt from the first right program, without an adviser",
    f"{MENDED}: the second program of a sample whose first was wrong; later ones would count the lucky twice. "
    f"{KEPT}: the first program of every attempt to make a right one better",
    f"{AGAIN}: a program that its sample held before is judged and stored once",
    "regressions: programs that are wrong, or slower than the right one that they were made from",
    "null rates: as many programs as there are, both sides drawn with the rates of independent samples",
    "power: of the same test on so many of the tasks, drawn anew 200 times",
)
MOST_ROUNDS = 5  # of each arm that stand in the table
DEFAULTS = Settings().as_flat()  # of what a run's stored settings leave out


@dataclass(frozen=True)
class Chain:
    """The programs of a sample, each asked for because the one before was wrong."""

    task: str
    round: int  # of its run
    turns: int  # programs at most
    states: Mapping[int, AttemptState | None]  # by turn, from 0; one that is missing is `AGAIN`
    kinds: Mapping[int, str]  # of wrong ones, the stage and the kind of the first finding

    @property
    def right_at(self) -> int | None:
        """The turn of the right program, which is the last."""
        return next((turn for turn, state in self.states.items() if state is AttemptState.CORRECT), None)

    @property
    def asked(self) -> int:
        """How many programs there were."""
        return self.turns if self.right_at is None else self.right_at + 1


def read_chains(store: Store, run: ObservedRun) -> list[Chain]:
    """The judged samples of a run, of all its rounds."""
    phases = {info.number: info.phase for info, _ in store.read_rounds(run.result.run)}
    samples, chains = list(store.list_samples(run.result.run)), []
    for start in range(0, len(samples), 500):  # in parts: a database takes no condition of any length
        some = samples[start : start + 500]
        candidates = store.read_candidates([sample.id for sample in some])
        for sample in some:
            if sample.outcome is None:
                continue
            states, kinds = {}, {}
            for own in candidates.get(sample.id, ()):
                turn, verdict = turn_of(own.agent)[0], own.verdict
                states[turn] = name_state(verdict.stage, verdict.outcome)
                if verdict.errors:
                    kinds[turn] = f"{verdict.stage.name}: {verdict.errors[0].kind}"
            name = "fixes" if phases[sample.round] == OPTIMISATION else "repair"
            turns = run.settings.get(name, DEFAULTS[name])
            chains.append(Chain(sample.task, sample.round, 1 + int(turns), dict(sorted(states.items())), kinds))
    return chains


@dataclass(frozen=True)
class FedModel:
    """A model in one language: its runs by arm, one for each seed, and their chains."""

    name: str
    runs: Mapping[str, Sequence[ObservedRun]]
    chains: Mapping[str, Sequence[Sequence[Chain]]]

    @cached_property
    def counts(self) -> Mapping[str, Sequence[Mapping[str, tuple[int, int]]]]:
        """By what came before ("samples": nothing) and seed, (programs, right ones) of each task."""
        of = {
            SAMPLES: [[(c.task, c.right_at == 0) for c in own] for own in self.chains.get(SAMPLES, ())],
            MENDED: [
                [(c.task, c.right_at == 1) for c in own if c.right_at != 0 and c.turns > 1]
                for own in self.chains.get(LOOP, ())
            ],
            SIXTH: [[(c.task, c.right_at == 0) for c in own] for own in self.chains.get(ALL_FEEDBACK, ())],
            KEPT: [[(c.task, c.right_at == 0) for c in own] for own in self.chains.get(IMPROVING, ())],
        }
        return {name: [_count_right(pairs) for pairs in seeds] for name, seeds in of.items() if any(seeds)}

    @cached_property
    def measured(self) -> Mapping[str, Mapping[str, Values]]:
        """The shares of right programs."""
        return {
            name: {RIGHT: [{task: right / n for task, (n, right) in own.items()} for own in seeds]}
            for name, seeds in self.counts.items()
        }

    @cached_property
    def compared(self) -> Mapping[str, Comparison]:
        """What came before, beside nothing."""
        return compare_arms(self.measured, SAMPLES, RIGHT) if SAMPLES in self.measured else {}

    @property
    def planted(self) -> Mapping[str, str]:
        """What is known beforehand: of a mind, also behind a server (`openai/mind/mender in c`)."""
        name = self.name.rpartition(PREFIX)[2].partition(" in ")[0]
        return FEEDBACK_PLANTED.get(name, {}) if PREFIX in self.name else {}

    @property
    def label(self) -> str:
        return shorten_model(self.name)


def _count_right(pairs: Iterable[tuple[str, bool]]) -> dict[str, tuple[int, int]]:
    counts: dict[str, tuple[int, int]] = {}
    for task, is_right in pairs:
        programs, right = counts.get(task, (0, 0))
        counts[task] = programs + 1, right + is_right
    return counts


def analyse_feedback(study: Study) -> Analysis:
    """Right programs after feedback beside independent ones, round by round, by language, and what was gained."""
    models = []
    for series in study.series_names:
        runs = {arm: own for arm in study.arm_names if (own := study.select_runs(series, arm))}
        chains = {arm: [read_chains(study.store, run) for run in own] for arm, own in runs.items()}
        models.append(FedModel(series, runs, chains))
    compared = [(model, name, each) for model in models for name, each in model.compared.items()]
    rows = [Row(model.name, name, f"{RIGHT} less {SAMPLES}", ALL, each.difference) for model, name, each in compared]
    rows += [
        Row(model.name, name, RIGHT, ALL, average_tasks(values[RIGHT]))
        for model in models
        for name, values in model.measured.items()
    ]
    curves = {
        f"{model.label}, {name}": find_power_of_differences(each.by_task, SIZES)
        for model, name, each in compared
        if each.finding != EQUAL
    }
    solved = [(model, *each) for model in models for each in _compare_solved(model, "resampling")]
    apart = list(compare_languages(models))
    gained = [(model, each) for model in models if (each := _compare_gains(study, model))]
    rows += [Row(model.name, arm, f"{SOLVED} less resampling", ALL, each.difference) for model, arm, each in solved]
    tables = [
        DataTable("Right programs, beside independent samples", _BESIDE, list(_list_compared(models))),
        DataTable(
            "Tasks solved, beside resampling that may spend as many tokens", _SOLVED, list(map(_list_solved, solved))
        ),
        DataTable("Programs made better, beside attempts without feedback", _GAINED, list(map(_list_gained, gained))),
        DataTable(
            "Dense languages against sparse: what feedback adds",
            _LANGUAGES,
            [[shorten_model(name), *words, *list_comparison(each)] for name, *words, each in apart],
        ),
        DataTable("Program by program", _ROUNDS, [line for model in models for line in _list_rounds(study, model)]),
        DataTable("What verdicts found first", _KINDS, [line for model in models for line in _list_kinds(model)]),
        DataTable("Tuned at one size, measured at the others", _SIZES, list(_list_sizes(study, models))),
        DataTable(f"Null rates: p < {LEVEL} where nothing is", _NULLS, list(_list_nulls(models))),
        tabulate_power(curves, "apart", "tasks"),
    ]
    figures = {**_draw_differences(models), "-power": draw_power(curves, "tasks")}
    return Analysis(_say_findings(models, gained, apart), rows, tables, figures, NOTES, INTERVALS)


def _say_findings(
    models: Sequence[FedModel],
    gained: Sequence[tuple[FedModel, Comparison]],
    apart: Sequence[tuple[str, str, str, Comparison]],
) -> str:
    findings, planted, lacks = [], [], list[str]()
    for model in models:
        lack = say_lack_of_tasks(model.compared.values())
        lacks += [lack] if lack else []
        if not lack:
            pairs = [(model.compared[name], own) for name, own in model.planted.items() if name in model.compared]
            planted += [each.finding == own for each, own in pairs]
        if model.compared and not model.planted:
            rates = {name: average_tasks(values[RIGHT]) for name, values in model.measured.items()}
            rated = [
                f"{name} {rate.value:.2f} ({model.compared[name].finding})"
                for name, rate in rates.items()
                if rate is not None and name in model.compared
            ]
            alone = rates[SAMPLES]
            findings.append(f"{model.label}: right alone {alone.value if alone else math.nan:.2f}, {', '.join(rated)}")
    for model, each in gained:
        if not model.planted:
            times = math.exp(each.result.statistic)
            findings.append(f"{model.label}: with feedback programs gain {times:.2f} times as much as without")
    for name, beside, before, each in apart:
        if PREFIX not in name:
            words = f"{each.result.statistic:+.2f} beside {beside} ({each.finding})"
            findings.append(f"{shorten_model(name)}: {before} {words}")
    findings += [f"known minds: {sum(planted)} of {len(planted)} comparisons as planted"] * bool(planted)
    findings += dict.fromkeys(lacks)
    return "; ".join(findings)


def _compare_solved(model: FedModel, base: str) -> list[tuple[str, Comparison]]:
    """Arms with as many tokens as the loop."""
    measured = {
        arm: {SOLVED: [dict(run.mark_solved(list(run.result.per_task))) for run in model.runs[arm]]}
        for arm in (LOOP, "adaptive", base)
        if arm in model.runs
    }
    return list(compare_arms(measured, base, SOLVED).items()) if base in measured else []


def _compare_gains(study: Study, model: FedModel) -> Comparison | None:
    """The gains of both arms that begin with right programs, as logarithms; None: one was not run."""
    measured: dict[str, dict[str, Values]] = {}
    for arm in (IMPROVING, REPEATING):
        seeds = []
        for run in model.runs.get(arm, ()):
            optimised = read_optimisation(study.store, run.result.run)
            tasks = () if optimised is None else optimised.tasks
            seeds.append({task.task: math.log(task.published or 1.0) for task in tasks})
        if any(seeds):
            measured[arm] = {GAIN: seeds}
    return compare_arms(measured, REPEATING, GAIN).get(IMPROVING) if len(measured) > 1 else None


# -- tables


def _list_compared(models: Sequence[FedModel]) -> Iterator[list[Value]]:
    for model in models:
        for name, seeds in model.counts.items():
            each, programs = model.compared.get(name), sum(n for own in seeds for n, _ in own.values())
            value = say_estimate(average_tasks(model.measured[name][RIGHT]))
            before = "nothing: independent samples" if name == SAMPLES else name
            yield [model.label, before, programs, value, *list_comparison(each), model.planted.get(name)]


def _list_solved(line: tuple[FedModel, str, Comparison]) -> list[Value]:
    model, arm, each = line
    tokens = [
        sum(run.usage.input_tokens + run.usage.output_tokens for run in model.runs[name])
        for name in (arm, "resampling")
    ]
    return [model.label, arm, *list_comparison(each), tokens[0] / tokens[1] if tokens[1] else None]


def _list_gained(line: tuple[FedModel, Comparison]) -> list[Value]:
    model, each = line
    own, ps = each.difference, list_comparison(each)[1:]
    if own is None:
        return [model.label, 0, None, *ps]
    bounds = "" if own.low is None or own.high is None else f" [{math.exp(own.low):.3f}, {math.exp(own.high):.3f}]"
    times = Said(f"{math.exp(own.value):.3f}{bounds}", math.exp(own.value))
    return [model.label, len(each.by_task), times, *ps]


def compare_languages(models: Sequence[FedModel]) -> Iterator[tuple[str, str, str, Comparison]]:
    """Of a model in several languages: is feedback worth more in the first, which models have seen most of? The model
    in another one, that first one, and what came before."""
    by_model: dict[str, list[FedModel]] = {}
    for model in models:
        by_model.setdefault(model.name.rpartition(" in ")[0], []).append(model)
    for own in by_model.values():
        first = own[0].name
        for before in (MENDED, SIXTH, KEPT):
            measured = {}
            for model in own:
                if before in model.compared:  # by seed and task, how much more often right than an independent one
                    pairs = zip(model.measured[before][RIGHT], model.measured[SAMPLES][RIGHT], strict=False)
                    values = [{task: value - b[task] for task, value in a.items() if task in b} for a, b in pairs]
                    measured[model.name] = {before: values}
            if first in measured:
                for name, each in compare_arms(measured, first, before).items():
                    yield name, first.rpartition(" in ")[2], before, each


def _list_rounds(study: Study, model: FedModel) -> Iterator[list[Value]]:
    """A line for every place in the loop, and for every round in which right programs were to become better."""
    for arm in (LOOP, IMPROVING, REPEATING):
        chains, is_loop = [chain for own in model.chains.get(arm, ()) for chain in own], arm == LOOP
        ratios = {} if is_loop else _read_ratios(study, model.runs.get(arm, ()))
        places = max((chain.asked if is_loop else chain.round + 1 for chain in chains), default=0)
        for number in range(1, 1 + min(places, MOST_ROUNDS)):
            turn = number - 1 if is_loop else 0
            reached = [each for each in chains if (each.asked >= number if is_loop else each.round == number - 1)]
            states, total = Counter(chain.states.get(turn) for chain in reached), len(reached)
            right = states[AttemptState.CORRECT]
            bounds = ratios.get(number - 1, [])
            faster, slower = sum(low > 1 for low, _ in bounds), sum(high < 1 for _, high in bounds)
            solved = {
                chain.task
                for chain in chains
                if chain.right_at is not None and (chain.right_at if is_loop else chain.round) < number
            }
            speeds = (None, None, None) if is_loop else (faster, slower, (total - right + slower) / total)
            wrong = [states[state] for state in AttemptState if state is not AttemptState.CORRECT] + [states[None]]
            yield [model.label, arm, number, total, right / total, len(solved), *speeds, *wrong]


def _read_ratios(study: Study, runs: Sequence[ObservedRun]) -> dict[int, list[tuple[float, float]]]:
    """By round, the intervals of screens beside the program that an attempt set out from."""
    ratios: dict[int, list[tuple[float, float]]] = {}
    for run in runs:
        optimised = read_optimisation(study.store, run.result.run)
        for task in () if optimised is None else optimised.tasks:
            for step in task.steps:
                if step.ratio is not None:
                    ratios.setdefault(step.row.round, []).append((step.ratio.low, step.ratio.high))
    return ratios


def _list_kinds(model: FedModel) -> Iterator[list[Value]]:
    counts: Counter[tuple[str, str]] = Counter()
    for arm in (SAMPLES, LOOP, ALL_FEEDBACK, IMPROVING):
        for chain in (chain for own in model.chains.get(arm, ()) for chain in own):
            for turn, kind in chain.kinds.items():
                before = {SAMPLES: SAMPLES, ALL_FEEDBACK: SIXTH, IMPROVING: KEPT}.get(arm, SAMPLES)
                counts[kind, MENDED if turn else before] += 1
    for kind in sorted({kind for kind, _ in counts}, key=lambda kind: -sum(counts[kind, each] for each in _BEFORE)):
        stage, _, word = kind.partition(": ")
        yield [model.label, stage, word, *(counts[kind, each] for each in _BEFORE)]


def _list_sizes(study: Study, models: Sequence[FedModel]) -> Iterator[list[Value]]:
    """What a search that looked at one size alone would have kept, and what that gains at each size, by the screens."""
    for model in models:
        gains: dict[tuple[str, str], list[float]] = {}
        for run in (*model.runs.get(IMPROVING, ()), *model.runs.get(REPEATING, ())):
            for lineage in read_optimised(study.store, run.result.run).values():
                programs = [
                    {size: ratio.value for (_, size), ratio in program.screens.items()}
                    for program in lineage.list_programs()
                ]
                sizes = {size for own in programs for size in own}
                for chosen in sizes:
                    best = max(programs, key=lambda own: own.get(chosen, 1.0))
                    for size in sizes:
                        gains.setdefault((chosen, size), []).append(max(best.get(size, 1.0), 1e-9))
        for (chosen, size), own in sorted(gains.items()):
            mean = math.exp(sum(map(math.log, own)) / len(own))
            yield [model.label, chosen, size, len(own), mean, sum(gain < 1 for gain in own)]


def _list_nulls(models: Sequence[FedModel]) -> Iterator[list[Value]]:
    for model in models:
        alone = _sum_counts(model.counts.get(SAMPLES, ()))
        for name in model.compared:
            own = _sum_counts(model.counts[name])
            tasks = [task for task in own if task in alone]
            base, programs = (np.array([counts[task][0] for task in tasks]) for counts in (alone, own))
            rates = np.array([alone[task][1] / alone[task][0] for task in tasks])

            def draw_test(rng: np.random.Generator) -> PermutationResult:
                drawn = rng.binomial(programs, rates) / programs - rng.binomial(base, rates) / base  # noqa: B023
                return permute_signs(drawn.tolist(), rng)

            null = find_null_rate(draw_test)
            is_small = null.arrangements < FEW and null.rate <= HONEST[1]
            honest = "yes" if null.is_honest else "yes: few arrangements, at most 5 %" if is_small else "NO"
            yield [model.label, name, f"{null.rate:.2%}", null.repetitions, honest]


def _sum_counts(seeds: Sequence[Mapping[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for own in seeds:
        for task, (programs, right) in own.items():
            before = sums.get(task, (0, 0))
            sums[task] = before[0] + programs, before[1] + right
    return sums


def _draw_differences(models: Sequence[FedModel]) -> dict[str, Chart]:
    """Known minds have a figure of their own."""
    points: dict[str, list[dict[str, str | float | None]]] = {}
    for model in models:
        for name, each in model.compared.items():
            point = {
                "x": name,
                "series": model.label,
                **Row(model.name, name, RIGHT, ALL, each.difference).scale_ends(),
            }
            points.setdefault("-minds" if PREFIX in model.name else "", []).append(point)
    words = {"title": "Right programs after feedback, less independent ones", "x_title": "what came before"}
    options = {**words, "y_title": "difference of shares", "reference": 0.0, "is_linear": True, "width": COLUMNS}
    return {suffix: Chart("intervals", own, options, ("over tasks and seeds",)) for suffix, own in points.items()}


_BEFORE = (SAMPLES, MENDED, SIXTH, KEPT)
_BESIDE = {"model": TEXT, "after what": TEXT, "programs": COUNT, RIGHT: SHARE, "less independent": SHARE}
_BESIDE |= {**COMPARED, "planted": TEXT}
_SOLVED = {"model": TEXT, "arm": TEXT, "less resampling": SHARE, **COMPARED, "times its tokens": RATIO}
_GAINED = {"model": TEXT, "tasks": COUNT, "times the gain without": RATIO, **COMPARED}
_LANGUAGES = {"model": TEXT, "beside": TEXT, "after what": TEXT, "more than there": SHARE, **COMPARED}
_ROUNDS = {"model": TEXT, "arm": TEXT, "program": COUNT, "asked": COUNT, "right": SHARE, "tasks right by then": COUNT}
_ROUNDS |= {"faster": COUNT, "slower": COUNT, "regressions": SHARE}
_ROUNDS |= dict.fromkeys((state.value for state in AttemptState if state is not AttemptState.CORRECT), COUNT)
_ROUNDS |= {AGAIN: COUNT}
_KINDS = {"model": TEXT, "stage": TEXT, "kind": TEXT, "alone": COUNT, **dict.fromkeys(_BEFORE[1:], COUNT)}
_SIZES = {
    "model": TEXT,
    "best at": TEXT,
    "measured at": TEXT,
    "programs": COUNT,
    "gain": RATIO,
    "slower than start": COUNT,
}
_NULLS = {"model": TEXT, "after what": TEXT, "rate": TEXT, "repetitions": COUNT, "honest": TEXT}
