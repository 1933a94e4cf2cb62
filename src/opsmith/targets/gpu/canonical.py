"""A launch plan in a form that is equal for plans that differ in names of kernels and workspaces only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opsmith.targets.gpu.plan import PLAN_WORDS, LaunchPlan, PlanWords
from opsmith.targets.gpu.reading import read_plan


def write_plan_of(source: str, kernels: Mapping[str, str], words: PlanWords = PLAN_WORDS) -> str:
    """The canonical lines of the plan that a program has; "": it has none that can be read."""
    plan = read_plan(source, words)
    return write_canonical_plan(plan, kernels, words) if isinstance(plan, LaunchPlan) else ""


def write_canonical_plan(plan: LaunchPlan, kernels: Mapping[str, str], words: PlanWords = PLAN_WORDS) -> str:
    """`kernels`: names by those that the program gives them; a kernel that is missing there keeps its name.

    Workspaces are numbered in the order in which launches use them, behind a sign that no name has.
    """
    used = [name for launch in plan.launches for name in launch.args]
    names = [space.name for space in plan.workspaces]
    order = dict.fromkeys((*(name for name in used if name in names), *names))
    numbered = {name: f"%{number}" for number, name in enumerate(order)}
    spaces = sorted((replace(space, name=numbered[space.name], line=0) for space in plan.workspaces), key=str)
    launches = tuple(
        replace(
            launch,
            kernel=kernels.get(launch.kernel, launch.kernel),
            args=tuple(numbered.get(name, name) for name in launch.args),
        )
        for launch in plan.launches
    )
    return LaunchPlan(tuple(spaces), launches).write_lines(words)
