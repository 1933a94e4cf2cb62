"""A program in three forms: as it is, with invocations in reversed order, and with every access and barrier checked.

WGSL has no undefined behaviour where it would show: an index beyond an array reads or writes some entry or none, and
workgroup memory begins as zeros. So the third form looks at every access before it is made: is the index within the
array, and has another invocation touched the entry since the last barrier? A barrier counts who arrives. What is wrong
first is written to a buffer of ours, with its line.

Each entry of an array that is written has four words of shadow: who wrote last and when, who read last and when. Who:
the number of the workgroup and of the invocation in it; when: how many barriers it had passed, and the line. Two
accesses by different invocations, one of them a write, race unless a barrier lies between them; across workgroups
nothing does. The check does not depend on the order in which invocations happen to run.

The program stands on its own lines in every form. `source.check_source` has let it pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.wgsl.atomic_orders import (
    ATOMICS,
    SWAP,
    count_axes,
    find_element,
    find_place,
    is_atomic,
    list_axes,
    list_workgroup,
    write_atomics,
)
from opsmith.targets.wgsl.lexing import NAME, NUMBER, blank_comments
from opsmith.targets.wgsl.measuring_types import split_vector
from opsmith.targets.wgsl.own_arrays import OwnArray, find_own_array, list_lengths, list_own_arrays
from opsmith.targets.wgsl.source import PREFIX, UNIFORM_LOAD
from opsmith.targets.wgsl.syntax import (
    Member,
    Module,
    ModuleVariable,
    WgslFunction,
    match_brackets,
    read_module,
)

PLAIN, REVERSED, CHECKED, PLAN, CHECKS = "plain", "reversed", "checked", "plan", "checks"  # artefacts
BOUNDS, RACE, DIVERGENCE, ROUNDS = 1, 2, 3, 4  # kinds of what a checked form reports
MOST_ROUNDS = 60_000  # of all loops of an invocation in a launch: the software driver ends loops after 65,535
PLACES = 64  # rows of the table of arrays; the last one tells the number of the launch
OWN_PLACE = 62  # of arrays that each invocation has for itself: they have no row
REPORT_WORDS = 8  # kind, line, place, index, length or when, the other's who, who, launch
NO_SHADOW = 0xFFFFFFFF

_READ, _WRITE, _NEITHER = 1, 2, 0
_ASSIGNING = frozenset({"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--"})
_LOOPS = frozenset({"for", "while", "loop"})
_BARRIERS = {"workgroupBarrier": f"{PREFIX}barrier", "storageBarrier": f"{PREFIX}storage_barrier"}
_ARGUMENTS = {  # of a wrapped kernel, by builtin
    "workgroup_id": f"{PREFIX}g",
    "num_workgroups": f"{PREFIX}n",
    "local_invocation_id": f"{PREFIX}l",
    "global_invocation_id": f"{PREFIX}g * {PREFIX}size + {PREFIX}l",
    "local_invocation_index": f"{PREFIX}i",
}


@dataclass(frozen=True)
class WorkgroupArray:
    """A variable of workgroup memory, as the process knows it that runs a checked form."""

    name: str
    count: int  # entries of all its axes; 0: not known, its races are not looked for


@dataclass(frozen=True)
class KernelChecks:
    """What of a kernel's variables is checked."""

    names: Mapping[int, str]  # binding of an array -> the variable's name
    widths: Mapping[int, int]  # entries of the array that are one of the variable's: 4 of array<vec4<f32>>
    written: Sequence[int]  # bindings whose races are looked for
    has_numbers: bool  # it uses the structure of uniforms


def write_forms(source: str, bound: BoundPlan) -> dict[str, bytes]:
    """All artefacts of a program that passed the checks of PARSE."""
    module, text = read_module(source), re.sub(r"\boverride\b", "const   ", blank_comments(source))
    return {
        PLAIN: _wrap_kernels(text, module, bound, {}, _FORWARD).encode(),
        REVERSED: _wrap_kernels(text, module, bound, {}, _REVERSAL).encode(),
        CHECKED: _write_checked(text, module, bound).encode(),
        PLAN: bound.write_json().encode(),
        CHECKS: json.dumps(list_checks(module, bound)).encode(),
    }


