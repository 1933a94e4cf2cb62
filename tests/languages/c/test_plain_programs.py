"""Every plain program of the suite `kernels` is clean C: no warning of a compiler that looks for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from targets.native.programs import needs_compiler

import opsmith
from opsmith.problems.digest import hash_problem
from opsmith.problems.files.reading import read_problem
from opsmith.running.compiler import Artefact
from opsmith.targets.native.build import BuildRequest, build_library
from opsmith.targets.native.flags import BuildFlags, Isa, read_features
from opsmith.targets.native.signature import make_signature

SUITE = Path(opsmith.__file__).parent / "suites" / "kernels"
STRICT = ("-O1", "-Wall", "-Wextra", "-Wshadow", "-Wno-unused-parameter", "-Werror")  # not every dim is needed by all
PLAINEST = Isa("x86-64" if "sse2" in read_features() else "armv8-a")


@needs_compiler
@pytest.mark.parametrize("name", sorted(path.stem for path in SUITE.glob("*.yaml")))
def test_a_plain_program_compiles_without_a_warning(name: str) -> None:
    problem = read_problem((SUITE / f"{name}.yaml").read_text("utf-8"), name).problem
    path = SUITE / "plain" / f"{name}.c"
    signature = make_signature(problem)
    request = BuildRequest(hash_problem(problem), "c", signature, path.read_text("utf-8"), BuildFlags(PLAINEST, STRICT))
    assert isinstance(build_library(request), Artefact)
