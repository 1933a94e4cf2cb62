"""What the nurseries import before they fork, beside torch: one for tasks' workers, and a light one without torch.

The light one is for candidates whose artefacts are loaded: a fork of it takes a fraction of the other's time.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

from opsmith.targets import get_target, is_own
from opsmith.targets.protocols import Driven, Preloaded

_LIBRARIES = ("libm.so.6", "libmvec.so.1", "libgomp.so.1")  # what compiled code is linked with, where they are present


def load_language(name: str) -> None:
    """A built-in target and what its workers import; what fails here is said where a fork needs it."""
    with contextlib.suppress(Exception):
        target = get_target(name) if not is_own(name) else None
        if isinstance(target, Preloaded):
            target.preload_modules()


def load_libraries() -> None:
    """What artefacts ask for when they are loaded: a confined process would have to look for it.

    Threads that wait for each other sleep: on busy processors, those that spin take seconds for what takes none.
    """
    os.environ["OMP_WAIT_POLICY"] = "passive"  # libgomp reads it when it is loaded
    for name in _LIBRARIES:
        with contextlib.suppress(OSError):
            ctypes.CDLL(name)


def find_language(name: str) -> None:
    """A built-in target alone: its module says what runs artefacts, and imports no torch."""
    with contextlib.suppress(Exception):
        target = get_target(name) if not is_own(name) else None
        if isinstance(target, Driven):
            target.preload_runtime()
