"""`opsmith bench`: figures with their units, for every target."""

import json

import pytest

pytestmark = pytest.mark.usefixtures("warm")


def test_bench_verify_times_trials_and_refusals(opsmith):
    done = opsmith("bench", "verify", "rope_0", "index_3", "--json")
    assert done.code == 0, done.err
    measured = json.loads(done.out)
    assert set(measured["tasks"]) == {"rope_0", "index_3"}
    assert measured["summary"]["tasks"] == 2
    assert 0 < measured["summary"]["trial_ms"] <= measured["summary"]["worst_trial_ms"]
    assert 0 < measured["summary"]["refusal_ms"] <= measured["summary"]["worst_refusal_ms"]
    assert measured["tasks"]["rope_0"]["trials"] >= 40


def test_bench_verify_prints_a_table(opsmith):
    done = opsmith("bench", "verify", "index_3")
    assert "trial at base [ms]" in done.out
    assert "a refusal before it runs" in done.out
