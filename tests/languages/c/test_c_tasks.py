"""Tasks of C from files to reports: the prompt's example is right, options hold, one problem is compared in two languages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from targets.native.programs import needs_compiler
from typer.testing import CliRunner

import opsmith
from opsmith.agents.prompt import read_prompt
from opsmith.api import improve, load_task, verify
from opsmith.cli.app import build_app
from opsmith.models import Message, Reply, Request
from opsmith.records import Task, Usage
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.native.prompt_texts import EXAMPLE
from opsmith.targets.protocols import PROPOSER
from opsmith_lab.models.sampling import fence_program

pytestmark = needs_compiler
PROMPTS = Path(opsmith.__file__).parent / "targets" / "c" / "prompts"


class Oracle:
    """A model that knows the programs of these tasks, and gives a wrong one first."""

    context_window: int | None = None
    is_language_model = False

    def __init__(self, name: str, tasks: Sequence[Task], spoiled: str = "") -> None:
        self.name, self.tasks, self.spoiled = name, tasks, spoiled

    async def complete(self, request: Request) -> Reply:
        task_text = yaml.safe_load(read_prompt(request.messages).task)
        task = next(task for task in self.tasks if yaml.safe_load(task.prompt_text) == task_text)
        text = self.spoiled if self.spoiled and len(request.messages) == 2 else fence_program(task.impl or "")
        return Reply((text,), Usage(1, 10, 10, 0, 0.0))

    async def close(self) -> None:
        pass


def test_the_example_of_the_prompt_is_right() -> None:
    task = load_task(PROMPTS / f"{EXAMPLE}.yaml", "c")
    ((shown, program),) = read_prompt([Message("system", get_target("c").base_prompt(PROPOSER) or "")]).examples
    assert yaml.safe_load(shown) == yaml.safe_load(task.shown)
    verdict = verify(task, program, trust_tasks=True)
    assert verdict.passed, verdict.message


def test_a_program_without_openmp_is_right_in_a_task_with_threads() -> None:
    task = load_task("softmax", "c", {"threads": 2, "flags": "-O2"})
    verdict = verify(task, task.impl or "")
    assert verdict.passed, verdict.message
    assert "-O2" in verdict.build
    assert "-fopenmp " in verdict.build


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "kernels/softmax", "norm_0", "--target", "c", "--option", "threads=2"],
        ["check", "row_sum", "norm_0", "--target", "c"],
    ],
)
def test_commands_take_problems_and_step_tasks_in_c(arguments: list[str]) -> None:
    result = CliRunner().invoke(build_app(arguments[0]), [*arguments, "--json"])
    rows = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert (result.exit_code, len(rows)) == (0, 2), result.output


def test_one_problem_is_one_row_of_a_step_run_and_a_c_run(tmp_path: Path) -> None:
    names, settings = ["norm_0", "gemm_0"], Settings(samples=2, temperatures=(0.4,), max_rounds=1, agents="single")
    own, in_c = load_tasks(names), load_tasks(names, "c")
    with Store.open(tmp_path) as store:
        first = improve(own, Oracle("oracle", own), settings, store)
        spoiled = fence_program("void kernel(float *restrict y) { y[0] = 1 }")
        second = improve(in_c, Oracle("oracle", in_c, spoiled), settings.replace(target="c", repair=1), store)
    assert (first.solved, second.solved) == (2, 2)
    result = CliRunner().invoke(
        build_app("compare"), ["compare", first.run, second.run, "--out", str(tmp_path), "--json"]
    )
    rows = {row.pop("problem"): [*row] for row in json.loads(result.stdout)["tables"]["problems"]["rows"]}
    assert rows == {name: ["step", "c"] for name in names}
