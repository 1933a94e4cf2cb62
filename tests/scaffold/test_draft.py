"""`opsmith new-task`: a function becomes a draft that reads back, and that its author can complete."""

import re

import numpy as np
import pytest
import torch
import yaml

from opsmith.errors import UsageError
from opsmith.judging.verifier import verify
from opsmith.problems.shape_sets import SHAPE_SETS
from opsmith.scaffold.dims import SMALLEST
from opsmith.scaffold.draft import DraftRequest, draft_task, id_of_new_file
from opsmith.scaffold.offers import read_table, suggest_offers
from opsmith.scaffold.operations import Operation
from opsmith.scaffold.probe import torch_type
from opsmith.targets import get_target

STEP = get_target("step")


@pytest.fixture
def drafted(functions):
    """The draft of one of the functions, and its YAML."""

    def make(name, *shapes, values=(), example=None):
        found = draft_task(DraftRequest(f"{functions}:{name}", shapes, values, example))
        STEP.read_task(found.text, found.id)
        return found, yaml.safe_load(found.text)

    return make


def dims(data):
    return [entry["dims"] for entry in (*data["inputs"], *data["outputs"])]


def value(data, **tensors):
    """What the texts of the outputs give."""
    names = {"torch": torch, "input_data": tensors}
    found = []
    for output in data["outputs"]:
        *head, last = output["data_transform"][0].rstrip().splitlines()
        exec("\n".join(head), names)
        found.append(eval(last, names))
    return found


def test_dims_are_innermost_first_and_the_reference_is_the_function_s_own_text(drafted):
    found, data = drafted("row_softmax", "x=4,8")
    assert dims(data) == [["D", "N"], ["D", "N"]]
    assert data["shapes"] == {"example": {"N": 4, "D": 8}}
    text = data["outputs"][0]["data_transform"][0]
    assert "def centred(x):\n    return x - x.amax(-1, keepdim=True)" in text
    assert "    e = centred(x).exp()  # at most 1" in text
    assert "EPS = 1e-05" in text
    assert "Tensor" not in text.replace("torch", "")
    assert text.endswith("\n\nrow_softmax(input_data['E0'])\n")
    x = torch.randn(5, 6)
    (got,) = value(data, E0=x)
    assert torch.allclose(got, torch.softmax(x, -1))
    assert found.notes == ()


@pytest.mark.parametrize(
    ("name", "shapes", "wanted"),
    [
        ("linear", ["x=4,8", "w=8,3", "b=3"], [["D", "N"], ["M", "D"], ["M"], ["M", "N"]]),
        ("linear", ["x=N,K", "w=K,M", "b=M"], [["K", "N"], ["M", "K"], ["M"], ["M", "N"]]),
        ("linear", ["x=N,8", "w=8,3", "b=3"], [["D", "N"], ["M", "D"], ["M"], ["M", "N"]]),
        ("linear", ["x=1,8", "w=8,3", "b=1"], [["D", 1], ["N", "D"], [1], ["N", 1]]),
        ("flat", ["x=3,4,5"], [["D", "M", "N"], ["N*M*D"]]),
        ("total", ["x=4,5"], [["D", "N"], [1]]),
        ("two", ["x=3,4", "y=3,4"], [["D", "N"], ["D", "N"], ["N"], ["D"]]),
    ],
)
def test_dims_of_results_are_found_from_those_of_the_arguments(drafted, name, shapes, wanted):
    assert dims(drafted(name, *shapes)[1]) == wanted


def test_several_outputs_share_one_call_and_have_their_own_types(drafted):
    _, data = drafted("two", "x=3,4", "y=3,4")
    assert [output["dtype"] for output in data["outputs"]] == ["fp32", "int64"]
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    first, second = value(data, E0=x, E1=y)
    assert torch.equal(first, x.sum(-1))
    assert torch.equal(second, (x > y).sum(0))


def test_equal_sizes_that_need_not_be_equal_are_said_with_what_tells_them_apart(drafted):
    found, data = drafted("linear", "x=4,8", "w=8,8", "b=8")
    assert dims(data)[1] == ["D", "D"]
    (note,) = found.notes
    assert "x axis 1, w axis 0, w axis 1, b axis 0 are all 8" in note
    assert note.endswith("--shape x=N,D --shape w=D,M --shape b=M")
    assert f"# NOTE {note}" in found.text
    apart, data = drafted("linear", *re.findall(r"--shape (\S+)", note))
    assert dims(data)[1] == ["M", "D"]
    assert apart.notes == ()


