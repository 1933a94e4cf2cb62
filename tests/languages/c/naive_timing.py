"""What others do, for the tests: programs are called in our own process on the same arrays, and the mean is reported.

Nothing is checked and nothing is confined. As a script it times the library of `argv[1]` and prints nanoseconds:
python naive_timing.py LIBRARY INPUT_BYTES,... OUTPUT_BYTES,... SIZE,...
"""

from __future__ import annotations

import ctypes
import random
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from opsmith.targets.native.signature import Signature

CALLS = 300
_SECONDS = 60.0


def claim_ratio(folder: Path, signature: Signature, partner: str, program: str, numbers: Sequence[str]) -> float:
    """By how much a program is faster than its partner, to those who believe it."""
    header = folder / "kernel.h"
    header.write_text(signature.header, "utf-8")
    times = []
    for number, source in enumerate((partner, program)):
        file, library = folder / f"{number}.c", folder / f"{number}.so"
        file.write_text(source, "utf-8")
        flags = ["-O3", "-std=gnu17", "-shared", "-fPIC", "-w", "-include", str(header)]
        subprocess.run(["gcc", *flags, str(file), "-o", str(library), "-lm"], check=True, timeout=_SECONDS)
        command = [sys.executable, __file__, str(library), *numbers]
        done = subprocess.run(command, check=True, timeout=_SECONDS, capture_output=True, text=True)
        times.append(float(done.stdout))
    return times[0] / times[1]


def time_library(path: str, inputs: Sequence[int], outputs: Sequence[int], sizes: Sequence[int]) -> float:
    """The mean of all calls."""
    generator = random.Random(1)
    buffers = [ctypes.create_string_buffer(_draw_floats(generator, size), size) for size in inputs]
    results = [ctypes.create_string_buffer(size) for size in outputs]
    arguments = [*buffers, *results, *map(ctypes.c_int64, sizes)]
    function = ctypes.CDLL(path).kernel
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        function(*arguments)
    return (time.perf_counter_ns() - begin) / CALLS


def _draw_floats(generator: random.Random, size: int) -> bytes:
    return struct.pack(f"<{size // 4}f", *(generator.uniform(-1, 1) for _ in range(size // 4)))


if __name__ == "__main__":
    given = [[int(word) for word in text.split(",")] for text in sys.argv[2:]]
    print(max(time_library(sys.argv[1], *given), 1.0))
