"""Structural IR: what does a task file say? (reference sections 8.1 and 8.4)

Reads a YAML text into a `TaskSpec` and writes one back; `read_spec(write_spec(spec)) == spec` for every spec that was
read, and writing is a fixed point. Nothing of the file is executed. Keys of ours, all optional: `shapes` (name ->
{symbol: size}), `margins` (texts), `cases` (texts, or the name of a shape set -> text), `target` (a name), and an
output's `rtol` and `atol`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opsmith.targets.step.ir import code as ir_code
from opsmith.targets.step.ir import nodes as ir_nodes
from opsmith.targets.step.ir.code import sizes_with
from opsmith.targets.step.ir.entry import Entry, FileNames, is_name, kind
from opsmith.targets.step.ir.nodes import Findings, Located
from opsmith.targets.step.ir.records import FN_KEYS, OUTPUT_KEYS, TENSOR_KEYS, read_fn, read_output, read_tensor
from opsmith.targets.step.ir.write import write_spec
from opsmith.targets.step.language.dims import Dim, DimError
from opsmith.targets.step.language.spec import CaseSpec, OutputSpec, TaskSpec, TensorSpec

__all__ = ["read_spec", "read_spec_with_warnings", "sizes_with", "write_spec"]

TARGET = "step"
MAX_SHAPES = 32  # sets of one file, at each of which every dim is checked
TOP_KEYS = (
    "test_name",
    "global",
    "inputs",
    "parameters",
    "fns",
    "outputs",
    "shapes",
    "margins",
    "cases",
    "target",
    "impl",
)


def read_spec(text: str, where: str = "") -> TaskSpec:
    """The task that a YAML text describes.

    Errors  TaskError with one TASK diagnostic per mistake, each with line and column; `where` names the file in it
    Source  reference section 8.1

    >>> spec = read_spec('''
    ... inputs: [{name: E0, dtype: fp32, dims: [M, N], data_gen: torch.rand}]
    ... outputs: [{name: S0, dtype: fp32, dims: [N], data_transform: ["input_data['E0'].sum(1)"]}]
    ... ''')
    >>> print(spec.inputs[0].type, spec.sizes["M"])
    fp32 [M, N] 5
    """
    return read_spec_with_warnings(text, where)[0]


def read_spec_with_warnings(text: str, where: str = "") -> tuple[TaskSpec, tuple[str, ...]]:
    """As `read_spec`, with one warning per unknown key (kept in `extra`, without meaning).

    Errors  TaskError
    Source  reference section 8.1
    """
    root, findings = ir_nodes.load(text, where)
    if root is None or not isinstance(root.value, dict):
        at = root or Located(None, 1, 1)
        findings.error(at, "file", kind(at), f"a mapping with the keys {', '.join(TOP_KEYS)}")
    findings.stop()
    assert root is not None
    spec = _read(Entry(findings, FileNames(), root, "", TOP_KEYS))
    findings.stop()
    return spec, tuple(findings.warnings)


def _read(top: Entry) -> TaskSpec:
    """The spec; it is meaningful only when nothing was found to be wrong."""
    top.names.extra.update(top.extra)
    inputs = _tensors(top, "inputs", "the input", required=True)
    parameters = _tensors(top, "parameters", "the parameter")
    fns = tuple(fn for entry in _entries(top, "fns", FN_KEYS, "func_name") if (fn := read_fn(entry)))
    outputs = _outputs(top)
    global_code, sizes = _global(top)
    shapes = _shapes(top, sizes)
    _check_sizes(top, global_code, shapes)
    _check_symbols(top)
    impl = top.text("impl")
    _read_target(top)
    return TaskSpec(
        inputs=inputs,
        outputs=outputs,
        parameters=parameters,
        fns=fns,
        global_code=global_code,
        test_name=_test_name(top),
        impl=impl[0] if impl else None,
        sizes=sizes,
        shapes=shapes,
        margins=top.values("margins"),
        cases=_cases(top, shapes),
        extra=top.names.extra,
    )


def _entries(top: Entry, key: str, known: Sequence[str], name_key: str, required: bool = False) -> Iterator[Entry]:
    """The entries of a top-level list; their unknown keys are kept under the list's key and the entry's name."""
    at = top.need(key, f"a list of {key}") if required else top.get(key)
    if required and at is not None and at.value == []:
        top.error(at, key, "an empty list", f"at least one of the {key}")
    for number, item in enumerate(top.items(key)):
        entry = Entry(top.findings, top.names, item, f"{key}[{number}]", known)
        if entry.extra and (name := entry.get(name_key)) is not None:
            top.names.extra.setdefault(key, {})[str(name.raw)] = entry.extra
        yield entry


def _tensors(top: Entry, key: str, what: str, required: bool = False) -> tuple[TensorSpec, ...]:
    entries = _entries(top, key, TENSOR_KEYS, "name", required)
    return tuple(tensor for entry in entries if (tensor := read_tensor(entry, what)))


def _outputs(top: Entry) -> tuple[OutputSpec, ...]:
    entries = _entries(top, "outputs", OUTPUT_KEYS, "name", required=True)
    return tuple(output for entry in entries if (output := read_output(entry)))


def _test_name(top: Entry) -> str:
    at = top.get("test_name")
    if at is not None and isinstance(at.value, dict | list):
        top.error(at, "test_name", kind(at), "a text")
    return "" if at is None else at.raw


def _read_target(top: Entry) -> None:
    at = top.get("target")
    if at is not None and at.value != TARGET:
        top.error(at, "target", kind(at), f"{TARGET}, the language of this file")
    elif at is not None:
        top.names.extra["target"] = TARGET


def _global(top: Entry) -> tuple[str, dict[str, int]]:
    """The text of `global` and the base size of every symbol."""
    found = top.text("global")
    if found is None:
        return "", ir_code.Sizes().found
    tree, problem = ir_code.parse(found[0])
    if tree is None:
        if problem is not None:
            top.code_error(found[1], "global", problem)
        return found[0], ir_code.Sizes().found
    sizes = ir_code.Sizes().read(tree)
    for symbol in sorted(top.names.symbols & set(sizes.problems)):
        top.code_error(found[1], "global", sizes.problems[symbol])
    return found[0], sizes.found


def _shapes(top: Entry, sizes: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The shape sets of the file: name -> symbol -> size."""
    at = top.get("shapes")
    if at is None:
        return {}
    names = tuple(at.value) if isinstance(at.value, dict) else ()
    if len(names) > MAX_SHAPES:
        top.error(at, "shapes", f"{len(names)} sets", f"at most {MAX_SHAPES}", "keep those that tell programs apart")
        return {}
    sets = Entry(top.findings, top.names, at, "shapes", names or ("a name for each set",))
    return {name: _shape(sets, name, sizes) for name in names}


