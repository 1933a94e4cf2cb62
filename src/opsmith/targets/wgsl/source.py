"""Static checks of one WGSL program, before naga sees it: findings of the stage PARSE.

Refused is what no kernel needs, what differs from device to device (`override`, subgroups), and what our checks of
accesses could not see: pointers to whole arrays, entry name for a variable of the module and a local entry. Grammar and
types are naga's. `conventions` compares the kernels with the launch plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from opsmith.records import Diagnostic, printable
from opsmith.targets.native.source_checks import KIND, run_text_checks
from opsmith.targets.wgsl.lexing import NAME, WgslToken, split_source
from opsmith.targets.wgsl.syntax import Module, ModuleVariable, WgslFunction, WgslSyntaxError, list_names, read_module

PREFIX = "opsmith_"  # of names that are ours
EXTENSIONS = frozenset({"f16"})
BARRIERS = frozenset({"workgroupBarrier", "storageBarrier"})
UNIFORM_LOAD = "workgroupUniformLoad"
PREDECLARED = frozenset(  # what our forms of a program call by name, and what findings are made of
    {"array", "atomic", "bool", "f16", "f32", "i32", "min", "ptr", "select", "u32", "vec2", "vec3", "vec4"}
    | {"arrayLength", "atomicAdd", "atomicCompareExchangeWeak", "atomicLoad", "atomicStore"}
    | {*BARRIERS, UNIFORM_LOAD}
)

_CONVERSIONS = frozenset({"u32", "vec3"})  # that accesses and calls are rewritten with
_SPACES = frozenset({"storage", "uniform", "workgroup", "private"})
_WHOLE_USES = frozenset({"arrayLength", UNIFORM_LOAD})
_SUBGROUPS = re.compile(r"(subgroup|quad)[A-Z]")
_DECLARING = frozenset({"let", "var", "const"})
_NAMING = _DECLARING | {"fn", "alias", "struct", "override", ">"}  # what stands before a name that is declared


def check_source(source: str) -> tuple[Diagnostic, ...]:
    """What is refused, the first findings first; none: naga may see it. Never raises, whatever the text."""
    return run_text_checks(source, _check_text)


def _check_text(source: str) -> Iterator[Diagnostic]:
    try:
        module = read_module(source)
    except WgslSyntaxError as error:
        yield Diagnostic(KIND, "program", printable(error.given), error.expected, error.remedy, error.line)
        return
    yield from _check_directives(module)
    yield from _check_declarations(source, module)
    yield from _check_predeclared(source, module)
    for variable in module.variables.values():
        yield from _check_variable(module, variable)
    for function in module.functions.values():
        yield from _check_names(function, module)
        yield from _check_uses(function, module)
    yield from _check_recursion(module)


def _check_directives(module: Module) -> Iterator[Diagnostic]:
    for word, names, line in module.directives:
        if word != "enable" or set(names.split(",")) - EXTENSIONS:
            actual = f"`{word} {printable(names[:80])}`"
            remedy = "leave it out"
            if "subgroups" in names:
                remedy = "reduce in workgroup memory: how wide subgroups are differs from device to device"
            yield Diagnostic(KIND, "directive", actual, "`enable f16;` or none", remedy, line)


def _check_declarations(source: str, module: Module) -> Iterator[Diagnostic]:
    for name, line in module.repeated:
        yield Diagnostic(KIND, name, "a second declaration of the name", "entry", "take another name", line)
    for _, token in list_names(split_source(source)):
        token_line, word = token.line, token.text
        if word in module.constants and not module.constants[word]:
            remedy = "write const: nobody sets it from outside"
            yield Diagnostic(KIND, word, "an override without a value, or with an @id", "a value", remedy, token_line)
        elif word.startswith(PREFIX):
            yield Diagnostic(KIND, word, f"a name that begins with {PREFIX}", "another", "rename it", token_line)
        elif word == "textureBarrier":
            yield Diagnostic(KIND, "barrier", f"`{word}`", "workgroupBarrier or storageBarrier", "", token_line)
        elif _SUBGROUPS.match(word):
            remedy = "reduce in workgroup memory: how wide subgroups are differs from device to device"
            yield Diagnostic(KIND, word, "an operation on subgroups", "operations on workgroups", remedy, token_line)


def _check_predeclared(source: str, module: Module) -> Iterator[Diagnostic]:
    """Names that hide one of WGSL's: `fn workgroupBarrier() {}` would be no barrier."""
    tables = (module.functions, module.variables, module.structures, module.constants, module.aliases)
    hidden = PREDECLARED & frozenset().union(*tables)
    for word, name in pairwise(split_source(source) if hidden else ()):
        if name.text in hidden and word.text in _NAMING:
            actual, remedy = f"a declaration of `{name.text}`, which hides WGSL's own", f"call it {name.text}_own"
            yield Diagnostic(KIND, name.text, actual, "another name", remedy, name.line)


