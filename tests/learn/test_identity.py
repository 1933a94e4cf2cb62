"""A run is named by what decides its result: by settings that are changed, and some that always were part of the name."""

from pathlib import Path
from typing import Any

import pytest

import opsmith
from opsmith.agents.manual import find_manual
from opsmith.learn.identity import run_info
from opsmith.learn.start import target_of
from opsmith.models.roles import gather_models
from opsmith.settings import NAMES, Settings
from opsmith.store.rows import RunInfo

TASKS = [opsmith.load_task("attn_1")]
ALWAYS = {
    *("tasks", "seed", "model", "base_url", "samples", "temperatures", "levels", "agents", "guardian", "prompt"),
    *("selection", "repair", "max_rounds", "max_tokens", "noise", "from_run", "budget_from", "tokens_from"),
}
OPTIMISED: dict[str, Any] = {"optimise": 2, "objective": "cycles"}


class NamedModel:
    name = "embedded"
    context_window: int | None = None
    is_language_model = False


def name_run(**changes: Any) -> RunInfo:
    settings = Settings(**changes)
    target, showing = target_of(TASKS, settings), settings.teamwork.showing
    manual = find_manual(target, showing.manual, showing.manual_tokens, showing.manual_sections)
    shown = {"manual": manual.digest if manual is not None else ""}
    return run_info(TASKS, [], None, gather_models(NamedModel()), target, settings, shown=shown)  # type: ignore[arg-type]


def test_a_manual_is_part_of_the_name_by_what_it_says_and_how_it_is_quoted(tmp_path: Path) -> None:
    for name, text in (("a.md", "# One\n\nword\n"), ("b/a.md", "# One\n\nword\n"), ("c/a.md", "# One\n\nother\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    ids = [name_run(manual=(str(tmp_path / name),)).id for name in ("a.md", "b/a.md", "c/a.md")]
    assert ids[0] == ids[1]
    ways = [
        name_run(manual=(str(tmp_path / "a.md"),), **way).id
        for way in ({"manual_tokens": 500}, {"manual_sections": "random"})
    ]
    assert len({name_run().id, *ids, *ways}) == 5


def test_a_setting_at_its_default_is_no_part_of_the_name_but_for_the_first_ones() -> None:
    """So that one which is added renames no run."""
    assert set(name_run().settings) == ALWAYS
    assert len(NAMES) > 2 * len(ALWAYS)


@pytest.mark.parametrize(
    ("changes", "stated"),
    [
        ({"completions": 4}, {"completions"}),
        ({"candidate_seconds": 30.0, "trial_seconds": 10.0}, {"candidate_seconds"}),
        ({"target_options": {"threads": 2}}, {"target_options"}),
        ({"plan": "static", "plan_after": 2}, {"plan"}),
        ({"think": True, "reasoning": "high"}, {"think", "reasoning"}),
        (OPTIMISED, {"optimise", "objective"}),
        (OPTIMISED | {"beam": 1, "memory": 0}, {"optimise", "objective", "memory"}),
        ({"optimise": 2, "objective": "time"}, {"optimise"}),
    ],
)
def test_a_setting_that_is_changed_is_part_of_the_name(changes: dict[str, Any], stated: set[str]) -> None:
    info = name_run(**changes)
    assert set(info.settings) - ALWAYS == stated
    assert info.id != name_run().id


@pytest.mark.parametrize(
    "changes",
    [
        {"concurrency": 3, "workers": 7, "max_cost": 3.0},
        {"measure": "full", "max_measured": 10.0},
        {"attempts": 7, "objective": "cycles"},  # without rounds that optimise
        {"pass_env": ("HOME",), "executor": "ray", "trust_tasks": True},
    ],
)
def test_what_has_no_say_in_the_result_is_no_part_of_the_name(changes: dict[str, Any]) -> None:
    assert name_run(**changes) == name_run()
