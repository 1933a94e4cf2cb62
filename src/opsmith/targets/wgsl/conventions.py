"""Do the kernels of a program and its launch plan say the same? Findings of PARSE that name both lines.

A kernel is an entry point with the plan's name. Its arrays are `@group(0)`, at the places of the arrays among the
launch's `args`; all numbers of `args` are one structure of uniforms at the binding behind the last array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opsmith.problems.dtypes import TYPES
from opsmith.records import Diagnostic
from opsmith.targets.gpu.plan import FLOATING, INPUT, BoundArgument, BoundLaunch, BoundPlan
from opsmith.targets.native.source_checks import KIND, run_text_checks
from opsmith.targets.wgsl.limits import WORKGROUP_BYTES
from opsmith.targets.wgsl.measuring_types import measure_type, split_vector
from opsmith.targets.wgsl.source import split_array
from opsmith.targets.wgsl.syntax import Module, ModuleVariable, WgslFunction, read_module

VECTOR_DTYPES = frozenset({"fp32", "fp16", "int32"})  # whose arrays may be read as vectors of two or four
BUILTINS: Mapping[str, str] = {  # what a kernel may ask for -> its type
    "workgroup_id": "vec3<u32>",
    "num_workgroups": "vec3<u32>",
    "local_invocation_id": "vec3<u32>",
    "global_invocation_id": "vec3<u32>",
    "local_invocation_index": "u32",
}


def check_conventions(source: str, bound: BoundPlan) -> tuple[Diagnostic, ...]:
    """What does not agree. `source`: passes `check_source`, and has all kernels that its plan launches."""
    return run_text_checks(source, lambda text: _check_kernels(read_module(text), bound))


def _check_kernels(module: Module, bound: BoundPlan) -> Iterator[Diagnostic]:
    checked: set[str] = set()
    for launch in bound.launches:
        function = module.functions[launch.kernel]
        if launch.kernel not in checked:
            yield from _check_entry(module, function)
            yield from _check_workgroup_memory(module, function)
        checked.add(launch.kernel)
        yield from _check_block(module, function, launch)
        yield from _check_shared(launch)
        yield from _check_bindings(module, launch)


def _check_workgroup_memory(module: Module, function: WgslFunction) -> Iterator[Diagnostic]:
    """Drivers differ in what they have, and in what they do where there is less."""
    total = 0
    variables = [entry for entry in module.list_used(function.name) if entry.space == "workgroup"]
    for variable in variables:
        size = measure_type(module, variable.type)
        if size is None:
            actual, expected = f"the type {variable.type[:80]}", "lengths in digits or constants"
            yield Diagnostic(KIND, f"variable {variable.name}", actual, expected, "", variable.line)
        total += size or 0
    if total > WORKGROUP_BYTES:
        actual = f"{total} bytes of var<workgroup> ({', '.join(entry.name for entry in variables)})"
        remedy = "work on smaller tiles"
        where, line = f"kernel {function.name}", variables[0].line
        yield Diagnostic(KIND, where, actual, f"at most {WORKGROUP_BYTES}", remedy, line)


def _check_entry(module: Module, function: WgslFunction) -> Iterator[Diagnostic]:
    where = f"kernel {function.name}"
    if not any(attribute.name == "compute" for attribute in function.attributes):
        yield Diagnostic(KIND, where, "no @compute", "an entry point for computing", "", function.line)
    if function.result:
        yield Diagnostic(KIND, where, f"a result {function.result[:60]}", "none", "write to a binding", function.line)
    for parameter in function.parameters:
        if not all(builtin in BUILTINS for builtin in module.list_builtins(parameter)):
            actual = f"the parameter {parameter.name}: {parameter.type[:60]}"
            expected = f"@builtin of {', '.join(BUILTINS)}"
            yield Diagnostic(KIND, where, actual, expected, "write builtins as parameters, one each", parameter.line)


def _check_block(module: Module, function: WgslFunction, launch: BoundLaunch) -> Iterator[Diagnostic]:
    where = f"kernel {function.name}, @workgroup_size"
    if not all(text.isdecimal() for text in launch.block):
        actual = f"block=({', '.join(launch.block)})"
        expected = f"numbers: line {function.line} states @workgroup_size({', '.join(function.workgroup_size)})"
        yield Diagnostic(KIND, f"launch {launch.kernel}", actual, expected, "let threads loop", launch.line)
        return
    sizes = [module.compute_number(text) for text in function.workgroup_size]
    if not sizes or None in sizes:
        actual = f"@workgroup_size({', '.join(function.workgroup_size)})" if sizes else "none"
        yield Diagnostic(KIND, where, actual, "digits or constants", "", function.line)
        return
    block = [int(text) for text in launch.block]
    if [*sizes, 1, 1][:3] != block:
        actual = f"@workgroup_size({', '.join(function.workgroup_size)})"
        expected = f"block=({', '.join(launch.block)}) of line {launch.line}"
        yield Diagnostic(KIND, where, actual, expected, "make both say the same", function.line)


def _check_shared(launch: BoundLaunch) -> Iterator[Diagnostic]:
    if launch.shared != "0":
        actual, expected = f"shared={launch.shared}", "no shared"
        remedy = "declare var<workgroup> of a fixed size"
        yield Diagnostic(KIND, f"launch {launch.kernel}", actual, expected, remedy, launch.line)


# -- bindings


def _check_bindings(module: Module, launch: BoundLaunch) -> Iterator[Diagnostic]:
    used = [entry for entry in module.list_used(launch.kernel) if entry.space in ("storage", "uniform")]
    places: dict[int, ModuleVariable] = {}
    for variable in used:
        group, place = variable.find_number("group"), variable.find_number("binding")
        where = f"variable {variable.name}, kernel {launch.kernel}"
        if group != 0 or place is None:
            actual = "no @group(0) @binding(n) in digits"
            yield Diagnostic(KIND, where, actual, "@group(0), and a place of `args`", "", variable.line)
        elif place in places:
            actual = f"@binding({place}), which {places[place].name} of line {places[place].line} has"
            yield Diagnostic(KIND, where, actual, "a binding of its own", "", variable.line)
        else:
            places[place] = variable
            yield from _check_binding(module, launch, variable, place)
    for place, argument in enumerate(launch.arrays):
        if place not in places and not any(entry.find_number("binding") is None for entry in used):
            actual = f"no variable at @binding({place})"
            expected = f"one for the {argument.kind} {argument.name} of line {launch.line}, which the kernel uses"
            remedy = "declare it, or leave it out of args"
            line = module.functions[launch.kernel].line
            yield Diagnostic(KIND, f"kernel {launch.kernel}", actual, expected, remedy, line)


def _check_binding(module: Module, launch: BoundLaunch, variable: ModuleVariable, place: int) -> Iterator[Diagnostic]:
    arrays, where = launch.arrays, f"variable {variable.name}, @binding({place})"
    if place < len(arrays):
        yield from _check_array(module, launch, variable, arrays[place], where)
    elif place == len(arrays) and launch.numbers:
        yield from _check_numbers(module, launch, variable, where)
    else:
        count = len(arrays) + bool(launch.numbers)
        expected = f"0 to {count - 1}: line {launch.line} has {len(arrays)} arrays"
        expected += " and numbers behind them" if launch.numbers else " and no numbers"
        yield Diagnostic(KIND, where, f"binding {place}", expected, "number them in the order of args", variable.line)


def _check_array(
    module: Module, launch: BoundLaunch, variable: ModuleVariable, argument: BoundArgument, where: str
) -> Iterator[Diagnostic]:
    what = f"the {argument.kind} {argument.name} ({argument.type}) of line {launch.line}"
    if variable.space != "storage":
        actual, expected = f"var<{variable.space}>", f"var<storage, ...> for {what}"
        yield Diagnostic(KIND, where, actual, expected, "numbers stand behind all arrays", variable.line)
        return
    type_ = module.resolve_type(variable.type)
    element, length = split_array(type_) if type_.startswith("array<") else (type_, "none")
    scalar, width = split_vector(module.resolve_type(element))
    allowed = TYPES[argument.type].wgsl
    is_other = width > 1 and argument.type not in VECTOR_DTYPES
    if is_other or module.resolve_type(scalar) not in allowed or length:
        actual = f"the type {variable.type[:80]}"
        yield Diagnostic(KIND, where, actual, f"array<{allowed[0]}> for {what}", "", variable.line)
    if argument.kind == INPUT and variable.access == "read_write":
        actual, expected = "var<storage, read_write>", f"var<storage, read> for {what}"
        yield Diagnostic(KIND, where, actual, expected, "inputs may only be read", variable.line)


def _check_numbers(module: Module, launch: BoundLaunch, variable: ModuleVariable, where: str) -> Iterator[Diagnostic]:
    names = ", ".join(argument.name for argument in launch.numbers)
    what = f"the numbers {names} of line {launch.line}"
    if variable.space != "uniform":
        actual, expected = f"var<{variable.space}>", f"var<uniform> for {what}"
        yield Diagnostic(KIND, where, actual, expected, "", variable.line)
        return
    type_ = module.resolve_type(variable.type)
    fields = [(field.name, field.type, field.line) for field in module.structures.get(type_, ())]
    if type_ not in module.structures:
        fields = [(variable.name, type_, variable.line)]
    for field in module.structures.get(type_, ()):
        for attribute in field.attributes:
            actual = f"@{attribute.name} at {field.name}"
            yield Diagnostic(KIND, where, actual, "fields of four bytes in a row", "leave it out", field.line)
    kinds = [("f32",) if argument.type == FLOATING else ("i32", "u32") for argument in launch.numbers]
    if len(fields) != len(kinds):
        actual = f"{len(fields)} fields ({', '.join(name for name, _, _ in fields)})"
        line = module.structure_lines.get(type_, variable.line)
        yield Diagnostic(KIND, where, actual, f"{len(kinds)}: {what}", "one field for each, in this order", line)
        return
    for (name, field_type, line), argument, allowed in zip(fields, launch.numbers, kinds, strict=True):
        if module.resolve_type(field_type) not in allowed:
            actual = f"{name}: {field_type}"
            expected = f"{' or '.join(allowed)} for the number {argument.name} of line {launch.line}"
            yield Diagnostic(KIND, where, actual, expected, "", line)
