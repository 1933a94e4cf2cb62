"""What came of searches: who finds more, who changes what it proposes when it is told values, and how each searches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from opsmith.models.roles import shorten_model
from opsmith.records import Usage
from opsmith.report.record import COUNT, SECONDS, SHARE, TEXT, USD, DataTable, Said, Value
from opsmith_lab.evaluation.analysis import Analysis, Chart, Row
from opsmith_lab.evaluation.measure import MeanEstimate, average_shares, average_tasks
from opsmith_lab.evaluation.permutation import PermutationResult, adjust_ps, permute_columns
from opsmith_lab.evaluation.repetition import LEVEL
from opsmith_lab.study.adaptation import find_gains, rank_proposals
from opsmith_lab.study.arms import BUDGET
from opsmith_lab.study.chat import EMPTY, NO_POINT, OUT_OF_BOUNDS
from opsmith_lab.study.measures import MEASURES, find_best_values, measure_trajectory
from opsmith_lab.study.searching import Search

OPTIMISER = "optimiser"  # in place of a model's name
WINS, ALL = "wins", "all"
PLACES = (5, 10, 15, 20, 30, 40, 50)  # evaluations at which the figures stand
INTERVALS = (
    "Values are means over problems and seeds. Brackets hold 95 % intervals over problems and seeds, which are drawn "
    "anew, the same ones for both arms of a pair; there is none for fewer than 5 problems. p is of permutation tests; "
    "that of Holm's method, for all arms of the page together, decides what is found."
)

Name = tuple[str, str]  # model or OPTIMISER, and arm
Searched = Mapping[Name, Mapping[tuple[str, int], Search]]  # by problem and seed
Adaptation = Mapping[Name, tuple[float, PermutationResult] | None]  # gain and test; None: not tested
UNTESTED = "adaptation not tested: no two problems of a set have the same bounds; add --sets few"


def analyse_searches(searches: Sequence[Search], seconds: Mapping[str, float], notes: Sequence[str]) -> Analysis:
    """Wins pair by pair, adaptation, measures, faults and prices, by set and over all problems.

    seconds: of a processor, by optimiser
    """
    searched = _sort_searches(searches)
    sets = [*dict.fromkeys(each.box.collection for each in searches), ALL]
    base = (OPTIMISER, "random") if (OPTIMISER, "random") in searched else next(iter(searched))
    rows = [row for of in sets for row in (*_list_wins(searched, of), *_list_measures(searched, of))]
    adaptation = {name: test_adaptation(list(own.values())) for name, own in searched.items()}
    against = [row for row in rows if row.measure == f"{WINS} over {_say(base)}" and row.of == ALL]
    finding = f"{_say_adaptation(adaptation)}; pairs won over {_say(base)} after {BUDGET} evaluations: " + ", ".join(
        f"{_say((row.model, row.arm))} {row.estimate:.2f}" for row in against if row.estimate
    )
    for name, own in searched.items():
        if name[0] != OPTIMISER and (lost := _count_lost(own)):
            finding += f"; {_say(name)} lost {lost:,} of {len(own) * BUDGET:,} evaluations"
    tables = [
        _tabulate_adaptation(adaptation),
        *(_tabulate_wins(searched, rows, of) for of in sets),
        *(_tabulate_measures(searched, rows, of) for of in sets if of != ALL),
        _tabulate_physical(searched),
        _tabulate_faults(searched),
        _tabulate_spending(searched, seconds),
    ]
    figures = {f"-{of}": _draw_wins(searched, base, of) for of in sets} | {"-ways": _draw_ways(rows)}
    definitions = [f"{name}: {words}" for name, words in MEASURES.items()]
    words = (
        f"{WINS}: share of pairs (the same problem, the same seed) in which an arm's best value is smaller; equal ones "
        "count a half",
        "adaptation: do values change what is proposed? The mean rank of proposals on their own problem, by that of "
        "the same proposals on the other problems of the set, of the first seed; one-sided, by dealing trajectories "
        "out to problems anew. gain: by how much the own rank (0 best, 1 worst) is lower",
    )
    return Analysis(finding, rows, tables, figures, [*words, *definitions, *notes], INTERVALS)


def test_adaptation(searches: Sequence[Search]) -> tuple[float, PermutationResult] | None:
    """Gain and test over the problems that look alike, of the first seed; None: there are no two of them."""
    strata: dict[object, list[Search]] = {}
    first = min(each.seed for each in searches)
    for each in searches:
        if each.seed == first:
            strata.setdefault((each.box.collection, each.box.domain), []).append(each)
    tables = [
        rank_proposals([each.box for each in own], [each.trajectory.points for each in own])
        for own in strata.values()
        if len(own) > 1
    ]
    if not tables:
        return None
    gain = float(np.concatenate([find_gains(table) for table in tables]).mean())
    return gain, permute_columns(tables, np.random.default_rng(0))


def compare_bests(first: Iterable[Search], second: Iterable[Search], place: int = BUDGET) -> MeanEstimate | None:
    """The share of pairs that the first wins after so many evaluations; no value at all is worse than any."""
    own, other = (
        {
            (each.box.name, each.seed): np.nan_to_num(find_best_values(each.trajectory.values)[place - 1], nan=math.inf)
            for each in searches
        }
        for searches in (first, second)
    )
    wins: dict[int, dict[str, float]] = {}
    for (problem, seed), value in own.items():
        if (problem, seed) in other:
            beside = other[problem, seed]
            wins.setdefault(seed, {})[problem] = 0.5 if value == beside else float(value < beside)
    return average_shares(list(wins.values()))


def _sort_searches(searches: Iterable[Search]) -> Searched:
    searched: dict[Name, dict[tuple[str, int], Search]] = {}
    for each in searches:
        searched.setdefault((each.model or OPTIMISER, each.arm), {})[each.box.name, each.seed] = each
    return searched


def _say(name: Name) -> str:
    return name[1] if name[0] == OPTIMISER else f"{name[1]} ({shorten_model(name[0])})"


def _select(own: Mapping[tuple[str, int], Search], of: str) -> list[Search]:
    return [each for each in own.values() if of in (ALL, each.box.collection)]


def _list_wins(searched: Searched, of: str) -> Iterator[Row]:
    for first, own in searched.items():
        for second, other in searched.items():
            if first != second:
                estimate = compare_bests(_select(own, of), _select(other, of))
                yield Row(*first, f"{WINS} over {_say(second)}", of, estimate)


def _list_measures(searched: Searched, of: str) -> Iterator[Row]:
    for name, own in searched.items():
        seeds: dict[int, dict[str, dict[str, float | None]]] = {}
        for each in _select(own, of):
            seeds.setdefault(each.seed, {})[each.box.name] = measure_trajectory(each.trajectory)
        for measure in list(MEASURES)[1:]:  # values of different problems have no mean
            tables = [
                {problem: value for problem, row in by_problem.items() if (value := row[measure]) is not None}
                for by_problem in seeds.values()
            ]
            yield Row(*name, measure, of, average_tasks(tables))


# -- what is shown


def _adjust_adaptation(adaptation: Adaptation) -> dict[Name, tuple[float, PermutationResult, float]]:
    """Gain, test and Holm's p of the arms that were tested."""
    tested = {name: own for name, own in adaptation.items() if own is not None}
    adjusted = adjust_ps([result.p for _, result in tested.values()])
    return {name: (*own, p) for (name, own), p in zip(tested.items(), adjusted, strict=True)}


