"""The generated script: one pytest file per task and program, with torch and `opsmith.step` as its only imports.

Equal task and program give equal bytes. The program's text is executed as Python only because the checker found it to
lie within the language; it runs inside a function, so that it cannot rebind what the checks use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from opsmith.errors import TaskError
from opsmith.targets.step.codegen.text import (
    assigned_names,
    class_name,
    dims_code,
    function_text,
    indented,
    pinned_global,
    shape_code,
    type_code,
    valued,
)
from opsmith.targets.step.execution.data import ATTEMPTS
from opsmith.targets.step.execution.trials import shape_sets
from opsmith.targets.step.ir.code import SIZE_SUFFIX, sizes_with
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.program import dedent
from opsmith.targets.step.language.spec import Fn, OutputSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import Field, Multihot, fields_of, scalar_of

SEED = 42
OWN_NAMES = frozenset(
    {"IMPL", "SHAPE", "SHAPES", "body", "check_data", "check_program", "check_shape", "clones", "ctx", "distances"}
    | {
        "_",
        "draw",
        "functions",
        "input_data",
        "input_dtype",
        "output_type",
        "prepare",
        "pytest_generate_tests",
        "reference",
        "step",
    }
    | {"test", "test_shapes", "tolerance", "torch"}
)
_TORCH = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"} | {
    name: name for name in ("int32", "int64", "bool")
}


def generate_script(spec: TaskSpec, source: str) -> str:
    """The test script of a task with a program.

    Errors  TaskError when the program is outside of the language (its LANG findings), or when a name of the task is one
            that the script needs for itself
    Source  reference section 9
    """
    program = _program_text(source)
    lang = [error for error in check_program(spec, program).errors if error.kind == "LANG"]
    if lang:
        raise TaskError("no script: the program is not in the language\n" + "\n".join(map(str, lang)), lang)
    _check_names(spec)
    parts = [
        _head(spec),
        _sizes(spec),
        _global(spec),
        _data(spec),
        *(_fn(fn, _taken(spec)) for fn in spec.fns),
        _streams(spec),
        _reference(spec),
        _body(spec, program),
        _checks(spec),
        _TESTS,
    ]
    script = "\n\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"
    _check_same(script, program)
    return script


def _program_text(source: str) -> str:
    """The program with common indentation removed and line ends that Python and the checker read alike."""
    return dedent(source.replace("\r\n", "\n").replace("\r", "\n").replace("\f", ""))


def _check_names(spec: TaskSpec) -> None:
    names = {*spec.sizes, *spec.symbols, *(fn.func_name for fn in spec.fns), *assigned_names([spec.global_code])}
    clash = sorted(names & (OWN_NAMES - {"ctx"}))
    if clash:
        raise TaskError(f"no script: it uses the names {', '.join(clash)} itself; rename them in the task file")


def _check_same(script: str, program: str) -> None:
    """What stands in the script is the program that was checked."""
    body = next(node for node in ast.parse(script).body if isinstance(node, ast.FunctionDef) and node.name == "body")
    given = [node for node in body.body if not _is_docstring(node)]
    wanted = [node for node in ast.parse(program).body if not _is_docstring(node)]
    assert list(map(ast.dump, given)) == list(map(ast.dump, wanted)), "the program changed on its way into the script"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _taken(spec: TaskSpec) -> frozenset[str]:
    """Names of the script's own level, which a class of a fn must not take."""
    sizes = {f"{name}{SIZE_SUFFIX}" for name in spec.sizes}
    fns = {fn.func_name for fn in spec.fns}
    return OWN_NAMES | {*spec.sizes, *sizes, *fns, *assigned_names([spec.global_code])}


# -------------------------------------------------------------------- 1 to 3: sizes, global, data
def _head(spec: TaskSpec) -> str:
    title = spec.test_name.split("\n")[0].strip()
    shown = f": {title}" if title and title.isprintable() and '"' not in title and "\\" not in title else ""
    return f'"""A STeP program and its test{shown}. Run it with pytest."""\n\nimport torch\n\nfrom opsmith import step'