def test_a_dim_that_takes_some_sizes_only_is_a_multiple_or_a_number(drafted):
    found, data = drafted("rotated", "x=4,8")
    assert dims(data) == [["2*D", "N"], ["2*D", "N"]]
    assert data["shapes"]["example"] == {"N": 4, "D": 4}
    assert "multiples of 2 only" in found.notes[0]
    found, data = drafted("heads", "x=2,32")
    assert dims(data) == [[32, "N"], [8, "N"]]
    assert "this size only" in found.notes[0]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2)])
def test_a_dim_that_goes_with_another_is_a_multiple_of_it(functions, order):
    shapes = ["x=3,8", "cos=3,4", "sin=3,4"]
    draft = draft_task(DraftRequest(f"{functions}:rotary", tuple(shapes[at] for at in order), (), None))
    data = yaml.safe_load(draft.text)
    (half,) = {entry["dims"][0] for entry in data["inputs"][1:]}
    assert dims(data) == [[f"2*{half}", "N"], [half, "N"], [half, "N"], [f"2*{half}", "N"]]
    assert "the sizes 8 and 4 go together" in draft.notes[0]


def test_a_dim_that_cannot_be_small_is_a_number(drafted):
    found, data = drafted("picked", "table=6,3", "idx=4:int64:0:5")
    assert dims(data) == [["D", 6], ["M"], ["D", "M"]]
    assert "make N = 1" in found.notes[0]
    found, data = drafted("third", "x=4,8")
    assert dims(data) == [[8, "N"], [3, "N"]]
    assert "make D = 2" in found.notes[0]
    assert {name: min(sizes[name] for sizes in SHAPE_SETS.values() if name in sizes) for name in SMALLEST} == SMALLEST


def test_annotations_say_shapes_and_values_stay(drafted):
    _, data = drafted("annotated", values=["by=3"])
    assert dims(data) == [["D", "N"], ["N"], ["D", "N"]]
    assert "shapes" not in data  # the usual sizes
    assert data["outputs"][0]["data_transform"][0].endswith("annotated(input_data['E0'], input_data['E1'], by=3)\n")


def test_types_say_how_data_is_drawn(drafted):
    found, data = drafted("picked", "table=6,3", "idx=4:int64:0:5")
    assert data["inputs"][1] == {
        "name": "E1",
        "dtype": "int64",
        "dims": ["M"],
        "data_gen": "randint",
        "min": 0,
        "max": 5,
    }
    assert not any("a guess" in note for note in found.notes)
    found, _ = drafted("picked", "table=6,3", "idx=4:int64")
    assert "whole numbers from 0 to 3, a guess" in found.notes[-1]
    assert drafted("masked", "x=4", "mask=4:bool")[1]["inputs"][1]["data_gen"] == "binary"
    found, data = drafted("logs", "x=9")
    assert data["inputs"][0]["data_gen"] == "torch.rand"
    assert "the result has NaN" in found.notes[0]


def test_letters_without_a_usual_size_get_one(drafted):
    _, data = drafted("linear", "x=H,K", "w=K,P", "b=P")
    assert data["global"] == "H_value = 3\nctx[H] = H_value\nP_value = 11\nctx[P] = P_value\n"


def test_names_inside_the_function_are_no_dims_and_what_it_prints_is_not_shown(drafted, capsys):
    assert dims(drafted("named", "x=N,D")[1]) == [["D", "N"], ["N", "D"]]
    assert capsys.readouterr().out == ""


def test_a_name_at_the_top_of_its_text_is_no_dim(tmp_path):
    (tmp_path / "top.py").write_text("N = 3\ndef f(x):\n    return x * N\n")
    data = yaml.safe_load(draft_task(DraftRequest(f"{tmp_path}/top.py:f", ("x=4",))).text)
    assert dims(data) == [["M"], ["M"]]
    with pytest.raises(UsageError, match="dim N: the function's text has something of this name"):
        draft_task(DraftRequest(f"{tmp_path}/top.py:f", ("x=N",)))


def test_many_axes_of_one_size_are_said_to_be_untried(drafted):
    found, _ = drafted("flat", "x=2,2,2,2")
    assert "the function also takes them apart" in found.notes[0]
    found, _ = drafted("total", "x=2,2,2,2,2,2")
    assert found.notes == ("N: 6 axes share this dim; whether they must was not tried",)