def _shape(sets: Entry, name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    at = sets.need(name, "sizes, such as {M: 3}")
    if not re.fullmatch(r"[\w-]{1,40}", name, re.ASCII):
        sets.error(at, name[:40], repr(name[:40]), "a short name of letters, digits, _ and -")
    if at is None:
        return {}
    known = tuple(sorted({*sizes, *sets.names.symbols}))
    chosen = Entry(Findings(""), sets.names, at, "", known)  # unknown symbols are errors, not warnings
    if not isinstance(at.value, dict):
        sets.error(at, name, kind(at), "sizes, such as {M: 3}")
    for symbol in chosen.extra:
        sets.error(at, name, f"the symbol {symbol}", f"one of {', '.join(known)}")
    found = {}
    for symbol in at.value if isinstance(at.value, dict) else ():
        size = chosen.get(symbol) if symbol in known else None
        if size is not None and (type(size.value) is not int or not 1 <= size.value <= ir_code.MAX_SIZE):
            sets.error(size, f"{name}.{symbol}", kind(size), f"an int from 1 to {ir_code.MAX_SIZE}")
        elif size is not None:
            found[symbol] = size.value
    return found


def _cases(top: Entry, shapes: Mapping[str, Any]) -> tuple[CaseSpec, ...]:
    """Hand-made inputs: texts, or one of the file's shape sets with a text."""
    found = [_case(top, at, f"cases[{number}]", shapes) for number, at in enumerate(top.few("cases"))]
    return tuple(case for case in found if case is not None)


def _case(top: Entry, at: Located, place: str, shapes: Mapping[str, Any]) -> CaseSpec | None:
    shape, code = "", at
    if isinstance(at.value, dict):
        if len(at.value) != 1 or not at.value.keys() <= shapes.keys():
            sets = f"one of {', '.join(shapes)}" if shapes else "a shape set"
            remedy = "name the set under `shapes`, also where a built-in one is meant, e.g. shapes: {many: {M: 40}}"
            given = f"a mapping with {', '.join(list(at.value)[:5])}"
            top.error(at, place, given, f"a text, or {sets} with a text", remedy)
            return None
        ((shape, code),) = at.value.items()
    text = top.value(code, place)
    return None if text is None else CaseSpec(text, shape)


def _check_sizes(top: Entry, global_code: str, shapes: Mapping[str, Mapping[str, int]]) -> None:
    """Every dim is a whole number >= 1 at the base sizes and at every shape set of the file."""
    tree, _ = ir_code.parse(global_code)
    seen: set[str] = set()  # one mistake gives one message
    for name, chosen in {"": {}, **shapes}.items():
        sizes = ir_code.Sizes(chosen)
        if tree is not None:
            sizes.read(tree)
        shape = f" at shape {name}" if name else ""
        seen |= set(sizes.problems)
        for dim, at, where in top.names.dims:
            _check_dim(top.findings, dim, at, where + shape, sizes.found, seen)
        for multihot, ones, at, where in top.names.ones:
            _check_ones(top.findings, multihot.length, ones, at, where + shape, sizes.found)


def _check_dim(findings: Findings, dim: Dim, at: Located, where: str, sizes: Mapping[str, int], seen: set[str]) -> None:
    for symbol in sorted(dim.symbols - set(sizes) - seen):
        if is_name(symbol):
            expected = f"a size for {symbol}; known: {', '.join(sorted(sizes))}"
            findings.error(at, where, f"the symbol {symbol}", expected, f"{symbol}_value = 3 in `global`")
        seen.add(symbol)
    if dim.symbols <= set(sizes) and str(dim) not in seen:
        try:
            dim.value(sizes)
        except DimError as error:
            findings.error(at, where, str(error), "a whole number at these sizes")
            seen.add(str(dim))


def _check_ones(findings: Findings, length: Dim, ones: int, at: Located, where: str, sizes: Mapping[str, int]) -> None:
    try:
        size = length.value(sizes)
    except DimError:
        return  # reported with the dims
    if ones > size:
        findings.error(at, where, f"max {ones}", f"at most {size}, the length {length} of the Multihot")


def _check_symbols(top: Entry) -> None:
    """Symbols, their sizes and the names of the file live in one namespace."""
    places = {symbol: (at, where) for dim, at, where in reversed(top.names.dims) for symbol in dim.symbols}
    for symbol, (at, where) in places.items():
        stem = symbol.removesuffix(ir_code.SIZE_SUFFIX)
        if not is_name(symbol):
            top.findings.error(at, where, f"the symbol {symbol}", "a name that is free", "choose another letter")
        elif stem not in (symbol, ""):
            top.findings.error(at, where, f"the symbol {symbol}", f"a symbol; {symbol} is the size of {stem}", stem)
        for name in (symbol, symbol + ir_code.SIZE_SUFFIX):
            if name in top.names.taken:
                given = f"{name}, which {top.names.taken[name]} is named"
                top.findings.error(at, where, given, f"the symbol {symbol} alone to have this name")
