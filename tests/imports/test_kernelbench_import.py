"""KernelBench's files become problem files that compute what the module does, or a row with a reason, and nothing else
happens."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import torch
from imports.modules import CHAIN, HEAD, MANY, NESTED, SOFTMAX, write_module

from opsmith.imports.foreign_code import CodeRefusalError
from opsmith.imports.kernelbench.folder import ANALYSES, ModuleLimits, import_modules, name_problem
from opsmith.imports.kernelbench.source import read_module
from opsmith.imports.outcomes import ImportRow
from opsmith.imports.worker import ImportWorkers
from opsmith.imports.writing import ProblemFolder
from opsmith.problems.drawing import draw_case, draw_data, widen_data
from opsmith.problems.faults import TaskFault
from opsmith.problems.files.reading import read_problem
from opsmith.problems.hidden_sizes import HiddenPool
from opsmith.problems.problem import Problem
from opsmith.problems.reference import compute_expected
from opsmith.records import Scrutiny

LIMITS = ModuleLimits(max_bytes=2_000_000, max_operations=20_000_000, seconds=20.0)
Importer = Callable[..., list[ImportRow]]


@pytest.fixture(scope="module")
def workers() -> Iterator[ImportWorkers]:
    with ImportWorkers(services=ANALYSES) as opened:
        if missing := opened._nursery.missing:
            pytest.skip(f"no isolation: {missing}")
        yield opened


@pytest.fixture
def import_all(workers: ImportWorkers, tmp_path: Path) -> Importer:
    """Imports texts by name into `tmp_path/out`."""

    def run_import(limits: ModuleLimits = LIMITS, replaces: bool = False, **texts: str) -> list[ImportRow]:
        for name, text in texts.items():
            (tmp_path / "in").mkdir(exist_ok=True)
            (tmp_path / "in" / f"{name}.py").write_text(text)
        folder = ProblemFolder(tmp_path / "out", replaces)
        return list(import_modules(tmp_path / "in", folder, workers, limits, lambda line: None))

    return run_import


def read_row(row: ImportRow) -> Problem:
    assert not row.refusal, row.refusal
    return read_problem(Path(row.written).read_text()).problem


def test_a_module_becomes_a_problem_of_smaller_sizes(import_all: Importer) -> None:
    (row,) = import_all(softmax=write_module(SOFTMAX))
    problem = read_row(row)
    assert [str(dim) for dim in problem.inputs[0].type.shape] == ["batch_size", "dim"]
    assert problem.inputs[0].data_gen == "torch.randn"
    assert row.bytes_from == 2 * 64 * 16384 * 4
    assert row.bytes_to is not None
    assert row.bytes_to <= LIMITS.max_bytes
    assert problem.source is not None
    assert problem.source.sizes == {"batch_size": 64, "dim": 16384}
    assert problem.source.text == write_module(SOFTMAX)
    assert (problem.source.file, problem.source.arguments) == ("softmax.py", ("x",))
    assert len(problem.bench) == 3
    wide = widen_data(problem, draw_data(problem, {}, 0), 0)
    assert torch.allclose(compute_expected(problem, wide)[0][0], torch.softmax(wide.input_data["x"], 1))


def test_weights_are_inputs_and_what_has_no_effect_is_none(import_all: Importer) -> None:
    (row,) = import_all(chain=write_module(CHAIN))
    problem = read_row(row)
    assert problem.source is not None
    assert problem.source.arguments == ("x", "factor")
    assert set(problem.source.weights.values()) == {"conv.weight", "bn.weight", "bn.bias", "scale"}, (
        "a bias before batch statistics changes nothing, and running ones are not read"
    )
    assert problem.scalars == {"factor": 1.5}
    assert "length_out == (length - 1)//2" in problem.constraints
    weight = next(tensor for tensor in problem.inputs if tensor.name == "conv_weight")
    assert [str(dim) for dim in weight.type.shape] == ["out_channels", "in_channels/4", "5"]
    assert "does not vary: kernel_size, groups" in row.warnings
    for sizes in [*problem.shapes.values(), *problem.bench.values()]:
        assert sizes["in_channels"] % 4 == sizes["out_channels"] % 4 == 0
    first, second = (draw_data(problem, {}, seed).input_data for seed in (0, 1))
    assert all(not torch.equal(first[tensor.name], second[tensor.name]) for tensor in problem.inputs)


def test_many_weights_lie_in_one_input_and_types_of_constants_are_settled(import_all: Importer) -> None:
    (row,) = import_all(many=write_module(MANY))
    problem = read_row(row)
    assert [tensor.type.label for tensor in problem.inputs] == ["fp32 [batch_size, 6]", "fp32 [792]"]
    assert "('norm.weight', 780, (6,), 0.1)" in problem.global_code
    namespace: dict[str, object] = {}
    exec(write_module(MANY), namespace)
    declared = draw_data(problem, {}, 3)
    expected = compute_expected(problem, widen_data(problem, declared, 3))[0][0]
    model = namespace["Model"](130)  # type: ignore[operator]
    keys = problem.source.weights["weights"].split()  # type: ignore[union-attr]
    parts = dict(zip(keys, declared.input_data["weights"].split([6] * 132), strict=True))
    model.load_state_dict(parts)
    with torch.no_grad():
        assert torch.allclose(model(declared.input_data["x"]).double(), expected, rtol=1e-3, atol=1e-3)


def test_the_reference_computes_what_the_module_does_at_every_size(import_all: Importer) -> None:
    (row,) = import_all(chain=write_module(CHAIN))
    problem = read_row(row)
    namespace: dict[str, object] = {}
    exec(write_module(CHAIN), namespace)
    for sizes in [{}, *problem.shapes.values()]:
        declared = draw_data(problem, sizes, 3)
        expected = compute_expected(problem, widen_data(problem, declared, 3))[0][0]
        own = declared.sizes
        model = namespace["Model"](own["in_channels"], own["out_channels"], 5, 4)  # type: ignore[operator]
        state = {key: declared.input_data[name] for name, key in problem.source.weights.items()}  # type: ignore[union-attr]
        model.load_state_dict(state, strict=False)
        with torch.no_grad():
            output = model(declared.input_data["x"], 1.5, "plain")
        assert torch.allclose(output.double(), expected, rtol=1e-3, atol=1e-3)


def test_hidden_sizes_of_an_imported_problem_run(import_all: Importer) -> None:
    (row,) = import_all(chain=write_module(CHAIN))
    problem = read_row(row)

    def run_reference(sizes: Mapping[str, int], seed: int) -> object:
        try:
            return compute_expected(problem, widen_data(problem, draw_data(problem, sizes, 0), 0))
        except TaskFault:
            return None

    pool = HiddenPool(problem, run_reference)
    assert len([*pool.list_materials(Scrutiny("a secret"))]) >= 3


def test_nested_arguments_shared_data_and_changed_inputs(import_all: Importer) -> None:
    (row,) = import_all(nested=write_module(NESTED))
    problem = read_row(row)
    assert [tensor.name for tensor in problem.inputs] == ["pair_0", "pair_1", "index"]
    assert [output.types[0].dtype for output in problem.outputs] == ["fp32", "int64"]
    assert "it changes its inputs in place: the reference works on copies" in row.warnings
    data = draw_data(problem, {}, 0).input_data
    assert torch.equal(data["pair_1"], data["pair_0"] * 2 - 1), "inputs that depend on each other are drawn together"
    rows = draw_data(problem, {"shape_0": 17}, 0).input_data
    assert int(rows["index"].max()) < 17, "bounds that follow a size do so at other sizes"


def test_sizes_that_must_be_equal_become_one_dim(import_all: Importer) -> None:
    products = ("torch.softmax(x, dim=1)", "x @ x + x.transpose(0, 1)")
    (row,) = import_all(square=write_module(SOFTMAX, products, ("batch_size = 64", "batch_size = 16384")))
    problem = read_row(row)
    assert list(problem.sizes) == ["batch_size"]
    assert "dim is batch_size" in row.warnings
    assert draw_data(problem, {"batch_size": 9}, 0).input_data["x"].shape == (9, 9)


def test_sizes_written_where_inputs_are_made_vary_too(import_all: Importer) -> None:
    (row,) = import_all(
        literal=write_module(SOFTMAX, ("torch.randn(batch_size, dim)", "torch.randn(batch_size, 20000)"))
    )
    problem = read_row(row)
    assert list(problem.sizes) == ["batch_size", "size_1"]
    assert problem.source is not None
    assert problem.source.sizes["size_1"] == 20000


def test_inputs_of_numpy_are_drawn_by_the_seed_and_equal_ones_are_told(import_all: Importer) -> None:
    drawn = ("torch.randn(batch_size, dim)", "torch.from_numpy(numpy.random.rand(batch_size, dim)), torch.ones(dim)")
    text = write_module(SOFTMAX, drawn, ("forward(self, x)", "forward(self, x, y)"), ("dim=1)", "dim=1) * y"))
    (row,) = import_all(numbers=text.replace("import torch\n", "import numpy\nimport torch\n", 1))
    problem = read_row(row)
    first, again, second = (draw_data(problem, {}, seed).input_data["x"] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert "degenerate: input 2 is the same for every seed" in row.warnings


def test_positive_data_that_hides_a_relu_gets_a_case_of_both_signs(import_all: Importer) -> None:
    (row,) = import_all(relu=write_module(SOFTMAX, ("torch.softmax(x, dim=1)", "torch.relu(x)"), ("randn", "rand")))
    problem = read_row(row)
    declared, wide = draw_case(problem, {}, 0)
    assert bool((declared.input_data["x"] < 0).any())
    assert not torch.equal(compute_expected(problem, wide)[0][0], wide.input_data["x"])
    assert not any(warning.startswith("degenerate") for warning in row.warnings)


def test_an_import_can_be_repeated_and_replaces_nothing_silently(import_all: Importer, tmp_path: Path) -> None:
    (row,) = import_all(softmax=write_module(SOFTMAX))
    before = Path(row.written).read_bytes()
    (again,) = import_all()
    assert not again.refusal
    assert Path(row.written).read_bytes() == before
    Path(row.written).write_text("mine")
    (refused,) = import_all()
    assert "--force" in refused.refusal
    assert Path(row.written).read_text() == "mine"
    (replaced,) = import_all(replaces=True)
    assert Path(replaced.written).read_bytes() == before


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("import torch\n", "import torch\nimport os\n", "line 2: imports os"),
        ("import torch\n", "from torch.utils.cpp_extension import load\n", "torch.utils.cpp_extension"),
        ("super().__init__()", "super().__init__(); torch.hub.load('a', 'b')", "torch.hub"),
        ("batch_size = 64", "batch_size = 64\nprint(open('x'))", "calls open"),
        ("batch_size = 64", "for batch_size in (64,): pass", "top level"),
        ("class Model", "class Modul", "no class Model"),
        ("def get_inputs", "def make", "no function get_inputs"),
        ("def get_inputs()", "def get_inputs(", "a syntax error"),
        ("torch.softmax(x, dim=1)", "eval('x')", "calls eval"),
    ],
)
def test_what_is_refused_by_its_syntax_says_where(before: str, after: str, words: str) -> None:
    with pytest.raises(CodeRefusalError) as caught:
        read_module(write_module(SOFTMAX).replace(before, after, 1))
    assert words in str(caught.value)


REFUSED = {  # what is in the place of `torch.softmax(x, dim=1)` -> words of the reason
    "x + torch.randn_like(x)": "random: forward",
    "torch.dropout(x, 0.5, True)": "random: its dropout is active",
    "torch.nonzero(x > 1)": "shape depends on data",
    "torch.fft.fft(x)": "complex64",
    "float(x.sum())": "returns float",
    "{'y': x}['z']": "forward fails: KeyError",
    "None": "returns NoneType",
    "x.to(torch.device('cu' + 'da'))": "cuda",
    "x.to(torch.uint16)": "uint16",
    "x * float('nan')": "NaN",
    "x @ torch.randn(7, 7)": "forward fails",
}


def test_what_is_no_problem_is_refused_with_its_reason(import_all: Importer) -> None:
    texts = {
        f"m{number}": write_module(SOFTMAX, ("torch.softmax(x, dim=1)", code), ("4096 * 4", "64"))
        for number, code in enumerate(REFUSED)
    }
    rows = import_all(**texts)
    reasons = dict(zip(REFUSED, (row.refusal for row in rows), strict=True))
    assert {code: reasons[code] for code, words in REFUSED.items() if words not in reasons[code]} == {}


@pytest.mark.parametrize(
    "code", ["x.cuda()", "x.to('cuda:0')", 'x.to(device = "cuda")', "x + torch.ones(1, device=torch.device('cuda'))"]
)
def test_what_asks_for_a_gpu_is_imported_for_the_processor(import_all: Importer, code: str) -> None:
    (row,) = import_all(on_a_gpu=write_module(SOFTMAX, ("torch.softmax(x, dim=1)", code)))
    assert (row.refusal, "it asks for cuda: its tensors are on the processor" in row.warnings) == ("", True)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x * 0", "zeros pass"),
        ("x * 0 + 1", "ones pass"),
        ("x + 0", "an input passes as the output"),
        ("x.sum() * 0 + x * 1e-9", "zeros pass"),
    ],
)
def test_a_degenerate_module_is_imported_with_a_warning(import_all: Importer, code: str, words: str) -> None:
    (row,) = import_all(degenerate=write_module(SOFTMAX, ("torch.softmax(x, dim=1)", code)))
    assert f"degenerate: {words}" in row.warnings


OUTSIDE = "torch.serialization.os"  # the way out that no list of names closes
HOSTILE = {  # a file's text -> words of the reason
    "writes": (SOFTMAX.replace("return torch.softmax", "torch.save(x, 'TRACE'); return torch.softmax"), "fails"),
    "class_body": (
        SOFTMAX.replace("class Model(nn.Module):", f"class Model(nn.Module):\n    {OUTSIDE}.mkdir('TRACE')"),
        "fails",
    ),
    "default": (SOFTMAX.replace("(self, x)", f"(self, x, y={OUTSIDE}.mkdir('TRACE'))"), "fails"),
    "annotation": (  # newer versions of Python evaluate it when it is asked for
        SOFTMAX.replace("(self, x)", f"(self, x: {OUTSIDE}.mkdir('TRACE'))"),
        "",
    ),
    "decorator": (SOFTMAX.replace("    def forward", f"    @{OUTSIDE}.mkdir('TRACE')\n    def forward"), "fails"),
    "exits": (SOFTMAX.replace("return torch.softmax", f"{OUTSIDE}._exit(0); return torch.softmax"), "process"),
    "quits": (SOFTMAX.replace("return torch.softmax", "raise SystemExit; return torch.softmax"), "SystemExit"),
    "socket": (
        SOFTMAX.replace("return torch.softmax", "import_ = __builtins__['__import__']; import_('socket').socket(); 0"),
        "fails",
    ),
    "reads": (SOFTMAX.replace("return torch.softmax", f"{OUTSIDE}.listdir('/'); return torch.softmax"), "fails"),
    "starts": (SOFTMAX.replace("return torch.softmax", f"{OUTSIDE}.system('touch TRACE'); raise KeyError"), "fails"),
    "loops": (SOFTMAX.replace("    return [torch.randn", "    while True: pass\n    return [torch.randn"), "seconds"),
    "allocates": (
        SOFTMAX.replace("return torch.softmax", "torch.ones(25_000_000_000, device='cpu'); return torch.softmax"),
        "fails",
    ),
}


def test_hostile_files_cost_their_row_and_nothing_else(import_all: Importer, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    texts = {name: HEAD + text.replace("TRACE", str(trace)) for name, (text, _) in HOSTILE.items()}
    limits = ModuleLimits(LIMITS.max_bytes, LIMITS.max_operations, seconds=6.0)
    rows = {row.file.removesuffix(".py"): row for row in import_all(limits, sound=write_module(SOFTMAX), **texts)}
    assert not rows["sound"].refusal
    assert not trace.exists()
    reasons = {name: rows[name].refusal for name in HOSTILE}
    assert {name: reasons[name] for name, (_, words) in HOSTILE.items() if words not in reasons[name]} == {}


def test_names_of_problems_say_folder_and_file() -> None:
    assert name_problem("level2/7_Conv3d + ReLU.py") == "level2_7_conv3d_relu"
    assert name_problem("7_é.py") == "kernel_7"