def _say_adaptation(adaptation: Adaptation) -> str:
    """`what they are told changes what they propose: cma (p <= 0.003); not shown of random, greedy`."""
    tested = _adjust_adaptation(adaptation)
    if not tested:
        return UNTESTED
    adapting = {name: result.say_p(p) for name, (_, result, p) in tested.items() if p < LEVEL}
    changing = [f"{_say(name)} (p {'' if p.startswith('<') else '= '}{p})" for name, p in adapting.items()]
    unchanging = [_say(name) for name in tested if name not in adapting]
    words = [f"values change what is proposed by {', '.join(changing)}"] if changing else []
    return "; ".join([*words, *([f"no change is shown of {', '.join(unchanging)}"] if unchanging else [])])


def _tabulate_adaptation(adaptation: Adaptation) -> DataTable:
    rows = [
        (*name, gain, result.say_p(), result.say_p(p))
        for name, (gain, result, p) in _adjust_adaptation(adaptation).items()
    ]
    columns = {"model": TEXT, "arm": TEXT, "gain": SHARE, "p": TEXT, "p (Holm)": TEXT}
    return DataTable("Does it search? Adaptation to values", columns, rows)


def _tabulate_cells(
    title: str, searched: Searched, rows: Sequence[Row], of: str, measures: Mapping[str, str]
) -> DataTable:
    """A line for each arm, with estimates under headings that stand for measures."""
    cells = {(row.model, row.arm, row.measure): row.estimate for row in rows if row.of == of}
    lines = [(_say(name), *(cells.get((*name, measure)) for measure in measures.values())) for name in searched]
    return DataTable(title, {"arm": TEXT, **dict.fromkeys(measures, SHARE)}, lines)


