"""Static checks of one TVMScript function, before anything reads it as Python: findings of the stage PARSE.

TVM's parser *executes* parts of a text (decorators, annotations, calls of what is no buffer), so that all that is not
on a list is refused first: statements, operators, names of `T`, keywords, texts. Types and regions are left to TVM.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from opsmith.records import Diagnostic
from opsmith.targets.native.python_source import (
    DEEPEST,
    OPERATORS,
    check_number,
    check_spelling,
    name_node,
    parse_python,
    refuse,
    refuse_depth,
    walk_nodes,
)
from opsmith.targets.native.signature import FUNCTION
from opsmith.targets.native.source_checks import KIND, LARGEST_SOURCE, Findings, run_text_checks
from opsmith.targets.programs import sort_parameters

DECORATOR = "@T.prim_func(s_tir=True)"
_TYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 bool"
_LOOPS = "serial parallel vectorized unroll grid"
_BLOCKS = "sblock axis init reads writes where"
_MATH = (
    "abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf exp exp10 exp2 fabs floor fma fmod hypot "
    "infinity isfinite isinf isnan log log10 log1p log2 max max_value min min_value nearbyint pow round rsqrt sigmoid "
    "sin sinh sqrt tan tanh trunc"
)
_INTEGERS = (
    "bitwise_and bitwise_not bitwise_or bitwise_xor ceildiv clz floordiv floormod popcount shift_left shift_right "
    "truncdiv truncmod"
)
_OTHERS = (
    "prim_func handle match_buffer alloc_buffer sblock_alloc_buffer "
    "Cast cast reinterpret if_then_else Select And Or Not"
)
ALLOWED = frozenset(" ".join((_TYPES, _LOOPS, _BLOCKS, _MATH, _INTEGERS, _OTHERS)).split())
_AXES = frozenset({"spatial", "reduce", "remap", "S", "R"})  # of T.axis
_KEYWORDS = frozenset({"dtype", "scope", "s_tir", "unroll"})
_TEXT = re.compile(r"[A-Za-z]?[\w.]{0,39}", re.ASCII)  # types, names of blocks, "SSR"
_STATEMENTS = (
    *(
        ast.Module,
        ast.FunctionDef,
        ast.arguments,
        ast.arg,
        ast.Assign,
        ast.AugAssign,
        ast.AnnAssign,
        ast.For,
        ast.While,
    ),
    *(ast.If, ast.With, ast.withitem, ast.Expr, ast.Pass),
)
_EXPRESSIONS = (
    *(ast.Name, ast.Constant, ast.Tuple, ast.List, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.Subscript, ast.Slice, ast.Call, ast.keyword, ast.Attribute, ast.expr_context),
)
_KNOWN = (*_STATEMENTS, *_EXPRESSIONS, *OPERATORS)
_SERIAL = "loops, `if`, `while`, `with T.sblock`, assignments, arithmetic and calls of `T.*`"


def check_source(source: str) -> tuple[Diagnostic, ...]:
    """What is refused, the first findings first; none: TVM may read it. Never raises, whatever the text."""
    return run_text_checks(source, _check_text)


def is_program(text: str) -> bool:
    """Whether a text as a whole is Python that defines the function or tries to.

    >>> is_program("@T.prim_func(s_tir=True)\\ndef kernel(): pass"), is_program("Use def kernel(): pass")
    (True, False)
    """
    if FUNCTION not in text or len(text) > 2 * LARGEST_SOURCE:
        return False
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return re.match(r"\s*(#.*\s+)*@T\.prim_func\b", text) is not None and "\n```" not in text
    return any(isinstance(node, ast.FunctionDef) and node.name == FUNCTION for node in body)


def read_function(source: str) -> ast.FunctionDef:
    """The function of a text that `check_source` lets pass."""
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    return function


def _check_text(source: str) -> Findings:
    tree = parse_python(source, "TVMScript")
    if isinstance(tree, Diagnostic):
        yield tree
        return
    yield from _check_module(tree)
    for node, parent, depth in walk_nodes(tree):
        if depth > DEEPEST:
            yield refuse_depth(node)
            return
        yield from _check_node(node, parent)
    yield from _check_arrays(tree)


def find_arrays(tree: ast.AST) -> dict[str, list[str]]:
    """The extents of arrays, in the words of the text, by name."""
    arrays = {}
    for node in (node for node, _, _ in walk_nodes(tree) if isinstance(node, ast.Assign)):
        call = node.value
        words = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
        if isinstance(call, ast.Call) and words in ("T.match_buffer", "T.alloc_buffer", "T.sblock_alloc_buffer"):
            shape = dict(enumerate(call.args)).get(words == "T.match_buffer")
            axes = shape.elts if isinstance(shape, ast.Tuple | ast.List) else [shape] * (shape is not None)
            arrays[ast.unparse(node.targets[0])] = [ast.unparse(axis) for axis in axes if axis is not None]
    return arrays


def _check_arrays(tree: ast.AST) -> Findings:
    """Whether arrays are used by an index of one entry alone: then every access of them is one that we know of."""
    arrays, regions = find_arrays(tree), set[ast.AST]()
    for node, parent, _ in walk_nodes(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("T.reads", "T.writes"):
            regions |= set(ast.walk(node))
        elif isinstance(node, ast.Slice) and node not in regions:
            yield refuse(parent, "a slice", "an index of one entry", "write a loop: T.vectorized for vectors")
        elif isinstance(node, ast.Subscript) and node not in regions:
            axes = len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
            name = ast.unparse(node.value)[:80]
            if name not in arrays:
                yield refuse(node, f"an index of {name}", "arrays of the head, and those of T.alloc_buffer")
            elif axes != len(arrays[name]):
                yield refuse(node, f"{axes} indices of {name}", f"{len(arrays[name])}: one for each axis", "")
        elif isinstance(node, ast.Name) and node.id in arrays and node not in regions:
            is_indexed = isinstance(parent, ast.Subscript) and parent.value is node
            if not is_indexed and not isinstance(node.ctx, ast.Store):
                yield refuse(node, f"the array {node.id} without an index", "one entry: an index for each axis", "")


def _check_module(tree: ast.Module) -> Findings:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for node in tree.body:
        if node is not (functions[0] if functions else None):
            yield refuse(node, f"{name_node(node)} beside the function", "one function, and nothing beside it")
    if not functions:
        yield Diagnostic(KIND, "program", f"no {FUNCTION}", f"{DECORATOR}, then def {FUNCTION}(...)", "define it")
        return
    function = functions[0]
    if function.name != FUNCTION:
        yield refuse(function, f"def {function.name[:80]}", f"def {FUNCTION}", "rename it")
    if [f"@{ast.unparse(each)}" for each in function.decorator_list] != [DECORATOR]:
        yield refuse(function, "other decorators, or none", DECORATOR, "write this line before def, and no other")
    arguments = function.args
    if any((arguments.defaults, arguments.kw_defaults, arguments.vararg, arguments.kwarg, arguments.kwonlyargs)):
        yield refuse(function, "defaults, or parameters by keyword", "the parameters that the task states")
    if function.returns is not None:
        yield refuse(function, "a type that it returns", "a function that returns nothing")


def _check_node(node: ast.AST, parent: ast.AST) -> Findings:
    if not isinstance(node, _KNOWN) or (isinstance(node, ast.FunctionDef) and not isinstance(parent, ast.Module)):
        place = node if hasattr(node, "lineno") else parent
        yield refuse(place, name_node(node), _SERIAL, "write it with these")
    elif isinstance(node, ast.Constant):
        yield from _check_constant(node)
    elif isinstance(node, ast.Name | ast.arg):
        yield from _check_name(node, parent)
    elif isinstance(node, ast.Attribute):
        yield from _check_attribute(node, parent)
    elif isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Attribute) and ast.unparse(node.func) != "range":
            given = f"a call of {ast.unparse(node.func)[:80]}"
            yield refuse(node, given, "calls of `T.*`, and range in loops", "take T's function of that name")
    elif isinstance(node, ast.keyword):
        if node.arg not in _KEYWORDS:
            given = f"the keyword {node.arg or '**'}"
            yield refuse(node.value, given[:80], f"one of {', '.join(sorted(_KEYWORDS))}")
    elif isinstance(node, ast.For | ast.While) and node.orelse:
        yield refuse(node, "else behind a loop", _SERIAL)
    elif isinstance(node, ast.Assign) and len(node.targets) > 1:
        yield refuse(node, "two names at once", "one name for each assignment", "write two lines")


def _check_constant(node: ast.Constant) -> Findings:
    if isinstance(node.value, str):
        if not _TEXT.fullmatch(node.value) or "__" in node.value:
            expected = "texts that name a type, a block or axes"
            yield refuse(node, f"the text {node.value[:40]!r}", expected)
    else:
        yield from check_number(node)


def _check_name(node: ast.Name | ast.arg, parent: ast.AST) -> Findings:
    name = node.id if isinstance(node, ast.Name) else node.arg
    yield from check_spelling(node, name)
    if name == "T" and not isinstance(parent, ast.Attribute):
        yield refuse(node, "`T` alone", "`T` before a dot: it is TVM's", "take another name")
    elif name == "range" and not (isinstance(parent, ast.Call) and parent.func is node):
        yield refuse(node, "`range` alone", "range(...) in a loop", "take another name")


def _check_attribute(node: ast.Attribute, parent: ast.AST) -> Findings:
    base = node.value
    if isinstance(base, ast.Attribute) and ast.unparse(base) == "T.axis" and node.attr in _AXES:
        return
    if not isinstance(base, ast.Name) or base.id != "T":
        given = ast.unparse(node)[:80]
        yield refuse(node, f"`{given}`", "attributes of `T` alone", "write sizes by their names")
    elif node.attr not in ALLOWED:
        expected = "T.* that computes: loops, blocks, types, buffers, arithmetic and functions of <math.h>"
        yield refuse(node, f"T.{node.attr[:80]}", expected)
    elif node.attr == "axis" and not isinstance(parent, ast.Attribute):
        yield refuse(node, "T.axis alone", "T.axis.spatial, T.axis.reduce or T.axis.remap")


def refuse_parallel(source: str) -> tuple[Diagnostic, ...]:
    """Loops over threads, in a text that `check_source` lets pass, for a task of one thread."""
    calls = (node for node, _, _ in walk_nodes(read_function(source)) if isinstance(node, ast.Attribute))
    given, expected = "T.parallel", "loops of one thread: the task states no `threads`"
    return tuple(refuse(each, given, expected, "T.serial in its place") for each in calls if each.attr == "parallel")[
        :1
    ]


def refuse_shared_scalars(source: str) -> tuple[Diagnostic, ...]:
    """Scalars of before a parallel loop that are assigned within it: all its iterations would write to one."""
    for scalar in _list_scalars(read_function(source).body, frozenset(), {}):
        if scalar.target in scalar.loops.get("T.parallel", ()):
            given = f"{scalar.target}, assigned in a parallel loop and known before it: a race of the iterations"
            remedy = "assign it first within the loop, or sum up in an array"
            return (refuse(scalar.statement, given, "scalars that each iteration has for itself", remedy),)
    return ()


def explain_vector_scalars(source: str) -> tuple[Diagnostic, ...]:
    """The first scalar that is assigned in a vectorised loop, of a program with wrong values: TVM keeps one for all."""
    for scalar in _list_scalars(read_function(source).body, frozenset(), {}):
        if "T.vectorized" in scalar.loops:
            given = f"{scalar.target}, assigned in a vectorised loop: all entries of the vector have one"
            remedy = "write its expression out, or keep it in an array with an entry for each"
            return (replace(refuse(scalar.statement, given, "entries of arrays", remedy), kind="DATA"),)
    return ()


@dataclass(frozen=True)
class _Scalar:
    """Where a scalar is assigned: within which loops, and which scalars each of them found."""

    target: str
    statement: ast.stmt
    loops: Mapping[str, frozenset[str]]


def _list_scalars(
    body: list[ast.stmt], known: frozenset[str], loops: Mapping[str, frozenset[str]]
) -> Iterator[_Scalar]:
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if isinstance(target, ast.Name) and "alloc_buffer(" not in ast.unparse(statement):
                yield _Scalar(target.id, statement, loops)
                known |= {target.id}
        loop = ast.unparse(statement.iter).partition("(")[0] if isinstance(statement, ast.For) else ""
        for inner in (getattr(statement, "body", []), getattr(statement, "orelse", [])):
            yield from _list_scalars(inner, known, {**loops, loop: known} if loop else loops)


def write_canonical(source: str) -> str:
    """A text that is equal for programs that differ in names of their own, comments and layout only."""
    function = read_function(source)
    kept = {argument.arg for argument in function.args.args} | {"T", "range"}
    new: dict[str, str] = {}
    for node, _, _ in walk_nodes(function):
        if isinstance(node, ast.Name) and node.id not in kept:
            node.id = new.setdefault(node.id, f"v{len(new)}")
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "T.sblock":
            node.args = []  # a block's name means nothing
    return ast.unparse(function) + "\n"


def read_parameters(source: str) -> dict[str, tuple[int, ...]]:
    """As `Parametrised` has it: constant steps and extents of loops, shapes of buffers of its own.

    >>> read_parameters("for n in range(0, N, 32):\\n    for i in T.unroll(4):\\n        y[n + i] = x[n + i]")
    {'tile': (32,), 'unroll': (4,)}
    """
    try:
        return sort_parameters(_list_parameters(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _list_parameters(tree: ast.Module) -> Iterator[tuple[str, int]]:
    constants: dict[str, int] = {}  # names that stand for numbers
    for node, _, _ in walk_nodes(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constants[node.targets[0].id] = _read_number(node.value, constants)
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            name, arguments = ast.unparse(node.iter.func).removeprefix("T."), node.iter.args
            kind = "unroll" if name == "unroll" else "tile"
            extents = arguments if name == "grid" else [arguments[1 if len(arguments) > 1 else 0]] if arguments else []
            starts = [] if name == "grid" or len(arguments) < 2 else [_read_number(arguments[0], constants)]
            steps = arguments[2:] if name == "range" else []
            yield from ((kind, _read_number(each, constants) - sum(starts)) for each in extents)
            yield from (("tile", _read_number(each, constants)) for each in steps)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "T.alloc_buffer" and node.args:
            shape = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else node.args[:1]
            yield from (("block", _read_number(each, constants)) for each in shape)


def _read_number(node: ast.expr, constants: Mapping[str, int]) -> int:
    """0: it is no constant."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else 0
    if isinstance(node, ast.Name):
        return constants.get(node.id, 0)
    if isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func).startswith("T.int"):
        return _read_number(node.args[0], constants)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _read_number(node.left, constants) * _read_number(node.right, constants)
    return 0