def read_checks(data: bytes) -> tuple[list[WorkgroupArray], dict[str, KernelChecks]]:
    """What of a checked form its runner must know: workgroup variables, and kernels by name."""
    words = json.loads(data)
    arrays = [WorkgroupArray(*row) for row in words["workgroup"]]
    kernels = {
        name: KernelChecks(_read_places(names), _read_places(widths), written, has_numbers)
        for name, (names, widths, written, has_numbers) in words["kernels"].items()
    }
    return arrays, kernels


def _read_places(words: Mapping[str, Any]) -> dict[int, Any]:
    return {int(place): value for place, value in words.items()}


def list_checks(module: Module, bound: BoundPlan) -> dict[str, Any]:
    """By kernel: names and widths of its arrays by binding, which of them it writes, whether it uses numbers."""
    kernels = {}
    for kernel in bound.list_kernels():
        used = module.list_used(kernel)
        arrays = [entry for entry in used if entry.space == "storage"]
        names = {entry.find_number("binding"): entry.name for entry in arrays}
        written = [entry.find_number("binding") for entry in arrays if entry.access == "read_write"]
        elements = {entry.find_number("binding"): find_element(module, entry) for entry in arrays}
        widths = {place: split_vector(element)[1] for place, element in elements.items()}
        kernels[kernel] = [names, widths, written, any(entry.space == "uniform" for entry in used)]
    rows = [(entry.name, _count_entries(module, entry)) for entry in list_workgroup(module)]
    return {"workgroup": rows, "kernels": kernels}


def _count_entries(module: Module, variable: ModuleVariable) -> int:
    count = 1
    for text in list_axes(module, variable):
        count *= module.compute_number(text) or 0
    return count if 0 < count <= 1 << 16 else 0


# -- kernels in other surroundings

_REVERSAL = f"""  let {PREFIX}g = {PREFIX}n - vec3<u32>(1u) - {PREFIX}g0;
  let {PREFIX}l = {PREFIX}size - vec3<u32>(1u) - {PREFIX}l0;
"""
_WALK = f"""  let {PREFIX}total = {PREFIX}n.x * {PREFIX}n.y * {PREFIX}n.z;
  let {PREFIX}at = ({PREFIX}g0.z * {PREFIX}n.y + {PREFIX}g0.y) * {PREFIX}n.x + {PREFIX}g0.x;
  let {PREFIX}to = ({PREFIX}at * {PREFIX}table[63].y + {PREFIX}table[63].z) % {PREFIX}total;
  let {PREFIX}g = vec3<u32>({PREFIX}to % {PREFIX}n.x, {PREFIX}to / {PREFIX}n.x % {PREFIX}n.y,
    {PREFIX}to / ({PREFIX}n.x * {PREFIX}n.y));
  let {PREFIX}l = {PREFIX}l0;
"""
_FORWARD = f"""  let {PREFIX}g = {PREFIX}g0;
  let {PREFIX}l = {PREFIX}l0;
"""


def _wrap_kernels(
    text: str, module: Module, bound: BoundPlan, bodies: Mapping[str, str], order: str, end: str = ""
) -> str:
    """Each kernel as a plain function, and behind the program an entry point of its name that calls it.

    `bodies`: texts in place of those of functions. `order`: what computes the workgroup and the invocation.
    """
    edits: list[tuple[int, int, str]] = []
    wrappers = []
    for name, function in module.functions.items():
        if name in bodies:
            edits.append((function.tokens[0].start, function.tokens[-1].end, bodies[name]))
        if function.is_entry:
            owned = [*function.attributes, *(entry for member in function.parameters for entry in member.attributes)]
            edits += [(entry.start, entry.end, re.sub(r"[^\n]", " ", text[entry.start : entry.end])) for entry in owned]
            edits.append((function.name_start, function.name_start + len(name), f"{PREFIX}kernel_{name}"))
    for launch in {launch.kernel: launch for launch in bound.launches}.values():
        zeros = "".join(_write_zeros(module, launch.kernel))
        wrappers.append(_write_wrapper(module, module.functions[launch.kernel], launch.block, order, zeros, end))
    return _apply_edits(text, edits) + "\n" + "".join(wrappers)


