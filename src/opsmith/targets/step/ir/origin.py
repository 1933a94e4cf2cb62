"""`drawn_from`: the tensors of another task that a task's inputs are computed from, and the statements that do so."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.problems.files.sections import read_cases
from opsmith.problems.files.texts import parse_code
from opsmith.targets.step.ir.entry import StepEntry, StepNames
from opsmith.targets.step.ir.records import OUTPUT_KEYS, TENSOR_KEYS, read_output, read_tensor
from opsmith.targets.step.language.spec import OriginSpec, TensorSpec

ORIGIN_KEYS = ("inputs", "parameters", "outputs", "margins", "cases", "code")


def read_origin(top: StepEntry) -> OriginSpec | None:
    """What a task is drawn from, None where the file says nothing of it. Its names are its own, its dims need sizes
    like any of the file."""
    node = top.get("drawn_from")
    if node is None:
        return None
    names = StepNames(dims=top.names.dims, ones=top.names.ones)
    entry = StepEntry(top.findings, names, node, "drawn_from", ORIGIN_KEYS)
    outputs = (read_output(output) for output in _open_entries(entry, "outputs", OUTPUT_KEYS))
    shapes = top.get("shapes")
    return OriginSpec(
        _read_tensors(entry, "inputs", "the input"),
        _read_tensors(entry, "parameters", "the parameter"),
        _read_statements(entry),
        tuple(output for output in outputs if output is not None),
        entry.read_values("margins"),
        read_cases(entry, shapes.value if shapes is not None and isinstance(shapes.value, dict) else {}),
    )


def _open_entries(entry: StepEntry, key: str, keys: Sequence[str]) -> list[StepEntry]:
    nodes = enumerate(entry.list_items(key))
    return [StepEntry(entry.findings, entry.names, node, f"drawn_from.{key}[{number}]", keys) for number, node in nodes]


def _read_tensors(entry: StepEntry, key: str, what: str) -> tuple[TensorSpec, ...]:
    entries = _open_entries(entry, key, TENSOR_KEYS)
    return tuple(tensor for tensor_entry in entries if (tensor := read_tensor(tensor_entry, what)))


def _read_statements(entry: StepEntry) -> str:
    entry.need_value("code", "PyTorch statements that assign every input")
    block = entry.read_text("code")
    if block is None:
        return ""
    _, problem = parse_code(block[0])
    if problem is not None:
        entry.code_error(block[1], "code", problem)
    return block[0]