def test_where_the_function_fails_at_usual_sizes_the_example_s_are_the_base(functions, tmp_path):
    file = tmp_path / "picky.py"
    file.write_text("def picky(x):\n    assert x.shape[0] != 7\n    return x * 2\n")
    data = yaml.safe_load(draft_task(DraftRequest(f"{file}:picky", ("x=4",))).text)
    assert data["global"] == "N_value = 4\nctx[N] = N_value\n"


def test_an_example_file_gives_shapes_types_ranges_and_values(drafted, tmp_path):
    torch.save({"table": torch.ones(6, 3, dtype=torch.float64), "idx": torch.tensor([2, 5, 3])}, tmp_path / "x.pt")
    _, data = drafted("picked", example=tmp_path / "x.pt")
    assert [entry["dtype"] for entry in data["inputs"]] == ["fp64", "int64"]
    assert (data["inputs"][1]["min"], data["inputs"][1]["max"]) == (2, 5)
    np.savez(tmp_path / "x.npz", x=np.ones((4, 8), np.float32))
    assert dims(drafted("row_softmax", example=tmp_path / "x.npz")[1])[0] == ["D", "N"]


def test_a_function_of_pytorch_is_called_by_its_name():
    data = yaml.safe_load(draft_task(DraftRequest("torch.nn.functional:softmax", ("input=N,D",), ("dim=-1",))).text)
    text = data["outputs"][0]["data_transform"][0]
    assert text == "torch.nn.functional.softmax(input_data['E0'], dim=-1)\n"
    data = yaml.safe_load(draft_task(DraftRequest("torch:matmul", ("x=M,K", "y=K,N"))).text)
    assert dims(data) == [["K", "M"], ["N", "K"], ["N", "M"]]


@pytest.mark.parametrize(
    ("name", "shapes", "words"),
    [
        ("nosuch", [], "has no nosuch; its functions: centred, row_softmax, linear"),
        ("row_softmax", [], "given no shape of x; .*try: --shape x=4,8"),
        ("linear", ["x=4,8"], "given no shape of w, b"),
        ("row_softmax", ["y=3"], "no parameter y; its parameters: x, dim"),
        ("row_softmax", ["x=0,3"], "given '0'; expected a size of at least 1"),
        ("row_softmax", ["x="], "given no sizes"),
        ("row_softmax", ["x=4:int9"], "given type 'int9'; expected one of fp32"),
        ("row_softmax", ["x=4:fp32:0:1"], "expected whole numbers"),
        ("row_softmax", ["x=4:int32:3:1"], "expected the least first"),
        ("row_softmax", ["4,8"], "expected NAME=SIZES"),
        ("linear", ["x=4,8", "w=9,3", "b=3"], r"raised RuntimeError: .*given x \(4, 8\), w \(9, 3\), b \(3,\)"),
        ("fails", ["x=3"], r"raised ValueError: no; given x \(3,\)"),
        ("picked", ["table=2,3", "idx=40:int64"], "raised IndexError.*try: --shape idx=40:int64:0:1"),
        ("count", ["x=3"], "returned a int; expected a tensor"),
        ("pair", ["x=3"], "returned a dict; expected a tensor"),
        ("turned", ["x=3,4"], "returned torch.complex64; expected one of"),
        ("total", ["x=99999,99999"], "9,999,800,001 elements; expected an example of at most 16,777,216"),
        ("diffs", ["x=4,8"], "no sums and differences"),
        ("positive", ["x=9"], "other data gives other shapes"),
        ("noisy", ["x=3"], "a second call on the same data gives other values"),
        ("reads", ["x=3"], "it reads TABLE, a Tensor; .*make it an argument"),
        ("decorated", ["x=3"], "its text gives other values than the function"),
        ("unnamed", ["x=3"], "given a lambda"),
        ("NUMBER", ["x=3"], "given a int"),
        ("Layer", ["x=3"], "given a type"),
        ("variable", ["tensors=3"], "expected"),
    ],
)
def test_what_no_task_can_be_made_of_is_said(drafted, name, shapes, words):
    with pytest.raises(UsageError, match=f"(?s){words}"):
        drafted(name, *shapes)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("row_softmax", "expected module:function or file.py:function"),
        ("nowhere.py:f", "does not exist"),
        ("nomodule:f", "importing it raised ModuleNotFoundError"),
        ("torch.nn:Linear", "given a type"),
    ],
)
def test_a_name_without_a_function_is_refused(given, words):
    with pytest.raises(UsageError, match=words):
        draft_task(DraftRequest(given, ("x=3",)))


