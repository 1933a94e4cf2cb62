"""The matched controls: a run that spends as many samples, or as many tokens, as another one did."""

import doctest
from pathlib import Path

import pytest
from tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.errors import UsageError
from opsmith.learn import budget
from opsmith.learn.budget import Budget
from opsmith.learn.loop import improve
from opsmith.results.result import RunResult
from opsmith.store import Store

CONTROL = {"selection": "none", "samples": 4}


def run(store: Store, **changes: object) -> RunResult:
    return improve(TASKS, TinyModel(), SETTINGS.replace(**changes), store, judge=InProcess())


def tokens(result: RunResult) -> int:
    return result.usage.input_tokens + result.usage.output_tokens


def test_a_round_is_cut_at_the_mean_tokens_so_far() -> None:
    assert doctest.testmod(budget).failed == 0
    assert Budget(tokens=100, first=30.0).samples_left(planned=0, answered=0, spent=0) == 3
    assert Budget(tokens=100, first=30.0).samples_left(planned=5, answered=4, spent=99) == 0
    assert Budget(tokens=100, first=30.0).samples_left(planned=5, answered=4, spent=120) == 0
    assert Budget(samples=7).samples_left(planned=5, answered=4, spent=99) == 2
    assert Budget().samples_left(5, 4, 99) is None


def test_the_control_spends_as_many_tokens_as_the_run_it_is_matched_to(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        whole = run(store)
        control = run(store, **CONTROL, tokens_from=whole.run)
        if control.end != "all solved":
            assert control.end == "budget spent"
            assert 0.98 * tokens(whole) <= tokens(control) <= 1.02 * tokens(whole)
        easy = run(store, **CONTROL, tokens_from=whole.run, temperatures=(0.01,))  # solves little: spends it all
        assert easy.end == "budget spent"
        assert 0.98 * tokens(whole) <= tokens(easy) <= 1.02 * tokens(whole)
        assert {item.level for item in easy.rounds} == {"none"}


def test_a_budget_smaller_than_a_round_cuts_the_first_round(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        small = run(store, samples=2, temperatures=(0.4,), max_rounds=1)
        control = run(store, selection="none", tokens_from=small.run)
        assert sum(item.samples for item in control.per_task.values()) == 12
        assert 0.9 * tokens(small) <= tokens(control) <= 1.1 * tokens(small)


def test_the_budgets_name_the_run_and_exclude_each_other(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        whole = run(store, max_rounds=1)
        by_tokens = run(store, **CONTROL, tokens_from=whole.run)
        by_samples = run(store, **CONTROL, budget_from=whole.run)
        assert by_tokens.run != by_samples.run
        assert run(store, **CONTROL, tokens_from=whole.run).run == by_tokens.run
        with pytest.raises(UsageError, match="--budget-from: given with --tokens-from"):
            run(store, **CONTROL, tokens_from=whole.run, budget_from=whole.run)
        with pytest.raises(UsageError, match="no such run"):
            run(store, **CONTROL, tokens_from="nothing")
        with pytest.raises(UsageError, match="--tokens-from RUN"):
            run(store, selection="none")
