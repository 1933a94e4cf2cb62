"""One build: right programs run, wrong ones are findings without paths, and a second build comes from the cache."""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from targets.native.programs import PLAIN_SOFTMAX, needs_compiler, request_build

from opsmith.errors import UsageError
from opsmith.records import Diagnostic
from opsmith.running.compiler import Artefact, CompileFailure
from opsmith.targets.native import build
from opsmith.targets.native.build import BuildRefusal, build_library, build_variants
from opsmith.targets.native.cache import BuildCache
from opsmith.targets.native.flags import BuildFlags, Isa, choose_isa, read_features
from opsmith.targets.native.variants import choose_variants

HEAD = "void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N) {\n"
V3 = ["abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"]


def load_kernel(artefact: Artefact, folder: Path) -> Callable[..., None]:
    (folder / "k.so").write_bytes(artefact.data)
    kernel: Callable[..., None] = ctypes.CDLL(str(folder / "k.so")).kernel
    return kernel


@needs_compiler
def test_a_plain_softmax_runs(tmp_path: Path) -> None:
    result = build_library(request_build(PLAIN_SOFTMAX))
    assert isinstance(result, Artefact), result
    x, y = torch.randn(3, 129), torch.empty(3, 129)
    pointers = (ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()))
    load_kernel(result, tmp_path)(*pointers, ctypes.c_int64(3), ctypes.c_int64(129))
    assert torch.allclose(y, torch.softmax(x, -1))


def refuse(source: str, *flags: str) -> tuple[Diagnostic, ...]:
    result = build_library(request_build(source, "softmax", *flags))
    assert isinstance(result, BuildRefusal), result
    text = "".join(map(str, result.errors))
    assert "/usr" not in text
    assert "/tmp" not in text
    assert "opsmith-compile" not in text
    return result.errors


@needs_compiler
@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        (HEAD + "  y[0] = x[0]\n}", 2, "expected ';' before '}' token"),
        (HEAD + "  y[0] = lenght;\n}", 2, "try: declare lenght"),
        (HEAD + "  x[0] = 1;\n}", 2, "inputs are const"),
        (HEAD + "  y[0] = expf(x[0]);\n}", 2, "include the header that declares expf"),
        (HEAD + "  y[0] = sum_all(x[0]);\n}", 2, "implicit declaration of function 'sum_all'"),
        ("void _init(void) {}\n" + HEAD + "}", 1, "a second definition of _init"),
        ("float far(float);\n" + HEAD + "  y[0] = far(x[0]);\n}", 1, "which no library that is linked defines"),
        (
            "void kernel(float *x) {}",
            1,
            "expected void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N);",
        ),
        ("int table[1L << 62];\n" + HEAD + "}", 1, "allocate it with malloc"),
        (HEAD + "  " + "{" * 5 + "\n", 2, "close what is open"),
        ("#define TWICE(a) ((a) + unknown)\n" + HEAD + "  y[0] = TWICE(x[0]);\n}", 3, "'unknown' undeclared"),
    ],
)
def test_what_the_compiler_says_is_a_finding(source: str, line: int, words: str) -> None:
    finding = refuse(source)[0]
    assert finding.line == line
    assert finding.text == source.split("\n")[line - 1].strip()
    assert words in str(finding)


@needs_compiler
@pytest.mark.skipif("avx2" not in read_features(), reason="no x86-64 with AVX2")
def test_intrinsics_beyond_the_stated_instruction_set() -> None:
    source = "#include <immintrin.h>\n" + HEAD + "  _mm512_storeu_ps(y, _mm512_loadu_ps(x));\n}"
    finding = refuse(source)[0]
    assert finding.line == 3
    assert "instructions of the stated instruction set" in str(finding)
    assert isinstance(build_library(request_build(source, isa="x86-64-v4")), Artefact)


@needs_compiler
def test_the_first_findings_are_enough() -> None:
    errors = refuse(HEAD + "".join(f"  y[{n}] = name{n};\n" for n in range(50)) + "}")
    assert [error.line for error in errors] == [2, 3, 4, 5, 6]


@needs_compiler
def test_a_flood_of_messages_still_says_the_first() -> None:
    errors = refuse(HEAD + "".join(f"  y[{n}] = name{n};\n" for n in range(3000)) + "}")
    assert [error.line for error in errors] == [2, 3, 4, 5, 6]


