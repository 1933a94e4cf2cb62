"""Writes a task as canonical YAML: one text per spec (reference section 8.4).

Keys in the order of the reference, code as literal blocks, dims, init values and tuple types in flow style.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from opsmith.targets.step.language.spec import CaseSpec, Fn, OutputSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import DType, Tuple

_PLAIN = re.compile(r"[A-Za-z_][\w./*]*", re.ASCII)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_RESOLVER: Any = yaml.resolver.Resolver()
_STR = "tag:yaml.org,2002:str"


def write_spec(spec: TaskSpec) -> str:
    """The canonical YAML text of a task; the same spec gives the same bytes.

    Errors  none for a spec that `read_spec` gave
    Source  reference section 8.4

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
        rows += _text("test_name", spec.test_name)
    rows += _code("global", spec.global_code)
    rows += _section("inputs", ((t.name, _tensor(t)) for t in spec.inputs), spec.extra)
    rows += _section("parameters", ((t.name, _tensor(t)) for t in spec.parameters), spec.extra)
    rows += _section("fns", ((fn.func_name, _fn(fn)) for fn in spec.fns), spec.extra)
    rows += _section("outputs", ((output.name, _output(output)) for output in spec.outputs), spec.extra)
    rows += _shapes(spec.shapes)
    rows += _codes("margins", spec.margins)
    rows += _cases(spec.cases)
    rows += _plain_yaml(extra)
    rows += _code("impl", spec.impl or "")
    return "\n".join(rows) + "\n"


def _tensor(tensor: TensorSpec) -> list[str]:
    rows = [f"name: {_scalar(tensor.name)}", f"dtype: {_type(tensor.dtype)}", f"dims: {_flow(map(str, tensor.dims))}"]
    rows += [f"data_gen: {tensor.data_gen}"] if tensor.data_gen else []
    rows += [f"min: {tensor.min}"] if tensor.min is not None else []
    return rows + ([f"max: {tensor.max}"] if tensor.max is not None else [])


def _fn(fn: Fn) -> list[str]:
    rows = [f"name: {_scalar(fn.name)}", f"func_name: {_scalar(fn.func_name)}", *_code("apply", fn.apply)]
    rows += [f"init: [{', '.join(_number(value) for value in fn.init)}]"] if fn.init is not None else []
    return [*rows, f"input_dtype: {_type(fn.input_dtype)}", f"output_dtype: {_type(fn.output_dtype)}"]


def _output(output: OutputSpec) -> list[str]:
    rows = [f"name: {_scalar(output.name)}", f"dtype: {_type(output.dtype)}", f"dims: {_flow(map(str, output.dims))}"]
    rows += _codes("data_transform", output.data_transform)
    rows += [f"rtol: {_number(output.rtol)}"] if output.rtol is not None else []
    return rows + ([f"atol: {_number(output.atol)}"] if output.atol is not None else [])


def _section(key: str, entries: Iterable[tuple[str, list[str]]], extra: Mapping[str, Any]) -> list[str]:
    """A list of mappings: each entry after a dash, its unknown keys last."""
    rows: list[str] = []
    for name, entry in entries:
        more = _plain_yaml(extra.get(key, {}).get(name, {}))
        rows += _dashed([*entry, *more])
    return [f"{key}:", *rows] if rows else []


def _dashed(rows: list[str]) -> list[str]:
    return [f"  - {rows[0]}", *(f"    {row}" if row else "" for row in rows[1:])]


def _shapes(shapes: Mapping[str, Mapping[str, int]]) -> list[str]:
    rows = [
        f"  {_scalar(name)}: {{{', '.join(f'{_scalar(symbol)}: {size}' for symbol, size in sizes.items())}}}"
        for name, sizes in shapes.items()
    ]
    return ["shapes:", *rows] if rows else []


def _codes(key: str, texts: Iterable[str]) -> list[str]:
    rows = [row for text in texts for row in _dashed(_block("", text, indent=""))]
    return [f"{key}:", *rows] if rows else []


def _cases(cases: Iterable[CaseSpec]) -> list[str]:
    blocks = [
        _block(f"{_scalar(case.shape)}: ", case.text) if case.shape else _block("", case.text, indent="")
        for case in cases
    ]
    rows = [row for block in blocks for row in _dashed(block)]
    return ["cases:", *rows] if rows else []


def _code(key: str, text: str) -> list[str]:
    return _block(f"{key}: ", text) if text else []


def _text(key: str, text: str) -> list[str]:
    return _block(f"{key}: ", text) if "\n" in text else [f"{key}: {_scalar(text)}"]


def _block(head: str, text: str, indent: str = "  ") -> list[str]:
    """A literal block, or a quoted text where a block cannot hold it (control characters, blank ends)."""
    body = text.removesuffix("\n")
    lines = body.split("\n")
    if not body.strip() or _UNPRINTABLE.search(text) or body.endswith("\n") or any(_blank(line) for line in lines):
        return [head + _quoted(text)]
    indicator = "2" if lines[0][:1] in ("", " ", "\t") else ""
    chomp = "" if text.endswith("\n") else "-"
    return [f"{head}|{indicator}{chomp}", *(indent + line if line else "" for line in lines)]


def _blank(line: str) -> bool:
    return bool(line) and not line.strip()


def _type(dtype: DType) -> str:
    if isinstance(dtype, Tuple):
        return _flow(map(str, dtype.fields))
    return str(dtype)


def _flow(words: Iterable[str]) -> str:
    return f"[{', '.join(word if word.isdecimal() else _scalar(word) for word in words)}]"


def _scalar(text: str) -> str:
    """A string as a plain scalar where YAML reads it back as the same string, else quoted."""
    is_plain = _PLAIN.fullmatch(text) and _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _STR
    return text if is_plain else _quoted(text)


def _quoted(text: str) -> str:
    dumped = yaml.safe_dump(text, default_style='"', width=math.inf, allow_unicode=True)
    return str(dumped).rstrip("\n")


def _number(value: float) -> str:
    """A number that YAML 1.1 reads as a number: 0, 0.5, 1.0e-05, -inf (a string there, which the reader takes)."""
    text = repr(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", text)


def _plain_yaml(data: Mapping[str, Any]) -> list[str]:
    if not data:
        return []
    return (
        str(yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True, width=math.inf))
        .removesuffix("\n")
        .split("\n")
    )