def _sizes(spec: TaskSpec) -> str:
    symbols = list(spec.sizes)
    sets = {name: sizes_with(spec, sizes) for name, sizes in shape_sets(spec).items()}
    rows = ["SHAPES = {  # sizes by shape set; the base set first"]
    rows += [f'    "{name}": {_sizes_code(sizes, symbols)},' for name, sizes in sets.items()]
    rows += ["}", 'SHAPE = globals().get("SHAPE", "base")  # step.rerun sets another one', ""]
    rows += [f'{name} = step.Dim("{name}", SHAPES[SHAPE]["{name}"])' for name in symbols]
    rows += [_pin(name) for name in symbols]
    rows += [f"ctx = step.Context({{{', '.join(f'{name}: {name}{SIZE_SUFFIX}' for name in symbols)}}})"]
    return "\n".join(rows)


def _sizes_code(sizes: Mapping[str, int], symbols: Iterable[str]) -> str:
    return f"{{{', '.join(f'{name!r}: {sizes[name]}' for name in symbols)}}}".replace("'", '"')


def _pin(name: str) -> str:
    return f"{name}{SIZE_SUFFIX} = step.Size({name})"


def _global(spec: TaskSpec) -> str:
    seed = f"torch.manual_seed({SEED})"
    pins = {f"{name}{SIZE_SUFFIX}": _pin(name) for name in spec.sizes}
    pins |= {f"ctx[{name}]": f"ctx[{name}] = {name}{SIZE_SUFFIX}" for name in spec.sizes}
    return f"{seed}\n{pinned_global(spec.global_code, pins)}"


def _data(spec: TaskSpec) -> str:
    tensors = (*spec.inputs, *spec.parameters)
    types = [f'    "{tensor.name}": {type_code(tensor.dtype)},' for tensor in tensors]
    data = [f'    "{tensor.name}": {_draw(tensor)},' for tensor in tensors]
    rows = ["input_dtype = {", *types, "}"]
    if not spec.margins:
        return "\n".join([*rows, "input_data = {", *data, "}"])
    drawn = ["", "", "def draw():", "    return {", *(f"    {row}" for row in data), "    }"]
    return "\n".join([*rows, *drawn, "", "", _distances(spec), "", "", _DRAWING])


_DRAWING = f"""
for _ in range({ATTEMPTS}):
    input_data = draw()
    if step.decides_clearly(distances()):
        break
else:
    raise AssertionError("no data with clear decisions in {ATTEMPTS} draws: loosen the task's margins")
""".strip()


def _draw(tensor: TensorSpec) -> str:
    """An expression that draws a tensor, with the same numbers as the verifier's for the same seed."""
    field = fields_of(tensor.dtype)[0]
    shape = shape_code(field, tensor.dims)
    dtype = _TORCH[scalar_of(field).name]
    drawn = {
        "torch.rand": f"torch.rand({shape})",
        "torch.randn": f"torch.randn({shape})",
        "torch.ones": f"torch.ones({shape})",
        "torch.zeros": f"torch.zeros({shape})",
        "binary": f"torch.bernoulli(0.5 * torch.ones({shape}))",
        "randint": f"torch.randint({tensor.min}, {tensor.max} + 1, [{shape}])",
        None: f"step.multihot([{shape}], min={tensor.min}, max={tensor.max})",
    }[tensor.data_gen]
    return drawn if dtype == "float32" and tensor.data_gen != "randint" else f"{drawn}.to(torch.{dtype})"


def _distances(spec: TaskSpec) -> str:
    """The margins, in the namespace that the references leave."""
    names = [f"distance_{i}" for i in range(len(spec.margins))]
    texts = [*_reference_texts(spec), *(valued(text, name) for text, name in zip(spec.margins, names, strict=True))]
    head = '"""How far discrete decisions are from going the other way."""\ninput_data = clones()\n'
    body = head + "".join(texts) + f"return [{', '.join(names)}]\n"
    clones = function_text("clones", (), _CLONES)
    return clones + "\n\n" + function_text("distances", _captured(spec, texts), body).rstrip("\n")


