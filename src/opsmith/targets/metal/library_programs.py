"""The programs of an exported library in Metal: compiled and launched by torch on a Mac, where no one has tried it.

torch and the standard library are all that this needs: `torch.mps.compile_shader`, used as its documentation says.
Numbers are passed as arrays of one entry. Tensors of the CPU are copied to the device and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from opsmith.targets.gpu.plan import NUMBER, BoundPlan, read_bound_plan
from opsmith.targets.gpu.resolving import PlanFault, resolve_plan
from opsmith.targets.native.library.operator import ProgramCall
from opsmith.targets.operator_error import OperatorError

DEVICE = "mps"


class MetalPrograms:
    """Those of one package; see `Programs`.

    plans: by operator, the bound launch plan as JSON, and by kernel the torch dtype of each argument that is a number.
    """

    devices = ("cpu", DEVICE)

    def __init__(self, package: str, front: str, plans: Mapping[str, Mapping[str, Any]]) -> None:
        self.package, self._folder, self._plans = package, Path(front).parent, plans
        self._ready: dict[str, tuple[BoundPlan, Any]] = {}

    def explain_lack(self) -> str:
        if torch.backends.mps.is_available():
            return ""
        return f"{self.package}: given no device {DEVICE} of torch; expected a Mac with a GPU, where Metal programs run"

    def run_program(self, call: ProgramCall) -> None:
        """See `Programs`. Launches follow one another on torch's stream, and are not waited for."""
        if lack := self.explain_lack():
            raise OperatorError(lack)
        try:
            self._launch_kernels(call)
        except (PlanFault, RuntimeError, SyntaxError) as error:
            raise OperatorError(f"{self.package}.{call.name}: {error}") from error

    def _launch_kernels(self, call: ProgramCall) -> None:
        if call.name not in self._ready:
            source = (self._folder / "programs" / f"{call.name}.metal").read_text("utf-8")
            plan = read_bound_plan(self._plans[call.name]["plan"].encode())
            self._ready[call.name] = plan, torch.mps.compile_shader(source)
        plan, shaders = self._ready[call.name]
        numbers = [*call.dims, *call.scalars]
        resolved = resolve_plan(plan, numbers)
        outputs = [result.to(DEVICE) for result in call.results]
        spaces = [torch.empty(max(1, size), dtype=torch.uint8, device=DEVICE) for size in resolved.workspaces]
        arrays = {"input": [tensor.to(DEVICE) for tensor in call.tensors], "output": outputs, "workspace": spaces}
        for launch in resolved.launches:
            dtypes = self._plans[call.name]["numbers"][launch.kernel]
            given = [
                torch.tensor([numbers[argument.place]], dtype=getattr(torch, dtype), device=DEVICE)
                if argument.kind == NUMBER
                else arrays[argument.kind][argument.place]
                for argument, dtype in zip(launch.arguments, dtypes, strict=True)
            ]
            threads = [groups * size for groups, size in zip(launch.grid, launch.block, strict=True)]
            getattr(shaders, launch.kernel)(*given, threads=threads, group_size=list(launch.block))
        for result, output in zip(call.results, outputs, strict=True):
            if result is not output:
                result.copy_(output)
