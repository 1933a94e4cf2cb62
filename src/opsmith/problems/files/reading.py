"""Problem files: what an operator computes, in no language, read from YAML into a `Problem`.

Nothing of the file is executed. Mistakes are findings with line and column; unknown keys are warnings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from opsmith.problems.dims import Dim, DimError, parse_dim
from opsmith.problems.dtypes import BYTE_FLOATS, DTYPES, NAMES_BY_WORD, NARROW_FLOATS
from opsmith.problems.files.entries import (
    MAX_NAME,
    RESERVED_IN_PROBLEMS,
    Entry,
    FileNames,
    as_number,
    describe_names,
    describe_node,
    is_name,
)
from opsmith.problems.files.nodes import Findings, Located, load_yaml
from opsmith.problems.files.provenance import SOURCE_KEYS, read_provenance
from opsmith.problems.files.sections import MAX_SIZE, check_dim, read_cases, read_constraints, read_shapes
from opsmith.problems.files.texts import parse_code
from opsmith.problems.problem import ArrayType, Distribution, InputTensor, OutputTensors, Problem, Provenance

TOP_KEYS = (
    "problem",
    "group",
    "dims",
    "inputs",
    "scalars",
    "fixed",
    "outputs",
    "setup",
    "reference",
    "constraints",
    "ties",
    "shapes",
    "margins",
    "cases",
    "accumulation",
    "bench",
    "source",
)
INPUT_KEYS = ("name", "dtype", "shape", "data", "distributions")
OUTPUT_KEYS = ("name", "dtype", "shape")
LEAST_BENCH = 3  # shape sets that are timed, if any is
GENERATORS = {"normal": "torch.randn"}  # a word under `data` -> the generator that it stands for

_GROUP = re.compile(r"[^\W\d][\w-]*(?: [\w-]+)*")
_PROBLEM_LINE = re.compile(r"^problem:", re.MULTILINE)


@dataclass(frozen=True)
class ProblemFile:
    """A problem with the name that its file gives it, and the group that its results are counted in."""

    name: str
    group: str
    problem: Problem


def is_problem_file(text: str) -> bool:
    """Whether a YAML text states a problem rather than a task: it has the key `problem`."""
    return _PROBLEM_LINE.search(text) is not None


def read_problem(text: str, where: str = "") -> ProblemFile:
    """The problem that a YAML text describes; `where` names the file in messages.

    Errors  TaskError with one TASK diagnostic per mistake, each with line and column

    >>> file = read_problem('''
    ... problem: row_sum
    ... dims: {M: 4, N: 100}
    ... inputs: [{name: x, dtype: fp32, shape: [M, N], data: normal}]
    ... outputs: [{name: y, dtype: fp32, shape: [M]}]
    ... reference: |
    ...   def row_sum(x):
    ...       return x.sum(-1)
    ... ''')
    >>> print(file.name, file.problem.inputs[0].type.label, file.problem.sizes["N"])
    row_sum fp32 [M, N] 100
    """
    return read_problem_with_warnings(text, where)[0]


def read_problem_with_warnings(text: str, where: str = "") -> tuple[ProblemFile, tuple[str, ...]]:
    """As `read_problem`, with one warning per unknown key. Raises TaskError."""
    root, findings = load_yaml(text, where)
    if root is None or not isinstance(root.value, dict):
        node = root or Located(None, 1, 1)
        findings.add_error(node, "file", describe_node(node), f"a mapping with the keys {', '.join(TOP_KEYS)}")
    findings.raise_errors()
    assert root is not None
    file = _read_file(_open_entry(findings, FileNames(reserved=RESERVED_IN_PROBLEMS), root, "", TOP_KEYS))
    findings.raise_errors()
    return file, tuple(findings.warnings)


def _open_entry(findings: Findings, names: FileNames, node: Located, where: str, keys: Sequence[str]) -> Entry:
    """A mapping of the file; the warning on an unknown key names those that are written much like it."""
    before = len(findings.warnings)
    entry = Entry(findings, names, node, where, keys)
    for number, key in enumerate(entry.extra, before):
        if near := get_close_matches(key, keys, n=2):
            findings.warnings[number] += f"; near matches: {', '.join(near)}"
    return entry


def _read_file(top: Entry) -> ProblemFile:
    """The problem; it is meaningful only when nothing was found to be wrong."""
    name = top.read_name("problem") or ""
    sizes = _read_dims(top)
    inputs = tuple(tensor for entry in _list_entries(top, "inputs", INPUT_KEYS) if (tensor := _read_input(entry)))
    scalars = _read_scalars(top)
    outputs = tuple(output for entry in _list_entries(top, "outputs", OUTPUT_KEYS) if (output := _read_output(entry)))
    shapes, bench = read_shapes(top, sizes), _read_bench(top, sizes)
    sets = {**shapes, **{f"bench.{name}": chosen for name, chosen in bench.items()}}
    _check_sizes(top, sizes, sets)
    arguments = [*(tensor.name for tensor in inputs), *scalars]
    problem = Problem(
        inputs,
        (),
        outputs,
        sizes=sizes,
        shapes=shapes,
        margins=top.read_values("margins"),
        cases=read_cases(top, shapes),
        global_code=_read_setup(top),
        reference=_read_reference(top, arguments),
        scalars=scalars,
        fixed=_read_fixed(top, scalars),
        accumulation=_read_accumulation(top, (*inputs, *outputs)),
        bench=bench,
        constraints=read_constraints(top, sizes, sets),
        ties=_read_ties(top),
        source=_read_source(top, arguments, inputs),
    )
    return ProblemFile(name, _read_group(top, name), problem)


def _read_group(top: Entry, name: str) -> str:
    node = top.get("group")
    if node is None:
        return name
    if isinstance(node.value, str) and len(node.value) <= MAX_NAME and _GROUP.fullmatch(node.value):
        return node.value
    expected = "words of letters, digits, _ and -, with a blank between two, such as linear algebra"
    top.report_error(node, "group", describe_node(node), expected, "" if isinstance(node.value, str) else "quote it")
    return ""


# -- sizes


def _read_dims(top: Entry) -> dict[str, int]:
    """The base size of every dim, in the order of the file."""
    expected, example = "the base size of every dim", "such as {M: 64, N: 1000}"
    node = top.take_kind("dims", dict, f"a mapping of sizes, {example}", needed=f"{expected}, {example}")
    sizes = {} if node is None else node.value
    return {name: size.value for name, size in sizes.items() if _is_sound_dim(top, name, size)}


def _is_sound_dim(top: Entry, name: str, size: Located) -> bool:
    is_size = type(size.value) is int and 1 <= size.value <= MAX_SIZE
    if not is_size:
        top.report_error(size, f"dims.{name}", describe_node(size), f"an int from 1 to {MAX_SIZE}")
    return _claim_name(top, name, "the dim", size, f"dims.{name}") and is_size


def _claim_name(top: Entry, name: str, what: str, node: Located, place: str) -> bool:
    """Whether a key of a mapping can be a name that nothing else in the file has; from here on it names `what`."""
    if is_name(name, top.names.reserved):
        return top.claim_name(place, name, node, what)
    top.report_error(node, place, repr(name)[:80], describe_names(top.names.reserved))
    return False


def _read_bench(top: Entry, sizes: Mapping[str, int]) -> dict[str, dict[str, int]]:
    bench = read_shapes(top, sizes, "bench")
    if bench and len(bench) < LEAST_BENCH:
        expected = f"at least {LEAST_BENCH}: a small one, one of odd sizes, a large one"
        top.report_error(top.get("bench"), "bench", f"{len(bench)} shape sets", expected)
    return bench


def _check_sizes(top: Entry, sizes: Mapping[str, int], sets: Mapping[str, Mapping[str, int]]) -> None:
    """Every dim is a whole number >= 1 at the base sizes and at every set."""
    reported: set[str] = set()
    for name, chosen in {"": {}, **sets}.items():
        place = f" at shape {name}" if name else ""
        for dim, node, where in top.names.dims:
            here = {**sizes, **chosen}
            check_dim(top.findings, dim, node, where + place, here, reported, "a size for it under `dims`: {}: 64")


# -- tensors and scalars


def _list_entries(top: Entry, key: str, keys: Sequence[str]) -> list[Entry]:
    listing = top.need_value(key, f"a list of {key}")
    if listing is not None and listing.value == []:
        top.report_error(listing, key, "an empty list", f"at least one of the {key}")
    nodes = enumerate(top.list_items(key))
    return [_open_entry(top.findings, top.names, node, f"{key}[{number}]", keys) for number, node in nodes]


def _read_input(entry: Entry) -> InputTensor | None:
    name, type_, data = entry.read_own_name("name", "the input"), _read_type(entry), _read_data(entry)
    if name is None or type_ is None or data is None:
        return None
    if data in GENERATORS and not type_.is_floating:
        remedy = "data: randint(0, 10)"
        entry.report_error(entry.get("data"), "data", f"{data} for {type_.dtype}", "a float type", remedy)
    expression = "" if data in GENERATORS else data
    return InputTensor(
        name, type_, GENERATORS.get(data), expression=expression, distributions=_read_distributions(entry)
    )


def _read_distributions(entry: Entry) -> tuple[tuple[str, str], ...]:
    """The input's data under some distributions: expressions, or `declared` for what `data` says."""
    node = entry.take_kind("distributions", dict, 'a mapping of expressions, such as {negative: "-torch.rand(M, N)"}')
    rows = []
    for kind, value in ({} if node is None else node.value).items():
        place = f"distributions.{kind}"
        if kind not in list(Distribution):
            near = get_close_matches(str(kind), list(Distribution), n=1)
            entry.report_error(value, place, repr(kind), f"one of {', '.join(Distribution)}", *near)
        elif (text := entry.read_value(value, place)) is not None:
            rows.append((str(kind), text.strip()))
    return tuple(rows)


