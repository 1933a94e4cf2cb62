"""Measurements and profiles come back as they were written; one that is added twice is there once."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from store.test_store import KEY, RUN, TASK, whole_run

from opsmith.records import Candidate
from opsmith.store import Store
from opsmith.store.measurements import (
    Measurement,
    Profile,
    measurement_rows,
    profile_rows,
    read_measurements,
    read_profiles,
)

PROGRAM = Candidate("x y +").id
TIME = Measurement(TASK.id, PROGRAM, "cpu", {"N": 4096, "M": 17}, "pairs-1", "full", "ns", 812.5, 810.0, 815.25,
                   sample=KEY.id, notes={"pairs": 100, "clock_mhz": [2900, 3100]}, seconds=1.5)  # fmt: skip
RATIO = replace(TIME, unit="ratio", value=1.31, lower=1.30, upper=1.33, against="plain", notes={})
UNTOLD = replace(RATIO, value=None, lower=0.4, upper=3.0, grade="screen", reason="outside of the trusted interval")
BASELINE = replace(TIME, program="eager", sample=None, value=5, lower=None, upper=None)
PROFILE = Profile(KEY.id, PROGRAM, "cpu", "vectorisation", "text/plain", "loop vectorized\0 using 64 byte vectors\n")


@pytest.fixture
def store(where: Path | str) -> Iterator[Store]:
    with Store.open(where) as opened:
        opened.put(whole_run()).result()
        yield opened


def test_measurements_come_back_in_the_order_in_which_they_were_made(store: Store) -> None:
    all_of_them = [TIME, RATIO, UNTOLD, BASELINE]
    for measured in all_of_them:
        store.put(measurement_rows(RUN.id, measured)).result()
    assert read_measurements(store, RUN.id) == all_of_them
    assert read_measurements(store, RUN.id)[0].seconds == TIME.seconds
    assert read_measurements(store, "another run") == []


def test_one_that_is_added_again_changes_nothing_and_one_that_is_made_again_is_another(store: Store) -> None:
    again, remade = replace(TIME, seconds=9.0), replace(TIME, value=811.0)
    for measured in (TIME, again, remade):
        store.put(measurement_rows(RUN.id, measured)).result()
    assert read_measurements(store, RUN.id) == [TIME, remade]
    store.put(measurement_rows(RUN.id, replace(BASELINE, value=5.0))).result()
    store.put(measurement_rows(RUN.id, BASELINE)).result()
    assert len(read_measurements(store, RUN.id)) == 3, "5 is 5.0"


def test_profiles_come_back(store: Store) -> None:
    image = replace(PROFILE, kind="screenshot", media="image/png", body="iVBORw0KGgo=")
    for profile in (PROFILE, image, PROFILE):
        store.put(profile_rows(RUN.id, profile)).result()
    assert read_profiles(store, RUN.id) == [PROFILE, image]


def test_two_equal_runs_are_equal_whatever_a_clock_said(store: Store) -> None:
    before = store.read_contents(RUN.id)
    store.put([*measurement_rows(RUN.id, TIME), *profile_rows(RUN.id, PROFILE)]).result()
    assert store.read_contents(RUN.id) == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": None},
        {"reason": "too noisy"},
        {"value": math.nan},
        {"upper": math.inf},
        {"lower": 813.0},
        {"upper": 812.0},
        {"value": None, "reason": "too noisy", "lower": 2.0, "upper": 1.0},
    ],
)
def test_a_figure_that_contradicts_itself_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"Measurement of {PROGRAM[:8]}: given"):
        replace(TIME, **wrong)
