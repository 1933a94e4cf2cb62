"""Measurements and profiles come back as they were written; one that is added twice is there once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text, update
from store.test_store import KEY, RUN, TASK, whole_run

from opsmith.errors import StoreError
from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import (
    MeasuringGrade,
    RooflineShare,
    SpeedMeasurement,
    SpeedRatio,
    SpeedReport,
)
from opsmith.records import CYCLES, TIME, Candidate
from opsmith.store import Store, schema
from opsmith.store.measurements import Profile, StoredSpeed, profile_rows, speed_rows

PROGRAM = Candidate("x y +").id
FULL = SpeedMeasurement(
    program=PROGRAM, problem="p" * 64, shape_set="odd", sizes={"N": 4096, "M": 17}, device="d" * 64,
    protocol="pairs/1", flags="-O3", grade=MeasuringGrade.FULL, objective=TIME, time=Interval(812.5, 810.0, 815.25),
    ratio=SpeedRatio("plain", Interval(1.31, 1.30, 1.33), Interval(1.3, 1.2, 1.4), Claim.FASTER), pairs=100,
    processes=5,
)  # fmt: skip
SHARE = RooflineShare(Interval(0.4, 0.3, 0.5), None, Interval(3.0, 2.9, 3.1))
TIME = StoredSpeed(TASK.id, KEY.id, SpeedReport(FULL, SHARE), seconds=1.5)
UNSAID = replace(
    TIME,
    report=SpeedReport(replace(FULL, time=None, ratio=None, reason="too noisy", sought_partner="plain"), None),
)
BASELINE = replace(TIME, sample=None, report=SpeedReport(replace(FULL, ratio=None), replace(SHARE, share=None)))
CYCLES = replace(
    TIME,
    report=SpeedReport(
        replace(FULL, objective=CYCLES, time=Interval(7.0, 7.0, 7.0), ratio=None, device="emulated:step"), None
    ),
)
PROFILE = Profile(KEY.id, PROGRAM, "cpu", "vectorisation", "text/plain", "loop vectorized\0 using 64 byte vectors\n")


@pytest.fixture
def store(where: Path | str) -> Iterator[Store]:
    with Store.open(where) as opened:
        opened.put(whole_run()).result()
        yield opened


def test_measurements_come_back_whole_in_the_order_in_which_they_were_made(store: Store) -> None:
    all_of_them = [TIME, UNSAID, BASELINE, CYCLES]
    for speed in all_of_them:
        store.put(speed_rows(RUN.id, speed)).result()
    assert store.read_speeds(RUN.id) == all_of_them
    assert store.read_speeds(RUN.id)[0].seconds == TIME.seconds
    assert store.read_speeds("another run") == []


def test_one_that_is_added_again_changes_nothing_and_one_that_is_made_again_is_another(store: Store) -> None:
    remade = replace(TIME, report=SpeedReport(replace(FULL, time=Interval(811.0, 810.0, 815.25)), SHARE))
    for speed in (TIME, replace(TIME, seconds=9.0), remade):
        store.put(speed_rows(RUN.id, speed)).result()
    assert store.read_speeds(RUN.id) == [TIME, remade]


def test_a_row_holds_its_time_and_partner_for_questions_of_others(store: Store) -> None:
    for speed in (TIME, UNSAID, CYCLES):
        store.put(speed_rows(RUN.id, speed)).result()
    columns = "task, against, shape, grade, unit, value, lower, upper, reason"
    shape = '{"M":17,"N":4096}'
    assert set(store.fetch_rows(text(f"select {columns} from measurement"))) == {  # type: ignore[arg-type]
        (TASK.id, "plain", shape, "full", "ns", 812.5, 810.0, 815.25, ""),
        (TASK.id, "plain", shape, "full", "ns", None, None, None, "too noisy"),
        (TASK.id, None, shape, "full", "cycles", 7.0, 7.0, 7.0, ""),
    }


@pytest.mark.parametrize("body", ['{"version": 1}', '{"version": 9}', "7", "{"])
def test_a_measurement_that_cannot_be_read_is_the_stores_damage(store: Store, body: str) -> None:
    store.put(speed_rows(RUN.id, TIME)).result()
    [(_, values), _] = speed_rows(RUN.id, TIME)
    with store._database.open_transaction() as connection:
        connection.execute(update(schema.text).where(schema.text.c.hash == values["hash"]).values(body=body))
    with pytest.raises(StoreError, match="it is damaged: given a measurement that cannot be read"):
        store.read_speeds(RUN.id)


def test_profiles_come_back(store: Store) -> None:
    image = replace(PROFILE, kind="screenshot", media="image/png", body="iVBORw0KGgo=")
    for profile in (PROFILE, image, PROFILE):
        store.put(profile_rows(RUN.id, profile)).result()
    assert store.read_profiles(RUN.id) == [PROFILE, image]


def test_two_equal_runs_are_equal_whatever_a_clock_said(store: Store) -> None:
    before = store.read_contents(RUN.id)
    store.put([*speed_rows(RUN.id, TIME), *profile_rows(RUN.id, PROFILE)]).result()
    assert store.read_contents(RUN.id) == before
