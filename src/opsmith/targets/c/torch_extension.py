"""A right program in C as one C++ file: a function `run` for torch that is given its outputs, around the kernel.

The C stays C: C++ has no `restrict`, and none before gcc 13 has `_Float16`. So the file holds the kernel as text and
has gcc compile it when `run` is called first, with the flags of its verdict; torch's extension builder compiles the
host code alone. The arguments are those of the problem's source (all inputs, then all scalars, where it has none), then
the outputs, which are written.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.problems.problem import Problem
from opsmith.targets.c.library.package import find_judged_isa
from opsmith.targets.native.signature import FUNCTION, list_dims, make_signature
from opsmith.targets.native.task import read_native_task
from opsmith.targets.native.torch_host import fill_words, make_title, name_kind, write_literal, write_run
from opsmith.targets.programs import Solved, TorchExtension

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

CHECKS

}  // namespace

void run(DECLARATIONS) {
BODY
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("run", &run, "TITLE"); }
""".lstrip("\n")


def write_torch_extension(solved: Solved) -> TorchExtension:
    """Raises UsageError for a problem whose sizes no shape states."""
    description = "A kernel in C with host code for torch, for the CPU."
    return TorchExtension("cpp", {"main.cpp": _write_file(solved)}, ("torch", "gcc"), "cpu", description)


def _write_file(solved: Solved) -> str:
    problem, options = read_native_task(solved.task.text)
    flags = options.choose_flags(find_judged_isa(solved.build))
    run = write_run(
        problem, "cpu", "the CPU", "{}.data_ptr()", "call_kernel([&](Kernel kernel) { kernel(ARGUMENTS); });"
    )
    words = {
        "TITLE": make_title(solved.task.id),
        "COMPILE": ", ".join(write_literal(word).strip() for word in flags.compile_flags),
        "LINK": ", ".join(write_literal(word).strip() for word in flags.link_flags),
        "THREADS": str(options.threads),
        "PARAMETERS": ", ".join(_list_parameters(problem)),
        "CHECK_CPU": _write_cpu_check(flags.isa.name),
        "FUNCTION": FUNCTION,
        "DECLARATIONS": run["DECLARATIONS"],
        "BODY": run["BODY"],
        "CHECKS": run["CHECKS"],
    }
    text = fill_words(_HOST, words)
    head, _, tail = text.partition("HEADER;\n")  # texts of others come last: nothing is replaced in them
    middle, _, tail = tail.partition("KERNEL;\n")
    header, kernel = write_literal(make_signature(problem).header), write_literal(solved.source)
    return f"{head}{header};\n{middle}{kernel};\n{tail}"


def _write_cpu_check(isa: str) -> str:
    """Only x86 has a name for its levels that a compiler can be asked for."""
    if not isa.startswith("x86-64"):
        return ""
    message = f"the kernel was judged with -march={isa}, which this processor lacks"
    return f'  if (!__builtin_cpu_supports("{isa}")) throw std::runtime_error("{message}");\n'


def _list_parameters(problem: Problem) -> Iterator[str]:
    yield from ("const void *" for _ in problem.tensors)
    yield from ("void *" for _ in problem.outputs)
    yield from ("int64_t" for _ in list_dims(problem))
    yield from (name_kind(value) for value in problem.scalars.values())