def test_a_module_that_breaks_on_import_is_refused_with_what_it_raised(tmp_path):
    (tmp_path / "broken.py").write_text("raise SystemExit('bye')")
    with pytest.raises(UsageError, match="importing it raised SystemExit: bye"):
        draft_task(DraftRequest(f"{tmp_path}/broken.py:f", ("x=3",)))


def test_helpers_of_another_module_are_carried_and_modules_of_the_user_refused(tmp_path):
    (tmp_path / "beside_7.py").write_text("SCALE = 3\ndef scaled(x):\n    return x * SCALE\n")
    (tmp_path / "uses.py").write_text(
        "import beside_7\nfrom beside_7 import scaled as by_three\n"
        "def f(x):\n    return by_three(x)\ndef g(x):\n    return beside_7.scaled(x)\n"
    )
    data = yaml.safe_load(draft_task(DraftRequest(f"{tmp_path}/uses.py:f", ("x=3",))).text)
    assert torch.equal(value(data, E0=torch.ones(3))[0], torch.full((3,), 3.0))
    with pytest.raises(UsageError, match="it reads the module beside_7"):
        draft_task(DraftRequest(f"{tmp_path}/uses.py:g", ("x=3",)))


def uncommented(text, *keys):
    """The draft with its commented blocks of these keys taken in."""
    for key in keys:
        begin = text.index(f"# {key}:")
        end = text.index("\n\n", begin)
        block = re.sub(r"^# ", "", text[begin:end], flags=re.MULTILINE)
        text = text[:begin] + block + text[end:]
    return text


@pytest.mark.parametrize(
    ("name", "shapes", "fns"),
    [
        ("row_softmax", ["x=4,8"], {"fn_max", "fn_sub", "fn_exp", "fn_sum", "fn_div"}),
        ("linear", ["x=4,8", "w=8,3", "b=3"], {"fn_mul", "fn_sum", "fn_add", "fn_relu"}),
        ("flat", ["x=4,8"], {"fn_add"}),  # nothing that maps: an example
    ],
)
def test_suggested_functions_only_need_their_comments_taken_away(drafted, name, shapes, fns):
    found, data = drafted(name, *shapes)
    assert "fns" not in data
    text = uncommented(found.text, "fns", "cases")
    STEP.read_task(text, found.id)
    assert fns <= {fn["func_name"] for fn in yaml.safe_load(text)["fns"]}


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_suggested_functions_make_what_pytorch_makes_of_whole_numbers(drafted, dtype):
    found, _ = drafted("sums", f"x=4,8:{dtype}:-9:9")
    task = STEP.read_task(uncommented(found.text, "fns"), found.id)
    source = """\
E1, E2 = step.Copy().apply(E0)
E3, E4 = step.Copy().apply(E1)
E5, E6 = step.Copy().apply(E2)
E7 = step.Map(fn=fn_mul).apply((E3, E4))
E8 = step.Accum(fn=fn_sum, b=1).apply(E7)
E9, E10 = step.Copy().apply(E5)
return E8, step.Accum(fn=fn_min, b=1).apply(E9), step.Accum(fn=fn_max, b=1).apply(E10)
"""
    verdict = verify(task, source)
    assert verdict.passed, verdict.message


@pytest.mark.parametrize(
    ("name", "shapes", "fns"),
    [
        ("row_softmax", ["x=4,8:bf16"], {"fn_exp": ("bf16", "bf16"), "fn_sub": (["bf16", "bf16"], "bf16")}),
        ("flat", ["x=4,8:fp16"], {"fn_add": (["fp16", "fp16"], "fp16")}),  # nothing that maps: an example
        ("flat", ["x=4,8:int64"], {"fn_add": (["int64", "int64"], "int64")}),
        ("normed", ["x=4,8:fp16", "w=8:fp16"], {"fn_to": ("fp16", "fp32"), "fn_power_number": ("fp32", "fp32")}),
        (
            "signs",
            ["x=4,8:int32", "keep=4,8:bool"],
            {
                "fn_gt_number": ("int32", "bool"),
                "fn_where": (["bool", "int32", "int32"], "int32"),
                "fn_mul": (["int32", "bool"], "int32"),
                "fn_sum": ("bool", "int64"),
                "fn_sub_number": ("int32", "int32"),
            },
        ),
        ("causal", ["x=4,8"], {"fn_gt": (["int64", "int64"], "bool"), "fn_masked": (["fp32", "bool"], "fp32")}),
        ("clipped", ["x=4,8:fp64"], {"fn_clamp_number": ("fp64", "fp64"), "fn_power_number": ("fp64", "fp64")}),
    ],
)
def test_suggested_functions_have_the_types_that_pytorch_saw(drafted, name, shapes, fns):
    found, _ = drafted(name, *shapes)
    text = uncommented(found.text, "fns")
    STEP.read_task(text, found.id)
    offered = {fn["func_name"]: (fn["input_dtype"], fn["output_dtype"]) for fn in yaml.safe_load(text)["fns"]}
    assert {name: offered.get(name) for name in fns} == fns