def _read_data(entry: Entry) -> str | None:
    """`normal`, or a Python expression."""
    needed = "normal, uniform(a, b), randint(a, b) or a Python expression on torch"
    node = entry.take_kind("data", str, "a text, such as normal or uniform(0, 1)", needed=needed)
    if node is None:
        return None
    text = entry.read_value(node, "data") or ""
    return text.strip() if "\n" not in text.strip() else text


def _read_output(entry: Entry) -> OutputTensors | None:
    name, type_ = entry.read_own_name("name", "the output"), _read_type(entry)
    return None if name is None or type_ is None else OutputTensors(name, (type_,))


def _read_type(entry: Entry) -> ArrayType | None:
    node, shape = entry.need_value("dtype", f"one of {', '.join(DTYPES)}"), _read_shape(entry)
    if node is not None and node.value not in DTYPES:
        word = NAMES_BY_WORD.get(str(node.raw))
        near = [word] if word else get_close_matches(str(node.raw), DTYPES, n=1)
        entry.report_error(node, "dtype", describe_node(node), f"one of {', '.join(DTYPES)}", *near)
        return None
    return None if node is None or shape is None else ArrayType(node.value, shape)


def _read_shape(entry: Entry) -> tuple[Dim, ...] | None:
    """The dims of a tensor, outermost first, noted; [] is a single number."""
    needed = "a list of dims, outermost first, such as [M, N]"
    node = entry.take_kind("shape", list, "a list of dims, such as [M, N]", needed=needed)
    if node is None:
        return None
    dims = [_read_dim(entry, axis) for axis in node.value]
    return tuple(dim for dim in dims if dim is not None) if None not in dims else None


