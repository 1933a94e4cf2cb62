"""A right program in C as one C++ file: a function `run` for torch that is given its outputs, around the kernel.

The C stays C: C++ has no `restrict`, and none before gcc 13 has `_Float16`. So the file holds the kernel as text and
has gcc compile it when `run` is called first, with the flags of its verdict; torch's extension builder compiles the
host code alone. The arguments are those of the problem's source (all inputs, then all scalars, where it has none), then
the outputs, which are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opsmith.errors import UsageError
from opsmith.problems.dims import Dim
from opsmith.problems.problem import ArrayType, Problem
from opsmith.targets.c.library.package import find_judged_isa
from opsmith.targets.native.flags import BuildFlags
from opsmith.targets.native.signature import FUNCTION, list_dims, make_signature
from opsmith.targets.native.task import read_native_task
from opsmith.targets.programs import Solved

_TYPES = {
    "fp32": "at::kFloat",
    "fp64": "at::kDouble",
    "fp16": "at::kHalf",
    "bf16": "at::kBFloat16",
    "int8": "at::kChar",
    "int32": "at::kInt",
    "int64": "at::kLong",
    "bool": "at::kBool",
}
_HOST = """
// TITLE: host code for torch around a kernel in C. Made by `opsmith export --flashinfer`.
//
// gcc (or what CC names) compiles the kernel when `run` is called first, with the flags of its verdict. It runs on the
// CPU, for the types and shapes that are checked, in this process: nothing confines it.

#include <ATen/core/Tensor.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

const std::string header =
HEADER;
const std::string kernel_source =
KERNEL;
const std::vector<std::string> compile_flags = {COMPILE};
const std::vector<std::string> link_flags = {LINK};
constexpr int threads = THREADS;
using Kernel = void (*)(PARAMETERS);

