"""What a model is shown of a native task: one YAML mapping with the function, its arguments, sizes and reference.

Not shown: shape sets beside the base, margins and hand-made inputs, which only the verifier needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opsmith.problems.dtypes import TYPES
from opsmith.problems.files.writing import write_block, write_code, write_number, write_scalar, write_text, write_texts
from opsmith.problems.problem import InputTensor, OutputTensors, Problem
from opsmith.targets.native.signature import describe_c_type, list_dims, make_signature, write_prototype
from opsmith.targets.native.task import TaskOptions

_WORDS = {"torch.randn": "normal"}  # as problem files call it


def write_statement(
    problem: Problem,
    options: TaskOptions,
    name: str = "",
    write_function: Callable[[Problem], str] | None = write_prototype,
    describe_type: Callable[[str], str] = describe_c_type,
) -> str:
    """The mapping as canonical YAML; `name`: what its file calls the problem, if it does. `write_function`: the
    function that programs define, in their language; None: they define none of the problem's. `describe_type`: what a
    language calls a type that its prompts do not name.
    """
    rows = [f"problem: {write_scalar(name)}"] if name else []
    rows += write_block("function: ", write_function(problem)) if write_function is not None else []
    rows += ["arguments:", *_list_arguments(problem)]
    sizes = ", ".join(f"{write_scalar(symbol)}: {problem.base_sizes[symbol]}" for symbol in list_dims(problem))
    rows += [f"sizes: {{{sizes}}}"] if sizes else []
    rows += _list_types(problem, describe_type)
    rows += write_texts("constraints", problem.constraints)
    rows += write_text("ties", problem.ties) if problem.ties else []
    rows += _list_reference(problem)
    rows += [f"accumulation: {problem.accumulation}"] if problem.accumulation else []
    rows += [f"{key}: {word}" for key, word in options.write_options().items()]
    return "\n".join(rows) + "\n"


def _list_arguments(problem: Problem) -> Iterator[str]:
    """In the order of the call, by the names that the function gives them."""
    details = [_describe_data(tensor) for tensor in problem.tensors]
    details += [_describe_tolerance(output) for output in problem.outputs for _ in output.types]
    arguments = make_signature(problem).arguments
    for number, argument in enumerate(arguments):
        detail = details[number] if number < len(details) else ""
        yield f"  {write_scalar(argument.name)}: {write_scalar(argument.meaning + detail)}"


def _list_types(problem: Problem, describe_type: Callable[[str], str]) -> list[str]:
    """What types hold that few problems have."""
    notes = {type_.dtype: TYPES[type_.dtype].note for type_ in problem.types}
    texts = {dtype: "; ".join(filter(None, (note, describe_type(dtype)))) for dtype, note in notes.items() if note}
    rows = [f"  {row}" for dtype, text in texts.items() for row in write_text(dtype, text)]
    return ["types:", *rows] if rows else []


def _describe_data(tensor: InputTensor) -> str:
    if tensor.type.is_multihot:
        least, most = tensor.min, tensor.max
        return f"; {least} to {most} ones a row" if least is not None and most is not None else ""
    data = tensor.expression or _WORDS.get(tensor.data_gen or "", tensor.data_gen or "")
    bounds = "" if tensor.min is None or tensor.max is None else f" from {tensor.min} to {tensor.max}"
    return f"; data: {data}{bounds}"


def _describe_tolerance(output: OutputTensors) -> str:
    """What the problem itself says of how close a result must lie; "": the rule that the prompt states."""
    if output.rtol is None and output.atol is None:
        return ""
    return f"; right within {write_number(output.atol or 0.0)} + {write_number(output.rtol or 0.0)} * |expected|"


def _list_reference(problem: Problem) -> list[str]:
    """The author's function, or the texts of each output with the code before them."""
    if problem.reference:
        return [*write_code("setup", problem.global_code), *write_block("reference: ", problem.reference)]
    rows = write_code("global", problem.global_code)
    rows.append("reference:")
    for output in problem.outputs:
        for name, text in zip(output.tensor_names, output.references, strict=False):
            rows += [f"  {row}" if row else "" for row in write_block(f"{write_scalar(name)}: ", text)]
    return rows
