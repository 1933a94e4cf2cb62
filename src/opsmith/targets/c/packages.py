"""The part of C that takes programs away: `Packaged`, `Modular`, `Bindable`. What writes imports torch, when asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opsmith.targets.programs import Solved, TorchExtension, TorchModule


class CPackages:
    """`Packaged`, `Modular` and `Bindable`."""

    requirements: Sequence[str] = ("torch>=2.6",)

    def write_package(self, name: str, operators: Sequence[Solved]) -> dict[str, str]:
        from opsmith.targets.c.library.package import write_package  # noqa: PLC0415 - imports torch

        return write_package(name, operators)

    def describe_usage(self, name: str, operators: Sequence[Solved]) -> str:
        from opsmith.targets.c.library.package import describe_usage  # noqa: PLC0415 - imports torch

        return describe_usage(name, operators)

    def describe_proof(self, name: str) -> str:
        from opsmith.targets.c.library.package import PROOF  # noqa: PLC0415 - imports torch

        return PROOF

    def describe_ownership(self, name: str) -> str:
        from opsmith.targets.c.library.package import OWNERSHIP  # noqa: PLC0415 - imports torch

        return OWNERSHIP.format(name=name)

    def write_torch_module(self, solved: Solved) -> TorchModule:
        from opsmith.targets.c.torch_module import write_torch_module  # noqa: PLC0415 - imports torch

        return write_torch_module(solved)

    def write_torch_extension(self, solved: Solved) -> TorchExtension:
        from opsmith.targets.c.torch_extension import write_torch_extension  # noqa: PLC0415 - imports torch

        return write_torch_extension(solved)
