"""Compares every `ModelNew` of a folder with its `Model`, as KernelBench does. It needs torch and nothing else.

    python harness.py [NAME ...] [--trials 5] [--seed 42] [--precision fp32|fp16|bf16|none] [--device cpu] [--json]

For each NAME.py: the seed is set and `Model(*get_init_inputs())` made from reference/NAME.py, the same seed again and
`ModelNew(*get_init_inputs())` from NAME.py, so that weights are equal only if they are created in the same order. Both
go to the device and the precision; both stay in training mode; nothing is differentiated. In each trial other inputs
are drawn, and the outputs must have equal shapes and be close: atol = rtol = 1e-4 in fp32 and fp64, 1e-2 in fp16 and
bf16, equal where they are no floats. Each module gets its own copy of the inputs, so that one that writes into them
changes nothing for the other. `--precision none` leaves tensors as they are, which is what a reference with
`PRECISION = "none"` asks for. Exit code 0: all are right; 1: one is not.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

TOLERANCES = {torch.float32: 1e-4, torch.float64: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "none": None}


@dataclass(frozen=True)
class HarnessSettings:
    """How modules are compared."""

    trials: int
    seed: int
    precision: str
    device: str


@dataclass(frozen=True)
class HarnessResult:
    """What came of one module."""

    name: str
    is_compiled: bool
    trials: int  # right ones
    message: str  # "": it is right
    max_difference: float | None = None  # of all outputs of the trials that could be compared


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--folder", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--precision", choices=list(PRECISIONS), default="fp32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    settings = HarnessSettings(chosen.trials, chosen.seed, chosen.precision, chosen.device)
    names = chosen.names or sorted(path.stem for path in (chosen.folder / "reference").glob("*.py"))
    wrong = 0
    for name in names:
        result = compare_modules(chosen.folder, name, settings)
        print(json.dumps(asdict(result)) if chosen.json else describe_result(result, settings.trials), flush=True)
        wrong += bool(result.message)
    return 0 if names and not wrong else 1


def describe_result(result: HarnessResult, trials: int) -> str:
    state = "right" if not result.message else "wrong" if result.is_compiled else "not built"
    counted = f"{result.trials} of {trials} trials" if result.is_compiled else ""
    difference = "" if result.max_difference is None else f"max difference {result.max_difference:.3g}"
    return "; ".join(filter(None, [f"{result.name}: {state}", counted, difference, result.message]))


def compare_modules(folder: Path, name: str, settings: HarnessSettings) -> HarnessResult:
    """Both files run in one namespace, the reference first, as KernelBench has it."""
    namespace: dict[str, Any] = {}
    _run_file(folder / "reference" / f"{name}.py", namespace)
    make_inputs, make_init = namespace["get_inputs"], namespace["get_init_inputs"]
    original = namespace["Model"]
    precision = PRECISIONS[namespace.get("PRECISION", settings.precision)]
    try:
        _run_file(folder / f"{name}.py", namespace)
        new = namespace["ModelNew"]
    except Exception as error:  # whatever a module does when it is loaded
        return HarnessResult(name, False, 0, _describe_error(error))
    set_seed(settings.seed)
    init = [_move_value(value, precision, settings.device) for value in make_init()]
    set_seed(settings.seed)
    model = original(*init)
    right, message, differences = 0, "", []
    with torch.no_grad():
        try:
            set_seed(settings.seed)
            model_new = new(*init)
            pair = [module.to(device=settings.device, dtype=precision) for module in (model, model_new)]
        except Exception as error:
            return HarnessResult(name, False, 0, _describe_error(error))
        for seed in list_seeds(settings):
            set_seed(seed)
            inputs = [_move_value(value, precision, settings.device) for value in make_inputs()]
            found, difference = _run_trial(pair, inputs, seed)
            right, message = right + (not found), message or found
            differences += [] if difference is None else [difference]
    return HarnessResult(name, True, right, message, max(differences, default=None))


def list_seeds(settings: HarnessSettings) -> list[int]:
    """Those of the trials."""
    set_seed(settings.seed)
    return [int(torch.randint(0, 2**32 - 1, (1,)).item()) for _ in range(settings.trials)]


def set_seed(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)


def _run_file(path: Path, namespace: dict[str, Any]) -> None:
    exec(compile(path.read_text(encoding="utf-8"), f"<{path.name}>", "exec"), namespace)


def _move_value(value: Any, precision: torch.dtype | None, device: str) -> Any:
    """A tensor of floats in the precision; everything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device=device, dtype=precision if value.is_floating_point() else None)


def _run_trial(pair: Sequence[torch.nn.Module], inputs: Sequence[Any], seed: int) -> tuple[str, float | None]:
    """What is wrong ("": nothing), and the largest difference."""
    outputs = []
    for module in pair:
        copies = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
        set_seed(seed)  # of what a module draws itself
        try:
            outputs.append(list(_flatten_output(module(*copies))))
        except Exception as error:
            return f"{type(module).__name__} fails: {_describe_error(error)}", None
    expected, computed = outputs
    if len(expected) != len(computed):
        return f"{len(computed)} outputs; expected {len(expected)}", None
    differences = [_measure_difference(*tensors) for tensors in zip(computed, expected, strict=True)]
    failures = [text for tensors in zip(computed, expected, strict=True) if (text := _find_mismatch(*tensors))]
    return (failures[0] if failures else ""), max((d for d in differences if d is not None), default=None)


def _flatten_output(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for key in sorted(value):
            yield from _flatten_output(value[key])
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _flatten_output(element)
    else:
        yield torch.as_tensor(value)


def _find_mismatch(computed: torch.Tensor, expected: torch.Tensor) -> str:
    if computed.shape != expected.shape:
        return f"shape {tuple(computed.shape)}; expected {tuple(expected.shape)}"
    tolerance = TOLERANCES.get(expected.dtype, 0.0)
    if not torch.allclose(computed.to(expected.dtype), expected, atol=tolerance, rtol=tolerance, equal_nan=True):
        return f"other values: max difference {_measure_difference(computed, expected):.3g}"
    return ""


def _measure_difference(computed: torch.Tensor, expected: torch.Tensor) -> float | None:
    if computed.shape != expected.shape or not computed.numel():
        return None
    return float((computed.double() - expected.double()).abs().nan_to_num(0.0).max())


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main())
