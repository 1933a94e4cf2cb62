"""Atomics in another order than that in which this driver comes to them: functions that make them in a checked form.

Atomics on one entry have one order, but which one is open where no barrier orders their invocations. An invocation's
first one since a barrier may come before those that others made since then; on an array of storage before those of
other workgroups. Then it has another result: what the entry held before. So each operation first asks whether it may
come before, and changes nothing there (a load does not, nor does adding 0): then it returns what was. An update that is
a load and a store loses by that what others added in between, one operation loses nothing. `atomicCompareExchangeWeak`
may fail without a reason, so the first one of an invocation does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opsmith.targets.wgsl.source import PREFIX, split_array
from opsmith.targets.wgsl.syntax import Module, ModuleVariable

WORKGROUP_PLACES = 32  # the rows of workgroup variables in the table of arrays begin here
SWAP = "atomicCompareExchangeWeak"
_RESULTS: Mapping[str, str] = {  # of an operation on `old` with `v`
    "atomicLoad": "old",
    "atomicStore": "v",
    "atomicAdd": "old + v",
    "atomicSub": "old - v",
    "atomicMax": "max(old, v)",
    "atomicMin": "min(old, v)",
    "atomicAnd": "old & v",
    "atomicOr": "old | v",
    "atomicXor": "old ^ v",
    "atomicExchange": "v",
}
ATOMICS = frozenset({*_RESULTS, SWAP})


def list_workgroup(module: Module) -> list[ModuleVariable]:
    return [entry for entry in module.variables.values() if entry.space == "workgroup"]


def list_axes(module: Module, variable: ModuleVariable) -> list[str]:
    """The texts of the lengths of its axes, outermost first; of a variable that is no array: one."""
    type_, lengths = module.resolve_type(variable.type), []
    while type_.startswith("array<"):
        element, length = split_array(type_)
        lengths.append(length)
        type_ = module.resolve_type(element)
    return lengths or ["1"]


def find_element(module: Module, variable: ModuleVariable) -> str:
    type_ = module.resolve_type(variable.type)
    while type_.startswith("array<"):
        type_ = module.resolve_type(split_array(type_)[0])
    return type_


def find_place(module: Module, variable: ModuleVariable) -> int:
    """The row of a variable in the table of arrays."""
    if variable.space == "storage":
        return variable.find_number("binding") or 0
    return WORKGROUP_PLACES + [entry.name for entry in list_workgroup(module)].index(variable.name)


def is_atomic(module: Module, variable: ModuleVariable) -> bool:
    """Whether its entries are."""
    return find_element(module, variable).startswith("atomic<")


def count_axes(module: Module, variable: ModuleVariable) -> int:
    """0: it is no array."""
    return len(list_axes(module, variable)) if module.resolve_type(variable.type).startswith("array<") else 0


def write_atomics(module: Module, text: str) -> str:
    """The functions for all operations that the text names, on all variables with atomic entries."""
    variables = [entry for entry in module.variables.values() if is_atomic(module, entry)]
    pieces = [piece for variable in variables for piece in _write_operations(module, variable, text)]
    return "".join([_SUPPORT, *pieces]) if variables else ""


def _write_operations(module: Module, variable: ModuleVariable, text: str) -> Iterator[str]:
    name, type_, axes = variable.name, find_element(module, variable)[7:-1], list_axes(module, variable)
    count = count_axes(module, variable)
    parameters = "".join(f"i{number}: u32, " for number in range(count))
    given = "".join(f"i{number}, " for number in range(count)) or "0u, "
    flat = "i0" if count else "0u"
    for number, axis in enumerate(axes[1:], 1):
        flat = f"({flat}) * u32({axis}) + i{number}"
    outer = "".join(f"[i{number}]" for number in range(count - 1))
    entry = f"&{name}{outer}[{PREFIX}at_{name}({given}0u, line)]"
    is_shared = "true" if variable.space == "workgroup" else "false"
    for operation, result in _RESULTS.items():
        if operation not in text or (variable.access == "read" and variable.space == "storage"):
            continue
        value = "" if operation == "atomicLoad" else f"v: {type_}, "
        answer = "" if operation == "atomicStore" else f" -> {type_}"
        is_load = "true" if operation == "atomicLoad" else "false"
        given_value = "" if operation == "atomicLoad" else ", v"
        yield f"""
