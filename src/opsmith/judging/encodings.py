"""Inputs and outputs of executed candidates as named arrays, where their bytes are JSON, .npy or .npz.

Other encodings are opaque, which is said. The bytes may be anybody's, so that only the task's worker reads them.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Array]

ONLY = ""  # the name of an array that is all there is


@dataclass(frozen=True)
class Encoded:
    """The arrays in some bytes, and how others are written in their place."""

    arrays: Arrays
    write: Callable[[Mapping[str, Array]], bytes]

    def with_array(self, name: str, array: Array) -> bytes:
        """The bytes with one array replaced, in the type of the one that was there."""
        return self.write({**self.arrays, name: array.astype(self.arrays[name].dtype)})


def read_arrays(data: bytes) -> Encoded | None:
    """None: these bytes are in no form that is known here, or hold something other than numbers."""
    try:
        encoded = _read_numpy(data) if data.startswith((b"\x93NUMPY", b"PK")) else _read_json(json.loads(data))
    except (ValueError, OSError, EOFError, LookupError, RecursionError, zipfile.BadZipFile):
        return None
    return encoded if encoded.arrays and all(array.dtype.kind in "biuf" for array in encoded.arrays.values()) else None


def _read_numpy(data: bytes) -> Encoded:
    loaded = np.load(io.BytesIO(data), allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return Encoded({ONLY: loaded}, lambda arrays: _write_npy(arrays[ONLY]))
    return Encoded(dict(loaded), _write_npz)


def _write_npy(array: Array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _write_npz(arrays: Mapping[str, Array]) -> bytes:
    """As `numpy.savez` writes it, which takes no array that is called `file`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", _write_npy(array))
    return file.getvalue()


def _read_json(value: Any) -> Encoded:
    """A mapping of arrays, one array, or a list of arrays of several shapes."""
    if isinstance(value, dict):
        return Encoded(
            {name: np.array(values) for name, values in value.items()},
            lambda arrays: json.dumps({name: array.tolist() for name, array in arrays.items()}).encode(),
        )
    try:
        return Encoded({ONLY: np.array(value)}, lambda arrays: json.dumps(arrays[ONLY].tolist()).encode())
    except ValueError:  # rows of several lengths
        return Encoded(
            {str(index): np.array(row) for index, row in enumerate(value)},
            lambda arrays: json.dumps([array.tolist() for array in arrays.values()]).encode(),
        )
