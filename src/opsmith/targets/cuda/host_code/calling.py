"""`main.cpp`: what torch calls. It checks devices, allocates workspaces and launches on torch's current stream."""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.problems.dtypes import TYPES
from opsmith.targets.cuda.host_code.launching import (
    declare_launch,
    declare_shape,
    list_arguments,
    name_variable,
)
from opsmith.targets.gpu.plan import INPUT, NUMBER, OUTPUT, WHOLE, WORKSPACE, BoundPlan
from opsmith.targets.native.torch_host import fill_words

FILE = "main.cpp"
CALL = "call_kernels"
_HEAD = """
// TITLE: host code for torch around kernels in CUDA. Made by `opsmith export`.
//
// The kernels run on a GPU of NVIDIA, for the types and shapes that are checked, on torch's current stream.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>

#include <stdexcept>
#include <string>
#include <vector>

LAUNCH;
SHAPES
namespace {

void check_device(const at::Tensor &tensor, const at::Tensor &other) {
  if (tensor.device() != other.device()) throw std::invalid_argument("given tensors on several devices");
}

void CALL(DECLARATIONS) {
BODY
}

EXTRA}  // namespace
""".lstrip("\n")


def write_main_file(plan: BoundPlan, title: str, extra: str) -> str:
    """The file but for its last lines, which say what Python may call. `extra`: functions of C++."""
    shapes = "".join(f"{declare_shape(plan, space.name)};\n" for space in plan.workspaces)
    words = {
        "TITLE": title,
        "LAUNCH": declare_launch(plan),
        "SHAPES\n": f"{shapes}\n",
        "CALL": CALL,
        "DECLARATIONS": ", ".join(_declare_arguments(plan)),
        "BODY": "\n".join(f"  {line}" for line in _list_statements(plan)),
        "EXTRA": f"{extra}\n" if extra else "",
    }
    return fill_words(_HEAD, words)


def write_binding(function: str, title: str) -> str:
    """The last lines."""
    return f'\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {{ module.def("{function}", &{function}, "{title}"); }}\n'


def _declare_arguments(plan: BoundPlan) -> Iterator[str]:
    for argument in list_arguments(plan):
        if argument.kind == WORKSPACE:
            continue
        number = "int64_t " if argument.type == WHOLE else "double "
        yield f"{number if argument.kind == NUMBER else 'const at::Tensor &'}{name_variable(argument)}"


def _list_statements(plan: BoundPlan) -> Iterator[str]:
    arguments = list(list_arguments(plan))
    tensors = [name_variable(argument) for argument in arguments if argument.kind in (INPUT, OUTPUT)]
    numbers = [name_variable(argument) for argument in arguments if argument.kind == NUMBER]
    first = tensors[-1]  # an output: every problem has one
    for name in tensors[:-1]:
        yield f"check_device({name}, {first});"
    yield f"const c10::cuda::CUDAGuard guard({first}.device());"
    for space in plan.workspaces:
        shape = f"opsmith_shape_{space.name}({', '.join(numbers)})"
        options = f"{first}.options().dtype(at::k{TYPES[space.dtype].aten})"
        yield f"const at::Tensor space_{space.name} = at::empty({shape}, {options});"
    pointers = [f"{name_variable(argument)}.data_ptr()" for argument in arguments if argument.kind != NUMBER]
    yield f"opsmith_launch({', '.join([*pointers, *numbers])}, c10::cuda::getCurrentCUDAStream().stream());"
