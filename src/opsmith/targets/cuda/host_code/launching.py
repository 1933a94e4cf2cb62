"""`kernel.cu`: a program's text, and a function of C++ that launches its kernels as its plan says. Without torch.

    void opsmith_launch(const void *input_x, void *output_y, void *space_tmp, int64_t number_N, ..., cudaStream_t);
    std::vector<int64_t> opsmith_shape_tmp(int64_t number_N, ...);    // of each workspace

Arguments are converted to the types that the kernels declare; what a device or a launch cannot take throws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opsmith.targets.cuda.host_code.expressions import FUNCTIONS, write_expression
from opsmith.targets.gpu.plan import INPUT, NUMBER, OUTPUT, WHOLE, WORKSPACE, BoundArgument, BoundLaunch, BoundPlan
from opsmith.targets.gpu.resolving import LIMITS
from opsmith.targets.native.torch_host import fill_words

FILE = "kernel.cu"
_PREFIXES = {INPUT: "input_", OUTPUT: "output_", WORKSPACE: "space_", NUMBER: "number_"}
_TYPES = {INPUT: "const void *", OUTPUT: "void *", WORKSPACE: "void *"}
_HEAD = """
// TITLE: kernels in CUDA, and host code that launches them as their plan says. Made by `opsmith export`.
#undef __CUDA_NO_HALF_OPERATORS__  // which torch's builder defines, and which kernels were not judged with
#undef __CUDA_NO_HALF_CONVERSIONS__
#undef __CUDA_NO_HALF2_OPERATORS__
#undef __CUDA_NO_BFLOAT16_CONVERSIONS__
#include <cuda_runtime.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>
""".lstrip("\n")
_LAUNCH = """
namespace opsmith {

inline void require_success(const char *kernel, cudaError_t code) {
  if (code == cudaSuccess) return;
  throw std::runtime_error(std::string("launch ") + kernel + ": " + cudaGetErrorString(code));
}

inline unsigned check_size(const char *what, int64_t size, int64_t most) {
  if (size >= 1 && size <= most) return static_cast<unsigned>(size);
  const std::string range = "; expected 1 to " + std::to_string(most);
  throw std::invalid_argument(std::string(what) + ": given " + std::to_string(size) + range);
}

inline int64_t check_axis(int64_t size) {
  if (size >= 1) return size;
  throw std::invalid_argument("workspace: given an axis of " + std::to_string(size) + " entries; expected 1 or more");
}

inline dim3 check_grid(const char *what, int64_t x, int64_t y, int64_t z) {
  return {check_size(what, x, GRID_X), check_size(what, y, GRID_Y), check_size(what, z, GRID_Z)};
}

inline dim3 check_block(const char *what, int64_t x, int64_t y, int64_t z) {
  const dim3 block{check_size(what, x, BLOCK_X), check_size(what, y, BLOCK_Y), check_size(what, z, BLOCK_Z)};
  check_size(what, x * y * z, THREADS);
  return block;
}

inline size_t check_shared(const char *what, int64_t bytes) {
  if (bytes >= 0 && bytes <= SHARED) return static_cast<size_t>(bytes);
  const std::string range = "; expected 0 to SHARED bytes";
  throw std::invalid_argument(std::string(what) + ": given " + std::to_string(bytes) + range);
}

// `values` become what the kernel declares: pointers to its types, numbers of its types.
template <class... P, class... V>
void call(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
          V... values) {
  static_assert(sizeof...(P) == sizeof...(V), "as many arguments in the plan as the kernel has");
  const void *const function = reinterpret_cast<const void *>(kernel);
  if (shared > (48u << 10))
    require_success(name, cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               static_cast<int>(shared)));
  std::tuple<std::remove_cv_t<P>...> converted{static_cast<std::remove_cv_t<P>>(values)...};
  std::array<void *, sizeof...(P) + 1> addresses = std::apply(
      [](auto &...each) { return std::array<void *, sizeof...(P) + 1>{const_cast<void *>(
          static_cast<const void *>(&each))..., nullptr}; }, converted);
  require_success(name, cudaLaunchKernel(function, grid, block, addresses.data(), shared, stream));
  require_success(name, cudaGetLastError());
}

}  // namespace opsmith
""".strip("\n")


def write_kernel_file(source: str, plan: BoundPlan, title: str) -> str:
    """The whole file."""
    sections = [_HEAD.replace("TITLE", title), source.rstrip("\n") + "\n", write_host(plan)]
    return "\n".join(sections)


def write_host(plan: BoundPlan) -> str:
    """What follows the kernels."""
    limits = {
        **{f"GRID_{axis}": limit for axis, limit in zip("XYZ", LIMITS.grid, strict=True)},
        **{f"BLOCK_{axis}": limit for axis, limit in zip("XYZ", LIMITS.block, strict=True)},
        "THREADS": LIMITS.threads,
        "SHARED": LIMITS.shared,
    }
    text = fill_words(_LAUNCH, limits)
    shapes = [
        f"{declare_shape(plan, space.name)} {{\n{_write_shape(plan, space.shape)}}}\n" for space in plan.workspaces
    ]
    body = "".join(_write_launch(plan, launch) for launch in plan.launches)
    return "\n\n".join([FUNCTIONS, text, *shapes, f"{declare_launch(plan)} {{\n{body}}}\n"])


def list_arguments(plan: BoundPlan) -> Iterator[BoundArgument]:
    """All that `opsmith_launch` is given, in its order: inputs, outputs, workspaces, numbers."""
    named = {(argument.kind, argument.place): argument for launch in plan.launches for argument in launch.arguments}
    for kind, types in ((INPUT, plan.inputs), (OUTPUT, plan.outputs)):
        for place, type_ in enumerate(types):
            yield named.get((kind, place), BoundArgument(str(place), kind, place, type_))
    for place, space in enumerate(plan.workspaces):
        yield BoundArgument(space.name, WORKSPACE, place, space.dtype)
    for place, (name, type_) in enumerate(plan.numbers):
        yield BoundArgument(name, NUMBER, place, type_)


def name_variable(argument: BoundArgument) -> str:
    """What it is called in C++."""
    return f"{_PREFIXES[argument.kind]}{argument.name}"


def declare_launch(plan: BoundPlan) -> str:
    """`opsmith_launch` without its body."""
    return f"void opsmith_launch({', '.join([*_declare(list_arguments(plan)), 'cudaStream_t stream'])})"


def declare_shape(plan: BoundPlan, workspace: str) -> str:
    """The function that says a workspace's shape, without its body."""
    numbers = [argument for argument in list_arguments(plan) if argument.kind == NUMBER]
    return f"std::vector<int64_t> opsmith_shape_{workspace}({', '.join(_declare(numbers))})"


