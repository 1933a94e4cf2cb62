"""Structural IR: what a task file says, read into records and written back.

Reads a YAML text into a `TaskSpec` and writes one back; `read_spec(write_spec(spec)) == spec` for every spec that was
read, and writing is a fixed point. Nothing of the file is executed. Keys of ours, all optional: `shapes` (name ->
{symbol: size}), `margins` (texts), `cases` (texts, or the name of a shape set -> text), `drawn_from` (`origin`),
`target` (a name), and an output's `rtol` and `atol`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opsmith.problems.dims import Dim, DimError
from opsmith.problems.files import nodes as file_nodes
from opsmith.problems.files.entries import describe_node, is_name
from opsmith.problems.files.nodes import Findings, Located
from opsmith.problems.files.sections import check_dim, read_cases, read_shapes
from opsmith.problems.files.texts import parse_code
from opsmith.targets.step.ir import code as ir_code
from opsmith.targets.step.ir.code import sizes_with
from opsmith.targets.step.ir.entry import StepEntry, StepNames
from opsmith.targets.step.ir.origin import read_origin
from opsmith.targets.step.ir.records import FN_KEYS, OUTPUT_KEYS, TENSOR_KEYS, read_fn, read_output, read_tensor
from opsmith.targets.step.ir.write import write_spec
from opsmith.targets.step.language.spec import OutputSpec, TaskSpec, TensorSpec

__all__ = ["read_spec", "read_spec_with_warnings", "sizes_with", "write_spec"]

TARGET = "step"
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
    "drawn_from",
    "target",
    "impl",
)


def read_spec(text: str, where: str = "") -> TaskSpec:
    """The task that a YAML text describes.

    Errors  TaskError with one TASK diagnostic per mistake, each with line and column; `where` names the file in it

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
    """
    root, findings = file_nodes.load_yaml(text, where)
    if root is None or not isinstance(root.value, dict):
        node = root or Located(None, 1, 1)
        findings.add_error(node, "file", describe_node(node), f"a mapping with the keys {', '.join(TOP_KEYS)}")
    findings.raise_errors()
    assert root is not None
    spec = _read_task(StepEntry(findings, StepNames(), root, "", TOP_KEYS))
    findings.raise_errors()
    return spec, tuple(findings.warnings)


def _read_task(top: StepEntry) -> TaskSpec:
    """The spec; it is meaningful only when nothing was found to be wrong."""
    _refuse_stray_fns(top)
    top.names.extra.update(top.extra)
    inputs = _read_tensors(top, "inputs", "the input", required=True)
    parameters = _read_tensors(top, "parameters", "the parameter")
    fns = tuple(fn for entry in _list_entries(top, "fns", FN_KEYS, "func_name") if (fn := read_fn(entry)))
    outputs = _read_outputs(top)
    origin = read_origin(top)
    global_code, sizes = _read_global(top)
    shapes = read_shapes(top, sizes)
    _check_sizes(top, global_code, shapes)
    _check_symbols(top)
    impl = top.read_text("impl")
    _read_target(top)
    return TaskSpec(
        inputs=inputs,
        outputs=outputs,
        parameters=parameters,
        fns=fns,
        global_code=global_code,
        test_name=_read_test_name(top),
        impl=impl[0] if impl else None,
        sizes=sizes,
        shapes=shapes,
        margins=top.read_values("margins"),
        cases=read_cases(top, shapes),
        extra=top.names.extra,
        drawn_from=origin,
    )


def _refuse_stray_fns(top: StepEntry) -> None:
    """A function outside of `fns` is one mistake, and the only one that is reported of its file.

    Beside a list `fns`, a list of functions under a key without meaning is none: it may be there on purpose.
    """
    own = top.get("fns")
    for key, node in top.at.value.items():
        is_ours = key == "func_name" or key in TOP_KEYS or own is None or own.value == []
        name = _first_func_name(top.at if key == "func_name" else node) if is_ours and key != "fns" else None
        if name is not None:
            mistake, remedy = f"the function {name.raw} under `{key}`", f"write `fns:` where `{key}:` stands"
            if key in TOP_KEYS:
                remedy = "write `fns:` at the left margin, above the first function"
            elif key == "func_name":
                mistake = f"the function {name.raw} outside of a list"
                remedy = "write `fns:` above it, and a dash before its first key"
            top.report_error(name, key, mistake, "functions as a list under `fns`", remedy)
            top.findings.raise_errors()


def _first_func_name(node: Located) -> Located | None:
    """The first function's name, at any depth."""
    if isinstance(node.value, dict):
        name: Located | None = node.value.get("func_name")
        if name is not None and isinstance(name.value, str):
            return name
    children = (
        node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
    )
    return next((func_name for child in children if (func_name := _first_func_name(child)) is not None), None)


