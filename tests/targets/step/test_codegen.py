"""Generated scripts: what stands in them, that right programs pass and wrong ones fail, and what is refused."""

from __future__ import annotations

import ast
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from opsmith.errors import TaskError
from opsmith.problems.drawing import draw_data
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.step import StepError
from opsmith.targets.step.codegen import generate_script
from opsmith.targets.step.codegen.text import bind_value, indent_text, pinned_global
from opsmith.targets.step.ir import read_spec

SUITES = sorted((Path(__file__).parents[3] / "src" / "opsmith" / "suites").glob("step*/*.yaml"))
FIG18 = Path(__file__).parents[2] / "fixtures" / "paper" / "fig18.yaml"

TASK = """\
test_name: routed_energy
global: |
  E_value = 2
  ctx[E] = E_value
  weight = torch.ones(E_value)  # of a size that a shape set may override
inputs:
  - {name: E0, dtype: fp32, dims: [M, N], data_gen: torch.randn}
  - {name: E1, dtype: "Multihot(fp32, E)", dims: [N], min: 0, max: 2}
fns:
  - name: Energy
    func_name: fn_energy
    apply: |
      x = input[0]
      return [state[0] + x * x]
    init: [0]
    input_dtype: fp32
    output_dtype: fp32
  - name: Energy
    func_name: fn_first
    apply: return [weight[0] * input[0]]
    input_dtype: fp32
    output_dtype: fp32
  - name: sum
    func_name: fn_sum
    apply: return [state[0] + input[0]]
    init: [0]
    input_dtype: fp32
    output_dtype: fp32
outputs:
  - name: S0
    dtype: fp32
    dims: [N]
    data_transform:
      - |
        energy = (input_data['E0'] ** 2).sum(dim=1)
        energy * input_data['E1'].sum(dim=1)  # each expert adds it once
shapes:
  three: {E: 3}
"""
IMPL = """\
# the energy of each row,

E2 = step.Accum(fn=fn_energy, b=1).apply(E0)
E3, E4 = step.Copy().apply(E1)  # once for each of two
E5 = [step.Map(fn=fn_first).apply(s) for s in step.Partition(N=E_value).apply((E2, E3))]
return step.Merge(fn=fn_sum).apply((E5, E4))
"""


def script(tmp_path: Path, task: str = TASK, impl: str = IMPL) -> Path:
    path = tmp_path / "test_generated.py"
    path.write_text(generate_script(read_spec(task), impl), encoding="utf-8")
    return path


def names(path: Path, **given: Any) -> dict[str, Any]:
    return runpy.run_path(str(path), init_globals=given)


def test_the_script_reads_as_it_always_did(golden: Callable[[str, str], None]) -> None:
    golden("test_routed_energy.txt", generate_script(read_spec(TASK), IMPL))


