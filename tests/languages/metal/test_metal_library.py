"""A library in Metal: what is written, and what torch would be asked for on a Mac, here on a stand-in for its compiler."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from opsmith.errors import UsageError
from opsmith.suites import load_tasks
from opsmith.targets.gpu.plan import read_bound_plan
from opsmith.targets.metal import METAL, library_programs
from opsmith.targets.native.library.operator import ProgramCall
from opsmith.targets.native.task import read_task_problem
from opsmith.targets.operator_error import OperatorError
from opsmith.targets.programs import Solved


def package(name: str) -> tuple[Solved, dict[str, str | bytes]]:
    (task,) = load_tasks([f"kernels/{name}"], "metal", {})
    solved = Solved(name, task, task.impl or "", {})
    return solved, METAL.write_package("ops", [solved])


class StandInShaders:
    """What `torch.mps.compile_shader` returns, of a program whose kernels are computed by torch."""

    def __init__(self, source: str) -> None:
        self.source, self.calls = source, list[dict[str, Any]]()

    def reduce_chunks(self, *args: torch.Tensor, **shape: Any) -> None:
        self.calls.append({"dtypes": [tensor.dtype for tensor in args], **shape})

    def merge_chunks(self, *args: torch.Tensor, **shape: Any) -> None:
        self.calls.append({"dtypes": [tensor.dtype for tensor in args], **shape})
        args[2].fill_(3.0)
        args[3].fill_(int(args[5]))


def test_torch_is_asked_for_each_launch_of_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved, files = package("mean_variance")
    plan = METAL.require_plan(solved.task, solved.source)
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "mean_variance.metal").write_bytes(str(files["ops/programs/mean_variance.metal"]).encode())
    namespace: dict[str, Any] = {"MetalPrograms": SimpleNamespace, "__file__": str(tmp_path / "front.py")}
    library = next(str(text) for path, text in files.items() if path.startswith("ops/") and "MetalPrograms(" in str(text)
                   and "class MetalPrograms" not in str(text))  # fmt: skip
    namespace["MetalPrograms"] = library_programs.MetalPrograms
    exec(library.partition("MetalPrograms\n\n")[2], namespace)  # what the package itself says
    programs = namespace["LIBRARY"]
    x, results = torch.ones(3, 1030), [torch.zeros(3), torch.zeros(3)]
    call = ProgramCall("mean_variance", read_task_problem(solved.task.text), [x], results, [3, 1030], [], 1)
    with pytest.raises(OperatorError, match="a Mac with a GPU"):
        programs.run_program(call)

    made: list[StandInShaders] = []
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(library_programs, "DEVICE", "cpu")
    monkeypatch.setattr(torch.mps, "compile_shader", lambda source: made.append(StandInShaders(source)) or made[0],
                        raising=False)  # fmt: skip
    programs.run_program(call)
    assert made[0].source == solved.source
    assert [(each["threads"], each["group_size"]) for each in made[0].calls] == [
        ([9 * 128, 1, 1], [128, 1, 1]),
        ([128, 1, 1], [128, 1, 1]),
    ]
    assert made[0].calls[0]["dtypes"] == [torch.float32, torch.uint8, torch.uint8, torch.int64]
    assert [result.tolist() for result in results] == [[3.0] * 3, [1030.0] * 3]
    assert read_bound_plan(plan.write_json()) == plan


def test_what_torch_cannot_launch_is_not_packaged() -> None:
    with pytest.raises(UsageError, match="given shared= in its launch plan"):
        package("masked_attention")


def test_the_readme_says_who_never_saw_the_programs() -> None:
    solved, _ = package("row_sum")
    assert "Apple's compiler has never seen them" in METAL.describe_usage("ops", [solved])
