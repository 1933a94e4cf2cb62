"""What is allocated and launched of a bound plan at given numbers, as the runner and libraries read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opsmith.targets.gpu.plan import WHOLE, BoundArgument, BoundPlan, ResolvedLaunch
from opsmith.targets.gpu.resolving import resolve_plan


def write_launches(plan: BoundPlan, kernels: Mapping[str, Any], numbers: Sequence[float]) -> dict[str, Any]:
    """Bytes of workspaces, and launches with their arguments. Raises PlanFault.

    kernels: `symbols`, what each is called in the cubin, and `widths`, of the numbers among its parameters.
    """
    resolved = resolve_plan(plan, numbers)
    launches = [_write_launch(launch, kernels, numbers) for launch in resolved.launches]
    return {"workspaces": list(resolved.workspaces), "launches": launches}


def _write_launch(launch: ResolvedLaunch, kernels: Mapping[str, Any], numbers: Sequence[float]) -> dict[str, Any]:
    widths = kernels["widths"].get(launch.kernel, [])
    return {
        "kernel": kernels["symbols"].get(launch.kernel, launch.kernel),
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared": launch.shared,
        "args": [list(row) for row in _list_arguments(launch.arguments, widths, numbers)],
    }


def _list_arguments(
    arguments: Sequence[BoundArgument], widths: Sequence[str], numbers: Sequence[float]
) -> Iterator[tuple[str, float]]:
    """Each as the runner reads it: an array by its kind and place, a number by its width."""
    for place, argument in enumerate(arguments):
        if argument.is_array:
            yield argument.kind, argument.place
        else:
            width = widths[place] if place < len(widths) else ""
            yield width or ("whole" if argument.type == WHOLE else "floating"), numbers[argument.place]
