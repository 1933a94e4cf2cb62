"""The digest of a problem: equal for tasks that ask for the same operator, whatever their target adds.

The file's name, its `impl`, where it was imported from and keys without meaning are no part of it.
"""

from __future__ import annotations

from typing import Any

from opsmith.problems.problem import ArrayType, Derivation, InputTensor, OutputTensors, Problem
from opsmith.records import content_hash, dumps


def hash_problem(problem: Problem) -> str:
    """The hash of `describe_problem`. It stays, whatever becomes of this package: stores are full of it."""
    return content_hash("problem", dumps(describe_problem(problem)))


def describe_problem(problem: Problem) -> dict[str, Any]:
    """A problem as JSON data. What the file leaves out is left out here, so that keys that task files get later change
    no digest of today.

    Shapes   of tensors: outermost axis first, the axes of an element last
    Units    `sizes`: entries of an axis in the base shape, for the symbols of those shapes
    """
    symbols = {
        symbol for type_ in (*problem.types, *problem.origin_types) for dim in type_.shape for symbol in dim.symbols
    }
    symbols |= set(problem.sizes) if problem.reference else set()
    return _drop_blanks(
        {
            "global": problem.global_code,
            "inputs": [_describe_input(tensor) for tensor in problem.inputs],
            "parameters": [_describe_input(tensor) for tensor in problem.parameters],
            "outputs": [_describe_output(output) for output in problem.outputs],
            "sizes": {symbol: problem.sizes[symbol] for symbol in sorted(symbols)},
            "shapes": problem.shapes,
            "margins": problem.margins,
            "cases": [_drop_blanks({"shape": case.shape, "text": case.text}) for case in problem.cases],
            "reference": problem.reference,
            "dims": list(problem.sizes) if problem.reference else [],
            "scalars": [list(pair) for pair in problem.scalars.items()],
            "fixed": list(problem.fixed),
            "accumulation": problem.accumulation,
            "bench": problem.bench,
            "constraints": list(problem.constraints),
            "ties": problem.ties,
            "drawn_from": _describe_origin(problem.drawn_from),
        }
    )


def _describe_origin(origin: Derivation | None) -> dict[str, Any]:
    return {} if origin is None else {**describe_problem(origin.problem), "code": origin.code}


def _describe_input(tensor: InputTensor) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "data": tensor.data_gen,
        "min": tensor.min,
        "max": tensor.max,
        "expression": tensor.expression,
    }
    drawn |= {"distributions": [list(pair) for pair in tensor.distributions]}
    return {"name": tensor.name, **_describe_type(tensor.type), **_drop_blanks(drawn)}


def _describe_output(output: OutputTensors) -> dict[str, Any]:
    """One array for each tensor, with the text that computes it where it has one."""
    pairs = zip(output.types, output.references or ("",) * len(output.types), strict=True)
    arrays = [{**_describe_type(type_), **_drop_blanks({"reference": text})} for type_, text in pairs]
    return {"name": output.name, "arrays": arrays, **_drop_blanks({"rtol": output.rtol, "atol": output.atol})}


def _describe_type(type_: ArrayType) -> dict[str, Any]:
    multihot = {"multihot": True} if type_.is_multihot else {}
    return {"dtype": type_.dtype, "shape": [str(dim) for dim in type_.shape], **multihot}


def _drop_blanks(data: dict[str, Any]) -> dict[str, Any]:
    """0 and False are no blanks."""
    return {key: value for key, value in data.items() if value is not None and value not in ("", (), [], {})}
