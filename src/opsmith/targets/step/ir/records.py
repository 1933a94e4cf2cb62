"""The entries of a task file: a mapping -> an input, parameter, fn or output, and what each of their keys may hold."""

from __future__ import annotations

import math
import sys

from opsmith.problems.dtypes import FLOATS
from opsmith.problems.files.entries import as_number, describe_node
from opsmith.problems.files.nodes import Located
from opsmith.targets.step.ir import code as ir_code
from opsmith.targets.step.ir.entry import StepEntry
from opsmith.targets.step.language.spec import FnSpec, OutputSpec, TensorSpec
from opsmith.targets.step.language.types import DType, Field, Tuple, fields_of, multihot_of, scalar_of

TENSOR_KEYS = ("name", "dtype", "dims", "data_gen", "min", "max")
FN_KEYS = ("name", "func_name", "apply", "init", "input_dtype", "output_dtype")
OUTPUT_KEYS = ("name", "dtype", "dims", "data_transform", "rtol", "atol")
DATA_GENS = ("torch.rand", "torch.randn", "torch.ones", "torch.zeros", "binary", "randint")

_LARGEST = {"fp16": 65504.0, "bf16": 3.3895313892515355e38, "fp32": 3.4028234663852886e38, "fp64": math.inf}
_INT_BITS = {"int32": 31, "int64": 63}


def read_tensor(entry: StepEntry, what: str) -> TensorSpec | None:
    """An input or a parameter."""
    name, dtype, dims = entry.read_own_name("name", what), entry.read_dtype("dtype"), entry.read_dims()
    low, high = entry.read_int("min"), entry.read_int("max")
    if isinstance(dtype, Tuple):
        mistake = f"a tuple of {len(dtype.fields)} types"
        entry.report_error(entry.get("dtype"), "dtype", mistake, "one type", "declare the streams apart")
    if dtype is None or isinstance(dtype, Tuple):
        return None
    data_gen = _read_data_gen(entry, dtype)
    _check_range(entry, dtype, data_gen, low, high)
    return TensorSpec(name, dtype, dims, data_gen, low, high) if name and dims else None


def _read_data_gen(entry: StepEntry, dtype: Field) -> str | None:
    """The generator's name, checked against the type; None for a Multihot, which has `min` and `max`."""
    node = entry.get("data_gen")
    if multihot_of(dtype) is not None:
        if node is not None:
            remedy = "remove it; give `min` and `max`, the ones per row"
            entry.report_error(
                node, "data_gen", f"{describe_node(node)} for {dtype}", "no data_gen for a Multihot", remedy
            )
        return None
    if node is None or node.value not in DATA_GENS:
        mistake = "no data_gen" if node is None else describe_node(node)
        entry.report_error(node, "data_gen", mistake, f"one of {', '.join(DATA_GENS)}", "data_gen: torch.randn")
        return None
    scalar, name = scalar_of(dtype).name, str(node.value)
    if name in ("torch.rand", "torch.randn") and scalar not in FLOATS:
        entry.report_error(
            node, "data_gen", f"{name} for {dtype}", "a float type", "data_gen: randint, with `min` and `max`"
        )
    elif name == "randint" and scalar == "bool":
        entry.report_error(node, "data_gen", f"{name} for {dtype}", "an int or float type", "data_gen: binary")
    return name


def _check_range(entry: StepEntry, dtype: Field, data_gen: str | None, low: int | None, high: int | None) -> None:
    """`min` and `max` belong to Multihot and randint: needed there, out of place elsewhere."""
    multihot = multihot_of(dtype)
    needed = multihot is not None or data_gen == "randint"
    for key in ("min", "max"):
        if needed:
            entry.need_value(key, "an int")
        elif data_gen is not None and (node := entry.get(key)):
            mistake = f"{key} with data_gen {data_gen}"
            entry.report_error(node, key, mistake, f"{key} with randint or a Multihot only", f"remove `{key}`")
    if not needed or low is None or high is None:
        return
    if low > high or (multihot is not None and low < 0):
        expected = "min <= max" if multihot is None else "0 <= min <= max"
        entry.report_error(entry.get("min"), "min", f"min {low}, max {high}", expected)
    elif multihot is not None and (node := entry.get("max")):
        entry.names.ones.append((multihot, high, node, entry.place_of("max")))


