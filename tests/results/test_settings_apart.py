"""Runs that differ in one setting say so, and from which run."""

from opsmith.results.settings_apart import find_differences, find_single, list_settings
from opsmith.store.rows import RunInfo


def info(name: str, model: str = "m", **settings: object) -> RunInfo:
    return RunInfo(name, name, model, True, "step", 0, settings, {"opsmith": "1", "target": "step", "verifier": "v"})


def test_a_run_names_the_first_one_that_differs_in_one_setting() -> None:
    runs = [
        info("a", seed=0),
        info("b", seed=1),
        info("c", seed=2),
        info("d", seed=2, selection="none"),
        info("e", seed=9, selection="random", think=True),
        info("f", model="n", seed=0),
    ]
    singles = find_single(runs)
    assert {run: str(single) for run, single in singles.items()} == {
        "b": "a in seed: 1, not 0",
        "c": "a in seed: 2, not 0",
        "d": "c in selection: none, not adaptive",
        "f": "a in model: n, not m",
    }


def test_a_default_is_the_same_whether_or_not_it_is_stated() -> None:
    assert find_single([info("a", seed=0), info("b", seed=0, selection="adaptive")]) == {}
    pair = [list_settings(info("a", seed=0)), list_settings(info("b", seed=0, optimise=3))]
    assert find_differences(pair) == {"optimise": ("0", "3")}


def test_a_language_brings_its_own_verifier() -> None:
    other = RunInfo("b", "b", "m", True, "c", 0, {}, {"opsmith": "1", "target": "c", "verifier": "w"})
    assert find_differences([list_settings(info("a")), list_settings(other)]) == {"target": ("step", "c")}
    assert str(find_single([info("a"), other])["b"]) == "a in target: c, not step"
