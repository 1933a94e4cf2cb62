"""The reader and writer of task files: what is kept, what is refused and where."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from opsmith.errors import TaskError
from opsmith.problems.problem import DEFAULT_SIZES, CaseSpec
from opsmith.targets.step.ir import read_spec, read_spec_with_warnings, sizes_with, write_spec
from opsmith.targets.step.language.spec import FnSpec, OutputSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import inner_dims, parse_dims, parse_type

PAPER = Path(__file__).parents[2] / "fixtures" / "paper"
SUITES = sorted((Path(__file__).parents[3] / "src" / "opsmith" / "suites").glob("step*/*.yaml"))

TASK = """\
test_name: row_energy
global: |
  E_value = 2
  ctx[E] = E_value
inputs:
  - {name: E0, dtype: fp32, dims: [M, N], data_gen: torch.randn}
  - name: E1
    dtype: Multihot(fp32, E)
    dims: [N]
    min: 0
    max: 2
parameters:
  - name: W
    dtype: fp32
    dims: [D, D]
    data_gen: torch.rand
fns:
  - name: SumSq
    func_name: fn_sumsq
    apply: |
      x = input[0]
      return [state[0] + x * x]
    init: [0]
    input_dtype: fp32
    output_dtype: fp32
outputs:
  - name: S0
    dtype: fp32
    dims: [N]
    data_transform:
      - |
        (input_data['E0'] ** 2).sum(dim=1)
impl: |
  E1 = step.Accum(fn=fn_sumsq, b=1).apply(E0)
  return E1