@pytest.mark.parametrize(
    ("name", "shapes", "note"),
    [
        (
            "causal",
            ["x=4,8"],
            r"line \d+: arange: .* which gt, masked_fill need: indices must become an input; try: .*--shape idx=4:int64",
        ),
        ("best", ["x=4,8"], r"line \d+: topk: it needs a whole row at once.*; try: a function of the row: .*Buffer"),
        ("picked", ["table=6,3", "idx=4:int64:0:5"], r"line \d+: index: no primitive reads where .*; try: "),
        ("counted", ["idx=4:int64:0:6"], r"line \d+: scatter_add: no primitive writes where .*; try: .*Multihot"),
        ("joined", ["x=4,8", "y=4,8"], r"line \d+: cat: no primitive joins, cuts or shifts a stream; try: "),
        ("chosen", ["x=4,8"], r"line \d+: item: it takes a number out of a tensor.*; try: torch\.where"),
        ("odd", ["x=4,8"], r"line \d+: special_bessel_j0: no function is suggested for it; try: one of your own"),
    ],
)
def test_what_no_program_expresses_is_said_with_its_line_and_what_to_do(drafted, functions, name, shapes, note):
    found, _ = drafted(name, *shapes)
    (line,) = [text for text in found.notes if re.match(note, text)]
    assert f"# NOTE {line}\n" in found.text
    (number,) = re.findall(r"^line (\d+)", line)
    assert any(f"def {name}(" in row for row in functions.read_text().splitlines()[int(number) - 4 : int(number)])


@pytest.mark.parametrize(("name", "shapes"), [("row_softmax", ["x=4,8"]), ("linear", ["x=4,8", "w=8,3", "b=3"])])
def test_of_what_functions_and_primitives_express_nothing_is_said(drafted, name, shapes):
    assert drafted(name, *shapes)[0].notes == ()


@pytest.mark.parametrize(
    ("name", "shapes", "place"),
    [
        ("dropped", ["x=4,8"], "def dropped(x):\n    y = 2 * x\n    "),
        ("padded", ["x=4,8"], "def padded(x):\n    y = 2 * x\n    "),
        ("fails", ["x=3"], ""),
        ("pair", ["x=3"], ""),
        ("reads", ["x=3"], ""),
    ],
)
def test_a_refusal_names_the_line_of_the_function(drafted, functions, name, shapes, place):
    text = functions.read_text()
    line = text.count("\n", 0, text.index(place or f"def {name}(") + len(place)) + 1
    with pytest.raises(UsageError, match=rf"my_functions\.py, line {line}: {name}"):
        drafted(name, *shapes)


def test_every_function_of_the_table_runs_and_is_suggested_by_an_operation():
    entries = read_table()["ops"]
    assert {name for entry in entries.values() for name in entry["fns"]} == set(read_table()["fns"])
    arguments = {"where": ("bool", "fp32", "fp32"), "masked_fill": ("fp32", "bool", 0.5), "clamp": ("fp32", 0, None)}
    for name in entries:
        kinds = ("bool", "bool") if re.search("logical|bitwise", name) else ("fp32", "fp32")
        for offer in suggest_offers([Operation(name, arguments.get(name, kinds), (kinds[0],))]):
            tensors = [torch.ones((), dtype=torch_type(kind)) for kind in offer.input_dtype.strip("[]").split(", ")]
            exec("def body(state, input):\n    " + offer.apply, names := {"torch": torch})
            (made,) = names["body"]([torch.ones((), dtype=tensors[0].dtype)], tensors)
            assert made.shape == (), offer


def test_only_a_new_yaml_file_is_written(tmp_path):
    assert id_of_new_file(tmp_path / "softmax_0.yaml") == "softmax_0"
    (tmp_path / "there.yaml").write_text("mine")
    with pytest.raises(UsageError, match="there already"):
        id_of_new_file(tmp_path / "there.yaml")
    with pytest.raises(UsageError, match=r"ends in \.yaml"):
        id_of_new_file(tmp_path / "softmax.txt")
