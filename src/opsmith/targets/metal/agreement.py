"""Whether kernels are what a host can launch, and agree with the plan: findings of PARSE, from their text alone.

clang passes over attributes that it does not know, so that a wrong one would be found by nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from opsmith.records import Diagnostic, printable
from opsmith.targets.gpu.agreement import Problem, list_ambiguous
from opsmith.targets.gpu.plan import INPUT, NUMBER, WHOLE, BoundArgument, BoundLaunch
from opsmith.targets.metal.syntax import SPACES, MetalKernel, MetalParameter, find_attributes
from opsmith.targets.metal.words import ELEMENTS, FLOATING, NUMBERS, OTHERS, POSITIONS, TRIPLES, TYPES
from opsmith.targets.metal.words import WHOLE as WHOLE_TYPES
from opsmith.targets.native.source_checks import KIND, Findings

_HELD = ("buffer", "threadgroup")
_KNOWN = (*_HELD, *POSITIONS, *OTHERS)
_MOST_BUFFERS = 31
_DIMENSIONS = {f"{word}{digit}": int(digit or 1) for word in ("uint", "ushort") for digit in ("", "2", "3")}


def check_attributes(source: str) -> Findings:
    """Whether all of a program's attributes are Metal's."""
    for attribute in find_attributes(source):
        if attribute.name not in _KNOWN:
            near = get_close_matches(attribute.name, _KNOWN, 1)
            remedy = f"write [[{near[0]}{'(n)' if near[0] in _HELD else ''}]]" if near else "remove it"
            expected = "an attribute of a compute kernel, such as buffer(n) or thread_position_in_grid"
            given = f"[[{printable(attribute.name[:60])}]]"
            yield Diagnostic(KIND, "attribute", given, expected, remedy, attribute.line)
        elif attribute.name in _HELD and not (attribute.argument or "").isdecimal():
            argument = "" if attribute.argument is None else f"({attribute.argument[:40]})"
            given, expected = printable(f"[[{attribute.name}{argument}]]"), f"{attribute.name}(n) with a number"
            yield Diagnostic(KIND, "attribute", given, expected, "number buffers 0, 1, 2, ...", attribute.line)


def check_kernels(heads: Sequence[MetalKernel]) -> Findings:
    """Whether each can be launched at all."""
    yield from list_ambiguous(heads)
    for head in heads:
        where = f"kernel {head.name}"
        if head.result != "void":
            yield Diagnostic(
                KIND, where, f"a result {printable(head.result[:40])}", "void", "write to an output", head.line
            )
        for parameter in head.parameters:
            if (problem := _find_fault(parameter)) is not None:
                given, expected, remedy = problem
                text = f"`{printable(parameter.text[:100])}`{given}"
                yield Diagnostic(KIND, where, text, expected, remedy, parameter.line)
        yield from _check_together(where, head)


def _find_fault(parameter: MetalParameter) -> tuple[str, str, str] | None:
    """What beside its text is given, what is expected, what to try."""
    names = [attribute.name for attribute in parameter.attributes if attribute.name in (*_HELD, *POSITIONS)]
    marks = parameter.words.count("*") + parameter.words.count("&")
    spaces = [word for word in parameter.words if word in SPACES]
    if not parameter.name:
        return " without a name", "a name", "name it"
    if len(names) > 1:
        return f" with {' and '.join(names)}", "one of them", "give each parameter one place"
    if marks == 0:
        return _find_fault_of_position(parameter, names)
    if marks > 1:
        return "", "an array: one `*`, or a number: one `&`", "pass arrays one by one"
    return _find_fault_of_memory(parameter, names, spaces)


def _find_fault_of_memory(
    parameter: MetalParameter, names: Sequence[str], spaces: Sequence[str]
) -> tuple[str, str, str] | None:
    if len(spaces) != 1:
        remedy = "write device for arrays, constant for numbers, threadgroup for memory of a threadgroup"
        return " without an address space" if not spaces else "", "one address space", remedy
    if "threadgroup" in spaces:
        is_right = names == ["threadgroup"] and parameter.is_pointer and parameter.find_number("threadgroup") == 0
        return None if is_right else ("", "a pointer with [[threadgroup(0)]]", "or declare it in the kernel's body")
    if "thread" in spaces or names not in ([], ["buffer"]):
        given = f" with {names[0]}" if names else ""
        return given, "device or constant memory with [[buffer(n)]]", "pass it by a buffer"
    if not parameter.is_pointer and "constant" not in spaces:
        return "", "a number in constant memory", f"write constant {parameter.type} &{parameter.name}"
    return None


def _find_fault_of_position(parameter: MetalParameter, names: Sequence[str]) -> tuple[str, str, str] | None:
    if not names or names[0] in _HELD:
        remedy = f"constant {parameter.type} &{parameter.name} [[buffer(n)]] for a number, or an attribute of the grid"
        return " without an attribute of the grid" if not names else "", "a value that the grid gives", remedy
    dimensions = _DIMENSIONS.get(parameter.type)
    if dimensions is None or (names[0] in NUMBERS and dimensions > 1):
        expected = "uint or ushort" if names[0] in NUMBERS else "uint, uint2 or uint3 (or ushort)"
        return f" for {names[0]}", expected, "declare it as uint"
    return None


def _check_together(where: str, head: MetalKernel) -> Findings:
    numbers = [number for parameter in head.parameters if (number := parameter.find_number("buffer")) is not None]
    repeated = sorted({number for number in numbers if numbers.count(number) > 1})
    if repeated:
        remedy = "number buffers in the order of args: 0, 1, 2, ..."
        yield Diagnostic(KIND, where, f"buffer({repeated[0]}) twice", "a number of its own for each", remedy, head.line)
    if numbers and max(numbers) >= _MOST_BUFFERS:
        yield Diagnostic(
            KIND, where, f"buffer({max(numbers)})", f"at most {_MOST_BUFFERS} buffers: 0 to 30", "", head.line
        )
    types: dict[int, str] = {}
    for parameter in head.parameters:
        for attribute in parameter.attributes:
            if attribute.name in TRIPLES and _DIMENSIONS.get(parameter.type, 1) > 1:
                types.setdefault(_DIMENSIONS[parameter.type], f"{parameter.type} {parameter.name}")
    if len(types) > 1:
        expected = "vectors of as many components for all positions and sizes of a kernel"
        given = " and ".join(types[key] for key in sorted(types))
        yield Diagnostic(KIND, where, printable(given), expected, "declare all of them as uint3", head.line)


# -- the plan


def check_launch(launch: BoundLaunch, head: MetalKernel) -> Iterator[Problem]:
    if sorted(head.buffers) != list(range(len(launch.arguments))):
        written = ", ".join(
            f"{head.parameters[place].name} ({number})" for number, place in sorted(head.buffers.items())
        )
        expected = f"an argument for each buffer of {head.name} on line {head.line}: {printable(written) or 'none'}"
        remedy = "args[n] is given to [[buffer(n)]]: number buffers 0, 1, 2, ... in the order of args"
        yield "args", f"{len(launch.arguments)} arguments", expected, remedy
        return
    for number, argument in enumerate(launch.arguments):
        parameter = head.parameters[head.buffers[number]]
        problem = _find_problem(argument, parameter)
        if problem is not None:
            yield "args", f"{argument.name} ({argument.described}) for buffer({number}), `{parameter.text}`", *problem
    if launch.shared != "0" and not any("threadgroup" in parameter.words for parameter in head.parameters):
        remedy = "`threadgroup float *tile [[threadgroup(0)]]`, or leave shared= out"
        yield "shared", launch.shared, f"a parameter of {head.name} for it", remedy


def _find_problem(argument: BoundArgument, parameter: MetalParameter) -> tuple[str, str] | None:
    """What is expected instead, and what to try; None: they agree, or only a compiler can tell."""
    if argument.kind == NUMBER:
        return _find_problem_of_number(argument, parameter)
    best = TYPES[argument.type][0]
    declared = f"declare it as device {'const ' if argument.kind == INPUT else ''}{best} *{parameter.name}"
    if not parameter.is_pointer:
        return "a pointer to its entries", declared
    element = parameter.type.removeprefix("packed_").removesuffix("_t").rstrip("234")
    element = element.replace("atomic<", "atomic_").rstrip(">")
    known = {word.removesuffix("_t") for word in ELEMENTS}
    if element in known and element not in {word.removesuffix("_t") for word in TYPES[argument.type]}:
        return f"a pointer to {best}", declared
    if argument.kind == INPUT and not parameter.is_const:
        return "const: inputs may only be read", declared
    if argument.kind != INPUT and parameter.is_const and "constant" in parameter.words:
        return "device memory: constant memory is for what no launch writes", declared
    return None


def _find_problem_of_number(argument: BoundArgument, parameter: MetalParameter) -> tuple[str, str] | None:
    type_ = "uint" if argument.type == WHOLE else "float"
    remedy = f"declare it as constant {type_} &{parameter.name}"
    if parameter.is_pointer:
        return "a reference: it is one number", remedy
    if argument.type == WHOLE and parameter.type in FLOATING:
        return "a whole number: uint, int or long", f"{remedy}, and convert it within the kernel"
    if argument.type != WHOLE and parameter.type in WHOLE_TYPES:
        return "float", remedy
    if parameter.type not in WHOLE_TYPES | FLOATING:
        return "a number for each argument, no structure", remedy
    return None
