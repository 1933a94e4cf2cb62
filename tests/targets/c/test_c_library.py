"""A library of C programs: what does not fit is refused, sizes follow from shapes, and no text of others becomes code."""

import ast
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from problems.examples import RMS_NORM, TOP_TWO, read_example

from opsmith.problems.dims import parse_dim
from opsmith.problems.files.reading import read_problem
from opsmith.problems.problem import ArrayType, CaseSpec, InputTensor, OutputTensors, Problem
from opsmith.suites import load_tasks
from opsmith.targets.c.library.package import CProgram, write_package, write_programs
from opsmith.targets.native.flags import BuildFlags, Isa
from opsmith.targets.native.library.module import OperatorEntry, write_record
from opsmith.targets.native.library.operator import NativeOperator
from opsmith.targets.native.library.proof import list_trial_names
from opsmith.targets.native.library.schema import write_schema
from opsmith.targets.native.library.shared_object import SharedObject
from opsmith.targets.native.library.sizes import plan_sizes
from opsmith.targets.native.task import read_native_task
from opsmith.targets.operator_error import OperatorError
from opsmith.targets.programs import Solved
from opsmith.targets.vendoring import imports_of

GEMM = """
problem: gemm
dims: {M: 4, K: 6, R: 2, T: 9}
inputs:
  - {name: a, dtype: fp32, shape: [M, 2*K], data: normal}
  - {name: b, dtype: bf16, shape: [R*K], data: normal}
  - {name: c, dtype: int8, shape: [], data: "randint(-5, 5)"}
scalars: {alpha: 0.5, count: 3}
accumulation: fp32
outputs: [{name: y, dtype: fp32, shape: [M, T]}, {name: z, dtype: bool, shape: []}]
reference: |
  def gemm(a, b, c, alpha, count):
      return a.sum() + torch.zeros(a.shape[0], 9), c > 0
"""
EVIL = '''
problem: evil
dims: {int: 2, kernel: 3, D: 4}
inputs:
  - {name: Tensor, dtype: fp32, shape: [int, kernel], data: normal}
  - {name: self, dtype: fp32, shape: [int, D/2], data: normal}
  - {name: OPERATOR, dtype: fp32, shape: [], data: normal}
scalars: {float: 1.5}
outputs: [{name: out, dtype: fp32, shape: [int]}]
reference: |
  # */ #include "/etc/passwd" """ \\
  # \\
  def evil(Tensor, self, OPERATOR, float):
      return Tensor.sum(-1) + float * self.sum(-1) + OPERATOR
'''
SOURCE = "#include <stdint.h>\nvoid kernel() {}\n"


def read_text(text: str) -> Problem:
    return read_problem(text).problem


def make_program(name: str, problem: Problem, task_id: str = "", source: str = SOURCE) -> CProgram:
    entry = OperatorEntry(name, task_id or name, problem, {"model": "some-model"})
    return CProgram(entry, source, BuildFlags(Isa("x86-64-v3")))


@pytest.fixture(scope="module")
def gemm() -> NativeOperator:
    return NativeOperator(SharedObject("opsmith_library_tests", Path("absent.so")), "gemm", read_text(GEMM))


def draw_inputs(device: str = "meta") -> list[torch.Tensor]:
    dtypes = {(4, 12): torch.float32, (12,): torch.bfloat16, (): torch.int8}
    return [torch.zeros(shape, dtype=dtype, device=device) for shape, dtype in dtypes.items()]


def test_shapes_give_sizes_and_types_of_all_outputs(gemm: NativeOperator) -> None:
    y, z = gemm(draw_inputs(), (0.5, 3, 7))
    assert (y.shape, y.dtype, z.shape, z.dtype) == ((4, 7), torch.float32, (), torch.bool)
    assert gemm.plan.free == ["T"]


