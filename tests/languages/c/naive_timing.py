"""What others do, for the tests: a program and its partner are called in one process on the same arrays, one after the
other, and the ratio of their means is reported.

Nothing is checked and nothing is confined. As a script it times the libraries of `argv[1:3]` and prints the ratio:
python naive_timing.py PROGRAM PARTNER INPUT_BYTES,... OUTPUT_BYTES,... SIZE,... SCALAR,...
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
    libraries = []
    for name, source in (("program", program), ("partner", partner)):
        file, library = folder / f"{name}.c", folder / f"{name}.so"
        file.write_text(source, "utf-8")
        flags = ["-O3", "-std=gnu17", "-march=native", "-shared", "-fPIC", "-w", "-include", str(header)]
        subprocess.run(["gcc", *flags, str(file), "-o", str(library), "-lm"], check=True, timeout=_SECONDS)
        libraries.append(str(library))
    command = [sys.executable, __file__, *libraries, *numbers]
    done = subprocess.run(command, check=True, timeout=_SECONDS, capture_output=True, text=True)
    return float(done.stdout)


def time_libraries(
    paths: Sequence[str], inputs: Sequence[int], outputs: Sequence[int], sizes: Sequence[int], scalars: Sequence[float]
) -> list[float]:
    """The mean of all calls of each."""
    generator = random.Random(1)
    buffers = [ctypes.create_string_buffer(_draw_floats(generator, size), size) for size in inputs]
    results = [ctypes.create_string_buffer(size) for size in outputs]
    arguments = [*buffers, *results, *map(ctypes.c_int64, sizes), *map(ctypes.c_double, scalars)]
    functions = [ctypes.CDLL(path).kernel for path in paths]
    times = []
    for function in functions:
        begin = time.perf_counter_ns()
        for _ in range(CALLS):
            function(*arguments)
        times.append((time.perf_counter_ns() - begin) / CALLS)
    return times


def _draw_floats(generator: random.Random, size: int) -> bytes:
    return struct.pack(f"<{size // 4}f", *(generator.uniform(-1, 1) for _ in range(size // 4)))


def main() -> None:
    *rows, scalars = ([float(word) for word in text.split(",") if word] for text in sys.argv[3:])
    program, partner = time_libraries(sys.argv[1:3], *([int(word) for word in row] for row in rows), scalars)
    print(max(partner, 1.0) / max(program, 1.0))


if __name__ == "__main__":
    main()