void write_file(const std::string &path, const std::string &text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

void run_command(std::vector<std::string> words) {
  std::vector<char *> arguments;
  for (auto &word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("the kernel does not compile: " + words[0] + " failed; expected gcc");
}

void *load_library() {
CHECK_CPU  const char *temporary = std::getenv("TMPDIR");
  std::string folder = std::string(temporary ? temporary : "/tmp") + "/opsmith-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error(folder + ": cannot be made");
  const char *chosen = std::getenv("CC");
  const std::string compiler = chosen ? chosen : "gcc";
  const std::string source = folder + "/kernel.c", prelude = folder + "/kernel.h";
  const std::string object = folder + "/kernel.o", library = folder + "/kernel.so";
  write_file(prelude, header);
  write_file(source, kernel_source);
  std::vector<std::string> compile = {compiler}, link = {compiler, object, "-o", library};
  compile.insert(compile.end(), compile_flags.begin(), compile_flags.end());
  for (const auto &word : {std::string("-fPIC"), std::string("-include"), prelude, std::string("-c"), source,
                           std::string("-o"), object})
    compile.push_back(word);
  link.insert(link.end(), link_flags.begin(), link_flags.end());
  run_command(compile);
  run_command(link);
  void *loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  for (const auto &path : {prelude, source, object, library}) unlink(path.c_str());
  rmdir(folder.c_str());
  if (loaded == nullptr) throw std::runtime_error(std::string("the kernel cannot be loaded: ") + dlerror());
  return loaded;
}

void call_kernel(const std::function<void(Kernel)> &call) {
  static void *const library = load_library();
  static const auto kernel = reinterpret_cast<Kernel>(dlsym(library, "FUNCTION"));
  if (threads == 1) return call(kernel);
  const auto count = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_max_threads"));
  const auto set = reinterpret_cast<void (*)(int)>(dlsym(library, "omp_set_num_threads"));
  const int before = count();
  set(threads);  // of this thread alone, as many as it was judged with
  call(kernel);
  set(before);
}

int64_t read_size(const char *name, const at::Tensor &tensor, int64_t axes, int64_t axis) {
  const std::string where = name;
  if (tensor.dim() != axes) throw std::invalid_argument(where + ": expected " + std::to_string(axes) + " axes");
  return tensor.size(axis);
}

void check_tensor(const char *name, const at::Tensor &tensor, at::ScalarType type, at::IntArrayRef shape) {
  const std::string where = name;
  if (!tensor.device().is_cpu()) throw std::invalid_argument(where + ": expected a tensor on the CPU");
  if (tensor.scalar_type() != type) throw std::invalid_argument(where + ": expected " + at::toString(type));
  if (tensor.sizes() != shape || tensor.numel() == 0) throw std::invalid_argument(where + ": not the expected shape");
}

// As the kernel was judged: contiguous, from an address that 64 bytes divide.
at::Tensor align_tensor(const at::Tensor &tensor) {
  const at::Tensor whole = tensor.contiguous();
  return reinterpret_cast<uintptr_t>(whole.data_ptr()) % 64 ? whole.clone() : whole;
}

}  // namespace

void run(DECLARATIONS) {
BODY
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("run", &run, "TITLE"); }
""".lstrip("\n")


def write_torch_extension(solved: Solved) -> str:
    """The file. Raises UsageError for a problem whose sizes no shape states."""
    problem, options = read_native_task(solved.task.text)
    flags = BuildFlags(find_judged_isa(solved.build), options.flags, options.threads > 1)
    names = _choose_names(problem)
    words: Mapping[str, str] = {
        "HEADER": _write_literal(make_signature(problem).header),
        "KERNEL": _write_literal(solved.source),
        "COMPILE": ", ".join(map(_write_word, flags.compile_flags)),
        "LINK": ", ".join(map(_write_word, flags.link_flags)),
        "THREADS": str(options.threads),
        "PARAMETERS": ", ".join(_list_parameters(problem)),
        "CHECK_CPU": _write_cpu_check(flags.isa.name),
        "FUNCTION": FUNCTION,
        "DECLARATIONS": ", ".join(_list_declarations(problem, names)),
        "BODY": "\n".join(f"  {line}" for line in _list_statements(problem, names)),
        "TITLE": "".join(letter if letter.isalnum() or letter in "_-." else "_" for letter in solved.task.id),
    }
    text = _HOST
    for name in ("TITLE", "COMPILE", "LINK", "THREADS", "PARAMETERS", "CHECK_CPU", "FUNCTION", "DECLARATIONS", "BODY"):
        text = text.replace(name, words[name])
    head, _, tail = text.partition("HEADER;\n")  # texts of others come last: nothing is replaced in them
    middle, _, tail = tail.partition("KERNEL;\n")
    return f"{head}{words['HEADER']};\n{middle}{words['KERNEL']};\n{tail}"


def _write_literal(text: str) -> str:
    """A text as literals of C++, one a line."""
    lines = text.encode("utf-8", "replace").splitlines(keepends=True) or [b""]
    return "\n".join(f'    "{"".join(map(_escape_byte, line))}"' for line in lines)


def _escape_byte(byte: int) -> str:
    special = {10: "\\n", 34: '\\"', 92: "\\\\"}
    return special.get(byte) or (chr(byte) if 32 <= byte < 127 and byte != 63 else f"\\{byte:03o}")


def _write_word(word: str) -> str:
    return _write_literal(word).strip()


def _write_cpu_check(isa: str) -> str:
    """Only x86 has a name for its levels that a compiler can be asked for."""
    if not isa.startswith("x86-64"):
        return ""
    message = f"the kernel was judged with -march={isa}, which this processor lacks"
    return f'  if (!__builtin_cpu_supports("{isa}")) throw std::runtime_error("{message}");\n'


def _choose_names(problem: Problem) -> dict[str, str]:
    """Names of C++ for tensors, scalars and sizes: they begin with what they are, so that none is a keyword."""
    tensors = [*(tensor.name for tensor in problem.tensors), *(output.name for output in problem.outputs)]
    names = {name: f"tensor_{_write_ascii(name)}" for name in tensors}
    names |= {name: f"size_{_write_ascii(name)}" for name in list_dims(problem)}
    return names | {name: f"number_{_write_ascii(name)}" for name in problem.scalars}


def _write_ascii(name: str) -> str:
    return "".join(letter if letter.isascii() else f"_u{ord(letter):x}_" for letter in name)


def _list_arguments(problem: Problem) -> Sequence[str]:
    """Before the outputs."""
    if problem.source is not None and problem.source.format == "flashinfer" and problem.source.arguments:
        return problem.source.arguments
    return [*(tensor.name for tensor in problem.tensors), *problem.scalars]


def _list_declarations(problem: Problem, names: Mapping[str, str]) -> Iterator[str]:
    tensors = {tensor.name for tensor in problem.tensors}
    for name in _list_arguments(problem):
        kind = "const at::Tensor &" if name in tensors else f"{_name_kind(problem.scalars[name])} "
        yield f"{kind}{names[name]}"
    for output in problem.outputs:
        yield f"const at::Tensor &{names[output.name]}"


def _name_kind(value: float) -> str:
    return "int64_t" if isinstance(value, int) else "double"


def _list_parameters(problem: Problem) -> Iterator[str]:
    yield from ("const void *" for _ in problem.tensors)
    yield from ("void *" for _ in problem.outputs)
    yield from ("int64_t" for _ in list_dims(problem))
    yield from (_name_kind(value) for value in problem.scalars.values())


def _list_statements(problem: Problem, names: Mapping[str, str]) -> Iterator[str]:
    types = _list_types(problem)
    for name in list_dims(problem):
        yield f"const int64_t {names[name]} = {_find_size(name, types, names)};"
    for name, type_ in types.items():
        shape = ", ".join(_write_length(dim, names) for dim in type_.shape)
        yield f'check_tensor("{name}", {names[name]}, {_TYPES[type_.dtype]}, {{{shape}}});'
    for name in types:
        yield f"const at::Tensor aligned_{names[name]} = align_tensor({names[name]});"
    pointers = [f"aligned_{names[name]}.data_ptr()" for name in types]
    numbers = [names[name] for name in (*list_dims(problem), *problem.scalars)]
    yield f"call_kernel([&](Kernel kernel) {{ kernel({', '.join([*pointers, *numbers])}); }});"
    for output in problem.outputs:
        own = names[output.name]
        yield f"if (!aligned_{own}.is_same({own})) {own}.copy_(aligned_{own});"


def _list_types(problem: Problem) -> dict[str, ArrayType]:
    """Of inputs, then outputs."""
    return {tensor.name: tensor.type for tensor in problem.tensors} | {
        output.name: output.types[0] for output in problem.outputs
    }


def _find_size(name: str, types: Mapping[str, ArrayType], names: Mapping[str, str]) -> str:
    """The first axis that is this size. Raises UsageError."""
    for tensor, type_ in types.items():
        for axis, dim in enumerate(type_.shape):
            if str(dim) == name:
                return f'read_size("{tensor}", {names[tensor]}, {len(type_.shape)}, {axis})'
    raise UsageError(f"size {name}: no axis of an input or output is {name} alone; expected one, for host code to ask")


def _write_length(dim: Dim, names: Mapping[str, str]) -> str:
    top = [str(dim.coefficient.numerator), *(names[name] for name, power in dim.powers for _ in range(power))]
    bottom = [str(dim.coefficient.denominator), *(names[name] for name, power in dim.powers for _ in range(-power))]
    top_text, bottom_text = (" * ".join(word for word in words if word != "1") or "1" for words in (top, bottom))
    return f"int64_t({top_text})" if bottom_text == "1" else f"({top_text}) / ({bottom_text})"