def _tabulate_wins(searched: Searched, rows: Sequence[Row], of: str) -> DataTable:
    title = f"Pairs that the row's arm wins over the column's, {'all problems' if of == ALL else of}"
    return _tabulate_cells(title, searched, rows, of, {_say(name): f"{WINS} over {_say(name)}" for name in searched})


def _tabulate_measures(searched: Searched, rows: Sequence[Row], of: str) -> DataTable:
    return _tabulate_cells(f"How they search, {of}", searched, rows, of, {name: name for name in list(MEASURES)[1:]})


def _tabulate_physical(searched: Searched) -> DataTable:
    """Best values in their units, means over seeds."""
    boxes = {each.box.name: each.box for own in searched.values() for each in _select(own, "physical")}
    lines: list[tuple[Value, ...]] = []
    for box in boxes.values():
        means: list[Value] = []
        for own in searched.values():
            bests = [measure_trajectory(each.trajectory)["best"] for each in own.values() if each.box.name == box.name]
            values = [best for best in bests if best is not None]
            means.append(Said(f"{np.mean(values):.4g}", float(np.mean(values))) if values else None)
        lines.append((box.name, ", ".join(box.axes), box.unit, *means))
    columns = {**dict.fromkeys(("system", "axes", "unit"), TEXT), **dict.fromkeys(map(_say, searched), SHARE)}
    return DataTable("Physical systems: best value, mean over seeds", columns, lines)


def _count_lost(own: Mapping[tuple[str, int], Search]) -> int:
    return sum(int(np.isnan(each.trajectory.values).sum()) for each in own.values())


def _tabulate_faults(searched: Searched) -> DataTable:
    """Replies that were no proposal, with one as it came."""
    lines: list[tuple[Value, ...]] = []
    for name, own in searched.items():
        faults = [fault for each in own.values() for fault in each.faults]
        if name[0] == OPTIMISER:
            continue
        kinds = Counter(fault.kind for fault in faults)
        shown = next((fault.reply for fault in faults if fault.reply.strip()), "")[:80]
        requests = sum(each.usage.requests for each in own.values())
        counts = (kinds[kind] for kind in (EMPTY, NO_POINT, OUT_OF_BOUNDS))
        lines.append((_say(name), requests, *counts, _count_lost(own), shown))
    counted = dict.fromkeys(("requests", EMPTY, NO_POINT, OUT_OF_BOUNDS, "evaluations lost"), COUNT)
    return DataTable("Replies that were no proposal", {"arm": TEXT, **counted, "one of them": TEXT}, lines)


def _tabulate_spending(searched: Searched, seconds: Mapping[str, float]) -> DataTable:
    lines: list[tuple[Value, ...]] = []
    for name, own in searched.items():
        usage = Usage.total(each.usage for each in own.values())
        spent = seconds.get(name[1]) if name[0] == OPTIMISER else None
        seeds = ", ".join(map(str, sorted({each.seed for each in own.values()})))
        lines.append((_say(name), seeds, len(own), spent, usage.input_tokens, usage.output_tokens, usage))
    columns = {"arm": TEXT, "seeds": TEXT, "searches": COUNT, "processor s": SECONDS}
    return DataTable("What it took", {**columns, "input tokens": COUNT, "output tokens": COUNT, "USD": USD}, lines)


def _draw_wins(searched: Searched, base: Name, of: str) -> Chart:
    points = []
    for name, own in searched.items():
        for place in PLACES if name != base else ():
            estimate = compare_bests(_select(own, of), _select(searched[base], of), place)
            row = Row(*name, WINS, of, estimate)
            points.append({"x": place, "series": _say(name), **row.scale_ends()})
    title = f"Pairs won over {_say(base)}, {'all problems' if of == ALL else of}"
    words = {"title": title, "x_title": "evaluations", "y_title": "share of pairs won"}
    shown = [each for own in searched.values() for each in _select(own, of)]
    size = f"{len({each.box.name for each in shown}):,} problems, {len(shown):,} searches of {BUDGET} evaluations"
    return Chart("lines", points, {**words, "y_domain": [0, 1]}, ("over problems and seeds", size))


def _draw_ways(rows: Sequence[Row]) -> Chart:
    shown = ("coverage", "greed", "copies")
    points = [
        {"x": _say((row.model, row.arm)), "series": row.measure, **row.scale_ends()}
        for row in rows
        if row.of == ALL and row.measure in shown
    ]
    words = {"title": "How they search, all problems", "x_title": "arm", "y_title": "share", "width": 672}
    return Chart("bars", points, {**words, "y_domain": [0, 1]}, ("over problems and seeds",))