def _read_dim(entry: Entry, node: Located) -> Dim | None:
    try:
        if isinstance(node.value, bool) or not isinstance(node.value, str | int):
            raise DimError(f"{describe_node(node)} is no dim")
        dim = parse_dim(str(node.raw))
    except DimError as error:
        entry.report_error(node, "shape", str(error), "a dim: a number, a name, or products and quotients of them")
        return None
    entry.names.dims.append((dim, node, entry.place_of("shape")))
    return dim


def _read_ties(top: Entry) -> str:
    """Which of equal numbers a decision takes, in the author's words."""
    node = top.take_kind("ties", str, "a text, such as: of equal ones the first")
    if node is None:
        return ""
    text = " ".join(str(node.value).split())
    if not text:
        top.report_error(node, "ties", "a blank text", "a rule, such as: of equal ones the first", "remove it")
    return text


def _read_scalars(top: Entry) -> dict[str, int | float]:
    node = top.take_kind("scalars", dict, "a mapping of numbers, such as {eps: 1.0e-5}")
    rows = () if node is None else node.value.items()
    return {name: number for name, value in rows if (number := _read_scalar(top, name, value)) is not None}


def _read_scalar(top: Entry, name: str, node: Located) -> int | float | None:
    number = as_number(node.value)
    if number is None:
        top.report_error(node, f"scalars.{name}", describe_node(node), "a number, such as 1.0e-5")
    return number if _claim_name(top, name, "the scalar", node, f"scalars.{name}") else None


