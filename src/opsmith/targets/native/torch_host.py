"""Host code in C++ for torch around a kernel: what checks tensors, finds sizes, and declares `run`.

The arguments of `run` are those of the problem's source (all inputs, then all scalars, where it has none), then the
outputs, which are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opsmith.errors import UsageError
from opsmith.problems.dims import Dim
from opsmith.problems.dtypes import TYPES
from opsmith.problems.problem import ArrayType, Problem
from opsmith.targets.native.signature import list_dims

_CHECKS = """
int64_t read_size(const char *name, const at::Tensor &tensor, int64_t axes, int64_t axis) {
  const std::string where = name;
  if (tensor.dim() != axes) throw std::invalid_argument(where + ": expected " + std::to_string(axes) + " axes");
  return tensor.size(axis);
}

void check_tensor(const char *name, const at::Tensor &tensor, at::ScalarType type, at::IntArrayRef shape) {
  const std::string where = name;
  if (!tensor.device().is_DEVICE()) throw std::invalid_argument(where + ": expected a tensor on PLACE");
  if (tensor.scalar_type() != type) throw std::invalid_argument(where + ": expected " + at::toString(type));
  if (tensor.sizes() != shape || tensor.numel() == 0) throw std::invalid_argument(where + ": not the expected shape");
}

// As the kernel was judged: contiguous, from an address that 64 bytes divide.
at::Tensor align_tensor(const at::Tensor &tensor) {
  const at::Tensor whole = tensor.contiguous();
  return reinterpret_cast<uintptr_t>(whole.data_ptr()) % 64 ? whole.clone() : whole;
}
""".strip("\n")


def fill_words(text: str, words: Mapping[str, object]) -> str:
    """A text of C++ with what stands for each word in capitals, one after the other."""
    for name, word in words.items():
        text = text.replace(name, str(word))
    return text


def write_run(problem: Problem, device: str, place: str, tensor: str, call: str) -> dict[str, str]:
    """What stands for CHECKS, DECLARATIONS and BODY of `run`. Raises UsageError for a problem whose sizes no shape
    states.

    device: of tensors as torch calls it; `place`: where they are expected, in words. `tensor`: how the kernel is given
    one; `call`: the statement, with ARGUMENTS.
    """
    names, types = _choose_names(problem), _list_types(problem)
    arguments = [tensor.format(f"aligned_{names[name]}") for name in types]
    arguments += [names[name] for name in (*list_dims(problem), *problem.scalars)]
    copies = (
        f"if (!aligned_{own}.is_same({own})) {own}.copy_(aligned_{own});"
        for own in (names[output.name] for output in problem.outputs)
    )
    statements = [*_list_statements(problem, names, types), call.replace("ARGUMENTS", ", ".join(arguments)), *copies]
    return {
        "CHECKS": _CHECKS.replace("DEVICE", device).replace("PLACE", place),
        "DECLARATIONS": ", ".join(_list_declarations(problem, names)),
        "BODY": "\n".join(f"  {line}" for line in statements),
    }


def _choose_names(problem: Problem) -> dict[str, str]:
    """Names of C++ for tensors, scalars and sizes: they begin with what they are, so that none is a keyword."""
    tensors = [*(tensor.name for tensor in problem.tensors), *(output.name for output in problem.outputs)]
    names = {name: f"tensor_{_write_ascii(name)}" for name in tensors}
    names |= {name: f"size_{_write_ascii(name)}" for name in list_dims(problem)}
    return names | {name: f"number_{_write_ascii(name)}" for name in problem.scalars}


def _write_ascii(name: str) -> str:
    return "".join(letter if letter.isascii() else f"_u{ord(letter):x}_" for letter in name)


def _list_arguments(problem: Problem) -> Sequence[str]:
    """Before the outputs."""
    if problem.source is not None and problem.source.format == "flashinfer" and problem.source.arguments:
        return problem.source.arguments
    return [*(tensor.name for tensor in problem.tensors), *problem.scalars]


def _list_declarations(problem: Problem, names: Mapping[str, str]) -> Iterator[str]:
    tensors = {tensor.name for tensor in problem.tensors}
    for name in _list_arguments(problem):
        kind = "const at::Tensor &" if name in tensors else f"{name_kind(problem.scalars[name])} "
        yield f"{kind}{names[name]}"
    for output in problem.outputs:
        yield f"const at::Tensor &{names[output.name]}"


def name_kind(value: float) -> str:
    return "int64_t" if isinstance(value, int) else "double"


def _list_statements(problem: Problem, names: Mapping[str, str], types: Mapping[str, ArrayType]) -> Iterator[str]:
    """What finds all sizes, and checks all tensors. Raises UsageError."""
    for name in list_dims(problem):
        yield f"const int64_t {names[name]} = {_find_size(name, types, names)};"
    for name, type_ in types.items():
        shape = ", ".join(_write_length(dim, names) for dim in type_.shape)
        yield f'check_tensor("{name}", {names[name]}, at::k{TYPES[type_.dtype].aten}, {{{shape}}});'
    for name in types:
        yield f"const at::Tensor aligned_{names[name]} = align_tensor({names[name]});"


def _list_types(problem: Problem) -> dict[str, ArrayType]:
    """Of inputs, then outputs."""
    return {tensor.name: tensor.type for tensor in problem.tensors} | {
        output.name: output.types[0] for output in problem.outputs
    }


def _find_size(name: str, types: Mapping[str, ArrayType], names: Mapping[str, str]) -> str:
    """The first axis that is this size. Raises UsageError."""
    for tensor, type_ in types.items():
        for axis, dim in enumerate(type_.shape):
            if str(dim) == name:
                return f'read_size("{tensor}", {names[tensor]}, {len(type_.shape)}, {axis})'
    raise UsageError(f"size {name}: no axis of an input or output is {name} alone; expected one, for host code to ask")


def _write_length(dim: Dim, names: Mapping[str, str]) -> str:
    top = [str(dim.coefficient.numerator), *(names[name] for name, power in dim.powers for _ in range(power))]
    bottom = [str(dim.coefficient.denominator), *(names[name] for name, power in dim.powers for _ in range(-power))]
    top_text, bottom_text = (" * ".join(word for word in words if word != "1") or "1" for words in (top, bottom))
    return f"int64_t({top_text})" if bottom_text == "1" else f"({top_text}) / ({bottom_text})"


def make_title(task_id: str) -> str:
    """A task's id as it may stand in a comment and a string of C++."""
    return "".join(letter if letter.isalnum() or letter in "_-." else "_" for letter in task_id)


def write_literal(text: str) -> str:
    """A text as literals of C++, one a line."""
    lines = text.encode("utf-8", "replace").splitlines(keepends=True) or [b""]
    return "\n".join(f'    "{"".join(map(_escape_byte, line))}"' for line in lines)


def _escape_byte(byte: int) -> str:
    special = {10: "\\n", 34: '\\"', 92: "\\\\"}
    return special.get(byte) or (chr(byte) if 32 <= byte < 127 and byte != 63 else f"\\{byte:03o}")
