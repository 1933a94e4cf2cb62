"""A right program in CUDA as a file with `ModelNew`: host code around the kernels, built when the file is loaded.

Python checks, finds sizes and allocates outputs; C++ (`calling`, `launching`) allocates workspaces and launches.
torch's inline extension builds it with nvcc.
"""

from __future__ import annotations

from opsmith.records import content_hash
from opsmith.targets.cuda.host_code import calling, launching
from opsmith.targets.cuda.host_code.torch_extension import bind_source
from opsmith.targets.literals import write_literal
from opsmith.targets.native.task import read_task_problem
from opsmith.targets.native.torch_host import make_title
from opsmith.targets.native.torch_module.frame import make_frame, write_constants, write_head
from opsmith.targets.native.torch_module.host import HostPlace, write_checks, write_forward
from opsmith.targets.programs import Solved, TorchModule

GPU = HostPlace("cuda", "a GPU", False)

_NOTES = (
    "The kernels run on a GPU of NVIDIA, for the types and shapes that are checked, in this process: nothing confines",
    "them. torch's inline extension builds them with nvcc when this file is loaded.",
)
_IMPORTS = """
import torch
from torch import nn
""".strip("\n")
_BUILD = '''
def _opsmith_build():
    """The kernels with their host code as a module. Raises RuntimeError where they cannot be built or run."""
    from torch.utils import cpp_extension

    if not torch.cuda.is_available():
        raise RuntimeError("the kernels are in CUDA: given no GPU that torch can use; expected one of NVIDIA")
    if cpp_extension.CUDA_HOME is None:
        raise RuntimeError("no nvcc: expected NVIDIA's CUDA toolkit; try: set CUDA_HOME to where it is installed")
    return cpp_extension.load_inline(
        name=OPSMITH_NAME,
        cpp_sources=OPSMITH_HOST,
        cuda_sources=OPSMITH_KERNELS,
        with_cuda=True,
        no_implicit_headers=True,
    )


OPSMITH_EXTENSION = _opsmith_build()


def _opsmith_call(*arguments):
    OPSMITH_EXTENSION.call_kernels(*arguments)
'''.strip("\n")


def write_torch_module(solved: Solved) -> TorchModule:
    """The file with `ModelNew` and the one with `Model`. Raises UsageError for what has no such form."""
    problem = read_task_problem(solved.task.text)
    frame = make_frame(problem, solved.task.id)
    host = (_IMPORTS, _write_constants(solved), f"\n{_BUILD}\n\n", f"{write_checks(GPU)}\n\n")
    text = frame.write_file(write_head(solved, problem, "CUDA", _NOTES), host, write_forward(problem, GPU))
    return TorchModule(frame.name, text, frame.reference, GPU.device, "nvcc")


def _write_constants(solved: Solved) -> str:
    plan, title = bind_source(solved.source, read_task_problem(solved.task.text)), make_title(solved.task.id)
    host = calling.write_main_file(plan, title, "") + calling.write_binding(calling.CALL, title)
    kernels = launching.write_kernel_file(solved.source, plan, title)
    name = f"opsmith_{content_hash(host, kernels)[:16]}"  # torch keeps builds by their name
    constants = {"NAME": repr(name), "HOST": write_literal(host, 0), "KERNELS": write_literal(kernels, 0)}
    return write_constants(constants)
