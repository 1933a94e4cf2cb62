"""The formats of FlashInfer Trace as pydantic models: Definition, Workload, Solution, Trace.

They are our own, from the format's description, so that reading one needs no GPU library. Unknown keys are let through,
for the format grows; whatever is known has its type, and texts and lists have limits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from opsmith.errors import TaskError

MOST_ENTRIES = 64  # of axes, inputs, outputs, tags, constraints or sources
MAX_SIZE = 2**31 - 1  # of one axis
MOST_ERRORS = 3  # that are told of one text

ShortText = Annotated[str, Field(min_length=1, max_length=200)]
LongText = Annotated[str, Field(max_length=1 << 16)]
CodeText = Annotated[str, Field(min_length=1, max_length=1 << 20)]
AxisSize = Annotated[int, Field(ge=1, le=MAX_SIZE, strict=True)]
Model = TypeVar("Model", bound=BaseModel)


class FlashinferPart(BaseModel):
    """Whatever a text of this format holds."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class ConstAxis(FlashinferPart):
    type: Literal["const"]
    value: AxisSize
    description: LongText | None = None


class VarAxis(FlashinferPart):
    type: Literal["var"]
    description: LongText | None = None


Axis = Annotated[ConstAxis | VarAxis, Field(discriminator="type")]


class FlashinferTensor(FlashinferPart):
    """An input or an output; `shape` None: a single number."""

    shape: Annotated[tuple[ShortText, ...], Field(max_length=16)] | None
    dtype: ShortText
    description: LongText | None = None


class Definition(FlashinferPart):
    """What an operator computes."""

    name: ShortText
    op_type: ShortText
    axes: Annotated[Mapping[ShortText, Axis], Field(min_length=1, max_length=MOST_ENTRIES)]
    inputs: Annotated[Mapping[ShortText, FlashinferTensor], Field(min_length=1, max_length=MOST_ENTRIES)]
    outputs: Annotated[Mapping[ShortText, FlashinferTensor], Field(min_length=1, max_length=MOST_ENTRIES)]
    reference: CodeText
    tags: Annotated[tuple[ShortText, ...], Field(max_length=MOST_ENTRIES)] = ()
    description: LongText | None = None
    constraints: Annotated[tuple[ShortText, ...], Field(max_length=MOST_ENTRIES)] | None = None

    @model_validator(mode="after")
    def _check_axes(self) -> Definition:
        for name, spec in {**self.inputs, **self.outputs}.items():
            for axis in spec.shape or ():
                if axis not in self.axes:
                    raise ValueError(f"{name}: its axis {axis!r} is none of {', '.join(self.axes)}")
        if both := sorted(self.inputs.keys() & self.outputs.keys()):
            raise ValueError(f"{both[0]}: an input and an output of one name")
        return self


class RandomInput(FlashinferPart):
    type: Literal["random"] = "random"


class ScalarInput(FlashinferPart):
    type: Literal["scalar"] = "scalar"
    value: bool | int | float


class SafetensorsInput(FlashinferPart):
    type: Literal["safetensors"] = "safetensors"
    path: ShortText
    tensor_key: ShortText


WorkloadInput = Annotated[RandomInput | ScalarInput | SafetensorsInput, Field(discriminator="type")]


class Workload(FlashinferPart):
    """Sizes and data that a definition is tried at."""

    axes: Annotated[Mapping[ShortText, AxisSize], Field(max_length=MOST_ENTRIES)]
    inputs: Annotated[Mapping[ShortText, WorkloadInput], Field(max_length=MOST_ENTRIES)]
    uuid: ShortText


class SourceFile(FlashinferPart):
    path: ShortText
    content: Annotated[str, Field(max_length=1 << 22)]

    @model_validator(mode="after")
    def _check_path(self) -> SourceFile:
        if self.path.startswith(("/", "\\")) or ".." in self.path.replace("\\", "/").split("/"):
            raise ValueError(f"path {self.path!r}: expected one within the solution")
        return self


class BuildSpec(FlashinferPart):
    """How a solution is built and called."""

    language: Literal["python", "triton", "cpp", "cuda", "tilelang"]
    target_hardware: Annotated[tuple[ShortText, ...], Field(min_length=1, max_length=MOST_ENTRIES)]
    entry_point: Annotated[str, Field(pattern=r"^[^:]+::[A-Za-z_]\w*$", max_length=200)]  # file::function
    dependencies: Annotated[tuple[ShortText, ...], Field(max_length=MOST_ENTRIES)] = ()
    destination_passing_style: bool = True  # outputs are arguments, after the inputs
    binding: ShortText | None = None  # how C++ meets Python: torch, tvm-ffi


