"""Answers to a trial that a program can give without doing the task, in the bytes that its target's candidates answer.

Each is given in place of one array of the right outputs, beside the right values of all others. Of outputs in an
encoding that is not known here, only whole answers can be replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opsmith.judging.encodings import ONLY, Array, Arrays, Encoded, read_arrays

MOVED = 0.1  # of the largest number: a tolerance that lets this pass hides wrong results

Answers = Iterator[tuple[str, bytes | None]]  # (what it is, its bytes; None: it does not fit at this trial)


def lazy_answers(right: bytes, first: bytes, neighbour: bytes, inputs: bytes) -> Answers:
    """Those to a trial whose right outputs these are; `first`, `other`: right ones of the first and another trial."""
    outputs = read_arrays(right)
    if outputs is None:
        yield from (("nothing", b""), ("zero bytes", bytes(len(right))), ("its inputs", inputs))
        yield "the outputs of another trial", neighbour
        return
    for name in outputs.arrays:
        yield from _in_place_of(name, outputs, *(read_arrays(data) for data in (first, neighbour, inputs)))


def moved_answer(right: bytes) -> bytes | None:
    """The right outputs with every number moved; None: nothing there can be."""
    outputs = read_arrays(right)
    if outputs is None:
        return None
    arrays = {name: _move_numbers(array) for name, array in outputs.arrays.items()}
    return None if all(np.array_equal(arrays[name], outputs.arrays[name]) for name in arrays) else outputs.write(arrays)


def mixed_inputs(own: bytes, neighbours: list[bytes]) -> dict[str, bytes | None]:
    """By name of an input, a trial's inputs with that one of another trial.

    None: no other trial has other numbers there in the same shape.
    """
    inputs = read_arrays(own)
    drawn = [encoded.arrays for data in neighbours if (encoded := read_arrays(data)) is not None]
    return {name: _with_fresh(name, inputs, drawn) for name in inputs.arrays} if inputs is not None else {}


def _with_fresh(name: str, inputs: Encoded, drawn: list[Arrays]) -> bytes | None:
    own = inputs.arrays[name]
    choices = (arrays[name] for arrays in drawn if name in arrays)
    fresh = next((each for each in choices if each.shape == own.shape and not np.array_equal(each, own)), None)
    return None if fresh is None else inputs.with_array(name, fresh)


def _in_place_of(
    name: str, outputs: Encoded, first: Encoded | None, neighbour: Encoded | None, inputs: Encoded | None
) -> Answers:
    right, label = outputs.arrays[name], name if name != ONLY else "the output"
    constant = first.arrays.get(name) if first else None
    guesses = {"zeros": np.zeros_like(right), "ones": np.ones_like(right)}
    if constant is not None:
        finite = constant[np.isfinite(constant)] if constant.dtype.kind == "f" else constant
        mean = float(finite.mean()) if finite.size else 0.0
        guesses["the mean of the first trial"] = np.full_like(right, mean if right.dtype.kind == "f" else round(mean))
    guesses |= {"the value of another trial": neighbour.arrays[name]} if neighbour and name in neighbour.arrays else {}
    guesses |= {f"input {source}".strip(): array for source, array in (inputs.arrays if inputs else {}).items()}
    guesses |= {f"output {twin}": array for twin, array in outputs.arrays.items() if twin != name}
    for guess, array in guesses.items():
        fitted = _fit_shape(array, right)
        yield f"{label} = {guess}", None if fitted is None else outputs.with_array(name, fitted)


def _fit_shape(array: Array, right: Array) -> Array | None:
    """The array in the shape of the right one, where it can be broadcast or has as many numbers."""
    if array.size == right.size:
        return array.reshape(right.shape)
    try:
        return np.broadcast_to(array, right.shape)
    except ValueError:
        return None


def _move_numbers(array: Array) -> Array:
    finite = np.abs(array[np.isfinite(array)].astype(float)) if array.dtype.kind != "b" else np.zeros(0)
    step = MOVED * float(finite.max()) if finite.size else 0.0
    step = max(1, round(step)) if array.dtype.kind in "iu" else step
    return array if array.dtype.kind == "b" else np.add(array, np.array(step, dtype=array.dtype))
