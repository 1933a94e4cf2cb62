"""The parts of generated Python that say what a task is: sizes apart, everything before the program.

Shared by the test script and by the task as bare Python.
"""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.problems.dtypes import TORCH_NAMES
from opsmith.problems.problem import ATTEMPTS
from opsmith.targets.step.codegen.text import (
    assigned_names,
    bind_value,
    class_name,
    dims_code,
    function_text,
    indent_text,
    pinned_global,
    shape_code,
    type_code,
)
from opsmith.targets.step.ir.code import SIZE_SUFFIX
from opsmith.targets.step.language.spec import FnSpec, OutputSpec, TaskSpec, TensorSpec
from opsmith.targets.step.language.types import fields_of, scalar_of

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


def taken_names(spec: TaskSpec) -> frozenset[str]:
    """Names of the script's own level, which a class of a fn must not take."""
    sizes = {f"{name}{SIZE_SUFFIX}" for name in spec.sizes}
    fns = {fn.func_name for fn in spec.fns}
    return OWN_NAMES | {*spec.sizes, *sizes, *fns, *assigned_names([spec.global_code])}


def pin_size(name: str) -> str:
    return f"{name}{SIZE_SUFFIX} = step.Size({name})"


def global_text(spec: TaskSpec) -> str:
    seed = f"torch.manual_seed({SEED})"
    pins = {f"{name}{SIZE_SUFFIX}": pin_size(name) for name in spec.sizes}
    pins |= {f"ctx[{name}]": f"ctx[{name}] = {name}{SIZE_SUFFIX}" for name in spec.sizes}
    return f"{seed}\n{pinned_global(spec.global_code, pins)}"


def data_text(spec: TaskSpec) -> str:
    tensors = (*spec.inputs, *spec.parameters)
    types = [f'    "{tensor.name}": {type_code(tensor.dtype)},' for tensor in tensors]
    data = [f'    "{tensor.name}": {_draw_code(tensor)},' for tensor in tensors]
    rows = ["input_dtype = {", *types, "}"]
    if not spec.margins:
        return "\n".join([*rows, "input_data = {", *data, "}"])
    drawn = ["", "", "def draw():", "    return {", *(f"    {row}" for row in data), "    }"]
    return "\n".join([*rows, *drawn, "", "", _distances_text(spec), "", "", _DRAWING])


_DRAWING = f"""
for _ in range({ATTEMPTS}):
    input_data = draw()
    if step.decides_clearly(distances()):
        break
else:
    raise AssertionError("no data with clear decisions in {ATTEMPTS} draws: loosen the task's margins")
""".strip()


def _draw_code(tensor: TensorSpec) -> str:
    """An expression that draws a tensor, with the same numbers as the verifier's for the same seed."""
    field = fields_of(tensor.dtype)[0]
    shape = shape_code(field, tensor.dims)
    dtype = TORCH_NAMES[scalar_of(field).name]
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


def _distances_text(spec: TaskSpec) -> str:
    """The margins, in the namespace that the references leave."""
    names = [f"distance_{i}" for i in range(len(spec.margins))]
    texts = [*_reference_texts(spec), *(bind_value(text, name) for text, name in zip(spec.margins, names, strict=True))]
    head = '"""How far discrete decisions are from going the other way."""\ninput_data = clones()\n'
    body = head + "".join(texts) + f"return [{', '.join(names)}]\n"
    clones = function_text("clones", (), _CLONES)
    return clones + "\n\n" + function_text("distances", captured_names(spec, texts), body).rstrip("\n")


def fn_text(fn: FnSpec, reserved: frozenset[str]) -> str:
    name = class_name(fn.name, reserved)
    rows = [f"class {name}(step.Fn):"]
    if fn.init is not None:
        rows += [
            "    def getInit(self):",
            f"        return [{', '.join(_number_code(value) for value in fn.init)}]",
            "",
        ]
    rows += [f"    def apply(self, {'state, ' if fn.stateful else ''}input):", indent_text(fn.apply, 8).rstrip("\n")]
    input_type, output_type = type_code(fn.input_dtype), type_code(fn.output_dtype)
    return "\n".join([*rows, "", "", f'{fn.func_name} = {name}("{fn.func_name}", {input_type}, {output_type})'])


def _number_code(value: float) -> str:
    text = repr(value)
    return f'float("{text}")' if text.endswith("inf") else text


_CLONES = '''
"""Copies of the data: what a reference or a program does with them stays its own."""
return {name: tensor.clone() for name, tensor in input_data.items()}
'''.lstrip("\n")


def streams_text(spec: TaskSpec) -> str:
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
    return [bind_value(text, name) for text, name in zip(texts, names, strict=True)]


def reference_text(spec: TaskSpec) -> str:
    texts = _reference_texts(spec)
    rows = [
        f'    "{output.name}": [{", ".join(f"_{name}" for name in _value_names(output))}],' for output in spec.outputs
    ]
    head = '"""The expected tensors of every output, computed on clones."""\ninput_data = clones()\n'
    body = head + "".join(texts) + "return {\n" + "\n".join(rows) + "\n}\n"
    return function_text("reference", captured_names(spec, texts), body)


def captured_names(spec: TaskSpec, texts: Sequence[str]) -> list[str]:
    """Names of the script that author's texts assign anew: inside a function their old value must be passed in."""
    names = {*spec.sizes, *(f"{name}{SIZE_SUFFIX}" for name in spec.sizes), *assigned_names([spec.global_code])}
    names |= {"torch", "ctx", *(fn.func_name for fn in spec.fns)}
    return sorted(names & assigned_names(texts))


def body_text(spec: TaskSpec, program: str) -> str:
    """The function `body` with this program; names of the script that the program binds anew are passed in."""
    names = {*spec.sizes, *(f"{name}{SIZE_SUFFIX}" for name in spec.sizes), *(fn.func_name for fn in spec.fns)}
    rebound = sorted(names & assigned_names([program]))
    return function_text("body", rebound, program, [tensor.name for tensor in spec.inputs])
