"""`opsmith new-task --target`: a function or module becomes a problem file, with a constraint where small sizes fail."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opsmith.errors import UsageError
from opsmith.imports.kernelbench.folder import ANALYSES
from opsmith.imports.worker import ImportWorkers
from opsmith.judging.files import ProgramSource, exit_code, judge_files
from opsmith.judging.pool import Pool
from opsmith.problems.files.reading import read_problem
from opsmith.report.verdicts import verdict_text
from opsmith.scaffold.draft import Draft, DraftRequest, write_draft
from opsmith.scaffold.problem import draft_problem
from opsmith.suites import load_tasks
from opsmith.targets.capabilities import is_frame

TEXT = '''
import torch
from torch import Tensor, nn

SCALE = 2.0


def halved(x): return SCALE * x


def rms(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


class Norm(nn.Module):
    """A norm of rows."""

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return rms(halved(x), self.weight, self.eps)
'''
Drafter = Callable[..., Draft]


@pytest.fixture(scope="module")
def workers() -> Iterator[ImportWorkers]:
    with ImportWorkers(trust=True, services=ANALYSES) as opened:
        yield opened


@pytest.fixture
def draft(workers: ImportWorkers, tmp_path: Path) -> Drafter:
    (tmp_path / "mine.py").write_text(TEXT)

    def run(name: str, *shapes: str, values: tuple[str, ...] = (), target: str = "c") -> Draft:
        full_name = name if name.startswith("torch") else f"{tmp_path / 'mine.py'}:{name}"
        return draft_problem(DraftRequest(full_name, shapes, values), target, workers)

    return run


def test_a_function_is_its_own_reference_and_its_float_a_scalar(draft: Drafter, tmp_path: Path) -> None:
    drafted = draft("rms", "x=4,8:bf16", "weight=8:bf16")
    problem = read_problem(drafted.text).problem
    assert [(tensor.name, tensor.type.label) for tensor in problem.inputs] == [
        ("x", "bf16 [N, D]"), ("weight", "bf16 [D]")
    ]  # fmt: skip
    assert problem.reference.startswith("def rms(x, weight, eps = 1e-6):\n")
    assert problem.scalars == {"eps": 1e-6}
    assert len(problem.bench) == 3
    assert max(problem.bench["large"].values()) > 100
    write_draft(drafted, tmp_path / "rms.yaml")
    assert "const uint16_t *restrict weight" in (tmp_path / "plain" / "rms.c").read_text()


def test_a_module_has_its_weights_as_inputs_and_values_follow_dims(draft: Drafter) -> None:
    problem = read_problem(draft("Norm", "x=4,8", values=("dim=8",)).text).problem
    assert [tensor.type.label for tensor in problem.inputs] == ["fp32 [N, D]", "fp32 [D]"]
    assert "super().__init__(dim=D)" in problem.global_code
    assert "def rms(" in problem.global_code


def test_the_smallest_sizes_are_a_constraint_with_its_reason(draft: Drafter) -> None:
    drafted = draft("torch:topk", "input=6,20", values=("k=2",), target="wgsl")
    assert read_problem(drafted.text).problem.constraints == ("D >= 2",)
    assert "D >= 2: at D = 1 the reference fails" in drafted.notes[0]
    assert f"# NOTE {drafted.notes[0]}" in drafted.text


def test_equal_sizes_are_told_apart_where_that_lets_them_vary(draft: Drafter) -> None:
    problem = read_problem(
        draft("torch.nn.functional:conv2d", "input=2,3,9,11", "weight=5,3,3,3", values=("padding=1",)).text
    ).problem
    assert [str(dim) for dim in problem.inputs[1].type.shape][1:] == [str(problem.inputs[0].type.shape[1]), "3", "3"]


def test_a_function_that_does_not_take_its_shapes_is_refused_with_the_reason(draft: Drafter) -> None:
    with pytest.raises(UsageError, match=r"rms: forward fails: RuntimeError: .*; given x .N, D., weight .M. at N = 4"):
        draft("rms", "x=4,8", "weight=7")


def test_a_frame_that_nobody_filled_in_is_known_as_one_and_the_task_file_is_not_blamed(
    draft: Drafter, tmp_path: Path
) -> None:
    write_draft(draft("halved", "x=4,8"), tmp_path / "halved.yaml")
    program = tmp_path / "plain" / "halved.c"
    task = load_tasks([str(tmp_path / "halved.yaml")], "c")[0]
    frame = program.read_text()
    assert is_frame(task, frame)
    assert is_frame(task, frame.replace("{", "{  /* soon */\n\n")), "comments and layout write nothing"
    assert not is_frame(task, frame.replace("{", "{ y[0] = x[0];", 1))
    with Pool(1) as pool:
        (found,) = judge_files([tmp_path / "halved.yaml"], ProgramSource(target="c"), pool)
    text = verdict_text(found.name, found.verdict, found.task)
    assert "still a frame" in text
    assert "at fault" not in text
    assert exit_code([found.verdict]) == 2