def _check_variable(module: Module, variable: ModuleVariable) -> Iterator[Diagnostic]:
    where = f"variable {variable.name}"
    if variable.space not in _SPACES:
        actual = f"var<{variable.space}>" if variable.space != "handle" else "a texture, a sampler or no address space"
        expected = "var<storage, read>, var<storage, read_write>, var<uniform>, var<workgroup> or var<private>"
        yield Diagnostic(KIND, where, actual, expected, "", variable.line)
    elif variable.space == "workgroup" and not _is_workgroup_type(module, variable.type):
        expected = "a number, a vector, a matrix or an atomic, or an array of those or of a structure"
        remedy = "declare a variable for each field"
        yield Diagnostic(KIND, where, f"the type {variable.type[:80]}", expected, remedy, variable.line)


def _is_workgroup_type(module: Module, text: str) -> bool:
    """Whether all its entries are reached by indices that stand directly behind its name."""
    type_ = module.resolve_type(text)
    element = type_
    while element.startswith("array<"):
        element = module.resolve_type(split_array(element)[0])
    if element in module.structures:
        fields = (module.resolve_type(field.type) for field in module.structures[element])
        return type_ != element and all(
            not field.startswith(("array<", "atomic<")) and field not in module.structures for field in fields
        )
    return bool(element)


def split_array(text: str) -> tuple[str, str]:
    """Element and length of `array<array<f32,16>,TILE>`; "": no length.

    >>> split_array("array<array<f32,16>,TILE*2>")
    ('array<f32,16>', 'TILE*2')
    """
    inner, depth = text.removeprefix("array<")[:-1], 0
    for place, character in enumerate(inner):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            return inner[:place], inner[place + 1 :].rstrip(",")
    return inner, ""


def _check_names(function: WgslFunction, module: Module) -> Iterator[Diagnostic]:
    """Locals and parameters that hide a name of the module: what an access means would take scopes to tell."""
    hidden = [(parameter.name, parameter.line) for parameter in function.parameters]
    hidden += [
        (name.text, name.line)
        for word, name in pairwise(function.tokens)
        if word.text in _DECLARING and name.kind == NAME
    ]
    for name, line in hidden:
        if name in module.variables or name in module.functions:
            kind = "variable" if name in module.variables else "function"
            actual, expected = f"a local name that hides the {kind} {name} of the module", "a name of its own"
            yield Diagnostic(KIND, f"function {function.name}", actual, expected, f"call it {name}_local", line)
        elif name in _CONVERSIONS:
            actual, remedy = f"a local name that hides WGSL's own `{name}`", f"call it {name}_local"
            yield Diagnostic(KIND, f"function {function.name}", actual, "another name", remedy, line)
    for parameter in function.parameters:
        if parameter.type.startswith(("ptr<storage", "ptr<workgroup", "ptr<uniform")):
            actual, expected = (
                f"a parameter of the type {parameter.type[:60]}",
                "values, and pointers to local variables",
            )
            remedy = "name the variable of the module in the function itself"
            yield Diagnostic(KIND, f"function {function.name}", actual, expected, remedy, parameter.line)


def _check_uses(function: WgslFunction, module: Module) -> Iterator[Diagnostic]:
    """Arrays are used entry by entry."""
    tokens = function.tokens
    for place, token in list_names(tokens):
        variable = module.variables.get(token.text)
        if variable is None or variable.space not in ("storage", "workgroup"):
            continue
        is_array = module.resolve_type(variable.type).startswith("array<")
        before = [entry.text for entry in tokens[max(place - 3, 0) : place]]
        if _is_pointed_at(tokens, place):
            expected = "its entries, or &entry in a call of an atomic function"
            yield Diagnostic(KIND, variable.name, "a pointer to it", expected, "index it directly", token.line)
        elif before[-1] == "&" and not _is_binary(before) and (len(before) < 3 or before[0] not in _WHOLE_USES):
            if not (len(before) == 3 and before[1] == "(" and before[0].startswith("atomic")):
                expected = "its entries, or &entry in a call of an atomic function"
                yield Diagnostic(KIND, variable.name, "a pointer to it", expected, "index it directly", token.line)
        elif is_array and tokens[place + 1].text != "[" and before[0] not in _WHOLE_USES:
            actual = "the whole array as a value"
            yield Diagnostic(KIND, variable.name, actual, "its entries", "index it: name[i]", token.line)


def _is_pointed_at(tokens: Sequence[WgslToken], place: int) -> bool:
    """Whether an `&` stands before the brackets around a name: `&(name[i])`."""
    start = place - 1
    while start > 0 and tokens[start].text == "(":
        start -= 1
    words = [entry.text for entry in tokens[max(start - 1, 0) : start + 1]]
    return start < place - 1 and words[-1] == "&" and not _is_binary(words)


def _is_binary(before: list[str]) -> bool:
    """Whether an `&` joins two values."""
    return len(before) > 1 and (before[-2][-1].isalnum() or before[-2][-1] in "_)]") and before[-2] != "return"


def _check_recursion(module: Module) -> Iterator[Diagnostic]:
    calls = {name: function.names & module.functions.keys() for name, function in module.functions.items()}
    for name, function in module.functions.items():
        if name in _follow(calls, calls[name]):
            actual, expected = "a function that calls itself", "loops: WGSL has no recursion"
            yield Diagnostic(KIND, f"function {name}", actual, expected, "write a loop", function.line)


def _follow(calls: dict[str, frozenset[str]], names: Iterable[str]) -> set[str]:
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += calls[name]
    return reached
