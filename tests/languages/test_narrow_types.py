"""The suite `narrow`: its plain programs pass in C, CUDA and WGSL, and each new type has a wrong constant, a sum that is
too narrow and, for packed numbers, the wrong nibble, which are refused: the plain programs with a text in place of
another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from languages.gpu_programs import skip_without
from opsmith.errors import UnaskableError
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome
from opsmith.suites import load_tasks, task_files

PLAIN = task_files("narrow")[0].parent / "plain"
LANGUAGES = {".c": "c", ".cu": "cuda", ".wgsl": "wgsl"}
RIGHT = sorted(path for path in PLAIN.iterdir() if path.suffix in LANGUAGES)
SUM = ("float sum = 0.0f", "_Float16 sum = 0.0f")
FIR, TOTAL = "sum += taps[i] * x[start + t - i];", "total += sum * f32(scale[n * size.G + g]);"
MISTAKES = {  # program -> what is wrong with it, and its text
    "int4_dequantise.c": [
        ("nibble", "int4_low(pair)", "int4_high(pair)"),
        ("sign", "int4_high(pair)", "(pair >> 4)"),
        ("constant", "* scale[group]", "* scale[group] * 1.002f"),
    ],
    "int4_matmul.c": [
        ("nibble", "numbers[2 * i + 1]", "numbers[2 * i]"),
        ("half", *SUM),
        ("constant", "(float)scale", "1.0001f * (float)scale"),
    ],
    "fp8_matmul.c": [("half", *SUM), ("constant", "sum * scale_a[m]", "sum * scale_a[m] * 1.02f")],
    "fp8_quantise.c": [
        ("constant", "/ 448.0f", "/ 240.0f"),
        ("constant", "/ scale[m])", "/ scale[m] * 0.998f)"),
        ("half", "float largest", "_Float16 largest"),
        ("epsilon", "(float)least", "1e-3f"),
        ("rounding", "/ scale[m])", "/ scale[m] * 0.97f)"),
    ],
    "fp8_block_dequantise.c": [("constant", "* factor", "* factor * 1.02f"), ("constant", "row / 16", "row / 17")],
    "e5m2_gradient.c": [
        ("constant", "* (float)factor", "* (float)factor * 1.005f"),
        ("half", "float squares", "_Float16 squares"),
        ("epsilon", "squares = 0.0f", "squares = 1.0f"),
    ],
    "e5m2_average.c": [("half", *SUM), ("constant", "(float)W *", "((float)W + 1.0f) *")],
    "image_normalise.c": [("constant", "255.0f", "256.0f"), ("half", "float value", "_Float16 value")],
    "image_histogram.c": [
        ("half", "counts[b * 256 + image[b * N + n]]++", "(*(uint8_t *)(counts + b * 256 + image[b * N + n]))++"),
        ("constant", "image[b * N + n]]", "image[b * N + n] % 255]"),
    ],
    "local_threshold.c": [
        ("half", "int64_t sum", "uint8_t sum"),
        ("constant", "9 *", "8 *"),
        ("constant", "255 :", "1 :"),
    ],
    "audio_fir.c": [
        ("half", "int64_t sum", "int32_t sum"),
        ("constant", "16384", "16383"),
        ("saturation", "(int16_t)(sum < -32768 ? -32768 : sum > 32767 ? 32767 : sum)", "(int16_t)sum"),
    ],
    "mu_law_decode.c": [("constant", "8 + 132", "8 + 128"), ("half", "(int16_t)(", "(int8_t)(")],
    "int4_dequantise.cu": [
        ("nibble", "(low * factor, high", "(high * factor, low"),
        ("constant", "scale[i / 16]", "scale[i / 16] * 1.002f"),
    ],
    "int4_matmul.cu": [
        ("nibble", "lane % 2 ? pair : pair << 4", "lane % 2 ? pair << 4 : pair"),
        ("half", "    }\n    for", "        sum = __half2float(__float2half(sum));\n    }\n    for"),
    ],
    "fp8_matmul.cu": [
        ("half", "[j][k];", "[j][k], sum = __half2float(__float2half(sum));"),
        ("constant", "sum * scale_a", "1.02f * sum * scale_a"),
    ],
    "fp8_quantise.cu": [
        ("constant", "/ factor)", "/ factor * 0.998f)"),
        ("half", "(x[start + n] / factor)", "(__float2bfloat16(x[start + n] / factor))"),
    ],
    "e5m2_gradient.cu": [
        ("half", "    }\n    for (int", "        squares = __half2float(__float2half(squares));\n    }\n    for (int"),
        ("constant", "most / norm, 1.0f)", "most / norm, 1.005f)"),
    ],
    "image_normalise.cu": [("constant", "255.0f", "256.0f")],
    "audio_fir.cu": [("constant", "16384", "16383"), ("half", FIR, f"sum = static_cast<int>(sum + {FIR[7:-1]});")],
    "int4_dequantise.wgsl": [("nibble", "bits << 28u", "bits << 24u")],
    "int4_matmul.wgsl": [("half", TOTAL, f"total = f32(f16(total + {TOTAL[9:-1]}));")],
    "fp8_quantise.wgsl": [("constant", "/ factor)", "/ factor * 0.998)"), ("rounding", "+ 0x7ffffu", "+ 0u")],
    "e5m2_gradient.wgsl": [("constant", "* size.factor", "* size.factor * 1.005")],
    "image_histogram.wgsl": [("half", "atomicLoad(&bins[lane])", "(atomicLoad(&bins[lane]) & 255)")],
    "audio_fir.wgsl": [("constant", "16384i", "16383i")],
}
WRONG = [(PLAIN / name, *row) for name, rows in MISTAKES.items() for row in rows]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=20.0) as shared:
        yield shared


def mark_program(path: Path, *row: str) -> Any:
    language = LANGUAGES[path.suffix]
    return pytest.param(path, *row, id=" ".join([path.name, *row[:1], *row[2:]]), marks=skip_without(language))


def load_task(path: Path) -> Any:
    return load_tasks([f"narrow/{path.stem}"], LANGUAGES[path.suffix])[0]


@pytest.mark.parametrize("path", [mark_program(path) for path in RIGHT])
def test_a_plain_program_passes(pool: Pool, path: Path) -> None:
    verdict = pool.verify(load_task(path), path.read_text("utf-8"))
    assert verdict.passed, verdict.message


@pytest.mark.parametrize(("path", "kind", "old", "new"), [mark_program(*row) for row in WRONG])
def test_a_wrong_program_is_refused(pool: Pool, path: Path, kind: str, old: str, new: str) -> None:
    source = path.read_text("utf-8")
    assert old in source
    verdict = pool.verify(load_task(path), source.replace(old, new))
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert verdict.stage.name == "MATCH", verdict.message


def test_a_language_says_which_types_it_lacks() -> None:
    asked = load_tasks(["narrow"], "wgsl")
    assert len(asked) == len(list(PLAIN.glob("*.wgsl")))
    with pytest.raises(UnaskableError, match="given bf16 for the target wgsl; expected arrays of fp32"):
        load_tasks(["narrow/fp8_matmul"], "wgsl")
