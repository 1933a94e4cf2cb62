"""The arrays of one run as commands see them: files of bytes or of numpy's, or standard input and output.

No torch, no numpy, no pydantic: libraries that were exported run the same commands.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from opsmith.problems.dtypes import TYPES
from opsmith.problems.problem import ArrayType, Problem
from opsmith.targets.command.words import Lists
from opsmith.targets.native.signature import list_dims, make_signature

_NPY_MARK = b"\x93NUMPY"
_LONGEST_HEAD = 1 << 12


@dataclass(frozen=True)
class RunArrays:
    """What one run is about: the arrays by name, and the numbers that are told beside them."""

    inputs: Mapping[str, ArrayType]
    outputs: Mapping[str, ArrayType]
    sizes: Mapping[str, int]
    scalars: Mapping[str, int | float]


def name_arrays(problem: Problem, numbers: Sequence[int | float]) -> RunArrays:
    """The arrays of a problem by names that are names of files too. `numbers`: sizes, then scalars, as `signature` has
    them."""
    names = [argument.name for argument in make_signature(problem).arguments]
    inputs = [tensor.type for tensor in problem.tensors]
    outputs = [type_ for output in problem.outputs for type_ in output.types]
    dims = list_dims(problem)
    sizes = {name: int(number) for name, number in zip(dims, numbers[: len(dims)], strict=True)}
    scalars = dict(zip(problem.scalars, numbers[len(dims) :], strict=True))
    split = len(inputs)
    return RunArrays(
        dict(zip(names[:split], inputs, strict=True)),
        dict(zip(names[split : split + len(outputs)], outputs, strict=True)),
        sizes,
        scalars,
    )


def name_files(kind: str, arrays: RunArrays) -> tuple[list[str], list[str]]:
    """The files of inputs and outputs, none of which is called like the program's; kind: `raw`, `npy` or `stdio`."""
    if kind == "stdio":
        return ["-"] * len(arrays.inputs), ["-"] * len(arrays.outputs)
    suffix = "npy" if kind == "npy" else "bin"
    return [f"in_{name}.{suffix}" for name in arrays.inputs], [f"out_{name}.{suffix}" for name in arrays.outputs]


def list_words(kind: str, arrays: RunArrays) -> Lists:
    """What the placeholders of a run's command stand for."""
    input_files, output_files = name_files(kind, arrays)
    every = {**arrays.inputs, **arrays.outputs}
    return {
        "inputs": dict(zip(arrays.inputs, input_files, strict=True)),
        "outputs": dict(zip(arrays.outputs, output_files, strict=True)),
        "sizes": {name: str(size) for name, size in arrays.sizes.items()},
        "scalars": {name: repr(value) for name, value in arrays.scalars.items()},
        "shapes": {name: "x".join(map(str, type_.shape_at(arrays.sizes))) or "1" for name, type_ in every.items()},
        "types": {name: type_.dtype for name, type_ in every.items()},
    }


def write_arrays(
    kind: str, arrays: RunArrays, inputs: Sequence[bytes | memoryview]
) -> tuple[dict[str, bytes | memoryview], str]:
    """The files of the inputs' bytes, and which of them is the standard input; "": none."""
    if kind == "stdio":
        return {"stdin": b"".join(inputs)}, "stdin"
    files: dict[str, bytes | memoryview] = {}
    for name, type_, data in zip(name_files(kind, arrays)[0], arrays.inputs.values(), inputs, strict=True):
        files[name] = _write_npy_head(type_, arrays.sizes) + bytes(data) if kind == "npy" else data
    return files, ""


def read_arrays(
    kind: str, arrays: RunArrays, files: Mapping[str, bytes], printed: bytes, obstacles: Mapping[str, str]
) -> list[bytes] | str:
    """The bytes of each output, without heads; or what is wrong with them, in words.

    obstacles: what lies where a file belongs, by its name: `a folder`.
    """
    sizes = [_count_bytes(type_, arrays.sizes) for type_ in arrays.outputs.values()]
    if kind == "stdio":
        if len(printed) != sum(sizes):
            return f"{len(printed)} bytes on the standard output in place of {sum(sizes)}"
        ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
        return [printed[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    pieces = []
    for name, type_, size in zip(name_files(kind, arrays)[1], arrays.outputs.values(), sizes, strict=True):
        data = files.get(name)
        if data is None:
            obstacle = obstacles.get(name)
            return f"{obstacle} in place of the file {name}" if obstacle else f"no file {name}"
        if kind == "npy":
            body = _strip_npy_head(data, type_, arrays.sizes)
            if isinstance(body, str):
                return f"{name}: {body}"
            data = body
        if len(data) != size:
            return f"{len(data)} bytes in {name} in place of {size}"
        pieces.append(data)
    return pieces


def _count_bytes(type_: ArrayType, sizes: Mapping[str, int]) -> int:
    return int(TYPES[type_.dtype].numpy[2:]) * prod(type_.shape_at(sizes))


def _describe_npy(type_: ArrayType, sizes: Mapping[str, int]) -> dict[str, object]:
    return {"descr": TYPES[type_.dtype].numpy, "fortran_order": False, "shape": type_.shape_at(sizes)}


def _write_npy_head(type_: ArrayType, sizes: Mapping[str, int]) -> bytes:
    """That of version 1.0 of numpy's format."""
    text = repr(_describe_npy(type_, sizes)).encode()
    text += b" " * (-(len(_NPY_MARK) + 4 + len(text) + 1) % 64) + b"\n"
    return _NPY_MARK + b"\x01\x00" + struct.pack("<H", len(text)) + text


def _strip_npy_head(data: bytes, type_: ArrayType, sizes: Mapping[str, int]) -> bytes | str:
    """The numbers of a file of numpy's, or what is wrong with it. The file is a stranger's."""
    if data[:6] != _NPY_MARK or len(data) < 12:
        return "no file of numpy's"
    width = 2 if data[6] == 1 else 4
    length = int.from_bytes(data[8 : 8 + width], "little")
    if length > _LONGEST_HEAD:
        return "a head that is too long"
    try:
        head = ast.literal_eval(data[8 + width : 8 + width + length].decode("latin1").strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return "a head that is no mapping"
    expected = _describe_npy(type_, sizes)
    return data[8 + width + length :] if head == expected else _compare_heads(head, expected)


def _compare_heads(head: object, expected: Mapping[str, object]) -> str:
    """What differs, in numpy's words: `shape (48, 1) in place of (48,)`."""
    if not isinstance(head, dict) or head.keys() != expected.keys():
        return f"a head {head!r:.200} in place of {expected!r}"
    rows = [(key, head[key], wanted) for key, wanted in expected.items() if head[key] != wanted]
    return ", ".join(f"{key} {actual!r:.100} in place of {wanted!r}" for key, actual, wanted in rows)
