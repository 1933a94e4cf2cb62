"""A right program in CUDA as sources for torch: `main.cpp` with `run`, which is given its outputs, and `kernel.cu`.

The arguments of `run` are those of the problem's source (all inputs, then all scalars, where it has none), then the
outputs, which are written. nvcc compiles the kernels; torch's extension builder calls it.
"""

from __future__ import annotations

from opsmith.errors import UsageError
from opsmith.problems.problem import Problem
from opsmith.targets.cuda.host_code import calling, launching
from opsmith.targets.gpu.binding import bind_plan
from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.gpu.reading import read_plan
from opsmith.targets.native.task import read_task_problem
from opsmith.targets.native.torch_host import fill_words, make_title, write_run
from opsmith.targets.programs import Solved, TorchExtension

_RUN = """
CHECKS

void run(DECLARATIONS) {
BODY
}
""".lstrip("\n")


def write_torch_extension(solved: Solved) -> TorchExtension:
    """Raises UsageError for a problem whose sizes no shape states."""
    problem = read_task_problem(solved.task.text)
    plan, title = bind_source(solved.source, problem), make_title(solved.task.id)
    words = write_run(problem, "cuda", "a GPU", "{}", f"{calling.CALL}(ARGUMENTS);")
    main = calling.write_main_file(plan, title, fill_words(_RUN, words)) + calling.write_binding("run", title)
    sources = {calling.FILE: main, launching.FILE: launching.write_kernel_file(solved.source, plan, title)}
    description = "Kernels in CUDA with host code for torch, for a GPU of NVIDIA."
    return TorchExtension("cuda", sources, ("torch", "nvcc"), "cuda", description)


def bind_source(source: str, problem: Problem) -> BoundPlan:
    """The plan of a program that passed. Raises UsageError where it has none."""
    plan = read_plan(source)
    bound = plan if isinstance(plan, tuple) else bind_plan(plan, problem)
    if isinstance(bound, tuple):
        raise UsageError(f"the program's launch plan: {bound[0]}")
    return bound
