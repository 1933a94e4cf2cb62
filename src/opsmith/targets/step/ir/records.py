"""The entries of a task file: a mapping -> an input, parameter, fn or output, by the rules of reference section 8.1."""

from __future__ import annotations

import math
import sys

from opsmith.targets.step.ir import code as ir_code
from opsmith.targets.step.ir.entry import Entry, as_number, kind
from opsmith.targets.step.ir.nodes import Located
from opsmith.targets.step.language.spec import Fn, OutputSpec, TensorSpec
from opsmith.targets.step.language.types import FLOATS, Buffer, DType, Field, Multihot, Tuple, fields_of, scalar_of

TENSOR_KEYS = ("name", "dtype", "dims", "data_gen", "min", "max")
FN_KEYS = ("name", "func_name", "apply", "init", "input_dtype", "output_dtype")
OUTPUT_KEYS = ("name", "dtype", "dims", "data_transform", "rtol", "atol")
DATA_GENS = ("torch.rand", "torch.randn", "torch.ones", "torch.zeros", "binary", "randint")

_LARGEST = {"fp16": 65504.0, "bf16": 3.3895313892515355e38, "fp32": 3.4028234663852886e38, "fp64": math.inf}
_INT_BITS = {"int32": 31, "int64": 63}


def read_tensor(entry: Entry, what: str) -> TensorSpec | None:
    """An input or a parameter."""
    name, dtype, dims = entry.own_name("name", what), entry.dtype("dtype"), entry.dims()
    low, high = entry.whole("min"), entry.whole("max")
    if isinstance(dtype, Tuple):
        given = f"a tuple of {len(dtype.fields)} types"
        entry.error(entry.get("dtype"), "dtype", given, "one type", "declare the streams apart")
    if dtype is None or isinstance(dtype, Tuple):
        return None
    data_gen = _data_gen(entry, dtype)
    _check_range(entry, dtype, data_gen, low, high)
    return TensorSpec(name, dtype, dims, data_gen, low, high) if name and dims else None


def _data_gen(entry: Entry, dtype: Field) -> str | None:
    """The generator's name, checked against the type; None for a Multihot, which has `min` and `max`."""
    at = entry.get("data_gen")
    if multihot_of(dtype) is not None:
        if at is not None:
            remedy = "remove it; give `min` and `max`, the ones per row"
            entry.error(at, "data_gen", f"{kind(at)} for {dtype}", "no data_gen for a Multihot", remedy)
        return None
    if at is None or at.value not in DATA_GENS:
        given = "no data_gen" if at is None else kind(at)
        entry.error(at, "data_gen", given, f"one of {', '.join(DATA_GENS)}", "data_gen: torch.randn")
        return None
    scalar, name = scalar_of(dtype).name, str(at.value)
    if name in ("torch.rand", "torch.randn") and scalar not in FLOATS:
        entry.error(at, "data_gen", f"{name} for {dtype}", "a float type", "data_gen: randint, with `min` and `max`")
    elif name == "randint" and scalar == "bool":
        entry.error(at, "data_gen", f"{name} for {dtype}", "an int or float type", "data_gen: binary")
    return name


def _check_range(entry: Entry, dtype: Field, data_gen: str | None, low: int | None, high: int | None) -> None:
    """`min` and `max` belong to Multihot and randint: needed there, out of place elsewhere."""
    multihot = multihot_of(dtype)
    wanted = multihot is not None or data_gen == "randint"
    for key in ("min", "max"):
        if wanted:
            entry.need(key, "an int")
        elif data_gen is not None and (at := entry.get(key)):
            given = f"{key} with data_gen {data_gen}"
            entry.error(at, key, given, f"{key} with randint or a Multihot only", f"remove `{key}`")
    if not wanted or low is None or high is None:
        return
    if low > high or (multihot is not None and low < 0):
        expected = "min <= max" if multihot is None else "0 <= min <= max"
        entry.error(entry.get("min"), "min", f"min {low}, max {high}", expected)
    elif multihot is not None and (at := entry.get("max")):
        entry.names.ones.append((multihot, high, at, entry.place("max")))


def multihot_of(field: Field) -> Multihot | None:
    """The Multihot that a field is or holds."""
    inner = field.elem if isinstance(field, Buffer) else field
    return inner if isinstance(inner, Multihot) else None


def read_fn(entry: Entry) -> Fn | None:
    """A function of the hardware."""
    label, func_name = entry.word("name"), entry.own_name("func_name", "the fn")
    given, made = entry.dtype("input_dtype"), entry.dtype("output_dtype")
    init, body = _init(entry, made), _body(entry)
    if label is None or func_name is None or given is None or made is None or body is None:
        return None
    return Fn(label, func_name, body, given, made, init)


def _body(entry: Entry) -> str | None:
    at, found = entry.need("apply", "a body that ends in return [...]"), entry.text("apply")
    if found is None:
        if at is not None and isinstance(at.value, str):
            entry.error(at, "apply", "an empty body", "return [...], one value per field of output_dtype")
        return None
    init = entry.get("init")
    problem = ir_code.check_body(found[0], stateful=init is not None and init.value != [])
    if problem is not None:
        entry.code_error(found[1], "apply", problem)
    return found[0]


def _init(entry: Entry, made: DType | None) -> tuple[float, ...] | None:
    """One start value per field of the output type; None for a stateless fn."""
    at = entry.get("init")
    if at is None or at.value == []:
        return None
    if not isinstance(at.value, list):
        expected = "a list with one start value per field of output_dtype"
        entry.error(at, "init", kind(at), expected, f"init: [{at.raw}]")
        return None
    if made is None:
        return None
    fields = fields_of(made)
    if len(fields) != len(at.value):
        entry.error(at, "init", f"{len(at.value)} start values", f"{len(fields)}, one per field of {made}")
        return None
    return tuple(_start(entry, item, field) for item, field in zip(at.value, fields, strict=True))


def _start(entry: Entry, at: Located, field: Field) -> float:
    """One start value, in the range of its field's number type (0 where it is wrong)."""
    scalar = scalar_of(field).name
    if isinstance(at.value, bool):
        if scalar != "bool":
            entry.error(at, "init", kind(at), f"a number for {field}", "1 or 0")
        return int(at.value)
    number = as_number(at.value)
    if number is None:
        entry.error(at, "init", kind(at), "a number, inf or -inf")
        return 0
    if wrong := _range_error(number, scalar):
        entry.error(at, "init", kind(at), f"{wrong} for {field}")
        return 0
    return int(number) if scalar in (*_INT_BITS, "bool") else number


def _range_error(number: float, scalar: str) -> str:
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


def read_output(entry: Entry) -> OutputSpec | None:
    """A wanted output."""
    name, dtype, dims = entry.own_name("name", "the output"), entry.dtype("dtype"), entry.dims()
    at, texts = entry.need("data_transform", "a list with one text per field of dtype"), entry.values("data_transform")
    rtol, atol = entry.tolerance("rtol", 1.0), entry.tolerance("atol", sys.float_info.max)
    if name is None or dtype is None or not dims or at is None or not isinstance(at.value, list):
        return None
    if len(at.value) != len(fields_of(dtype)):
        expected = f"{len(fields_of(dtype))}, one per field of {dtype}"
        entry.error(at, "data_transform", f"{len(at.value)} texts", expected)
    return OutputSpec(name, dtype, dims, texts, rtol, atol)
