"""Settings have flat names outside and groups inside; both say the same."""

import pytest
from pydantic import ValidationError

from opsmith.learn.identity import plain_settings
from opsmith.settings import NAMES, PATH_OF, Settings


def test_flat_names_and_groups_are_the_same_settings() -> None:
    flat = Settings(samples=8, model="search", max_cost=2.0, tasks=("attn_0",))
    assert (flat.method.samples, flat.provider.model, flat.spending.max_cost) == (8, "search", 2.0)
    assert Settings(**flat.as_flat()) == flat == Settings(**flat.as_flat("json")) == Settings(**flat.model_dump())


def test_a_group_within_a_group_has_flat_names_too() -> None:
    settings = Settings(plan="static", teamwork={"tooling": {"tools": "check"}})
    assert (settings.teamwork.planning.plan, settings.as_flat()["tools"]) == ("static", "check")
    assert settings.replace(seed=1).teamwork == settings.teamwork
    with pytest.raises(ValidationError, match="tool_calls"):
        Settings(tool_calls=0)


def test_every_name_is_in_one_group() -> None:
    assert len(set(NAMES)) == len(NAMES) == len(PATH_OF)
    assert set(Settings().as_flat()) == set(NAMES)


def test_a_replaced_setting_leaves_its_neighbours_and_is_checked() -> None:
    before = Settings(samples=8, levels=2)
    assert before.replace(samples=9).as_flat() == before.as_flat() | {"samples": 9}
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        before.replace(samples=0)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValidationError, match="sample"):
        Settings(sample=8)


def test_options_of_a_target_are_stored_when_some_were_given() -> None:
    assert "target_options" not in plain_settings(Settings())
    assert plain_settings(Settings(target_options={"threads": 2}))["target_options"] == {"threads": 2}


def test_equal_settings_are_one_in_a_set_whatever_the_order_of_their_options() -> None:
    options = [{"threads": 2, "flags": ["-O2"]}, {"flags": ["-O2"], "threads": 2}, {"threads": 3}]
    assert len({Settings(target_options=values) for values in options}) == 2
