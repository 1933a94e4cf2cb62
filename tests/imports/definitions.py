"""Definitions of FlashInfer Trace that the tests of imports share."""

import json
from pathlib import Path
from typing import Any

RMS_NORM: dict[str, Any] = {
    "name": "rms-norm.h64",
    "op_type": "rmsnorm",
    "description": "RMS norm of every row, summed in fp32.",
    "tags": ["status:verified"],
    "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 64}},
    "inputs": {
        "hidden_states": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"},
        "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"output": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}},
    "reference": (
        "import torch\n\n@torch.no_grad()\ndef run(hidden_states, weight, eps):\n"
        "    batch_size, hidden_size = hidden_states.shape\n    assert hidden_size == 64\n"
        "    x = hidden_states.to(torch.float32)\n"
        "    y = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps) * weight.float()\n"
        "    return y.to(torch.bfloat16)\n"
    ),
}
RMS_NORM_SIZES = [{"batch_size": size} for size in (40000, 3, 5, 700)]

SEGMENTS: dict[str, Any] = {
    "name": "segment_sums",
    "op_type": "ragged",
    "axes": {
        "state": {"type": "var"},
        "len_indptr": {"type": "var"},
        "total": {"type": "var"},
        "rows": {"type": "var"},
        "width": {"type": "const", "value": 8},
    },
    "constraints": ["len_indptr == state + 1", "total == indptr[-1].item()", "width % 4 == 0"],
    "inputs": {
        "table": {"shape": ["rows", "width"], "dtype": "float32"},
        "indptr": {"shape": ["len_indptr"], "dtype": "int32"},
        "indices": {"shape": ["total"], "dtype": "int64"},
    },
    "outputs": {
        "sums": {"shape": ["state", "width"], "dtype": "float32"},
        "longest": {"shape": None, "dtype": "int64"},
    },
    "reference": (
        "def run(table, indptr, indices):\n"
        "    spans = [(int(a), int(b)) for a, b in zip(indptr[:-1], indptr[1:])]\n"
        "    assert int(indptr[-1]) == indices.numel() and all(b >= a for a, b in spans)\n"
        "    sums = torch.stack([table[indices[a:b]].sum(0) for a, b in spans])\n"
        "    return {'longest': max(b - a for a, b in spans), 'sums': sums}\n"
    ),
}

MASKED_MAX: dict[str, Any] = {
    "name": "masked_max",
    "op_type": "reduction",
    "axes": {"m": {"type": "var"}, "n": {"type": "var"}},
    "constraints": ["n % 8 == 0", "m <= n"],
    "inputs": {
        "x": {"shape": ["m", "n"], "dtype": "float16"},
        "mask": {"shape": ["m", "n"], "dtype": "bool"},
    },
    "outputs": {"y": {"shape": ["m"], "dtype": "float16"}, "at": {"shape": ["m"], "dtype": "int64"}},
    "reference": (
        "import torch\n\ndef run(x, mask):\n    shown = torch.where(mask, x, torch.full_like(x, -100.0))\n"
        "    value, at = shown.max(dim=1)\n    return value, at\n"
    ),
}


def write_dataset(
    folder: Path, definitions: list[dict[str, Any]], sizes: dict[str, list[dict[str, int]]] | None = None
) -> Path:
    """A data set as FlashInfer Trace lays it out."""
    for definition in definitions:
        name, operator = definition["name"], definition["op_type"]
        path = folder / "definitions" / operator / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(definition))
        rows = [make_workload(definition, axes) for axes in (sizes or {}).get(name, [])]
        if rows:
            lines = folder / "workloads" / operator / f"{name}.jsonl"
            lines.parent.mkdir(parents=True, exist_ok=True)
            lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def make_workload(definition: dict[str, Any], axes: dict[str, int]) -> dict[str, Any]:
    """A line of a file of workloads, which stands in a trace."""
    inputs = {
        name: {"type": "scalar", "value": 1e-5} if spec["shape"] is None else {"type": "random"}
        for name, spec in definition["inputs"].items()
    }
    workload = {"axes": axes, "inputs": inputs, "uuid": f"{definition['name']}-{axes}"}
    return {"definition": definition["name"], "workload": workload, "solution": None, "evaluation": None}
