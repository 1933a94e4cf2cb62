"""The page of the instruments: who is told from whom, null rates, power curves."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.report.record import TEXT, DataTable
from opsmith_lab.evaluation.analysis import Analysis
from opsmith_lab.evaluation.repetition import HONEST, LEVEL, draw_power, tabulate_power
from opsmith_lab.study.measures import MEASURES
from opsmith_lab.study.proof import COMPARED, IGNORANT, InstrumentProof, PairTest

INTERVALS = (
    "A searcher adapts in a share of its samples (100, 30, 10 %) and recites in the others; a reciter ignores values; "
    "a greedy mind stays beside the best point; a copier repeats earlier points in 88 % of its proposals, whatever "
    "they were worth. All of them search the synthetic problems, with seeds of their own."
)


def analyse_proof(proof: InstrumentProof) -> Analysis:
    found = [mind for mind, result in proof.adaptation.items() if result.p < LEVEL]
    honest = sum(rate.is_honest for rate in proof.null_rates.values())
    low, high = HONEST
    finding = (
        f"adaptation is found in {', '.join(found)} and in no {' or '.join(IGNORANT)}; {honest} of "
        f"{len(proof.null_rates)} null rates lie in {low:.1%} to {high:.1%}"
    )
    if set(found) != set(proof.adaptation) - set(IGNORANT):
        finding = f"the instruments do not tell what was planted: adaptation is found in {', '.join(found)}"
    nulls = [
        (what, f"{rate.rate:.2%}", f"{rate.repetitions:,}", "yes" if rate.is_honest else "NO")
        for what, rate in proof.null_rates.items()
    ]
    minds = [
        (mind, f"{means['gain']:z.3f}", str(proof.adaptation[mind]), *(f"{means[name]:.3f}" for name in COMPARED[1:]))
        for mind, means in proof.means.items()
    ]
    return Analysis(
        finding,
        (),
        (
            _write_table("Minds", ("mind", "gain", "p of adaptation", *COMPARED[1:]), minds),
            _write_table(
                "Different minds told apart, two-sided p of paired tests",
                ("minds", *COMPARED),
                _list_pairs(proof.apart),
            ),
            _write_table("The same mind with other seeds", ("mind", *COMPARED), _list_pairs(proof.equal)),
            _write_table(f"Null rates: p < {LEVEL} where nothing is", ("test", "rate", "repetitions", "honest"), nulls),
            tabulate_power(proof.power, "what is planted", "problems"),
        ),
        {"-power": draw_power(proof.power, "problems")},
        [f"{name}: {MEASURES[name]}" for name in COMPARED[1:]],
        INTERVALS,
    )


def _write_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> DataTable:
    return DataTable(title, dict.fromkeys(columns, TEXT), rows)


def _list_pairs(tests: Sequence[PairTest]) -> list[tuple[str, ...]]:
    pairs = dict.fromkeys((each.first, each.second) for each in tests)
    results = {(each.first, each.second, each.measure): each.result.say_p() for each in tests}
    return [
        (first if first == second else f"{first}, {second}", *(results[first, second, name] for name in COMPARED))
        for first, second in pairs
    ]
