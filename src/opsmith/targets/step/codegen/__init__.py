"""The generated script: one pytest file per task and program, with torch and `opsmith.step` as its only imports.

Equal task and program give equal bytes. The program's text is executed as Python only because the checker found it to
lie within the language; it runs inside a function, so that it cannot rebind what the checks use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from opsmith.errors import TaskError
from opsmith.problems.shape_sets import choose_shape_sets
from opsmith.targets.step.codegen.parts import (
    OWN_NAMES,
    body_text,
    data_text,
    fn_text,
    global_text,
    pin_size,
    reference_text,
    streams_text,
    taken_names,
)
from opsmith.targets.step.codegen.text import assigned_names, dims_code, type_code
from opsmith.targets.step.ir.code import SIZE_SUFFIX, sizes_with
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.program import dedent_program
from opsmith.targets.step.language.spec import OutputSpec, TaskSpec
from opsmith.targets.step.language.types import Field, Multihot, fields_of, scalar_of


def generate_script(spec: TaskSpec, source: str) -> str:
    """The test script of a task with a program.

    Errors  TaskError when the program is outside of the language (its LANG findings), or when a name of the task is one
            that the script needs for itself
    """
    program = _program_text(source)
    lang = [error for error in check_program(spec, program).errors if error.kind == "LANG"]
    if lang:
        raise TaskError("no script: the program is not in the language\n" + "\n".join(map(str, lang)), lang)
    _check_names(spec)
    sections = [
        _write_head(spec),
        _write_sizes(spec),
        global_text(spec),
        data_text(spec),
        *(fn_text(fn, taken_names(spec)) for fn in spec.fns),
        streams_text(spec),
        reference_text(spec),
        _write_body(spec, program),
        _write_checks(spec),
        _TESTS,
    ]
    script = "\n\n\n".join(section.rstrip("\n") for section in sections if section) + "\n"
    _check_same(script, program)
    return script


def _program_text(source: str) -> str:
    """The program with common indentation removed and line ends that Python and the checker read alike."""
    return dedent_program(source.replace("\r\n", "\n").replace("\r", "\n").replace("\f", ""))


def _check_names(spec: TaskSpec) -> None:
    names = {
        *spec.sizes,
        *spec.problem.symbols,
        *(fn.func_name for fn in spec.fns),
        *assigned_names([spec.global_code]),
    }
    clash = sorted(names & (OWN_NAMES - {"ctx"}))
    if clash:
        raise TaskError(f"no script: it uses the names {', '.join(clash)} itself; rename them in the task file")


def _check_same(script: str, program: str) -> None:
    """What stands in the script is the program that was checked."""
    body = next(node for node in ast.parse(script).body if isinstance(node, ast.FunctionDef) and node.name == "body")
    script_nodes = [node for node in body.body if not _is_docstring(node)]
    program_nodes = [node for node in ast.parse(program).body if not _is_docstring(node)]
    assert list(map(ast.dump, script_nodes)) == list(map(ast.dump, program_nodes)), (
        "the program changed on its way into the script"
    )


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


# -------------------------------------------------------------------- head and sizes
def _write_head(spec: TaskSpec) -> str:
    title = spec.test_name.split("\n")[0].strip()
    suffix = f": {title}" if title and title.isprintable() and '"' not in title and "\\" not in title else ""
    return f'"""A STeP program and its test{suffix}. Run it with pytest."""\n\nimport torch\n\nfrom opsmith import step'


def _write_sizes(spec: TaskSpec) -> str:
    symbols = list(spec.sizes)
    sets = {name: sizes_with(spec, sizes) for name, sizes in choose_shape_sets(spec.problem).items()}
    rows = ["SHAPES = {  # sizes by shape set; the base set first"]
    rows += [f'    "{name}": {_sizes_code(sizes, symbols)},' for name, sizes in sets.items()]
    rows += ["}", 'SHAPE = globals().get("SHAPE", "base")  # step.rerun sets another one', ""]
    rows += [f'{name} = step.Dim("{name}", SHAPES[SHAPE]["{name}"])' for name in symbols]
    rows += [pin_size(name) for name in symbols]
    rows += [f"ctx = step.Context({{{', '.join(f'{name}: {name}{SIZE_SUFFIX}' for name in symbols)}}})"]
    return "\n".join(rows)


def _sizes_code(sizes: Mapping[str, int], symbols: Iterable[str]) -> str:
    return f"{{{', '.join(f'{name!r}: {sizes[name]}' for name in symbols)}}}".replace("'", '"')


# -------------------------------------------------------------------- program, checks, tests
def _write_body(spec: TaskSpec, program: str) -> str:
    lines = "\n".join(f"    {line + chr(10)!r}" for line in program.split("\n"))
    return f"{body_text(spec, program + chr(10))}\n\nIMPL = (\n{lines}\n)"


def _write_checks(spec: TaskSpec) -> str:
    types = [f'    "{out.name}": ({type_code(out.dtype)}, {dims_code(out.dims)}),' for out in spec.outputs]
    fns = [f'    "{fn.func_name}": {fn.func_name},' for fn in spec.fns]
    tolerances = [f'    "{out.name}": {_write_tolerances(out)},' for out in spec.outputs]
    rows = ["functions = {", *fns, "}"] if fns else ["functions = {}"]
    rows += ["output_type = {", *types, "}"]
    rows += ["tolerance = {  # per field; none: the defaults of torch.testing.assert_close", *tolerances, "}"]
    return "\n".join([*rows, "", "", _CHECKS.rstrip("\n")])


def _write_tolerances(output: OutputSpec) -> str:
    if output.rtol is not None or output.atol is not None:
        own = f'{{"rtol": {output.rtol or 0.0!r}, "atol": {output.atol or 0.0!r}}}'
        return f"[{', '.join(own for _ in fields_of(output.dtype))}]"
    return f"[{', '.join(_field_tolerance(field) for field in fields_of(output.dtype))}]"


def _field_tolerance(field: Field) -> str:
    """The default at the base sizes; wider at others, where sums are longer."""
    is_wide = scalar_of(field).name in ("fp32", "fp64") and not isinstance(field, Multihot)
    return '{} if SHAPE == "base" else {"rtol": 1e-4, "atol": 1e-4}' if is_wide else "{}"


_CHECKS = '''
def check_program(impl):
    """The text is a well-typed, affine program of the language."""
    step.check_program(impl, prepare(), output_type, functions)


def check_shape(*results):
    """Number, element types and dims of the returned streams."""
    assert len(results) == len(output_type), f"{len(results)} streams, expected {len(output_type)}"
    for result, (name, (dtype, dims)) in zip(results, output_type.items()):
        assert isinstance(result, step.Stream), f"{name}: {result!r} is no stream"
        assert result.dtype == dtype, f"{name}: {result.dtype}, expected {dtype}"
        assert result.shape == [step.dim(d) for d in dims], f"{name}: dims {result.shape}, expected {dims}"


def check_data(expected, *results):
    """Every field of every output."""
    for result, (name, fields) in zip(results, expected.items()):
        assert len(result.data) == len(fields), f"{name}: {len(result.data)} fields, expected {len(fields)}"
        for i, (tensor, wanted, limits) in enumerate(zip(result.data, fields, tolerance[name])):
            assert not wanted.isnan().any(), f"{name}, field {i}: the reference holds NaN"
            torch.testing.assert_close(tensor, wanted, **limits, msg=lambda text: f"{name}, field {i}: {text}")
'''.lstrip("\n")

_TESTS = '''
def test():
    """At this script's shape set."""
    expected = reference()
    check_program(IMPL)
    before = clones()
    results = body(*prepare())
    results = tuple(results) if isinstance(results, (tuple, list)) else (results,)
    check_shape(*results)
    check_data(expected, *results)
    for name, tensor in before.items():
        assert torch.equal(input_data[name], tensor), f"{name} was changed"


def test_shapes(shape):
    """At every other shape set: this script again, with other sizes."""
    step.rerun(__file__, SHAPE=shape)["test"]()


def pytest_generate_tests(metafunc):
    if "shape" in metafunc.fixturenames:
        metafunc.parametrize("shape", [name for name in SHAPES if name != "base"])
'''.strip("\n")