def _apply_edits(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    pieces, place = [], 0
    for start, end, replacement in sorted(edits):
        pieces += [text[place:start], replacement]
        place = end
    return "".join([*pieces, text[place:]])


def _write_zeros(module: Module, kernel: str) -> Iterator[str]:
    """What makes the workgroup memory that a kernel uses zero, as WGSL promises and not every driver does."""
    for variable in module.list_used(kernel):
        if variable.space == "workgroup":
            type_, element = module.resolve_type(variable.type), find_element(module, variable)
            axes = list_axes(module, variable) if type_.startswith("array<") else []
            places = "".join(f"[{text}]" for text in _split_index(axes))
            entry = f"{variable.name}{places}"
            zero = f"atomicStore(&{entry}, 0)" if element.startswith("atomic<") else f"{entry} = {element}()"
            count = " * ".join(f"u32({axis})" for axis in axes) or "1u"
            name, step = f"{PREFIX}f", f"{PREFIX}threads"
            yield f"  for (var {name} = {PREFIX}i; {name} < {count}; {name} += {step}) {{ {zero}; }}\n"


def _split_index(axes: Sequence[str]) -> Iterator[str]:
    """The indices of an entry by its number."""
    for number, axis in enumerate(axes):
        inner = "".join(f" / u32({text})" for text in axes[number + 1 :])
        yield f"{PREFIX}f{inner} % u32({axis})"


def _write_argument(module: Module, parameter: Member) -> str:
    values = [_ARGUMENTS[builtin] for builtin in module.list_builtins(parameter)]
    return values[0] if parameter.builtin else f"{parameter.type}({', '.join(values)})"


def _write_wrapper(
    module: Module, function: WgslFunction, block: Sequence[str], order: str, zeros: str, end: str
) -> str:
    x, y, z = (f"{size}u" for size in block)
    arguments = ", ".join(_write_argument(module, parameter) for parameter in function.parameters)
    return f"""
@compute @workgroup_size({", ".join(block)})
fn {function.name}(@builtin(workgroup_id) {PREFIX}g0: vec3<u32>, @builtin(num_workgroups) {PREFIX}n: vec3<u32>,
  @builtin(local_invocation_id) {PREFIX}l0: vec3<u32>) {{
  let {PREFIX}size = vec3<u32>({x}, {y}, {z});
  let {PREFIX}threads = {PREFIX}size.x * {PREFIX}size.y * {PREFIX}size.z;
{order}  let {PREFIX}i = {PREFIX}l.x + {x} * ({PREFIX}l.y + {y} * {PREFIX}l.z);
{zeros}  workgroupBarrier();
  {PREFIX}kernel_{function.name}({arguments});
{end}}}
"""


# -- the checked form


def _write_checked(text: str, module: Module, bound: BoundPlan) -> str:
    reader = _CheckWriter(text, module)
    bodies = {name: reader.write_body(function) for name, function in module.functions.items()}
    order = f"""{_WALK}  {PREFIX}span = {PREFIX}threads + 1u;
  {PREFIX}me = (({PREFIX}g.z * {PREFIX}n.y + {PREFIX}g.y) * {PREFIX}n.x + {PREFIX}g.x + 1u) * {PREFIX}span + 1u
    + {PREFIX}l.x + {PREFIX}size.x * ({PREFIX}l.y + {PREFIX}size.y * {PREFIX}l.z);
  for (var {PREFIX}f = 0u; {PREFIX}f < 6u; {PREFIX}f++) {{ atomicStore(&{PREFIX}arrived[{PREFIX}f], 0u); }}
"""
    wrapped = _wrap_kernels(text, module, bound, bodies, order, f"  {PREFIX}report_first();\n")
    scalars = [entry for entry in list_workgroup(module) if not module.resolve_type(entry.type).startswith("array<")]
    head = f"{PREFIX}kernel_"  # types stand before all that was wrapped, which moved them
    assert head in wrapped
    for variable in scalars:
        wrapped = _replace_type(wrapped, variable).replace(f"{{ {variable.name} = ", f"{{ {variable.name}[0] = ")
        wrapped = wrapped.replace(f"{{ atomicStore(&{variable.name}, 0)", f"{{ atomicStore(&{variable.name}[0], 0)")
    return wrapped + _SUPPORT + "".join(_write_guards(module)) + write_atomics(module, text)


def _replace_type(text: str, variable: ModuleVariable) -> str:
    """The variable as an array of one entry, found again by its declaration."""
    pattern = re.compile(rf"(var\s*<\s*workgroup\s*>\s*{variable.name}\s*:\s*)([^;]*);")
    return pattern.sub(lambda match: f"{match[1]}array<{match[2].strip()}, 1>;", text, count=1)


class _CheckWriter:
    """Writes bodies of functions whose accesses and barriers are checked."""

    def __init__(self, text: str, module: Module) -> None:
        self._text, self._module = text, module
        self._checked = {entry.name: entry for entry in list_workgroup(module)}
        storage = (entry for entry in module.variables.values() if entry.space == "storage")
        self._checked |= {entry.name: entry for entry in storage}

    def write_body(self, function: WgslFunction) -> str:
        self._tokens = function.tokens
        self._match = match_brackets(self._tokens)
        self._loops = dict(self._list_loops())
        self._own = list_own_arrays(self._module, function)
        return self._write_range(0, len(self._tokens))

    def _list_loops(self) -> Iterator[tuple[int, int]]:
        """The places of the braces that open the bodies of loops, and the lines of the loops."""
        for place, token in enumerate(self._tokens):
            if token.text in _LOOPS:
                opening = place + 1
                while self._tokens[opening].text != "{":
                    opening = self._match.get(opening, opening) + 1
                yield opening, token.line

    def _write_range(self, start: int, end: int) -> str:
        """The text of tokens from one place to before another, with what stands between them."""
        pieces, place = [], start
        while place < end:
            written, following = self._write_piece(place)
            pieces.append(written)
            if following < end:
                pieces.append(self._text[self._tokens[following - 1].end : self._tokens[following].start])
            place = following
        return "".join(pieces)

    def _write_piece(self, place: int) -> tuple[str, int]:
        """The text of what begins there, and the place behind it."""
        token = self._tokens[place]
        if place in self._loops:
            return f"{{ {PREFIX}round({self._loops[place]}u);", place + 1
        is_field = place > 0 and self._tokens[place - 1].text == "."
        if token.kind == NAME and not is_field:
            if token.text in _BARRIERS:
                return f"{_BARRIERS[token.text]}({token.line}u)", place + 3
            written = self._write_atomic(place) if token.text in ATOMICS else None
            if token.text in self._checked and self._find_whole_use(place) != "arrayLength":
                written = self._write_access(place, self._checked[token.text])
            if written is not None:
                return written
            own = find_own_array(self._own, token.text, place)
            if own is not None:
                return self._write_own_access(place + 1, token.text, own)
        words = [entry.text for entry in self._tokens[place : place + 4]] if token.text == "(" else []
        words = words if words[1:2] == ["*"] else words[:3]
        own = find_own_array(self._own, words[-2], place) if words[-1:] == [")"] and len(words) > 2 else None
        if own is not None and place and self._tokens[place - 1].kind != NAME:
            return self._write_own_access(place + len(words), "".join(words), own)
        return token.text, place + 1

    def _write_own_access(self, following: int, text: str, own: OwnArray) -> tuple[str, int]:
        """Its indices are looked at, and nothing else: no other invocation sees it. naga looks at numbers."""
        line = self._tokens[following - 1].line
        for axis in own.lengths:
            if self._tokens[following].text != "[":
                break
            closing = self._match[following]
            index = self._write_range(following + 1, closing)
            is_number = closing == following + 2 and self._tokens[following + 1].kind == NUMBER
            text += f"[{index}]" if is_number else f"[{PREFIX}within(u32({index}), u32({axis}), {OWN_PLACE}u, {line}u)]"
            following = closing + 1
        return text, following

    def _find_whole_use(self, place: int) -> str:
        """The function that is given a pointer to what stands here; "": none."""
        before = [token.text for token in self._tokens[max(place - 3, 0) : place]]
        return before[0] if before[1:] == ["(", "&"] else ""

    def _write_atomic(self, place: int) -> tuple[str, int] | None:
        """An operation on an entry, as a call of ours (`atomic_orders`); None: it is written otherwise."""
        words = [entry.text for entry in self._tokens[place + 1 : place + 4]]
        variable = self._checked.get(words[-1]) if words[:2] == ["(", "&"] else None
        if variable is None or not is_atomic(self._module, variable):
            return None
        token, closing, following = self._tokens[place], self._match[place + 1], place + 4
        indices = []
        while self._tokens[following].text == "[":
            indices.append(self._write_range(following + 1, self._match[following]))
            following = self._match[following] + 1
        if len(indices) != count_axes(self._module, variable) or self._tokens[following].text not in (",", ")"):
            return None
        rest = self._write_range(following + 1, closing) if following < closing else ""
        rest = rest.rstrip().removesuffix(",")
        if token.text == SWAP:
            guard = self._write_guard(variable, indices or ["0"], _NEITHER, token.line)
            outer = "".join(f"[{text}]" for text in indices[:-1])
            compared, swapped = self._split_argument(following + 1, closing)
            call = f"{PREFIX}compared_{variable.name}({compared})"
            return f"{SWAP}(&{variable.name}{outer}[{guard}], {call}, {swapped})", closing + 1
        arguments = [*(f"u32({text})" for text in indices), *([rest] if rest.strip() else []), f"{token.line}u"]
        return f"{PREFIX}{token.text}_{variable.name}({', '.join(arguments)})", closing + 1

    def _split_argument(self, start: int, end: int) -> tuple[str, str]:
        """The first argument of those between two places, and the others."""
        place = start
        while place < end and self._tokens[place].text != ",":
            place = self._match.get(place, place) + 1
        return self._write_range(start, place), self._write_range(place + 1, end)

    def _write_access(self, place: int, variable: ModuleVariable) -> tuple[str, int]:
        token, is_array = self._tokens[place], self._module.resolve_type(variable.type).startswith("array<")
        axes = list_axes(self._module, variable) if is_array else []
        following, indices = place + 1, []
        for _ in axes:
            closing = self._match.get(following)
            if closing is None:
                return token.text, place + 1  # naga refuses it
            indices.append(self._write_range(following + 1, closing))
            following = closing + 1
        called = self._find_whole_use(place)
        mode = _NEITHER if called else self._find_mode(following)
        if called == UNIFORM_LOAD:
            last = f"{PREFIX}meet({token.line}u)" + (f" + u32({indices[-1]})" if indices else "")
        else:
            last = self._write_guard(variable, indices or ["0"], mode, token.line)
        outer = [
            f"[{PREFIX}within(u32({text}), u32({axis}), {find_place(self._module, variable)}u, {token.line}u)]"
            for text, axis in zip(indices[:-1], axes, strict=False)
        ]
        components = OwnArray("", 0, 0, list_lengths(self._module, find_element(self._module, variable)))
        return self._write_own_access(following, f"{token.text}{''.join(outer)}[{last}]", components)

    def _write_guard(self, variable: ModuleVariable, indices: Sequence[str], mode: int, line: int) -> str:
        arguments = ", ".join(f"u32({' '.join(text.split())})" for text in indices[:-1])
        arguments += ", " if arguments else ""
        return f"{PREFIX}at_{variable.name}({arguments}u32({indices[-1]}), {mode}u, {line}u)"

    def _find_mode(self, following: int) -> int:
        """Whether the access whose indices end there reads, writes or does both."""
        place = following
        while self._tokens[place].text in (".", "[", ")"):  # what is assigned to may stand in brackets
            text = self._tokens[place].text
            place = self._match[place] + 1 if text == "[" else place + (2 if text == "." else 1)
        text = self._tokens[place].text
        if text == "=":
            return _WRITE
        is_shift = text in "<>" and [entry.text for entry in self._tokens[place : place + 2]] in (
            ["<", "<="],
            [">", ">="],
        )
        return _READ | _WRITE if text in _ASSIGNING or is_shift else _READ


def _write_guards(module: Module) -> Iterator[str]:
    """For each array the function that an index goes through."""
    for variable in module.variables.values():
        if variable.space == "storage":
            place = find_place(module, variable)
            mode = "0u" if "atomic<" in variable.type or variable.access != "read_write" else "mode"
            yield f"""
fn {PREFIX}at_{variable.name}(i: u32, mode: u32, line: u32) -> u32 {{
  let length = {PREFIX}table[{place}].x;
  return {PREFIX}check(i, i, length, {place}u, {mode}, line, false);
}}
"""
    for variable in list_workgroup(module):
        axes, place = list_axes(module, variable), find_place(module, variable)
        parameters = "".join(f"i{number}: u32, " for number in range(len(axes)))
        flat = "i0"
        for number, axis in enumerate(axes[1:], 1):
            flat = f"({flat}) * u32({axis}) + i{number}"
        mode = "0u" if find_element(module, variable).startswith("atomic<") else "mode"
        last = len(axes) - 1
        yield f"""
fn {PREFIX}at_{variable.name}({parameters}mode: u32, line: u32) -> u32 {{
  return {PREFIX}check(i{last}, {flat}, u32({axes[-1]}), {place}u, {mode}, line, true);
}}
"""


_SUPPORT = """
@group(1) @binding(0) var<storage, read_write> opsmith_shadow: array<u32>;
@group(1) @binding(1) var<storage, read_write> opsmith_report: array<atomic<u32>, 8>;
@group(1) @binding(2) var<uniform> opsmith_table: array<vec4<u32>, 64>;  // length and begin of the shadow, by place
var<private> opsmith_me: u32;  // (workgroup + 1) * span + 1 + invocation; without the rest: several of the workgroup
var<private> opsmith_span: u32;
var<private> opsmith_passed: u32;  // barriers of workgroup memory
var<private> opsmith_stored: u32;  // barriers of storage
var<private> opsmith_turn: u32;  // barriers of any kind
var<workgroup> opsmith_arrived: array<atomic<u32>, 6>;  // how many, and the sum of their lines, in three turns

var<private> opsmith_what: vec3<u32>;  // kind, line and place of what this invocation found first
var<private> opsmith_how: vec3<u32>;  // index, detail and the other invocation

fn opsmith_tell(kind: u32, line: u32, place: u32, index: u32, detail: u32, who: u32) {
  if (opsmith_what.x == 0u) {
    opsmith_what = vec3<u32>(kind, line, place);
    opsmith_how = vec3<u32>(index, detail, who);
  }
}

fn opsmith_report_first() {
  if (opsmith_what.x != 0u && atomicCompareExchangeWeak(&opsmith_report[0], 0u, opsmith_what.x).exchanged) {
    atomicStore(&opsmith_report[1], opsmith_what.y);
    atomicStore(&opsmith_report[2], opsmith_what.z);
    atomicStore(&opsmith_report[3], opsmith_how.x);
    atomicStore(&opsmith_report[4], opsmith_how.y);
    atomicStore(&opsmith_report[5], opsmith_how.z);
    atomicStore(&opsmith_report[6], opsmith_me);
    atomicStore(&opsmith_report[7], opsmith_table[63].x);
  }
}

var<private> opsmith_rounds: u32;

fn opsmith_round(line: u32) {
  opsmith_rounds += 1u;
  if (opsmith_rounds == 60000u) {
    opsmith_tell(4u, line, 0u, 0u, 0u, 0u);
  }
}

fn opsmith_within(i: u32, length: u32, place: u32, line: u32) -> u32 {
  if (i >= length) {
    opsmith_tell(1u, line, place, i, length, 0u);
  }
  return i;
}

fn opsmith_races(who: u32, then: u32, passed: u32, shared_memory: bool) -> bool {
  if (who == 0u || who == opsmith_me) {
    return false;
  }
  if (who == 0xFFFFFFFFu || who / opsmith_span != opsmith_me / opsmith_span) {
    return !shared_memory;
  }
  return (then >> 12u) == passed;
}

fn opsmith_check(i: u32, flat: u32, length: u32, place: u32, mode: u32, line: u32, shared_memory: bool) -> u32 {
  if (i >= length) {
    opsmith_tell(1u, line, place, i, length, 0u);
    return i;
  }
  let begin = opsmith_table[place].y;
  if (mode == 0u || begin == 0xFFFFFFFFu) {
    return i;
  }
  let at = begin + 4u * flat;
  let passed = select(opsmith_stored, opsmith_passed, shared_memory);
  let now = (passed << 12u) | min(line, 4095u);
  let writer = opsmith_shadow[at];
  let written = opsmith_shadow[at + 1u];
  if ((mode & 2u) != 0u) {
    let reader = opsmith_shadow[at + 2u];
    let read = opsmith_shadow[at + 3u];
    opsmith_shadow[at] = opsmith_me;
    opsmith_shadow[at + 1u] = now;
    let last = opsmith_shadow[at];  // of invocations in step, the last one's word stays
    if (opsmith_races(last, now, passed, shared_memory)) {
      opsmith_tell(2u, line, place, flat, (now & 4095u) | 12288u, last);
    } else if (opsmith_races(reader, read, passed, shared_memory)) {
      opsmith_tell(2u, line, place, flat, (read & 4095u) | 8192u, reader);
    }
  } else {
    let before = opsmith_shadow[at + 2u];
    let then = opsmith_shadow[at + 3u];
    let is_same = before == 0u || before == opsmith_me;
    let is_near = before / opsmith_span == opsmith_me / opsmith_span;
    let is_now = is_near && (then >> 12u) == passed;
    let several = opsmith_me / opsmith_span * opsmith_span;
    let is_far = !shared_memory && !is_same && !is_near;
    opsmith_shadow[at + 2u] = select(select(opsmith_me, several, is_now && !is_same), 0xFFFFFFFFu, is_far);
    opsmith_shadow[at + 3u] = now;
    if (opsmith_shadow[at + 2u] != opsmith_me && !is_far) {
      opsmith_shadow[at + 2u] = several;
    }
  }
  if (opsmith_races(writer, written, passed, shared_memory)) {
    opsmith_tell(2u, line, place, flat, (written & 4095u) | select(4096u, 12288u, (mode & 2u) != 0u), writer);
  }
  return i;
}

fn opsmith_arrive(line: u32) -> u32 {
  let slot = opsmith_turn % 3u;
  atomicAdd(&opsmith_arrived[slot], 1u);
  atomicAdd(&opsmith_arrived[slot + 3u], line);
  opsmith_turn += 1u;
  return slot;
}

fn opsmith_leave(slot: u32, line: u32) {
  let count = atomicLoad(&opsmith_arrived[slot]);
  let lines = atomicLoad(&opsmith_arrived[slot + 3u]);
  if (count != opsmith_span - 1u || lines != line * count) {
    opsmith_tell(3u, line, 0u, count, opsmith_span - 1u, 0u);
  }
  let following = (slot + 2u) % 3u;
  atomicStore(&opsmith_arrived[following], 0u);
  atomicStore(&opsmith_arrived[following + 3u], 0u);
}

fn opsmith_barrier(line: u32) {
  let slot = opsmith_arrive(line);
  workgroupBarrier();
  opsmith_leave(slot, line);
  opsmith_passed += 1u;
}

fn opsmith_storage_barrier(line: u32) {
  let slot = opsmith_arrive(line);
  storageBarrier();
  opsmith_leave(slot, line);
  opsmith_stored += 1u;
}

fn opsmith_meet(line: u32) -> u32 {
  opsmith_passed += 1u;
  return 0u;
}
"""