"""


def test_a_task_file_says_what_it_holds() -> None:
    spec = read_spec(TASK)
    assert [str(tensor.type) for tensor in spec.inputs] == ["fp32 [M, N]", "Multihot(fp32, E) [N]"]
    assert (spec.inputs[1].min, spec.inputs[1].max, spec.inputs[1].data_gen) == (0, 2, None)
    assert spec.fn_table["fn_sumsq"].init == (0,)
    assert spec.fn_table["fn_sumsq"].apply == "x = input[0]\nreturn [state[0] + x * x]\n"
    assert spec.sizes == {**DEFAULT_SIZES, "E": 2}
    assert spec.impl == "E1 = step.Accum(fn=fn_sumsq, b=1).apply(E0)\nreturn E1\n"
    assert spec.test_name == "row_energy"


@pytest.mark.parametrize("text", ["impl:", "impl: null", "impl: ''", "impl: |\n", ""])
def test_an_empty_impl_is_none(text: str) -> None:
    assert read_spec(TASK[: TASK.index("impl: |")] + text).impl is None


def test_common_indentation_is_removed_from_code() -> None:
    text = TASK.replace("impl: |\n  E1", "impl: |2\n    E1").replace("  return E1\n", "    return E1\n")
    assert read_spec(text) == read_spec(TASK)


@pytest.mark.parametrize("dims", ["[M,]", "[D, N*K, 1]", "[2*(M/2), 4]", '["N"]'])
def test_dims_are_ints_and_texts(dims: str) -> None:
    assert len(read_spec(TASK.replace("dims: [M, N]", f"dims: {dims}").replace("M/2", "D/2")).inputs[0].dims) >= 1


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("-inf", float("-inf")),
        ("inf", float("inf")),
        ("-.inf", float("-inf")),
        (".inf", float("inf")),
        ("1e-5", 1e-5),
        ("1.0e-5", 1e-5),
        ("'-inf'", float("-inf")),
        ("3", 3),
        ("0.5", 0.5),
        ("-1", -1),
    ],
)
def test_every_spelling_of_a_start_value_is_a_number(written: str, value: float) -> None:
    assert read_spec(TASK.replace("init: [0]", f"init: [{written}]")).fns[0].init == (value,)


@pytest.mark.parametrize("written", ["", "    init: null\n", "    init: []\n", "    init:\n"])
def test_a_fn_without_start_values_is_stateless(written: str) -> None:
    text = TASK.replace("    init: [0]\n", written).replace("state[0] + x", "x + x")
    assert read_spec(text).fns[0].init is None


def test_start_values_of_a_bool_are_true_and_false() -> None:
    text = TASK.replace("init: [0]", "init: [true]").replace("output_dtype: fp32", "output_dtype: bool")
    assert read_spec(text).fns[0].init == (1,)


@pytest.mark.parametrize(
    ("old", "new", "line", "given"),
    [
        ("fns:", "functions:", 19, "the function fn_sumsq under `functions`"),
        ("fns:", "fns:\nhardware:", 20, "under `hardware`"),
        ("fns:\n", "", 18, "under `parameters`"),
        ("fns:\n", "cases:\n", 19, "under `cases`"),
        ("test_name:", "func_name: fn_sq\ntest_name:", 1, "the function fn_sq outside of a list"),
    ],
)
def test_a_function_outside_of_fns_is_the_one_mistake_of_its_file(old: str, new: str, line: int, given: str) -> None:
    with pytest.raises(TaskError) as caught:
        read_spec(TASK.replace(old, new))
    (finding,) = caught.value.diagnostics
    assert (finding.line, finding.expected) == (line, "functions as a list under `fns`")
    assert given in finding.given
    assert "`fns:`" in finding.remedy


def test_functions_under_another_key_beside_fns_are_kept_as_a_key_without_meaning() -> None:
    text = TASK + "dropped_fns:\n  - {name: Old, func_name: fn_old}\n"
    spec, warnings = read_spec_with_warnings(text)
    assert len(spec.fns) == 1
    assert "dropped_fns: unknown key without meaning" in warnings[0]


def test_unknown_keys_are_kept_and_reported() -> None:
    text = TASK.replace("test_name:", "author: me\ntest_name:").replace("name: W", "name: W\n    unit: kg")
    spec, warnings = read_spec_with_warnings(text)
    assert spec.extra == {"author": "me", "parameters": {"W": {"unit": "kg"}}}
    assert [warning.partition(":")[0] for warning in warnings] == ["line 1, column 9", "line 15, column 11"]
    assert read_spec(write_spec(spec)) == spec


def test_keys_of_ours_are_read() -> None:
    text = TASK + "shapes: {tall: {M: 19, E: 3}}\nmargins: [\"input_data['E0'].abs().min()\"]\ntarget: step\n"
    spec = read_spec(text.replace("data_transform:", "rtol: 1e-4\n    atol: 0\n    data_transform:"))
    assert spec.shapes == {"tall": {"M": 19, "E": 3}}
    assert spec.margins == ("input_data['E0'].abs().min()\n",)
    assert (spec.outputs[0].rtol, spec.outputs[0].atol) == (1e-4, 0)
    assert spec.extra == {"target": "step"}
    assert read_spec(write_spec(spec)) == spec


def test_hand_made_inputs_are_texts_or_texts_at_a_shape_set():
    text = TASK + "shapes: {tall: {M: 19}}\ncases:\n  - |\n    x = 1\n    x == 1\n  - tall: 'True'\n"
    spec = read_spec(text)
    assert spec.cases == (CaseSpec("x = 1\nx == 1\n"), CaseSpec("True\n", "tall"))
    assert read_spec(write_spec(spec)) == spec


@pytest.mark.parametrize(
    ("code", "sizes"),
    [
        ("E_value = 3", {"E": 3}),
        ("E_value: int = 2 * (M_value - 1) // 2", {"E": 4}),
        ("k = 3\nE_value = k + 1", {"E": 4}),
        ("ctx[E] = 4", {"E": 4}),
        ("D_value = 8\nE_value = D_value / 2", {"D": 8, "E": 4}),
        ("E_value = ctx[M] % 3", {"E": 2}),
        ("import math\nE_value = 2\ngelu = torch.nn.GELU()", {"E": 2}),
    ],
)
def test_sizes_are_found_without_running_global(code: str, sizes: dict[str, int]) -> None:
    block = "global: |\n" + "".join(f"  {line}\n" for line in code.split("\n"))
    spec = read_spec(TASK.replace("global: |\n  E_value = 2\n  ctx[E] = E_value\n", block))
    assert spec.sizes == {**DEFAULT_SIZES, **sizes}


def test_an_overridden_size_wins_and_computed_sizes_follow() -> None:
    spec = read_spec(TASK.replace("  ctx[E] = E_value\n", "  F_value = 2 * E_value * D_value\n"))
    assert sizes_with(spec, {"E": 5, "D": 2}) == {**DEFAULT_SIZES, "E": 5, "D": 2, "F": 20}
    assert sizes_with(spec, {}) == spec.sizes


REFUSED = [
    # old text, new text, line, words of the message
    ("name: E0, ", "", 6, "no name"),
    ("name: E0", "name: 0E", 6, "letters, digits"),
    ("name: E0", "name: on", 6, "quote it"),
    ("name: E0", "name: class", 6, "not a Python keyword"),
    ("name: E0", "name: step", 6, "none of ctx"),
    ("name: E0", "name: E1", 7, "already the input of line 6"),
    ("name: W", "name: E0", 13, "already the input of line 6"),
    ("name: W", "name: M", 6, "M, which the parameter of line 13 is named"),
    ("name: W", "name: N_value", 6, "N_value, which the parameter"),
    ("func_name: fn_sumsq", "func_name: E0", 19, "already the input"),
    ("func_name: fn_sumsq", "func_name: M", 6, "the symbol M alone"),
    ("name: S0", "name: E0", 27, "already the input"),
    ("dtype: fp32, ", "", 6, "no dtype"),
    ("dtype: fp32, ", "dtype: float, ", 6, "expected: one of fp32"),
    ("dtype: fp32, ", "dtype: [fp32, int32], ", 6, "declare the streams apart"),
    ("dtype: fp32, ", 'dtype: "Buffer(Buffer(fp32, [D]), [K])", ', 6, "no Buffer in a Buffer"),
    ("dtype: fp32, ", "dtype: [fp32, Buffer(fp32, [D])], ", 6, "quote types inside"),
    ("dtype: fp32, ", "dtype: Multihot(fp32, E), ", 6, "Multihot(TYPE, LENGTH)"),
    ("dtype: Multihot(fp32, E)", "dtype: Buffer(fp32, [])", 8, "at least one dim"),
    ("dims: [M, N], ", "", 6, "no dims"),
    ("dims: [M, N]", "dims: M", 6, "a list of dims"),
    ("dims: [M, N]", "dims: []", 6, "at least one dim"),
    ("dims: [M, N]", "dims: [M, yes]", 6, "quote it"),
    ("dims: [M, N]", "dims: [M, ~]", 6, "quote it"),
    ("dims: [M, N]", "dims: [M, [N]]", 6, "an int or a symbol"),
    ("dims: [M, N]", "dims: [M, 0]", 6, "a dim is positive"),
    ("dims: [M, N]", "dims: [M, -1]", 6, "a dim is positive"),
    ("dims: [M, N]", "dims: [M, 1.5]", 6, "an int or a symbol"),
    ("dims: [M, N]", "dims: [M+1, N]", 6, "cannot read the dim"),
    ("dims: [M, N]", "dims: [M, D/3]", 6, "D/3 is not an integer: D = 16"),
    ("dims: [M, N]", "dims: [M, Q]", 6, "Q_value = 3 in `global`"),
    ("dims: [M, N]", "dims: [M_value, N]", 6, "M_value is the size of M"),
    ("dims: [M, N]", "dims: [lambda, N]", 6, "a name that is free"),
    (", data_gen: torch.randn}", "}", 6, "no data_gen"),
    ("torch.randn", "randn", 6, "one of torch.rand, torch.randn"),
    ("dtype: fp32, ", "dtype: int32, ", 6, "a float type"),
    ("torch.randn", "randint", 6, "no min"),
    ("torch.randn", "torch.randn, min: 1", 6, "remove `min`"),
    ("    min: 0\n", "", 7, "no min"),
    ("min: 0", "min: 3", 10, "0 <= min <= max"),
    ("min: 0", "min: -1", 10, "0 <= min <= max"),
    ("min: 0", "min: 0.5", 10, "an int"),
    ("max: 2", "max: 3", 11, "at most 2, the length E"),
    ("min: 0", "data_gen: binary", 10, "no data_gen for a Multihot"),
    ("name: SumSq", "name: Sum Sq", 18, "letters, digits"),
    ("x = input[0]", "x = input[0", 21, "Python code"),
    ("      return [state[0] + x * x]\n", "", 21, "a body without a return"),
    ("      x = input[0]\n      return [state[0] + x * x]\n", "", 20, "an empty body"),
    ("init: [0]", "init: 0", 23, "init: [0]"),
    ("init: [0]", "init: [0, 0]", 23, "2 start values"),
    ("init: [0]", "init: [zero]", 23, "a number, inf or -inf"),
    ("init: [0]", "init: [.nan]", 23, "a number, inf or -inf"),
    ("init: [0]", "init: [1e39]", 23, "fp32 can hold"),
    ("init: [0]", "init: [true]", 23, "a number for fp32"),
    ("init: [0]\n    input_dtype: fp32\n    output_dtype: fp32",
     "init: [-inf]\n    input_dtype: fp32\n    output_dtype: int32", 23, "a finite whole number"),
    ("    input_dtype: fp32\n", "", 18, "no input_dtype"),
    ("outputs:\n", "outputs: []\nrest:\n", 26, "an empty list"),
    ("outputs:\n", "rest:\n", 1, "no outputs"),
    ("    data_transform:\n      - |\n        (input_data['E0'] ** 2).sum(dim=1)\n", "", 27, "no data_transform"),
    ("    dtype: fp32\n    dims: [N]\n    data_transform", "    dtype: [fp32, fp32]\n    dims: [N]\n    data_transform",
     31, "2, one per field"),
    ("(input_data['E0'] ** 2).sum(dim=1)", "y = (input_data['E0']", 32, "Python code"),
    ("(input_data['E0'] ** 2).sum(dim=1)", "for i in range(3): pass", 32, "as the last statement"),
    ("(input_data['E0'] ** 2).sum(dim=1)", "a, b = 1, 2", 32, "one name"),
    ("(input_data['E0'] ** 2).sum(dim=1)", "# nothing", 32, "no statement"),
    ("data_transform:\n      - |\n        ", "data_transform: |\n      ", 30, "a list"),
    ("    dims: [N]\n    data_transform", "    dims: [N]\n    rtol: small\n    data_transform", 30, "a number >= 0"),
    ("E_value = 2", "E_value = torch.tensor(2).item()", 3, "write E_value = a number"),
    ("E_value = 2", "E_value = 0", 3, "a whole number from 1"),
    ("E_value = 2", "if True: E_value = 2", 3, "write E_value = a number"),
    ("E_value = 2", "E_value, x = 2, 3", 3, "write E_value = a number"),
    ("ctx[E] = E_value", "ctx[E] = 3", 4, "beside E_value = 2"),
    ("E_value = 2", "E_value = (2", 3, "was never closed"),
    ("  E_value = 2\n  ctx[E] = E_value\n", "  pass\n", 7, "a size for E"),
    ("parameters:", "parameters: none\nold:", 12, "a list"),
    ("parameters:\n  - name: W", "parameters:\n  - W\n  - name: W", 13, "a mapping with the keys name"),
    ("test_name: row_energy", "test_name: [a]", 1, "a text"),
    ("test_name: row_energy", "target: triton", 1, "step, the language"),
    ("test_name: row_energy", "shapes: {s: {Q: 3}}", 1, "the symbol Q"),
    ("test_name: row_energy", "shapes: {s: {M: 0}}", 1, "an int from 1"),
    ("test_name: row_energy", "shapes: {s: [3]}", 1, "sizes, such as"),
    ("test_name: row_energy", "shapes: {s: {E: 1}}", 11, "at shape s"),
    ("test_name: row_energy", "margins: [a = ]", 1, "Python code"),
    ("test_name: row_energy", "cases: [{many: 'True'}]", 1, "a mapping with many"),
    ("test_name: row_energy", "cases: [{a: '1', b: '2'}]\nshapes: {a: {M: 2}, b: {M: 3}}", 1, "one of a, b with a text"),
    ("test_name: row_energy", "cases: [{a: 3}]\nshapes: {a: {M: 2}}", 1, "cases[0]"),
    ("test_name: row_energy", "impl: {a: b}\nrest: x", 34, "a second time"),
    ("test_name: row_energy", "test_name: a\ntest_name: b", 2, "a second time"),
    ("test_name: row_energy", "test_name: &a x", 1, "no anchors or aliases"),
    ("test_name: row_energy", "test_name: !!python/object:os.system x", 1, "no tags"),
    ("test_name: row_energy", "date: 2024-13-45", 1, "YAML reads as timestamp"),
    ("test_name: row_energy", "? [a, b]\n: c", 1, "as a key"),
    ("test_name: row_energy", "deep: " + "[" * 40 + "]" * 40, 1, "at most 24 levels"),
    ("test_name: row_energy", "big: 0x" + "f" * 40, 1, "YAML reads as int"),
    ("test_name: row_energy", "test_name: \x07", 1, "YAML"),
    ("    min: 0", "\tmin: 0", 10, "not tabs"),
    ("impl: |\n  E1", "impl: |\nE1", 34, "indent the code below `impl: |`"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "words"), REFUSED)
def test_a_broken_file_is_refused_where_it_goes_wrong(old: str, new: str, line: int, words: str) -> None:
    assert old in TASK
    with pytest.raises(TaskError) as caught:
        read_spec(TASK.replace(old, new, 1), "task.yaml")
    assert words in str(caught.value)
    found = [error for error in caught.value.diagnostics if words in error.block()]
    assert found, caught.value
    assert found[0].line == line
    assert found[0].kind == "TASK"
    assert found[0].column is not None
    assert f"task.yaml:{found[0].line}:{found[0].column}:" in str(caught.value)
    assert len(caught.value.diagnostics) <= 2


def test_all_findings_come_at_once_in_the_order_of_the_lines() -> None:
    text = TASK.replace("[M, N]", "[M, yes]").replace("init: [0]", "init: 0").replace("E_value = 2", "E_value = f()")
    with pytest.raises(TaskError) as caught:
        read_spec(text, "a.yaml")
    assert [(error.line, error.column) for error in caught.value.diagnostics] == [(3, 3), (6, 39), (23, 11)]
    assert str(caught.value).startswith("a.yaml: 3 problems\n")


def test_a_finding_in_code_points_into_the_block() -> None:
    with pytest.raises(TaskError) as caught:
        read_spec(TASK.replace("x * x]", "x * x)"))
    (error,) = caught.value.diagnostics
    assert (error.line, TASK.split("\n")[error.line - 1].strip()[:6]) == (22, "return")
    assert error.column == len("      return [state[0] + x * x)")


@pytest.mark.parametrize("text", ["", "a", "[]", "---\n", "a: 1\n---\nb: 2\n", "{", "\ud800", "- " * 5000, "%YAML 3\n"])
def test_what_is_no_task_is_refused_with_a_place(text: str) -> None:
    with pytest.raises(TaskError) as caught:
        read_spec(text)
    assert all(error.line is not None and error.column is not None for error in caught.value.diagnostics)


def test_a_file_of_more_than_a_quarter_mebibyte_is_refused() -> None:
    with pytest.raises(TaskError, match="at most 262144"):
        read_spec("# " + "x" * (1 << 18))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_file_never_gives_anything_but_a_task_error(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(TASK)))
    end = data.draw(st.integers(start, min(len(TASK), start + 20)))
    text = TASK[:start] + data.draw(st.text(alphabet="&*!|>[]{}:,-#'\"%@\t\n 0aE\x00é", max_size=6)) + TASK[end:]
    try:
        spec = read_spec(text)
    except TaskError:
        return
    assert read_spec(write_spec(spec)) == spec


# -------------------------------------------------------------------- the writer
@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_task_files_of_the_suites_survive_a_round(path: Path) -> None:
    spec = read_spec(path.read_text(encoding="utf-8"), path.name)
    assert read_spec(write_spec(spec)) == spec


def test_the_written_form_is_stable() -> None:
    text = write_spec(read_spec(TASK))
    assert text == TASK.replace(
        "  - {name: E0, dtype: fp32, dims: [M, N], data_gen: torch.randn}\n",
        "  - name: E0\n    dtype: fp32\n    dims: [M, N]\n    data_gen: torch.randn\n",
    )


NAMES = st.sampled_from(["E0", "E1", "x", "on", "null", "Yes", "_a", "w_1", "größe"])
DIMS = st.lists(st.sampled_from(["M", "N", "K", "D", "1", "4", "N*K", "D/2", "2*D/4"]), min_size=1, max_size=3)
SCALARS = st.sampled_from(["fp32", "fp16", "bf16", "fp64", "int32", "int64", "bool"])
CODE_LINES = st.lists(
    st.sampled_from(["x = 1", "", "# größer: 'a'", 'y = "\t"', "if x:\n    y = 2", "z = x  "]), max_size=4
)


def _code(lines: list[str], last: str) -> str:
    return "\n".join([*lines, last]).strip("\n") + "\n"


@st.composite
def _types(draw: st.DrawFn) -> str:
    scalar = draw(SCALARS)
    elem = draw(st.sampled_from([scalar, f"Multihot({scalar}, D)"]))
    return draw(st.sampled_from([elem, f"Buffer({elem}, [{', '.join(draw(DIMS))}])"]))


@st.composite
def _tensors(draw: st.DrawFn, name: str) -> TensorSpec:
    dtype, dims = parse_type(draw(_types())), parse_dims(draw(DIMS))
    if "Multihot" in str(dtype):
        low = draw(st.integers(0, 3))
        return TensorSpec(name, dtype, dims, None, low, draw(st.integers(low, 16)))
    if "int" in str(dtype) and draw(st.booleans()):
        return TensorSpec(name, dtype, dims, "randint", -3, draw(st.integers(-3, 9)))
    return TensorSpec(name, dtype, dims, draw(st.sampled_from(["binary", "torch.ones", "torch.zeros"])))


@st.composite
def _fns(draw: st.DrawFn, name: str) -> FnSpec:
    given_type, made = parse_type(draw(st.lists(_types(), min_size=1, max_size=3))), draw(_types())
    number = st.sampled_from([0, 1]) if "fp" not in made else st.floats(-60000, 60000) | st.just(float("-inf"))
    init = draw(st.none() | st.tuples(number))
    body = _code(draw(CODE_LINES), "return [input[0]]")
    return FnSpec(draw(NAMES), name, body, given_type, parse_type(made), init)


@st.composite
def _outputs(draw: st.DrawFn, name: str) -> OutputSpec:
    types = draw(st.lists(_types(), min_size=1, max_size=2))
    texts = tuple(_code(draw(CODE_LINES), "x") for _ in types)
    tolerance = draw(st.none() | st.floats(0, 1))
    return OutputSpec(name, parse_type(types), parse_dims(draw(DIMS)), texts, tolerance, draw(st.none() | st.just(0.5)))


EXTRA_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(alphabet="aé:#\n' \"\t\u2028|", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "1", "on"]), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def _specs(draw: st.DrawFn) -> TaskSpec:
    names = draw(st.lists(NAMES, min_size=2, max_size=6, unique=True))
    names += [f"p{i}" for i in range(2)]
    size = draw(st.integers(1, 9))
    sets = st.dictionaries(st.sampled_from(["tall", "on", "a-1"]), st.just({"M": 64, "D": 16}), max_size=2)
    shapes = draw(sets)
    return TaskSpec(
        inputs=(draw(_tensors(names[0])), *([draw(_tensors("p0"))] if draw(st.booleans()) else [])),
        outputs=(draw(_outputs(names[1])), *([draw(_outputs("p1"))] if draw(st.booleans()) else [])),
        parameters=tuple(draw(_tensors(f"w{i}")) for i in range(draw(st.integers(0, 2)))),
        fns=tuple(draw(_fns(f"fn_{i}")) for i in range(draw(st.integers(0, 2)))),
        global_code=f"E_value = {size}\n",
        test_name=draw(st.text(alphabet="aé:#\n' \"-", max_size=8)),
        impl=draw(st.none() | st.builds(_code, CODE_LINES, st.just("return E0"))),
        sizes={**DEFAULT_SIZES, "E": size},
        shapes=shapes,
        margins=tuple(_code(lines, "x") for lines in draw(st.lists(CODE_LINES, max_size=2))),
        cases=tuple(
            CaseSpec(_code(lines, "x"), draw(st.sampled_from(["", *shapes])))
            for lines in draw(st.lists(CODE_LINES, max_size=3))
        ),
        extra=draw(st.dictionaries(st.sampled_from(["note", "off", "x: y"]), EXTRA_VALUES, max_size=2)),
    )


@settings(max_examples=150, deadline=None)
@given(_specs())
def test_reading_what_was_written_gives_the_same_task(spec: TaskSpec) -> None:
    text = write_spec(spec)
    again = read_spec(text)
    assert again == spec
    assert write_spec(again) == text
    assert {name for tensor in spec.inputs for dim in inner_dims(tensor.dtype) for name in dim.symbols} <= set(
        spec.sizes
    )


# -------------------------------------------------------------------- the paper's figures
def _examples(name: str) -> list[dict[str, object]]:
    data = yaml.safe_load((PAPER / name).read_text(encoding="utf-8"))
    entries = data if isinstance(data, list) else [data]
    return [example for entry in entries for example in entry.get("examples", [entry])]


@pytest.mark.parametrize("name", ["fig14.yaml", "fig17.yaml"])
def test_examples_of_the_papers_prompts_are_tasks(name: str) -> None:
    for example in _examples(name):
        spec = read_spec(yaml.safe_dump(example))
        assert spec.impl is not None
        assert read_spec(write_spec(spec)) == spec


@pytest.mark.parametrize(("name", "solved"), [("fig15.yaml", False), ("fig18.yaml", True)])
def test_the_papers_task_files_load(name: str, solved: bool) -> None:
    spec = read_spec((PAPER / name).read_text(encoding="utf-8"))
    assert [fn.func_name for fn in spec.fns] == ["fn_maxsum", "fn_getthird"]
    assert spec.fn_table["fn_maxsum"].init == (float("-inf"), 0, 0)
    assert (spec.impl is not None) is solved


def test_the_papers_printed_layout_is_explained() -> None:
    text = (PAPER / "fig18.yaml").read_text(encoding="utf-8")
    head, _, impl = text.partition("impl: |\n")
    flat = "".join(line.lstrip() for line in impl.splitlines(keepends=True))
    with pytest.raises(TaskError, match="indent the code below `impl: \\|`"):
        read_spec(head + "impl: |\n" + flat)
