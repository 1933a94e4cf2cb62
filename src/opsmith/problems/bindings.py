"""The data of one draw: sizes, tensors and the names that authors' code sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Bindings:
    """One draw in one precision. Tensors are never written."""

    sizes: Mapping[str, int]  # symbol -> size
    input_data: Mapping[str, Tensor]  # inputs and parameters by name
    namespace: dict[str, Any]  # what authors' code sees, `input_data` included
    wide: bool  # all floats are float64
    random_global: bool = False  # `global` drew numbers: the two precisions hold different ones


def bind_tensors(
    sizes: Mapping[str, int], tensors: dict[str, Tensor], names: dict[str, Any], wide: bool, random_global: bool = False
) -> Bindings:
    """Bindings over the names that `global` left, which see the tensors from here on."""
    names["input_data"] = MappingProxyType(tensors)
    return Bindings(sizes, tensors, names, wide, random_global)
