"""The accelerator of `opsmith init --command`: a real assembler and a real simulator behind one TOML file."""

import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from opsmith.errors import UsageError
from opsmith.judging.pool import Pool
from opsmith.measuring.baseline import compare_baseline
from opsmith.measuring.costs import CostRequest, choose_counted_sets, count_at_sizes, measure_costs
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.record import MeasuringGrade
from opsmith.profiling.choice import choose_profilers
from opsmith.profiling.profiler import ProfileSubject
from opsmith.records import Outcome, Task, Verdict
from opsmith.running import sandbox
from opsmith.scaffold.project import COMMAND, write_project
from opsmith.suites import load_tasks, read_task_file

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing())


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command") / "my-chip"
    write_project(folder, kind=COMMAND)
    return folder


@pytest.fixture(scope="module")
def task(project: Path) -> Task:
    return read_task_file(project / "problems" / "row_sum.yaml", str(project / "language.toml"))


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(2) as pool:
        yield pool


def judge(pool: Pool, task: Task, old: str = "", new: str = "") -> Verdict:
    assert task.impl is not None
    assert old in task.impl
    return pool.verify(task, task.impl.replace(old, new))


def test_a_right_program_passes_and_says_its_toolchain(pool: Pool, task: Task) -> None:
    verdict = judge(pool, task)
    assert verdict.passed, verdict.message
    assert verdict.build.startswith("vex-1-")
    assert "tools " in verdict.build
    assert verdict.verifier.startswith(verdict.build.partition(";")[0])


@pytest.mark.parametrize(
    ("old", "new", "stage", "words"),
    [
        ("vsum", "vsun", "COMPILE", "unknown instruction 'vsun'"),
        ("fst   y, s2, f0", "fst   y, s2 + 100000, f0", "COMPILE", "operands of fst"),
        ("add   s6, s4, s3", "add   s6, s4, 64", "RUN", "vld: elements 564 to 627 of x, which has 600"),
        ("fst   y, s2, f0", "fst   z, s2, f0", "RUN", "no output z; there are y"),
        ("halt", "jump end", "RUN", "does a loop not end?"),
        ("lf    f0, 0.0", "lf    f0, 1.0", "MATCH", "output y (fp32 [M]"),
    ],
)
def test_a_wrong_program_is_refused_where_it_goes_wrong(
    pool: Pool, task: Task, old: str, new: str, stage: str, words: str
) -> None:
    verdict = judge(pool, task, old, new)
    assert verdict.outcome is Outcome.REFUSED
    assert verdict.stage.name == stage, verdict.message
    assert words in verdict.message


def test_one_that_is_right_at_the_stated_sizes_only_is_refused_at_sizes_not_shown(pool: Pool, task: Task) -> None:
    """Two vectors of columns are enough for every size that the problem states."""
    verdict = judge(
        pool,
        task,
        "col:  jge   s3, s1, done",
        "col:  li    s7, 129\n      jge   s3, s7, done\n      jge   s3, s1, done",
    )
    assert verdict.outcome is Outcome.REFUSED
    assert "sizes not shown" in verdict.message


def test_cycles_are_counted_and_fewer_instructions_are_fewer(pool: Pool, task: Task) -> None:
    assert task.impl is not None
    cycles = pool.cost(task, task.impl)["cycles"]
    slow = task.impl.replace("fadd  f0, f0, f1", "fadd  f0, f0, f1\n      fexp  f2, f1")
    columns, rows = 2, 6
    assert pool.cost(task, slow)["cycles"] == cycles + 8 * columns * rows


def test_what_a_run_says_of_its_time_is_its_profile_with_words(pool: Pool, task: Task) -> None:
    (profiler,), _ = choose_profilers(task, ("output",), pool.cost)
    [report] = profiler.profile_program(ProfileSubject(task, task.impl or ""))
    by_instruction = [int(cycles) for cycles in re.findall(r"^cycles of \w+: (\d+)$", report.body, re.MULTILINE)]
    assert sum(by_instruction) == pool.cost(task, task.impl or "")["cycles"]
    assert by_instruction == sorted(by_instruction, reverse=True)
    assert "The cycles of all executions of an instruction" in report.body


def test_bundled_problems_are_judged_beside_those_of_other_languages(project: Path) -> None:
    """A worker that served another language has read nothing of this one, and can read nothing any more."""
    (step,), (chip,) = load_tasks(["bmm_0"]), load_tasks(["bmm_0"], str(project / "language.toml"))
    with Pool(1) as pool:
        assert step.impl is not None
        assert pool.verify(step, step.impl).passed
        verdict = pool.verify(chip, "halt")
    assert verdict.stage.name == "RUN", verdict.message
    assert "0 bytes in out_S0.bin in place of 2240" in verdict.message


def test_the_generators_example_is_right_and_costs_fewer_cycles(pool: Pool, project: Path, task: Task) -> None:
    programs = re.findall(r"```\n(.*?)```", (project / "example.md").read_text(), re.DOTALL)
    assert all(pool.verify(task, program).passed for program in programs)
    before, after = (pool.cost(task, program)["cycles"] for program in programs)
    assert before / after == pytest.approx(1.06, abs=0.01)


def test_a_fault_of_the_simulator_has_its_line(pool: Pool, task: Task) -> None:
    verdict = judge(pool, task, "add   s6, s4, s3", "add   s6, s4, 64")
    assert task.impl is not None
    [number] = [number for number, line in enumerate(task.impl.splitlines(), 1) if "vld" in line]
    assert verdict.errors[0].line == number
    assert "vld" in verdict.errors[0].block()


def test_cycles_at_the_sizes_of_the_bench_beside_those_of_another_simulator(pool: Pool, project: Path) -> None:
    """A simulator whose loads of a number have become dearer: what is slower is said, at every size."""
    folder = shutil.copytree(project, project.parent / "dearer")
    task = read_task_file(folder / "problems" / "row_sum.yaml", str(folder / "language.toml"))
    assert task.impl is not None
    request = CostRequest(task, task.impl, None, MeasuringGrade.SCREEN, shape_sets=choose_counted_sets(task))
    with TimingRoom() as room:
        count = partial(count_at_sizes, room)
        before = [report.measurement for report in measure_costs(pool.verify, pool.cost, request, count)]
        simulator = folder / "tools" / "sim.py"
        simulator.write_text(simulator.read_text().replace("return 10\n", "return 20\n"))
        now = [report.measurement for report in measure_costs(pool.verify, pool.cost, request, count)]
    changes = compare_baseline(now, before)
    assert [change.now.shape_set for change in changes] == ["base", "small", "odd", "large"]
    assert all(change.is_regression and change.toolchains is not None for change in changes)
    assert [change.ratio and round(change.ratio.value, 2) for change in changes] == [0.89, 0.84, 0.9, 0.97]
    with pytest.raises(UsageError, match="has none of that name; known: base, tiny, odd, small, large"):
        choose_counted_sets(task, ["huge"])