def read_fn(entry: StepEntry) -> FnSpec | None:
    """A function of the hardware."""
    label, func_name = entry.read_name("name"), entry.read_own_name("func_name", "the fn")
    input_dtype, output_dtype = entry.read_dtype("input_dtype"), entry.read_dtype("output_dtype")
    init, body = _read_init(entry, output_dtype), _read_body(entry)
    if label is None or func_name is None or input_dtype is None or output_dtype is None or body is None:
        return None
    return FnSpec(label, func_name, body, input_dtype, output_dtype, init)


def _read_body(entry: StepEntry) -> str | None:
    node, block = entry.need_value("apply", "a body that ends in return [...]"), entry.read_text("apply")
    if block is None:
        if node is not None and isinstance(node.value, str):
            entry.report_error(node, "apply", "an empty body", "return [...], one value per field of output_dtype")
        return None
    init = entry.get("init")
    problem = ir_code.check_body(block[0], stateful=init is not None and init.value != [])
    if problem is not None:
        entry.code_error(block[1], "apply", problem)
    return block[0]


def _read_init(entry: StepEntry, output_dtype: DType | None) -> tuple[float, ...] | None:
    """One start value per field of the output type; None for a stateless fn."""
    node = entry.get("init")
    if node is None or node.value == []:
        return None
    if not isinstance(node.value, list):
        expected = "a list with one start value per field of output_dtype"
        entry.report_error(node, "init", describe_node(node), expected, f"init: [{node.raw}]")
        return None
    if output_dtype is None:
        return None
    fields = fields_of(output_dtype)
    if len(fields) != len(node.value):
        entry.report_error(
            node, "init", f"{len(node.value)} start values", f"{len(fields)}, one per field of {output_dtype}"
        )
        return None
    return tuple(_read_start(entry, start, field) for start, field in zip(node.value, fields, strict=True))


def _read_start(entry: StepEntry, node: Located, field: Field) -> float:
    """One start value, in the range of its field's number type (0 where it is wrong)."""
    scalar = scalar_of(field).name
    if isinstance(node.value, bool):
        if scalar != "bool":
            entry.report_error(node, "init", describe_node(node), f"a number for {field}", "1 or 0")
        return int(node.value)
    number = as_number(node.value)
    if number is None:
        entry.report_error(node, "init", describe_node(node), "a number, inf or -inf")
        return 0
    if wrong := _describe_range(number, scalar):
        entry.report_error(node, "init", describe_node(node), f"{wrong} for {field}")
        return 0
    return int(number) if scalar in (*_INT_BITS, "bool") else number


def _describe_range(number: float, scalar: str) -> str:
    """What a start value of this type must be, if this one is not; else ""."""
    if scalar == "bool":
        return "" if number in (0, 1) else "true or false"
    if scalar in _INT_BITS:
        if not math.isfinite(number) or number != int(number):
            return "a finite whole number"
        limit = 2 ** _INT_BITS[scalar]
        return "" if -limit <= number < limit else f"a number that {scalar} can hold"
    fits = math.isinf(number) or abs(number) <= _LARGEST[scalar]
    return "" if fits else f"a number that {scalar} can hold, inf or -inf"


def read_output(entry: StepEntry) -> OutputSpec | None:
    """A wanted output."""
    name, dtype, dims = entry.read_own_name("name", "the output"), entry.read_dtype("dtype"), entry.read_dims()
    node, texts = (
        entry.need_value("data_transform", "a list with one text per field of dtype"),
        entry.read_values("data_transform"),
    )
    rtol, atol = entry.read_tolerance("rtol", 1.0), entry.read_tolerance("atol", sys.float_info.max)
    if name is None or dtype is None or not dims or node is None or not isinstance(node.value, list):
        return None
    if len(node.value) != len(fields_of(dtype)):
        expected = f"{len(fields_of(dtype))}, one per field of {dtype}"
        entry.report_error(node, "data_transform", f"{len(node.value)} texts", expected)
    return OutputSpec(name, dtype, dims, texts, rtol, atol)