def _read_fixed(top: Entry, scalars: Mapping[str, int | float]) -> tuple[str, ...]:
    """The scalars that no draw changes."""
    node = top.take_kind("fixed", list, "a list of scalars, such as [axis]")
    names: list[str] = []
    for entry in () if node is None else node.value:
        if entry.value in scalars and entry.value not in names:
            names.append(entry.value)
        else:
            mistake = f"{describe_node(entry)} {'again' if entry.value in names else 'that is no scalar'}"
            top.report_error(
                entry, "fixed", mistake, f"one of {', '.join(scalars)}" if scalars else "no `fixed`", "remove it"
            )
    return tuple(names)


def _read_accumulation(top: Entry, tensors: Sequence[InputTensor | OutputTensors]) -> str:
    """The dtype to sum in, which a file with narrow floats must say."""
    types = [
        type_ for tensor in tensors for type_ in (tensor.types if isinstance(tensor, OutputTensors) else [tensor.type])
    ]
    narrow = sorted({type_.dtype for type_ in types} & NARROW_FLOATS)
    expected = " or ".join(["fp32", *(dtype for dtype in narrow if dtype not in BYTE_FLOATS)])
    if not narrow:
        if (node := top.get("accumulation")) is not None:
            mistake = f"{describe_node(node)} without a tensor of fp16, bf16 or fp8"
            top.report_error(node, "accumulation", mistake, "no accumulation", "remove it")
        return ""
    node = top.need_value("accumulation", f"{expected}, the type to sum in")
    if node is not None and node.value not in expected.split(" or "):
        top.report_error(node, "accumulation", describe_node(node), expected)
    return "" if node is None else str(node.value)


# -- the reference


def _read_setup(top: Entry) -> str:
    """Statements that the reference and expressions of data share."""
    block = top.read_text("setup")
    if block is None:
        return ""
    text, node = block
    _, finding = parse_code(text)
    if finding is not None:
        top.code_error(node, "setup", finding)
    return text


def _read_source(top: Entry, arguments: Sequence[str], inputs: Sequence[InputTensor]) -> Provenance | None:
    node = top.get("source")
    if node is None:
        return None
    entry = _open_entry(top.findings, top.names, node, "source", SOURCE_KEYS)
    return read_provenance(entry, arguments, [tensor.name for tensor in inputs])


def _read_reference(top: Entry, arguments: Sequence[str]) -> str:
    """The text of a function that takes these arguments."""
    if top.need_value("reference", "a Python function of inputs and scalars") is None:
        return ""
    block = top.read_text("reference")
    if block is None:
        return ""
    text, node = block
    tree, finding = parse_code(text)
    if tree is None:
        if finding is not None:
            top.code_error(node, "reference", finding)
        return text
    _check_function(top, node, tree, arguments)
    return text


def _check_function(top: Entry, node: Located, tree: ast.Module, arguments: Sequence[str]) -> None:
    title = top.get("problem")
    expected = f"def {title.raw if title else 'reference'}({', '.join(arguments)}): ..."
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.FunctionDef):
        top.report_error(node, "reference", "no function at the end", expected)
        return
    names = [argument.arg for argument in (*last.args.args, *last.args.kwonlyargs)]
    if sorted(names) != sorted(arguments) or last.args.posonlyargs or last.args.vararg or last.args.kwarg:
        mistake = f"the arguments ({ast.unparse(last.args)})"
        line, column = top.findings.locate_code(node, last.lineno, last.col_offset + 1)
        top.findings.add_finding(
            line, column, "reference", mistake, expected, "all inputs, then all scalars, by their names"
        )
