"""Does a model search, or does it recite? Black-box optimisation, with instruments that are proved on known minds."""

from __future__ import annotations

from collections.abc import Mapping

STUDIES: Mapping[str, str] = {  # by name: what it shows
    "instruments": "The instruments of the studies, on minds that are known",
    "study1": "Does a model search, or does it recite? Black-box optimisation",
    "study2": "Do kernels follow the size that is told? Zero-shot kernels",
}