fn {PREFIX}{operation}_{name}({parameters}{value}line: u32){answer} {{
  let entry = {entry};
  let now = atomicLoad(entry);
  let earlier = {PREFIX}find_earlier({find_place(module, variable)}u, {flat}, {is_shared});
  if (earlier.x == 1u) {{
    let old = bitcast<{type_}>(earlier.y);
    if ({result} == old) {{
      return{" old" if answer else ""};
    }}
  }}
  {PREFIX}note_atomic({find_place(module, variable)}u, {flat}, bitcast<u32>(now), {is_shared}, {is_load});
  {"return " if answer else ""}{operation}(entry{given_value});
}}
"""
    yield f"""
fn {PREFIX}compared_{name}(value: {type_}) -> {type_} {{
  {PREFIX}swaps += 1u;
  return select(value, value ^ bitcast<{type_}>(0x5BD1E995u), {PREFIX}swaps == 1u);
}}
"""


# Shadow of an entry: the workgroup that uses it (or that several do), its phase, what the entry held before the first
# change since then, and who changed it. An invocation remembers the entries that it has used since the last barrier.
_SUPPORT = """
var<private> opsmith_swaps: u32;
var<private> opsmith_used: array<vec4<u32>, 2>;
var<private> opsmith_used_count: u32;
var<private> opsmith_used_phase: u32;

fn opsmith_use(place: u32, flat: u32) -> bool {
  let phase = opsmith_turn + opsmith_passed + 1u;
  if (opsmith_used_phase != phase) {
    opsmith_used_phase = phase;
    opsmith_used_count = 0u;
    opsmith_used = array<vec4<u32>, 2>();
  }
  let key = ((flat << 6u) | place) + 1u;  // 0: none. No loop: the driver ends all loops of an invocation after 65,535
  if (any(opsmith_used[0] == vec4<u32>(key)) || any(opsmith_used[1] == vec4<u32>(key))) {
    return false;
  }
  if (opsmith_used_count < 8u) {
    opsmith_used[opsmith_used_count / 4u][opsmith_used_count % 4u] = key;
  }
  opsmith_used_count += 1u;
  return opsmith_used_count <= 8u;
}

fn opsmith_find_earlier(place: u32, flat: u32, shared_memory: bool) -> vec2<u32> {
  let begin = opsmith_table[place].y;
  let is_first = opsmith_use(place, flat);
  if (begin == 0xFFFFFFFFu || !is_first || opsmith_swaps > 0u) {
    return vec2<u32>();
  }
  let at = begin + 4u * flat;
  let group = opsmith_me / opsmith_span;
  let phase = opsmith_turn + opsmith_passed + 1u;
  let whose = opsmith_shadow[at];
  let changer = opsmith_shadow[at + 3u];
  if (changer == 0u || changer == opsmith_me) {
    return vec2<u32>();
  }
  var is_open = whose == group && opsmith_shadow[at + 1u] == phase;
  if (!shared_memory) {
    is_open = (whose != group && whose != 0xFFFFFFFFu) || phase == 1u;
  }
  return select(vec2<u32>(), vec2<u32>(1u, opsmith_shadow[at + 2u]), is_open);
}

fn opsmith_note_atomic(place: u32, flat: u32, now: u32, shared_memory: bool, is_load: bool) {
  let begin = opsmith_table[place].y;
  if (begin == 0xFFFFFFFFu) {
    return;
  }
  let at = begin + 4u * flat;
  let group = opsmith_me / opsmith_span;
  let phase = opsmith_turn + opsmith_passed + 1u;
  let whose = opsmith_shadow[at];
  if (shared_memory && (whose != group || opsmith_shadow[at + 1u] != phase)) {
    opsmith_shadow[at + 3u] = 0u;
  }
  opsmith_shadow[at] = select(group, 0xFFFFFFFFu, !shared_memory && whose != 0u && whose != group);
  opsmith_shadow[at + 1u] = phase;
  if (!is_load) {
    if (opsmith_shadow[at + 3u] == 0u) {
      opsmith_shadow[at + 2u] = now;
    }
    let changer = opsmith_shadow[at + 3u];
    opsmith_shadow[at + 3u] = select(opsmith_me, 0xFFFFFFFFu, changer != 0u && changer != opsmith_me);
  }
}
"""