# -------------------------------------------------------------------- 4 and 5: functions, streams, references
def _fn(fn: Fn, taken: frozenset[str]) -> str:
    name = class_name(fn.name, taken)
    rows = [f"class {name}(step.Fn):"]
    if fn.init is not None:
        rows += ["    def getInit(self):", f"        return [{', '.join(_number(value) for value in fn.init)}]", ""]
    rows += [f"    def apply(self, {'state, ' if fn.stateful else ''}input):", indented(fn.apply, 8).rstrip("\n")]
    given, made = type_code(fn.input_dtype), type_code(fn.output_dtype)
    return "\n".join([*rows, "", "", f'{fn.func_name} = {name}("{fn.func_name}", {given}, {made})'])


def _number(value: float) -> str:
    text = repr(value)
    return f'float("{text}")' if text.endswith("inf") else text


_CLONES = '''
"""Copies of the data: what a reference or a program does with them stays its own."""
return {name: tensor.clone() for name, tensor in input_data.items()}
'''.lstrip("\n")


def _streams(spec: TaskSpec) -> str:
    """`clones` and `prepare`."""
    streams = [
        f'    step.Stream("{tensor.name}", input_dtype["{tensor.name}"], {dims_code(tensor.dims)}, '
        f'[input_data["{tensor.name}"].clone()], ctx),'
        for tensor in spec.inputs
    ]
    body = "\n".join(['"""The input streams, on clones."""', "return [", *streams, "]"]) + "\n"
    clones = "" if spec.margins else function_text("clones", (), _CLONES) + "\n\n"
    return clones + function_text("prepare", (), body)


def _value_names(output: OutputSpec) -> list[str]:
    return [f"{output.name}_{i}" for i in range(len(output.data_transform))]


def _reference_texts(spec: TaskSpec) -> list[str]:
    """Every data_transform, its value bound to a name of its own."""
    texts = [text for output in spec.outputs for text in output.data_transform]
    names = [f"_{name}" for output in spec.outputs for name in _value_names(output)]
    return [valued(text, name) for text, name in zip(texts, names, strict=True)]


def _reference(spec: TaskSpec) -> str:
    texts = _reference_texts(spec)
    rows = [
        f'    "{output.name}": [{", ".join(f"_{name}" for name in _value_names(output))}],' for output in spec.outputs
    ]
    head = '"""The expected tensors of every output, computed on clones."""\ninput_data = clones()\n'
    body = head + "".join(texts) + "return {\n" + "\n".join(rows) + "\n}\n"
    return function_text("reference", _captured(spec, texts), body)


def _captured(spec: TaskSpec, texts: Sequence[str]) -> list[str]:
    """Names of the script that author's texts assign anew: inside a function their old value must be passed in."""
    known = {*spec.sizes, *(f"{name}{SIZE_SUFFIX}" for name in spec.sizes), *assigned_names([spec.global_code])}
    known |= {"torch", "ctx", *(fn.func_name for fn in spec.fns)}
    return sorted(known & assigned_names(texts))


# -------------------------------------------------------------------- 6 to 8: program, checks, tests
def _body(spec: TaskSpec, program: str) -> str:
    known = {*spec.sizes, *(f"{name}{SIZE_SUFFIX}" for name in spec.sizes), *(fn.func_name for fn in spec.fns)}
    rebound = sorted(known & assigned_names([program]))
    inputs = [tensor.name for tensor in spec.inputs]
    lines = "\n".join(f"    {line + chr(10)!r}" for line in program.split("\n"))
    return f"{function_text('body', rebound, program + chr(10), inputs)}\n\nIMPL = (\n{lines}\n)"


def _checks(spec: TaskSpec) -> str:
    types = [f'    "{out.name}": ({type_code(out.dtype)}, {dims_code(out.dims)}),' for out in spec.outputs]
    fns = [f'    "{fn.func_name}": {fn.func_name},' for fn in spec.fns]
    tolerances = [f'    "{out.name}": {_tolerances(out)},' for out in spec.outputs]
    rows = ["functions = {", *fns, "}"] if fns else ["functions = {}"]
    rows += ["output_type = {", *types, "}"]
    rows += ["tolerance = {  # per field; none: the defaults of torch.testing.assert_close", *tolerances, "}"]
    return "\n".join([*rows, "", "", _CHECKS.rstrip("\n")])


def _tolerances(output: OutputSpec) -> str:
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