class FlashinferSolution(FlashinferPart):
    """A program for a definition."""

    name: ShortText
    definition: ShortText
    author: ShortText
    spec: BuildSpec
    sources: Annotated[tuple[SourceFile, ...], Field(min_length=1, max_length=MOST_ENTRIES)]
    description: LongText | None = None

    @model_validator(mode="after")
    def _check_entry(self) -> FlashinferSolution:
        file = self.spec.entry_point.partition("::")[0]
        paths = [source.path for source in self.sources]
        if file not in paths:
            raise ValueError(f"entry_point: {file!r} is none of the sources {', '.join(paths)}")
        if len(set(paths)) < len(paths):
            raise ValueError("sources: two of one path")
        return self


class Correctness(FlashinferPart):
    """Each None where it is not known."""

    max_relative_error: float | None = None
    max_absolute_error: float | None = None


class Performance(FlashinferPart):
    latency_ms: Annotated[float, Field(ge=0)]
    reference_latency_ms: Annotated[float, Field(ge=0)]
    speedup_factor: Annotated[float, Field(ge=0)]


class Environment(FlashinferPart):
    hardware: ShortText
    libs: Mapping[ShortText, LongText] = {}


class Evaluation(FlashinferPart):
    """What came of a solution at a workload."""

    status: Literal[
        "PASSED",
        "INCORRECT_SHAPE",
        "INCORRECT_NUMERICAL",
        "INCORRECT_DTYPE",
        "RUNTIME_ERROR",
        "COMPILE_ERROR",
        "TIMEOUT",
    ]
    environment: Environment
    timestamp: ShortText
    log: str = ""
    correctness: Correctness | None = None  # None: there was nothing to compare
    performance: Performance | None = None  # None: not measured

    @model_validator(mode="after")
    def _check_figures(self) -> Evaluation:
        if self.status == "PASSED" and self.correctness is None:
            raise ValueError("PASSED without correctness")
        if self.status != "PASSED" and self.performance is not None:
            raise ValueError(f"{self.status} with a performance")
        return self


class Trace(FlashinferPart):
    """A workload of a definition and, beside a solution, what came of it."""

    definition: ShortText
    workload: Workload
    solution: ShortText | None = None
    evaluation: Evaluation | None = None


def read_json(text: str, where: str = "") -> Any:
    """What a JSON text says. Raises TaskError with the reason, whatever the text is."""
    prefix = f"{where}: " if where else ""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise TaskError(f"{prefix}no readable JSON: it is nested too deeply") from None
    except ValueError as error:  # of JSON too, and for a whole number of thousands of digits
        raise TaskError(f"{prefix}no readable JSON: {str(error).partition(';')[0]}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def read_model(model: type[Model], data: Any, where: str = "") -> Model:
    """Data as a model. Raises TaskError that says which key is wrong, what it is given, and what was expected."""
    title, prefix = model.__name__.removeprefix("Flashinfer"), f"{where}: " if where else ""
    if not isinstance(data, dict):
        raise TaskError(f"{prefix}given {_describe_value(data)}; expected a mapping: a {title}")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        rows = error.errors(include_url=False, include_context=False)
        mistakes = [_describe_mistake(row) for row in rows[:MOST_ERRORS]]
        rest_text = f"; and {len(rows) - MOST_ERRORS} more" if len(rows) > MOST_ERRORS else ""
        raise TaskError(f"{prefix}no {title}: {'; '.join(mistakes)}{rest_text}") from None


def _describe_mistake(row: Mapping[str, Any]) -> str:
    place = ".".join(str(step)[:60] for step in row["loc"])
    reason = row["msg"].removeprefix("Value error, ")
    if row["type"] == "missing":
        return f"no {place}"
    if row["type"] == "value_error":
        return str(reason)
    return f"{place}: given {_describe_value(row['input'])}; {reason[:1].lower()}{reason[1:]}"


def _describe_value(value: Any) -> str:
    if isinstance(value, dict):
        return f"a mapping of {len(value)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "a number of very many digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def write_model(model: BaseModel) -> str:
    """The JSON text of a model, which reads back as an equal one."""
    return json.dumps(model.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
