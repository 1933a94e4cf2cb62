"""The part of CUDA that takes programs away: `Modular`, `Bindable`. What writes imports torch, when asked."""

from __future__ import annotations

from opsmith.targets.programs import Solved, TorchExtension, TorchModule


class CudaPackages:
    """`Modular` and `Bindable`."""

    def write_torch_module(self, solved: Solved) -> TorchModule:
        from opsmith.targets.cuda.host_code.torch_module import write_torch_module  # noqa: PLC0415 - imports torch

        return write_torch_module(solved)

    def write_torch_extension(self, solved: Solved) -> TorchExtension:
        from opsmith.targets.cuda.host_code.torch_extension import write_torch_extension  # noqa: PLC0415

        return write_torch_extension(solved)
