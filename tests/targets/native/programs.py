"""C programs and builds that the tests of native languages share."""

from __future__ import annotations

import pytest
from problems.examples import RMS_NORM, SOFTMAX, TOP_TWO, read_example

from opsmith.problems.digest import hash_problem
from opsmith.running import sandbox
from opsmith.running.toolchain import NO_COMPILER, find_toolchain
from opsmith.targets.native.build import BuildRequest
from opsmith.targets.native.flags import BuildFlags, Isa
from opsmith.targets.native.signature import make_signature

needs_compiler = pytest.mark.skipif(
    find_toolchain() is None or bool(sandbox.missing()), reason=f"{NO_COMPILER}; or no isolation: {sandbox.missing()}"
)

PROBLEMS = {"softmax": read_example(SOFTMAX), "rms_norm": read_example(RMS_NORM), "top_two": read_example(TOP_TWO)}
PLAIN_SOFTMAX = """#include <math.h>
#include <stdint.h>
void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N) {
  for (int64_t row = 0; row < M; row++) {
    const float *in = x + row * N;
    float *out = y + row * N;
    float largest = in[0], sum = 0;
    for (int64_t i = 1; i < N; i++) largest = fmaxf(largest, in[i]);
    for (int64_t i = 0; i < N; i++) sum += out[i] = expf(in[i] - largest);
    for (int64_t i = 0; i < N; i++) out[i] /= sum;
  }
}
"""


def request_build(
    source: str, problem: str = "softmax", *flags: str, isa: str = "", threads: bool = False
) -> BuildRequest:
    """A build of a source for one of PROBLEMS, for the plainest processor that this machine is one of."""
    plain = "x86-64" if "x86" in (find_toolchain() or NoToolchain).version else "armv8-a"
    build_flags = BuildFlags(Isa(isa or plain), flags or ("-O2",), threads)
    stated = PROBLEMS[problem]
    return BuildRequest(hash_problem(stated), "c", make_signature(stated), source, build_flags)


class NoToolchain:
    version = ""
