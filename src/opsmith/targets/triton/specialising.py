"""What of a launch a kernel is compiled for, as Triton's own launcher would: its types, its constants, and of whole
numbers whether they are 1 or divisible by 16."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from opsmith.targets.gpu.plan import WHOLE, ResolvedLaunch
from opsmith.targets.triton.words import DEFAULTS, TYPES

_ALIGNMENT = 16


@dataclass(frozen=True)
class Specialisation:
    """One kernel that is compiled. Equal ones are compiled once."""

    kernel: str
    types: tuple[str, ...]  # of arguments, as Triton writes them: *fp32, i32; `1`: the constant
    aligned: tuple[int, ...]  # places of arguments that are divisible by 16
    constants: tuple[tuple[str, int], ...]
    options: tuple[tuple[str, int], ...]
    line: int  # of the launch

    @property
    def key(self) -> str:
        words = asdict(self)
        del words["line"]
        return json.dumps(words, separators=(",", ":"))

    def write_request(self) -> Mapping[str, Any]:
        return asdict(self)


def specialise(launch: ResolvedLaunch, numbers: Sequence[float]) -> Specialisation:
    """For one launch; `numbers`: dims and scalars, as a draw has them."""
    types, aligned = [], []
    for place, argument in enumerate(launch.arguments):
        value = int(numbers[argument.place]) if argument.type == WHOLE else None
        if argument.is_array:
            types.append(f"*{TYPES[argument.type][1]}")
        elif value is None:
            types.append("fp32")
        else:
            types.append("1" if value == 1 else "i32" if -(2**31) <= value < 2**31 else "i64")
        if argument.is_array or (value is not None and value % _ALIGNMENT == 0):
            aligned.append(place)
    constants = tuple((name, value) for name, value in launch.meta if name not in DEFAULTS)
    options = tuple({**DEFAULTS, **{name: value for name, value in launch.meta if name in DEFAULTS}}.items())
    return Specialisation(launch.kernel, tuple(types), tuple(aligned), constants, options, launch.line)


def list_distinct(launches: Iterable[Specialisation]) -> list[Specialisation]:
    """Each once."""
    return list({each.key: each for each in launches}.values())
