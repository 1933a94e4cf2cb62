"""Watching what torch executes in a block, without torch's compiler: importing that takes a second or two."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class UncompiledMode(TorchDispatchMode):  # type: ignore[no-untyped-call]  # of torch
    """A dispatch mode of eager code, which nothing compiles."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: with True, as torch has it, the first call imports the compiler only to keep it away."""
        return False
