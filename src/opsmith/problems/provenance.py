"""Provenance: the foreign file that a problem was imported from. Exports need it; models and verdicts never see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NO_LICENCE = "not stated"


@dataclass(frozen=True)
class Provenance:
    """Where an imported problem comes from."""

    format: str  # kernelbench, flashinfer
    file: str  # relative to the imported folder
    sha256: str  # of that file
    licence: str = NO_LICENCE  # as its header, or a LICENSE file beside or above it, says
    text: str = ""  # of the file; flashinfer: the definition's JSON
    arguments: tuple[str, ...] = ()  # of the source's function, in order: names of inputs and scalars
    weights: Mapping[str, str] = field(default_factory=dict)  # input -> key of the module's state
    sizes: Mapping[str, int] = field(default_factory=dict)  # the source's own, by dim, where the base sizes are smaller