def _list_entries(
    top: StepEntry, key: str, keys: Sequence[str], name_key: str, required: bool = False
) -> Iterator[StepEntry]:
    """The entries of a top-level list; their unknown keys are kept under the list's key and the entry's name."""
    listing = top.need_value(key, f"a list of {key}") if required else top.get(key)
    if required and listing is not None and listing.value == []:
        top.report_error(listing, key, "an empty list", f"at least one of the {key}")
    for number, node in enumerate(top.list_items(key)):
        entry = StepEntry(top.findings, top.names, node, f"{key}[{number}]", keys)
        if entry.extra and (name := entry.get(name_key)) is not None:
            top.names.extra.setdefault(key, {})[str(name.raw)] = entry.extra
        yield entry


def _read_tensors(top: StepEntry, key: str, what: str, required: bool = False) -> tuple[TensorSpec, ...]:
    entries = _list_entries(top, key, TENSOR_KEYS, "name", required)
    return tuple(tensor for entry in entries if (tensor := read_tensor(entry, what)))


def _read_outputs(top: StepEntry) -> tuple[OutputSpec, ...]:
    entries = _list_entries(top, "outputs", OUTPUT_KEYS, "name", required=True)
    return tuple(output for entry in entries if (output := read_output(entry)))


def _read_test_name(top: StepEntry) -> str:
    node = top.get("test_name")
    if node is not None and isinstance(node.value, dict | list):
        top.report_error(node, "test_name", describe_node(node), "a text")
    return "" if node is None else node.raw


def _read_target(top: StepEntry) -> None:
    node = top.get("target")
    if node is not None and node.value != TARGET:
        top.report_error(node, "target", describe_node(node), f"{TARGET}, the language of this file")
    elif node is not None:
        top.names.extra["target"] = TARGET


def _read_global(top: StepEntry) -> tuple[str, dict[str, int]]:
    """The text of `global` and the base size of every symbol."""
    block = top.read_text("global")
    if block is None:
        return "", ir_code.Sizes().by_symbol
    tree, problem = parse_code(block[0])
    if tree is None:
        if problem is not None:
            top.code_error(block[1], "global", problem)
        return block[0], ir_code.Sizes().by_symbol
    sizes = ir_code.Sizes().read_global(tree)
    for symbol in sorted(top.names.symbols & set(sizes.problems)):
        top.code_error(block[1], "global", sizes.problems[symbol])
    return block[0], sizes.by_symbol


def _check_sizes(top: StepEntry, global_code: str, shapes: Mapping[str, Mapping[str, int]]) -> None:
    """Every dim is a whole number >= 1 at the base sizes and at every shape set of the file."""
    tree, _ = parse_code(global_code)
    reported: set[str] = set()  # one mistake gives one message
    for name, chosen in {"": {}, **shapes}.items():
        sizes = ir_code.Sizes(chosen)
        if tree is not None:
            sizes.read_global(tree)
        shape = f" at shape {name}" if name else ""
        reported |= set(sizes.problems)
        for dim, node, where in top.names.dims:
            check_dim(top.findings, dim, node, where + shape, sizes.by_symbol, reported)
        for multihot, ones, node, where in top.names.ones:
            _check_ones(top.findings, multihot.length, ones, node, where + shape, sizes.by_symbol)


def _check_ones(
    findings: Findings, length: Dim, ones: int, node: Located, where: str, sizes: Mapping[str, int]
) -> None:
    try:
        size = length.value(sizes)
    except DimError:
        return  # reported with the dims
    if ones > size:
        findings.add_error(node, where, f"max {ones}", f"at most {size}, the length {length} of the Multihot")


def _check_symbols(top: StepEntry) -> None:
    """Symbols, their sizes and the names of the file live in one namespace."""
    places = {symbol: (node, where) for dim, node, where in reversed(top.names.dims) for symbol in dim.symbols}
    for symbol, (node, where) in places.items():
        stem = symbol.removesuffix(ir_code.SIZE_SUFFIX)
        if not is_name(symbol):
            top.findings.add_error(node, where, f"the symbol {symbol}", "a name that is free", "choose another letter")
        elif stem not in (symbol, ""):
            top.findings.add_error(
                node, where, f"the symbol {symbol}", f"a symbol; {symbol} is the size of {stem}", stem
            )
        for name in (symbol, symbol + ir_code.SIZE_SUFFIX):
            if name in top.names.owners:
                mistake = f"{name}, which {top.names.owners[name]} is named"
                top.findings.add_error(node, where, mistake, f"the symbol {symbol} alone to have this name")
