"""CUDA and Metal in the emulator and C on the processor compute the same on the same inputs, and mistakes are refused.

Inputs are all draws of all trials that the file states, and those at the hidden sizes that belong to the program.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from languages.cuda.emulated_kernels import split_outputs
from languages.cuda.translated_mistakes import MISTAKES, Mistake
from languages.gpu_programs import GpuProgram, list_plain, load_gpu_task, needs_cuda
from opsmith.judging.pool import Pool
from opsmith.problems.precision import dtype_of
from opsmith.records import Boundary, Outcome, Scrutiny, Task
from opsmith.suites import load_tasks
from opsmith.targets import Built, get_target
from opsmith.targets.native.layout import read_outputs
from opsmith.targets.native.trials import NativeTrialData
from opsmith.targets.protocols import HidesSizes
from opsmith.targets.trial import Trial

pytestmark = needs_cuda
KINDS = ("int8_gemm", "rms_norm", "row_max_argmax")  # whole numbers, floats, both: that all are right, verdicts say
PROGRAMS = [program for of in ("cuda", "metal") for program in list_plain(of) if program.name in KINDS]
FIRST_MISTAKES = list({mistake.problem: mistake for mistake in reversed(MISTAKES)}.values())
RUN_TRIALS = """
import sys
from pathlib import Path
from opsmith.targets import get_target
target, folder = get_target(sys.argv[1]), Path(sys.argv[2])
artefacts = {path.name: path for path in (folder / sys.argv[1]).iterdir()}
for inputs in sorted(folder.glob("*.in")):
    outputs = target.execute_artefacts(artefacts, inputs.read_bytes())
    inputs.with_suffix("." + sys.argv[1]).write_bytes(outputs)
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=20.0) as shared:
        yield shared


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.language}-{program.name}")
def test_both_languages_compute_the_same(program: GpuProgram, tmp_path: Path) -> None:
    sources = {"c": program.path.with_suffix(".c").read_text("utf-8"), program.language: program.source}
    trials = {language: list_trials(program.place, language, program.source) for language in sources}
    for number, (first, second) in enumerate(zip(*trials.values(), strict=True)):
        assert first.data.encoded_inputs == second.data.encoded_inputs
        (tmp_path / f"{number:03}.in").write_bytes(first.data.encoded_inputs)
    for language, source in sources.items():
        execute_program(language, load_tasks([program.place], language, {})[0], source, tmp_path)
    for number, pair in enumerate(zip(*trials.values(), strict=True)):
        rows = {language: (tmp_path / f"{number:03}.{language}").read_bytes() for language in sources}
        for (language, outputs), trial in zip(rows.items(), pair, strict=True):
            assert not get_target(language).compare_outputs(trial, outputs).errors, (language, trial.name)
        compare_rows(pair[0], rows)


def list_trials(place: str, language: str, source: str) -> list[Trial]:
    """Those of the task in a language, and those at hidden sizes."""
    task, target = load_tasks([place], language, {})[0], get_target(language)
    assert isinstance(target, HidesSizes)
    hidden = target.hidden_trials(task, source, Scrutiny("a secret"))
    assert hidden is not None
    return [*target.list_trials(task), *hidden.trials]


def execute_program(language: str, task: Task, source: str, folder: Path) -> None:
    """Builds a program and runs it on all inputs of the folder, in a process of its own."""
    target = get_target(language)
    assert isinstance(target, Built)
    build = target.build_program(task, source)
    assert not build.errors
    assert not build.failure
    (folder / language).mkdir()
    for name, content in build.artefacts.items():
        (folder / language / name).write_bytes(content)
    command = [sys.executable, "-c", RUN_TRIALS, language, str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


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


@pytest.mark.parametrize("mistake", FIRST_MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_that_is_refused_in_c_is_refused_in_cuda(pool: Pool, mistake: Mistake) -> None:
    verdict = pool.verify(load_gpu_task("cuda", f"kernels/{mistake.problem}"), mistake.write_program())
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert verdict.stage.name == mistake.stage, verdict.message
