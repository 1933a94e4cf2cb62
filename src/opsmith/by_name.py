"""What is named in a table and imported on use: parts that few runs need, and those of `opsmith_lab`, which may be
missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from opsmith.errors import UsageError


def import_by_name(place: str, asker: str) -> Any:
    """What `module:attribute` names; the module, where no attribute is named.

    Raises UsageError, in the name of who asks for it, where there is no such package."""
    module, _, attribute = place.partition(":")
    try:
        loaded = import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise UsageError(
            f"{asker}: given an installation without the package {package}; expected it beside this one; "
            f"try: install the distribution that has it"
        ) from error
    return getattr(loaded, attribute) if attribute else loaded