def test_the_parts_stand_in_the_order_of_the_reference() -> None:
    text = generate_script(read_spec(TASK), IMPL)
    parts = [
        "import torch",
        "M = step.Dim",
        "M_value = ",
        "ctx = ",
        "torch.manual_seed(42)",
        "E_value = 2",
        "input_dtype =",
    ]
    parts += ["input_data =", "class Energy", "fn_energy = ", "fn_first = ", "def prepare", "def reference", "def body"]
    parts += ["IMPL =", "def check_program", "def check_shape", "def check_data", "def test()"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_only_torch_and_step_are_imported() -> None:
    tree = ast.parse(generate_script(read_spec(TASK), IMPL))
    found = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert found == ["import torch", "from opsmith import step"]


def test_equal_tasks_give_equal_bytes_in_every_process() -> None:
    code = (
        "import sys; from opsmith.targets.step.codegen import generate_script\n"
        "from opsmith.targets.step.ir import read_spec\n"
        "task, impl = sys.stdin.read().split('=====')\n"
        "sys.stdout.write(generate_script(read_spec(task), impl))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    given = f"{TASK}====={IMPL}"
    done = subprocess.run(
        [sys.executable, "-c", code], input=given, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == generate_script(read_spec(TASK), IMPL)


def test_the_program_stands_in_the_script_word_for_word() -> None:
    text = generate_script(read_spec(TASK), IMPL)
    body = text[text.index("def body(E0, E1):\n") : text.index("IMPL = (")]
    assert "    # the energy of each row,\n\n    E2 =" in body
    assert "apply(E1)  # once for each of two\n" in body
    values = [
        node.value for node in ast.parse(text).body if isinstance(node, ast.Assign) and _targets(node) == ["IMPL"]
    ]
    assert ast.literal_eval(values[0]) == IMPL


def _targets(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]


@pytest.mark.parametrize("path", [*SUITES, FIG18], ids=lambda path: path.stem)
def test_every_oracle_passes_its_script(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    impl = read_spec(text).impl
    assert impl is not None
    made = names(script(tmp_path, text, impl))
    made["test"]()
    for shape in sorted({"coprime", "unit"} & set(made["SHAPES"])):
        made["test_shapes"](shape)


def test_pytest_runs_the_script_at_every_shape_set(tmp_path: Path) -> None:
    script(tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    sets = choose_shape_sets(read_spec(TASK).problem)
    assert "three" in sets
    assert f"{len(sets)} passed" in done.stdout, done.stdout


WRONG = [
    (IMPL.replace("b=1", "b=2"), StepError, "1 <= b <= rank"),
    (IMPL.replace("(E5, E4)", "(E5, E1)"), StepError, "AFFINE"),
    (IMPL.replace("Merge(fn=fn_sum).apply((E5, E4))", "Map(fn=fn_first).apply(E2)"), StepError, "AFFINE"),
    ("return step.Accum(fn=fn_energy, b=1).apply(E0), E1", StepError, "OUT"),
    ("return step.Accum(fn=fn_energy, b=1).apply(E0)", AssertionError, "S0, field 0"),
    (IMPL.replace("fn_energy", "fn_sum"), AssertionError, "S0, field 0"),
]


@pytest.mark.parametrize(("impl", "error", "words"), WRONG)
def test_a_wrong_program_fails_its_script(impl: str, error: type[Exception], words: str, tmp_path: Path) -> None:
    made = names(script(tmp_path, impl=impl))
    with pytest.raises(error, match=words):
        made["test"]()


def test_a_program_that_only_holds_at_one_shape_fails_at_others(tmp_path: Path) -> None:
    impl = IMPL.replace("N=E_value", "N=2")
    made = names(script(tmp_path, impl=impl))
    made["test"]()
    with pytest.raises(StepError, match="N = 3"):
        made["test_shapes"]("three")


@pytest.mark.parametrize(
    "impl",
    [
        "import os\nreturn E0",
        "E0.data[0] = 1\nreturn E0",
        "print(E0)\nreturn E0",
        "def body(): pass\nreturn E0",
        "return input_data",
        "return (",
        "E2 = E0",
        "",
        "if True:\n    pass\nreturn E0",
        "# a comment\rimport os\nreturn E0",
    ],
)
def test_no_script_is_written_for_what_is_not_in_the_language(impl: str) -> None:
    with pytest.raises(TaskError, match="no script") as caught:
        generate_script(read_spec(TASK), impl)
    assert {error.kind for error in caught.value.diagnostics} == {"LANG"}


@pytest.mark.parametrize("name", ["test", "IMPL", "reference", "check_data", "prepare"])
def test_names_that_the_script_needs_are_refused(name: str) -> None:
    with pytest.raises(TaskError, match=f"uses the names {name}"):
        generate_script(read_spec(TASK.replace("fn_energy", name)), IMPL.replace("fn_energy", name))


@pytest.mark.parametrize(
    "line",
    [
        "check_data = E0",
        "torch = [E0]",
        "test, expected = E0, E1",
        "input_data = [E0, E1]",
        "results = []",
        "fn_first_again = fn_first",
    ],
)
def test_rebinding_names_inside_a_program_changes_no_verdict(line: str, tmp_path: Path) -> None:
    names(script(tmp_path, impl=f"{line}\n{IMPL}"))["test"]()
    wrong = names(script(tmp_path, impl=f"{line}\n{IMPL.replace('fn_energy', 'fn_sum')}"))
    with pytest.raises(AssertionError):
        wrong["test"]()


def test_a_program_may_rebind_a_fn_after_using_it(tmp_path: Path) -> None:
    impl = IMPL.replace("E3, E4 =", "fn_energy = E2\nE3, E4 =").replace("((E2, E3))", "((fn_energy, E3))")
    names(script(tmp_path, impl=impl))["test"]()


def test_odd_line_ends_do_not_change_the_program(tmp_path: Path) -> None:
    names(script(tmp_path, impl=IMPL.replace("\n", "\r\n")))["test"]()
    names(script(tmp_path, impl=IMPL.replace("# the energy", "\f# the energy").replace(",\n", ",\r")))["test"]()


@pytest.mark.parametrize("path", SUITES[:26:5], ids=lambda path: path.stem)
def test_the_script_draws_what_the_verifier_draws(path: Path, tmp_path: Path) -> None:
    spec = read_spec(path.read_text(encoding="utf-8"))
    spec = replace(spec, margins=())
    assert spec.impl is not None
    made = tmp_path / "test_it.py"
    made.write_text(generate_script(spec, spec.impl), encoding="utf-8")
    given, wanted = names(made)["input_data"], draw_data(spec.problem, {}, 42).input_data
    assert given.keys() == wanted.keys()
    assert all(torch.equal(given[name], wanted[name]) for name in wanted)


TYPES = """\
inputs:
  - {name: A, dtype: fp16, dims: [M], data_gen: torch.randn}
  - {name: B, dtype: int64, dims: [N*K, 1], data_gen: randint, min: -3, max: 3}
  - {name: C, dtype: bool, dims: [D/2], data_gen: binary}
  - {name: F, dtype: "Buffer(Multihot(int32, D), [K])", dims: [M], min: 1, max: 4}
  - {name: G, dtype: bf16, dims: [2*M/2], data_gen: torch.ones}
  - {name: H, dtype: fp64, dims: [4], data_gen: torch.zeros}
outputs:
  - {name: S0, dtype: fp16, dims: [M], data_transform: ["input_data['A']"]}
  - {name: S1, dtype: "Buffer(Multihot(int32, D), [K])", dims: [M], data_transform: ["input_data['F']"]}
  - {name: S2, dtype: [int64, int64], dims: [N*K, 1], data_transform: ["x = input_data['B']", "x"]}
"""
TYPES_IMPL = "B0, B1 = step.Copy().apply(B)\nreturn A, F, step.Zip().apply((B0, B1))"


def test_every_type_and_generator_is_drawn_as_declared(tmp_path: Path) -> None:
    made = names(script(tmp_path, TYPES, TYPES_IMPL))
    wanted = draw_data(read_spec(TYPES).problem, {}, 42).input_data
    for name, tensor in wanted.items():
        assert made["input_data"][name].dtype == tensor.dtype
        assert torch.equal(made["input_data"][name], tensor)
    made["test"]()
    made["test_shapes"]("coprime")


def test_a_shape_sets_size_wins_over_global(tmp_path: Path) -> None:
    made = names(script(tmp_path), SHAPE="three")
    assert (made["E_value"], made["ctx"]["E"], made["weight"].numel()) == (3, 3, 3)
    made["test"]()


def test_fns_of_one_label_do_not_collide_with_each_other_or_with_python(tmp_path: Path) -> None:
    made = names(script(tmp_path))
    assert made["fn_energy"].stateful
    assert not made["fn_first"].stateful
    assert "sum" not in made


def test_references_may_rebind_what_global_defines(tmp_path: Path) -> None:
    task = TASK.replace("energy = (input_data", "weight = weight * 1\n        energy = (input_data")
    names(script(tmp_path, task))["test"]()


def test_data_is_drawn_until_decisions_are_clear(tmp_path: Path) -> None:
    made = names(script(tmp_path, TASK + 'margins: ["energy.min() - 1.5"]\n'))
    assert (made["input_data"]["E0"] ** 2).sum(1).min() > 1.5
    path = script(tmp_path, TASK + 'margins: ["energy.min() - 1000"]\n')
    with pytest.raises(AssertionError, match="no data with clear decisions"):
        names(path)


def test_a_fn_that_writes_in_place_fails_its_script(tmp_path: Path) -> None:
    task = TASK.replace("return [weight[0] * input[0]]", "return [input[0].mul_(weight[0])]")
    with pytest.raises(StepError, match="in place"):
        names(script(tmp_path, task))["test"]()


def test_own_tolerances_prevail(tmp_path: Path) -> None:
    impl = IMPL.replace("fn_energy, b=1).apply(E0)", "fn_sum, b=1).apply(E0)")
    loose = TASK.replace("    data_transform:", "    rtol: 0\n    atol: 1000\n    data_transform:")
    names(script(tmp_path, loose, impl))["test"]()


# -------------------------------------------------------------------- pieces of text
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x\n", "y = (x)\n"),
        ("a = 1; a + 2  # c\n", "a = 1; y = (a + 2)  # c\n"),
        ("f(1,\n  2)\n# after\n", "y = (f(1,\n  2))\n# after\n"),
        ("größe = 'ä'\n'ö', größe\n", "größe = 'ä'\ny = ('ö', größe)\n"),
        ("a = 1\n", "a = 1\ny = a\n"),
    ],
)
def test_the_value_of_a_text_gets_a_name(text: str, expected: str) -> None:
    assert bind_value(text, "y") == expected


def test_lines_inside_strings_are_not_indented() -> None:
    assert indent_text('x = """a\n b"""\n\ny = 1', 2) == '  x = """a\n b"""\n\n  y = 1'
    assert indent_text("return f'''\n{x}'''", 2) == "  return f'''\n{x}'''"


def test_pins_follow_every_statement_that_sets_a_size() -> None:
    pins = {"E_value": "PIN", "ctx[E]": "CTX"}
    assert pinned_global("a = 1\nif a:\n    E_value = 2\nctx[E] = 2\nb = E_value\n", pins) == (
        "a = 1\nif a:\n    E_value = 2\nPIN\nctx[E] = 2\nCTX\nb = E_value\n"
    )