@pytest.mark.parametrize(
    ("number", "tensor", "words"),
    [
        (0, torch.zeros(4, 12, dtype=torch.float64), "a: given torch.float64; expected torch.float32"),
        (0, torch.zeros(12), "a: given shape (12,); expected 2 axes, (M, 2*K), each at least 1"),
        (0, torch.zeros(0, 12), "a: given shape (0, 12); expected 2 axes, (M, 2*K), each at least 1"),
        (0, torch.zeros(4, 13), "a: given 13 entries of axis 1; expected 2*K of them, with a whole number K"),
        (1, torch.zeros(13, dtype=torch.bfloat16), "b: given 13 entries of axis 0; expected K*R of them"),
        (2, torch.zeros(1, dtype=torch.int8), "c: given shape (1,); expected 0 axes, (), each at least 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(
    gemm: NativeOperator, number: int, tensor: torch.Tensor, words: str
) -> None:
    inputs = draw_inputs()
    inputs[number] = tensor.to("meta")
    with pytest.raises(OperatorError, match=re.escape(f"gemm: {words}")):
        gemm(inputs, (0.5, 3, 7))


def test_two_shapes_that_disagree_are_refused_with_where_the_size_came_from() -> None:
    problem = read_example(RMS_NORM)
    norm = NativeOperator(SharedObject("opsmith_library_tests", Path("absent.so")), "norm", problem)
    inputs = [torch.zeros(3, 5, dtype=torch.bfloat16), torch.zeros(4, dtype=torch.bfloat16)]
    words = "norm: weight: given shape (4,); expected (N,) = (5,), with N = 5 (axis 1 of x)"
    with pytest.raises(OperatorError, match=re.escape(words)):
        norm([tensor.to("meta") for tensor in inputs], (1e-5,))


def test_sizes_at_which_an_output_has_no_whole_axis_are_refused() -> None:
    text = (
        RMS_NORM.replace("y, dtype: bf16, shape: [M, N]", "y, dtype: bf16, shape: [M, N/2]")
        .replace("N: 129", "N: 128")
        .replace("N: 511", "N: 512")
    )
    halved = NativeOperator(SharedObject("opsmith_library_tests", Path("absent.so")), "halved", read_text(text))
    inputs = [torch.zeros(shape, dtype=torch.bfloat16, device="meta") for shape in ((3, 5), (5,))]
    with pytest.raises(OperatorError, match="halved: given sizes at which N/2 is not an integer: N = 5; expected"):
        halved(inputs, (1e-5,))


def test_a_size_that_code_may_rely_on_is_the_only_one() -> None:
    (task,) = load_tasks(["expert_0"], "c")
    library = SharedObject("opsmith_library_tests", Path("absent.so"))
    expert = NativeOperator(library, "expert", read_native_task(task.text)[0])
    inputs = [torch.zeros(shape, device="meta") for shape in ((3, 4, 8), (3, 4, 5), (8, 8), (8,))]
    with pytest.raises(OperatorError, match="expert: E: given 5; expected 2, the only size that it was judged at"):
        expert(inputs, ())


def test_a_library_that_was_not_built_says_what_to_do(gemm: NativeOperator) -> None:
    with pytest.raises(OperatorError, match=re.escape("absent.so is not there") + ".*try: pip install"):
        gemm(draw_inputs("cpu"), (0.5, 3, 7))
    with pytest.raises(OperatorError, match="T: given 0; expected a size of at least 1"):
        gemm(draw_inputs(), (0.5, 3, 0))


def test_sizes_follow_from_shapes_or_are_arguments() -> None:
    problem = read_text(GEMM.replace("shape: [R*K]", "shape: [R*K/4, R*R]"))
    plan = plan_sizes(problem)
    lengths = {tensor.name: tensor.type.shape_at({"M": 3, "K": 8, "R": 5, "T": 2}) for tensor in problem.tensors}
    sizes = {"T": 2}
    for rule in plan.rules:
        size = rule.solve(lengths[rule.tensor][rule.axis], sizes)
        assert size is not None
        sizes[rule.symbol] = size
    assert (sizes, plan.free) == ({"M": 3, "K": 8, "R": 5, "T": 2}, ["T"])
    assert plan_sizes(read_text(GEMM.replace("[M, 2*K]", "[M*K, M]").replace("[R*K]", "[R]"))).free == ["T"]
    assert plan_sizes(read_text(GEMM.replace("[M, 2*K]", "[M*K]").replace("[R*K]", "[R]"))).free == ["K", "T"]


def test_schemas_have_defaults_and_names_that_torch_takes() -> None:
    problem = read_text(EVIL)
    schema = write_schema(problem, plan_sizes(problem))
    assert schema == "(Tensor Tensor_, Tensor self_, Tensor OPERATOR, float float_=1.5) -> Tensor"
    torch._C.parse_schema(f"evil{schema}")


def test_a_problem_stays_itself_as_an_expression() -> None:
    names = {record.__name__: record for record in (ArrayType, CaseSpec, InputTensor, OutputTensors, Problem)}
    problems = [read_native_task(task.text)[0] for task in load_tasks(["kernels", "step26"], "c")]
    for problem in (read_text(GEMM), read_text(EVIL), *problems):
        text = write_record(problem, 0)
        assert eval(text, {**names, "parse_dim": parse_dim}) == problem


def import_package(folder: Path, name: str, files: dict[str, str]):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    sys.path.insert(0, str(folder))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(folder))


def test_names_and_texts_of_others_are_never_code(tmp_path: Path) -> None:
    task_id = 'x"""\nimport os\nos.abort()\n*/ \u202e\\'
    name = "evil_library_of_the_tests"
    files = write_programs(name, [make_program("evil", read_text(EVIL), task_id)])
    package = import_package(tmp_path, name, files)
    inputs = [torch.zeros(shape, device="meta") for shape in ((2, 3), (2, 2), ())]
    assert package.evil(*inputs, float=2.5).shape == (2,)
    assert "passwd" in package.evil.__doc__
    header = files[f"{name}/include/{name}.h"]
    outside = re.sub(r"^//.*$", "", header, flags=re.MULTILINE)
    assert "passwd" not in outside
    assert "os.abort" not in outside
    assert "\u202e" not in header
    assert "int64_t int_" in header
    assert files[f"{name}/csrc/evil.c"] == SOURCE
    assert not any(line.rstrip().endswith("\\") for line in header.split("\n"))


def test_a_package_needs_torch_alone_and_is_the_same_each_time() -> None:
    tasks = load_tasks(["kernels", "index_0"], "c")
    operators = [Solved(task.id, task, SOURCE, {}, "gcc 12.2 -march=x86-64-v3 -O3") for task in tasks]
    files = write_package("lib", operators)
    assert files == write_package("lib", operators)
    texts = {path: text for path, text in files.items() if path.startswith("lib/") and path.endswith(".py")}
    for path, text in texts.items():
        ast.parse(text)
        tops = {name.partition(".")[0] for name in imports_of(text)}
        assert tops <= {"lib", "torch", *sys.stdlib_module_names}, path
    assert '"-march=x86-64-v3"' in files["setup.py"]
    assert {path.rpartition(".")[2] for path in files if "/csrc/" in path} == {"c", "h"}


def test_trials_are_those_of_the_verdict() -> None:
    operator = NativeOperator(SharedObject("opsmith_library_tests", Path("absent.so")), "top", read_example(TOP_TWO))
    assert list_trial_names(operator) == ["base declared precision"]
