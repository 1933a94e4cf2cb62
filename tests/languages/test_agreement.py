"""Programs for one problem in several languages compute the same on the same inputs, and mistakes are refused in all.

Each language is compared with C, which every environment has: a language that lives in one of its own (`make tvm`,
`make triton`) agrees with the others through it. Inputs are all draws of all trials that the file states, and those at
the hidden sizes under one secret. As a script, a line for each problem and language of this environment:

PYTHONPATH=tests python -m languages.test_agreement [LANGUAGE ...]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from languages.cuda.emulated_kernels import split_outputs
from languages.cuda.translated_mistakes import MISTAKES, Mistake
from languages.gpu_programs import GpuProgram, find_lack, list_plain, load_gpu_task, needs_cuda, skip_without
from opsmith.judging.pool import Pool
from opsmith.problems.precision import dtype_of
from opsmith.records import Boundary, Outcome, Scrutiny
from opsmith.targets import TARGETS, Built, get_target
from opsmith.targets.native.layout import read_outputs
from opsmith.targets.native.trials import NativeTrialData
from opsmith.targets.protocols import HidesSizes
from opsmith.targets.trial import Trial

LANGUAGES = [language for language in ("cuda", "wgsl", "metal", "tvm", "triton") if language in TARGETS]
KINDS = ("int8_gemm", "rms_norm", "row_max_argmax")  # whole numbers, floats, both: that all are right, verdicts say
PROGRAMS = [
    pytest.param(program, id=f"{language}-{program.name}", marks=skip_without(language))
    for language in LANGUAGES
    for program in list_plain(language)
    if program.name in KINDS
]
FIRST_MISTAKES = list({mistake.problem: mistake for mistake in reversed(MISTAKES)}.values())
RUN_TRIALS = """
import sys
from pathlib import Path
from opsmith.targets import get_target
target, folder = get_target(sys.argv[1]), Path(sys.argv[2])
artefacts = {path.name: path for path in (folder / sys.argv[1]).iterdir()}
for inputs in sorted(folder.glob("*." + sys.argv[1] + ".in")):
    outputs = target.execute_artefacts(artefacts, inputs.read_bytes())
    inputs.with_suffix(".out").write_bytes(outputs)
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=20.0) as shared:
        yield shared


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_language_computes_what_c_computes(program: GpuProgram, tmp_path: Path) -> None:
    assert compare_with_c(program, tmp_path) > 10


def compare_with_c(program: GpuProgram, folder: Path) -> int:
    """How many draws were compared. The programs are built and run on all inputs, each in a process of its own."""
    in_c = GpuProgram("c", program.path.with_suffix(".c"), program.place)
    trials = {of.language: execute_trials(of, folder) for of in (in_c, program)}
    draws = 0
    for (first, outputs), (second, other_outputs) in zip(*trials.values(), strict=True):
        draws += len(first.data.draws)
        for language, trial, data in (("c", first, outputs), (program.language, second, other_outputs)):
            assert not get_target(language).compare_outputs(trial, data).errors, (language, trial.name)
        for one, other in zip(first.data.draws, second.data.draws, strict=True):
            assert_equal_inputs(one.declared.input_data, other.declared.input_data)
        compare_rows(first, {"c": outputs, program.language: other_outputs})
    return draws


def assert_equal_inputs(first: Mapping[str, torch.Tensor], second: Mapping[str, torch.Tensor]) -> None:
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def execute_trials(program: GpuProgram, folder: Path) -> list[tuple[Trial, bytes]]:
    """The trials of the task, and those at hidden sizes, with what the program gives for their inputs."""
    language, target, task = program.language, get_target(program.language), program.task
    assert isinstance(target, HidesSizes)
    assert isinstance(target, Built)
    hidden = target.hidden_trials(task, program.source, Scrutiny("a secret"))
    assert hidden is not None
    trials = [*target.list_trials(task), *hidden.trials]
    for number, trial in enumerate(trials):
        (folder / f"{number:03}.{language}.in").write_bytes(target.encode_inputs(trial))
    build = target.build_program(task, program.source)
    assert not build.errors
    assert not build.failure
    (folder / language).mkdir()
    for name, content in build.artefacts.items():
        (folder / language / name).write_bytes(content)
    command = [sys.executable, "-c", RUN_TRIALS, language, str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    return [(trial, (folder / f"{number:03}.{language}.out").read_bytes()) for number, trial in enumerate(trials)]


def compare_rows(trial: Trial, rows: Mapping[str, bytes]) -> None:
    """Whole numbers are equal; others differ by no more than each of them may differ from what is expected."""
    tensors = {language: list(read_tensors(trial.data, data)) for language, data in rows.items()}
    limits = [limit for row in trial.data.limits for limit in row]
    draws = len(trial.data.draws)
    for draw in range(draws):
        for number, limit in enumerate(limits):
            first, second = (tensors[language][draw][number] for language in rows)
            if limit.allowed is None:
                assert torch.equal(first, second), (trial.name, draw, number)
                continue
            allowed = np.broadcast_to(limit.allowed_array, limit.expected_array.shape)[draw]
            difference = (first.double() - second.double()).abs().numpy()
            assert (difference.reshape(allowed.shape) <= allowed).all(), (trial.name, draw, number, difference.max())


def read_tensors(data: NativeTrialData, outputs: bytes) -> Iterator[list[torch.Tensor]]:
    """Those of the first pass, draw by draw."""
    passes = read_outputs(data.layout, outputs)
    assert isinstance(passes, list)
    types = [type_ for output in data.problem.outputs for type_ in output.types]
    for views in split_outputs(data.layout, passes[0]):
        yield [
            torch.frombuffer(bytearray(view), dtype=dtype_of(type_.dtype))
            for view, type_ in zip(views, types, strict=True)
        ]


@needs_cuda
@pytest.mark.parametrize("mistake", FIRST_MISTAKES, ids=lambda mistake: f"cuda-{mistake.name}")
def test_a_mistake_that_is_refused_in_c_is_refused_in_cuda(pool: Pool, mistake: Mistake) -> None:
    verdict = pool.verify(load_gpu_task("cuda", f"kernels/{mistake.problem}"), mistake.write_program())
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert verdict.stage.name == mistake.stage, verdict.message


def print_agreement(languages: list[str]) -> None:
    for language in languages or LANGUAGES:
        lack = find_lack(language)
        for program in [] if lack else list_plain(language):
            with tempfile.TemporaryDirectory() as folder:
                print(f"{language} {program.name}: agrees with C on {compare_with_c(program, Path(folder))} draws")
        if lack:
            print(f"{language}: not compared: {lack}")


if __name__ == "__main__":
    print_agreement(sys.argv[1:])
