"""The programs of an exported library in Triton: compiled by Triton where they are called, on torch's stream.

torch, Triton and the standard library are all that this needs. Nobody has tried it on a GPU. Tensors of the CPU are
copied there and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch

from opsmith.problems.precision import dtype_of
from opsmith.targets.gpu.nvidia.driver import TORCH_DEVICE as DEVICE
from opsmith.targets.gpu.plan import NUMBER, BoundPlan, read_bound_plan
from opsmith.targets.gpu.resolving import PlanFault, resolve_plan
from opsmith.targets.native.library.operator import ProgramCall
from opsmith.targets.operator_error import OperatorError


class TritonPrograms:
    """Those of one package; see `Programs`. plans: by operator, the bound launch plan as JSON."""

    devices = ("cpu", DEVICE)

    def __init__(self, package: str, front: str, plans: Mapping[str, Mapping[str, Any]]) -> None:
        self.package, self._folder, self._plans = package, Path(front).parent, plans
        self._ready: dict[str, tuple[BoundPlan, Any]] = {}

    def explain_lack(self) -> str:
        if torch.cuda.is_available():
            return ""
        return f"{self.package}: given no device {DEVICE} of torch; expected a GPU, where Triton's programs run"

    def run_program(self, call: ProgramCall) -> None:
        """See `Programs`. Launches follow one another on torch's stream, and are not waited for."""
        if lack := self.explain_lack():
            raise OperatorError(lack)
        try:
            self._launch_kernels(call)
        except (PlanFault, RuntimeError, ImportError) as error:
            raise OperatorError(f"{self.package}.{call.name}: {error}") from error

    def _launch_kernels(self, call: ProgramCall) -> None:
        if call.name not in self._ready:
            path = self._folder / "programs" / f"{call.name}.triton.py"
            spec = spec_from_file_location(f"{self.package}_{call.name}", path)
            if spec is None or spec.loader is None:
                raise ImportError(f"given no {path}; expected the package as it was written")
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            self._ready[call.name] = read_bound_plan(self._plans[call.name]["plan"].encode()), module
        plan, module = self._ready[call.name]
        numbers = [*call.dims, *call.scalars]
        resolved = resolve_plan(plan, numbers)
        outputs = [result.to(DEVICE) for result in call.results]
        spaces = [
            torch.empty(size, dtype=torch.uint8, device=DEVICE).view(dtype_of(space.dtype))
            for size, space in zip(resolved.workspaces, plan.workspaces, strict=True)
        ]
        arrays = {"input": [tensor.to(DEVICE) for tensor in call.tensors], "output": outputs, "workspace": spaces}
        for launch in resolved.launches:
            arguments = [
                numbers[each.place] if each.kind == NUMBER else arrays[each.kind][each.place]
                for each in launch.arguments
            ]
            getattr(module, launch.kernel)[launch.grid](*arguments, **dict(launch.meta))
        for result, output in zip(call.results, outputs, strict=True):
            if result is not output:
                result.copy_(output)
