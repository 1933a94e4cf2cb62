"""Writes a task as canonical YAML: one text per spec.

Keys always in one order, code as literal blocks, dims, init values and tuple types in flow style.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opsmith.problems.files.writing import (
    dash_rows,
    write_cases,
    write_code,
    write_codes,
    write_extra,
    write_flow,
    write_number,
    write_scalar,
    write_shapes,
    write_text,
)
from opsmith.targets.step.language.spec import FnSpec, OriginSpec, OutputSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import DType, Tuple


def write_spec(spec: TaskSpec) -> str:
    """The canonical YAML text of a task; the same spec gives the same bytes.

    Errors  none for a spec that `read_spec` gave

    >>> from opsmith.targets.step.language.types import FP32, parse_dims
    >>> e0 = TensorSpec("E0", FP32, parse_dims(["M", "N"]), "torch.rand")
    >>> print(write_spec(TaskSpec((e0,), (OutputSpec("S0", FP32, parse_dims(["N"]), ("input_data['E0'].sum(1)",)),))))
    inputs:
      - name: E0
        dtype: fp32
        dims: [M, N]
        data_gen: torch.rand
    outputs:
      - name: S0
        dtype: fp32
        dims: [N]
        data_transform:
          - |-
            input_data['E0'].sum(1)
    <BLANKLINE>
    """
    extra = {key: value for key, value in spec.extra.items() if key not in ("inputs", "parameters", "fns", "outputs")}
    rows: list[str] = []
    if spec.test_name:
        rows += write_text("test_name", spec.test_name)
    rows += write_code("global", spec.global_code)
    rows += _write_section("inputs", ((t.name, _write_tensor(t)) for t in spec.inputs), spec.extra)
    rows += _write_section("parameters", ((t.name, _write_tensor(t)) for t in spec.parameters), spec.extra)
    rows += _write_section("fns", ((fn.func_name, _write_fn(fn)) for fn in spec.fns), spec.extra)
    rows += _write_section("outputs", ((output.name, _write_output(output)) for output in spec.outputs), spec.extra)
    rows += write_shapes(spec.shapes)
    rows += write_codes("margins", spec.margins)
    rows += write_cases(spec.cases)
    rows += _write_origin(spec.drawn_from)
    rows += write_extra(extra)
    rows += write_code("impl", spec.impl or "")
    return "\n".join(rows) + "\n"


def _write_origin(origin: OriginSpec | None) -> list[str]:
    if origin is None:
        return []
    rows = _write_section("inputs", ((t.name, _write_tensor(t)) for t in origin.inputs), {})
    rows += _write_section("parameters", ((t.name, _write_tensor(t)) for t in origin.parameters), {})
    rows += _write_section("outputs", ((output.name, _write_output(output)) for output in origin.outputs), {})
    rows += write_codes("margins", origin.margins)
    rows += write_cases(origin.cases)
    rows += write_code("code", origin.code)
    return ["drawn_from:", *(f"  {row}" if row else "" for row in rows)]


def _write_tensor(tensor: TensorSpec) -> list[str]:
    rows = [
        f"name: {write_scalar(tensor.name)}",
        f"dtype: {_write_type(tensor.dtype)}",
        f"dims: {write_flow(map(str, tensor.dims))}",
    ]
    rows += [f"data_gen: {tensor.data_gen}"] if tensor.data_gen else []
    rows += [f"min: {tensor.min}"] if tensor.min is not None else []
    return rows + ([f"max: {tensor.max}"] if tensor.max is not None else [])


def _write_fn(fn: FnSpec) -> list[str]:
    rows = [
        f"name: {write_scalar(fn.name)}",
        f"func_name: {write_scalar(fn.func_name)}",
        *write_code("apply", fn.apply),
    ]
    rows += [f"init: [{', '.join(write_number(value) for value in fn.init)}]"] if fn.init is not None else []
    return [*rows, f"input_dtype: {_write_type(fn.input_dtype)}", f"output_dtype: {_write_type(fn.output_dtype)}"]


def _write_output(output: OutputSpec) -> list[str]:
    rows = [
        f"name: {write_scalar(output.name)}",
        f"dtype: {_write_type(output.dtype)}",
        f"dims: {write_flow(map(str, output.dims))}",
    ]
    rows += write_codes("data_transform", output.data_transform)
    rows += [f"rtol: {write_number(output.rtol)}"] if output.rtol is not None else []
    return rows + ([f"atol: {write_number(output.atol)}"] if output.atol is not None else [])


def _write_section(key: str, entries: Iterable[tuple[str, list[str]]], extra: Mapping[str, Any]) -> list[str]:
    """A list of mappings: each entry after a dash, its unknown keys last."""
    rows: list[str] = []
    for name, entry in entries:
        extra_rows = write_extra(extra.get(key, {}).get(name, {}))
        rows += dash_rows([*entry, *extra_rows])
    return [f"{key}:", *rows] if rows else []


def _write_type(dtype: DType) -> str:
    if isinstance(dtype, Tuple):
        return write_flow(map(str, dtype.fields))
    return str(dtype)
