"""Fronts hold what no other program beats, hypervolumes are exact, and both come from stored figures alone."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_target import TINY, register, tiny_task

from opsmith.judging.verifier import verify
from opsmith.learn.afterwards import ComparedProgram, measure_figures
from opsmith.measuring.costs import CostRequest, measure_costs
from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import MeasuringGrade
from opsmith.records import Candidate
from opsmith.results.fronts import FrontPoint, choose_front, measure_hypervolume, read_fronts
from opsmith.store import Store
from opsmith.store.rows import RunInfo, run_rows

register()
TASK = replace(tiny_task("sum_0", "x y + z +"), impl="x y + z + ")
SIDE = 6  # of the boxes that are counted cell by cell


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
def test_a_hypervolume_equals_the_cells_that_are_counted_one_by_one(dimensions: int) -> None:
    draw = random.Random(dimensions)
    for count in (0, 1, 2, 5, 12):
        vectors = [tuple(float(draw.randrange(SIDE + 2)) for _ in range(dimensions)) for _ in range(count)]
        cells = itertools.product(range(SIDE), repeat=dimensions)
        covered = sum(
            any(all(v <= c for v, c in zip(vector, cell, strict=True)) for vector in vectors) for cell in cells
        )
        assert measure_hypervolume(vectors, SIDE) == pytest.approx(covered / SIDE**dimensions)


def test_a_front_is_what_no_other_program_beats_one_of_each_equal_ones_in_whatever_order_they_come() -> None:
    draw = random.Random(7)
    points = [
        FrontPoint(f"{number:02}", "run", None, tuple(float(draw.randrange(5)) for _ in range(3)))
        for number in range(40)
    ]
    vectors = {point.figures for point in points}
    unbeaten = {
        vector
        for vector in vectors
        if not any(other != vector and all(a <= b for a, b in zip(other, vector, strict=True)) for other in vectors)
    }
    front = choose_front(points, TINY.objectives)
    assert [point.figures for point in front] == sorted(unbeaten)
    draw.shuffle(points)
    assert choose_front(points, TINY.objectives) == front


def fill_with_words(order: SpeedOrder):
    """Figures of the tiny target's cost model, fewer bytes for more cycles."""
    objectives = tuple(offer for offer in TINY.objectives if offer.name in order.figures)
    request = CostRequest(order.task, order.source, order.find_partner(), order.grade, objectives)

    def count(task, source):
        cycles = TINY.estimate_cost(task, source)["cycles"]
        return {"cycles": cycles, "on_chip_bytes": 1000 - cycles}

    yield from measure_costs(verify, count, request)


def test_isomorphic_programs_are_counted_once_and_what_is_stored_is_not_counted_again(tmp_path: Path) -> None:
    longer = "copy x a b\na b max y + z +"
    with Store.open(tmp_path) as store:
        store.put(run_rows(RunInfo("run", "run", "tiny", False, "tiny", 0, {}, {}), [TASK])).result()
        sources = ("x y + z +", "x  y + z +", longer)
        programs = [ComparedProgram(TASK, source, f"sample {number}") for number, source in enumerate(sources)]
        names = ("cycles", "on_chip_bytes")
        arguments = (store, "run", programs, MeasuringGrade.SCREEN, fill_with_words)
        first = list(measure_figures(*arguments, names[:1]))
        second = list(measure_figures(*arguments, names))
        assert list(measure_figures(*arguments, names)) == []
        [front] = read_fronts(store, ["run"], [TASK], TINY.objectives[:2])
    counted = [(speed.sample, speed.report.measurement.objective.name) for speed in (*first, *second)]
    assert counted == [(sample, unit) for unit in names for sample in (None, "sample 0", "sample 2")]
    assert [point.program for point in front.front] == [Candidate(source).id for source in (sources[0], longer)]
    assert front.own == front.front[0].figures
    assert not front.is_above_own("cycles")
    assert front.is_above_own("on_chip_bytes")
