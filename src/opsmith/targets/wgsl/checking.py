"""The process that shows a program to naga: `python -S -P -m opsmith.targets.wgsl.checking LIBRARY KERNEL...`.

It is confined, and reads `program.wgsl` and its forms in its folder. Its answer, one JSON text on the standard output,
is what is refused: `program` (the words against the program as it is written), or `form` (those against one of ours).
Without kernels it is which device that is.
The device has the limits that every device of WebGPU has, so that a program which passes is portable.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from opsmith.targets.wgsl import webgpu
from opsmith.targets.wgsl.device import DeviceRefusal, open_device

PROGRAM = "program.wgsl"
FORMS = ("plain.wgsl", "reversed.wgsl", "checked.wgsl")


def check_files(kernels: Sequence[str]) -> dict[str, str]:
    """What is refused first; nothing: all is well."""
    refusal = _find_refusal(PROGRAM, kernels, True)
    if refusal:
        return {"program": refusal}
    for name in FORMS:
        refusal = _find_refusal(name, kernels, False)
        if refusal:
            return {"form": f"{name}: {refusal}"}
    return {}


def describe_device() -> dict[str, str]:
    record = open_device().record
    return {"device": f"{record.name}, {record.driver}"}


def _find_refusal(name: str, kernels: Sequence[str], has_limits: bool) -> str:
    device = open_device(has_limits)
    try:
        module = device.compile_source(Path(name).read_text(encoding="utf-8"))
        for kernel in kernels:
            device.make_pipeline(module, kernel)
    except DeviceRefusal as refusal:
        return str(refusal)
    return ""


if __name__ == "__main__":
    webgpu.choose_library(Path(sys.argv[1]))
    print(json.dumps(check_files(sys.argv[2:]) if len(sys.argv) > 2 else describe_device()))