@needs_compiler
def test_limits_and_crashes_are_findings() -> None:
    assert "at most 33554432 bytes in one file" in str(refuse("char big[2000000000] = {1};\n" + HEAD + "}")[0])
    deep = HEAD + f"y[0] = {'(' * 300_000}1{')' * 300_000};" + "}"
    assert len(refuse(deep)) == 1


@needs_compiler
def test_a_link_without_fast_math_leaves_the_process_alone(tmp_path: Path) -> None:
    """Its start files would make numbers below the normal ones zero for everybody."""
    result = build_library(request_build(PLAIN_SOFTMAX, "softmax", "-O3", "-ffast-math"))
    assert isinstance(result, Artefact), result
    load_kernel(result, tmp_path)
    tiny = torch.tensor([1e-40])
    assert (tiny * 1.0).item() > 0


@needs_compiler
def test_the_second_build_comes_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = BuildCache(tmp_path / "cache")
    first = build_library(request_build(PLAIN_SOFTMAX), cache)
    assert isinstance(first, Artefact)
    monkeypatch.setattr(build, "run_compiler", lambda *arguments: pytest.fail("compiled again"))
    again = build_library(request_build(PLAIN_SOFTMAX), cache)
    assert isinstance(again, Artefact)
    assert again.data == first.data
    with pytest.raises(pytest.fail.Exception):
        build_library(request_build(PLAIN_SOFTMAX, "softmax", "-O3"), cache)


@needs_compiler
def test_refusals_are_not_cached(tmp_path: Path) -> None:
    build_library(request_build("int f( {"), BuildCache(tmp_path))
    assert os.listdir(tmp_path) == []


# -- flags


@pytest.mark.parametrize(
    ("architecture", "features", "name"),
    [
        ("x86_64", [], "x86-64"),
        ("x86_64", V3, "x86-64-v3"),
        ("x86_64", [*V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"], "x86-64-v4"),
        ("x86_64", ["avx2"], "x86-64"),
        ("aarch64", ["asimd"], "armv8-a"),
        ("aarch64", ["asimd", "asimdhp", "asimddp"], "armv8.2-a+fp16+dotprod"),
    ],
)
def test_the_instruction_set_is_stated(architecture: str, features: list[str], name: str) -> None:
    assert choose_isa(architecture, features) == Isa(name)


def test_other_processors_are_not_known() -> None:
    with pytest.raises(UsageError, match="expected x86_64 or aarch64"):
        choose_isa("riscv64", [])


@pytest.mark.parametrize(
    "flag",
    [
        "-o",
        "/etc/passwd",
        "-fplugin=x.so",
        "-I/etc",
        "@file",
        "-B/tmp",
        "-include",
        "-Wl,-rpath",
        "-Wa,-I/",
        "-specs=x",
        "-fdump-tree-all=/tmp/x",
        "-march=native",
        "-wrapper",
        "-DX=$(id)",
        "-save-temps",
        "-v",
        "-xc",
        "-O2 -o x",
        "-O2\n",
    ],
)
def test_flags_that_name_files_are_no_flags(flag: str) -> None:
    with pytest.raises(UsageError, match="compiler flag"):
        BuildFlags(Isa("x86-64"), (flag,))


def test_the_key_says_all_that_a_build_depends_on() -> None:
    flags = BuildFlags(Isa("x86-64-v3"), ("-O3", "-ffast-math"), has_threads=True)
    assert "-march=x86-64-v3" in flags.key
    assert "-ffast-math" in flags.compile_flags
    assert "-ffast-math" not in flags.link_flags
    assert "-fopenmp" in flags.link_flags
    assert len({flags.key, BuildFlags(Isa("x86-64")).key, BuildFlags(Isa("x86-64-v3")).key}) == 3


@needs_compiler
def test_flags_that_the_compiler_does_not_have_are_not_the_programs_fault() -> None:
    result = build_variants(request_build(PLAIN_SOFTMAX, "softmax", "-fnonsense"), choose_variants(1))
    assert isinstance(result, CompileFailure)
    assert "unrecognized command-line option '-fnonsense'" in result.reason


@needs_compiler
def test_all_variants_come_from_the_cache_once_they_are_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = BuildCache(tmp_path)
    request = request_build(PLAIN_SOFTMAX, "softmax", "-O2", threads=True)
    first = build_variants(request, choose_variants(2, is_full=True), cache)
    assert isinstance(first, dict)
    assert list(first) == ["pattern", "zero", "delayed", "deployed"]
    monkeypatch.setattr(build, "run_compiler", None)
    assert build_variants(request, choose_variants(2, is_full=True), cache) == first