def _declare(arguments: Iterable[BoundArgument]) -> Iterator[str]:
    for argument in arguments:
        kind = _TYPES.get(argument.kind) or ("int64_t " if argument.type == WHOLE else "double ")
        yield f"{kind}{name_variable(argument)}"


def _write_shape(plan: BoundPlan, shape: Iterable[str]) -> str:
    return f"  return {{{', '.join(f'opsmith::check_axis({_write(plan, text)})' for text in shape)}}};\n"


def _write_launch(plan: BoundPlan, launch: BoundLaunch) -> str:
    where = f'"line {launch.line}: launch {launch.kernel}, '
    grid, block = (", ".join(_write(plan, text) for text in texts) for texts in (launch.grid, launch.block))
    values = "".join(f", {name_variable(argument)}" for argument in launch.arguments)
    rows = [
        f'const dim3 grid = opsmith::check_grid({where}grid", {grid});',
        f'const dim3 block = opsmith::check_block({where}block", {block});',
        f'const size_t shared = opsmith::check_shared({where}shared", {_write(plan, launch.shared)});',
        f'opsmith::call("{launch.kernel}", {launch.kernel}, grid, block, shared, stream{values});',
    ]
    return "".join(["  {\n", *(f"    {row}\n" for row in rows), "  }\n"])


def _write(plan: BoundPlan, text: str) -> str:
    return write_expression(text, {name: f"{_PREFIXES[NUMBER]}{name}" for name, _ in plan.numbers})
