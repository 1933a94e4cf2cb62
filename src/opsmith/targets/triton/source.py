"""Static checks of Triton's programs, before anything reads them as Python: findings of the stage PARSE.

A compiler reads their syntax, an interpreter executes it. So all that is not on a list is refused first: statements,
operators, names, texts, and a kernel that does not agree with its launches. Types and shapes are left to the compiler.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from itertools import islice

from opsmith.records import Diagnostic
from opsmith.targets.gpu.canonical import write_canonical_plan
from opsmith.targets.gpu.plan import BoundLaunch, BoundPlan, LaunchPlan
from opsmith.targets.gpu.reading import add_texts, read_plan
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
from opsmith.targets.native.source_checks import KIND, LARGEST_SOURCE, MOST, Findings, run_text_checks
from opsmith.targets.triton.words import ALLOWED, BUILTINS, HOST, MATH, OPTIONS, PLAN_WORDS, TENSOR

DECORATOR = "triton.jit"
CONSTEXPR = "tl.constexpr"
_IMPORTS = ("import triton", "import triton.language as tl")
_STATEMENTS = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Pass, ast.Return),
    *(ast.arguments, ast.arg),
)
_EXPRESSIONS = (
    *(ast.Name, ast.Constant, ast.Tuple, ast.List, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.Subscript, ast.Slice, ast.Call, ast.keyword, ast.Attribute, ast.expr_context),
)
_KNOWN = (*_STATEMENTS, *_EXPRESSIONS, *OPERATORS)
_TEXT = re.compile(r"[a-z][a-z0-9_.]{0,19}", re.ASCII)  # "ieee", "relaxed", ".ca" without its dot
_TARGETS = (ast.Name, ast.Tuple, ast.expr_context)
_WHAT = "loops over range, `if`, `while`, assignments, arithmetic, calls of tl.* and of the program's own functions"


def check_source(source: str) -> tuple[Diagnostic, ...]:
    """What is refused, the first findings first; none: Triton may read it. Never raises, whatever the text."""
    return run_text_checks(source, _check_text)


def is_program(text: str) -> bool:
    """Whether a text as a whole is Python that defines a kernel or tries to.

    >>> is_program("@triton.jit\\ndef f(x): pass"), is_program("Use @triton.jit def f(x): pass")
    (True, False)
    """
    if DECORATOR not in text or len(text) > 2 * LARGEST_SOURCE:
        return False
    try:
        return any(isinstance(node, ast.FunctionDef) for node in ast.parse(text).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return re.match(r"\s*((#.*|import .*)\s+)*@triton\.jit\b", text) is not None and "\n```" not in text


def list_functions(source: str) -> dict[str, ast.FunctionDef]:
    """Those that a text defines at its top, by name; none where it is no Python. Never raises."""
    tree = parse_python(source, "Triton")
    body = tree.body if isinstance(tree, ast.Module) else []
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def list_constants(function: ast.FunctionDef) -> list[str]:
    """The parameters that are known when a function is compiled."""
    return [each.arg for each in function.args.args if each.annotation is not None]


def _check_text(source: str) -> Findings:
    tree = parse_python(source, "Triton")
    if isinstance(tree, Diagnostic):
        yield tree
        return
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    yield from _check_module(tree, functions)
    names = {function.name for function in functions}
    for function in functions:
        yield from _check_head(function)
        stores = (node for node, _, _ in walk_nodes(function) if isinstance(node, ast.Name))
        own = {node.id for node in stores if isinstance(node.ctx, ast.Store)} | {
            each.arg for each in function.args.args
        }
        defined = names | BUILTINS | own
        for statement in function.body:
            for node, parent, depth in walk_nodes(statement):
                if depth > DEEPEST:
                    yield refuse_depth(node)
                    return
                is_docstring = node is statement is function.body[0] and _is_text(node)
                if is_docstring:
                    break
                yield from _check_node(node, function if node is statement else parent, defined, names)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _check_module(tree: ast.Module, functions: list[ast.FunctionDef]) -> Findings:
    texts: set[str] = set()
    for node in tree.body:
        text = ast.unparse(node) if isinstance(node, ast.Import | ast.ImportFrom) else ""
        if isinstance(node, ast.FunctionDef):
            text = node.name
        elif text not in _IMPORTS:
            expected = f"`{_IMPORTS[0]}`, `{_IMPORTS[1]}` and functions with @{DECORATOR}"
            remedy = "constants are entries of meta=(...)" if isinstance(node, ast.Assign) else "remove it"
            yield refuse(node, f"{name_node(node)} at the top" if not text else text[:80], expected, remedy)
        if text in texts:
            yield refuse(node, f"{text[:80]} twice", "each name once", "remove one")
        texts.add(text)
    if not functions:
        yield Diagnostic(KIND, "program", "no function", f"@{DECORATOR}, then def NAME(...)", "define a kernel")


def _check_head(function: ast.FunctionDef) -> Findings:
    yield from check_spelling(function, function.name)
    if [ast.unparse(each) for each in function.decorator_list] != [DECORATOR]:
        yield refuse(function, "other decorators, or none", f"@{DECORATOR}", "write this line before def, and no other")
    arguments = function.args
    unusual = (arguments.defaults, arguments.kw_defaults, arguments.vararg, arguments.kwarg, arguments.kwonlyargs)
    if any(unusual) or arguments.posonlyargs:
        yield refuse(function, "defaults, or parameters by keyword", "plain parameters", "pass every value")
    if function.returns is not None:
        yield refuse(function, "a type that it returns", "none", "remove `-> ...`")
    for each in arguments.args:
        yield from check_spelling(each, each.arg)
        if each.arg in ("tl", "triton", *BUILTINS):
            yield refuse(each, f"a parameter {each.arg}", "a name of its own", "take another name")
        if each.annotation is not None and ast.unparse(each.annotation) != CONSTEXPR:
            text = f"{each.arg}: {ast.unparse(each.annotation)[:60]}"
            yield refuse(each, text, f"no annotation, or {CONSTEXPR}", "remove the annotation")


def _check_node(node: ast.AST, parent: ast.AST, defined: Collection[str], functions: Collection[str]) -> Findings:
    if not isinstance(node, _KNOWN):
        yield refuse(node if hasattr(node, "lineno") else parent, name_node(node), _WHAT, "write it with these")
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            is_number = node.value in ("inf", "-inf") and isinstance(parent, ast.Call)
            is_option = isinstance(parent, ast.keyword) and _TEXT.fullmatch(node.value.removeprefix("."))
            if not is_number and not is_option:
                yield refuse(node, f"the text {node.value[:40]!r}", "texts as options of tl.* only: sem='relaxed'")
        elif node.value is not None:
            yield from check_number(node)
    elif isinstance(node, ast.Name):
        yield from _check_name(node, parent, defined)
    elif isinstance(node, ast.Attribute):
        yield from _check_attribute(node)
    elif isinstance(node, ast.Call):
        yield from _check_call(node, functions)
    elif isinstance(node, ast.List) and not isinstance(parent, ast.Call | ast.keyword):
        yield refuse(node, "a list", "tuples of shapes, such as (BM, BN)", "write round brackets")
    elif isinstance(node, ast.keyword) and node.arg is None:
        yield refuse(node.value, "`**`", "arguments that are written out")
    elif isinstance(node, ast.Slice) and (node.lower or node.upper or node.step):
        yield refuse(
            node, "a part of a tensor", "[:, None] and [None, :], which add an axis", "load the part by a mask"
        )
    elif isinstance(node, ast.stmt):
        yield from _check_statement(node, parent)


def _check_statement(node: ast.stmt, parent: ast.AST) -> Findings:
    if isinstance(node, ast.For | ast.While) and node.orelse:
        yield refuse(node, "else behind a loop", _WHAT)
    elif isinstance(node, ast.For):
        call = ast.unparse(node.iter.func) if isinstance(node.iter, ast.Call) else ""
        if call not in ("range", "tl.range", "tl.static_range") or not isinstance(node.target, ast.Name):
            yield refuse(node, "another loop", "for NAME in range(...), tl.range(...) or tl.static_range(...)", "")
    elif isinstance(node, ast.Assign):
        names = [each for target in node.targets for each, _, _ in walk_nodes(target)]
        if len(node.targets) > 1 or not all(isinstance(each, _TARGETS) for each in names):
            yield refuse(
                node, "an assignment to more than names", "NAME = ..., or A, B = ...", "use tl.store or tl.where"
            )
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        if not isinstance(node.target, ast.Name) or (isinstance(node, ast.AnnAssign) and node.value is None):
            yield refuse(node, "an assignment to no name", "NAME += ... or NAME: tl.constexpr = ...", "")
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) != CONSTEXPR:
            yield refuse(node, f": {ast.unparse(node.annotation)[:60]}", f": {CONSTEXPR}", "remove the annotation")
    elif isinstance(node, ast.Return) and isinstance(parent, ast.For | ast.While):
        yield refuse(node, "return within a loop", "return behind it", "keep a result in a variable")


def _check_name(node: ast.Name, parent: ast.AST, defined: Collection[str]) -> Findings:
    yield from check_spelling(node, node.id)
    if node.id in ("tl", "triton"):
        if not isinstance(parent, ast.Attribute):
            yield refuse(node, f"`{node.id}` alone", f"{node.id}.NAME", "take another name")
    elif isinstance(node.ctx, ast.Store) and node.id in BUILTINS:
        yield refuse(node, f"an assignment to {node.id}", "a name of its own", "take another name")
    elif node.id not in defined:
        expected = "a parameter, a variable of the function, or a function of the program"
        yield refuse(node, f"{node.id[:80]}: nothing of that name", expected, "define it, or pass it as a parameter")
    elif node.id in BUILTINS and not (isinstance(parent, ast.Call) and parent.func is node):
        yield refuse(node, f"`{node.id}` alone", f"{node.id}(...)", "take another name")


def _check_attribute(node: ast.Attribute) -> Findings:
    base = ast.unparse(node.value) if isinstance(node.value, ast.Name | ast.Attribute) else ""
    words = {"tl": ALLOWED | {"math"}, "tl.math": MATH, "triton": HOST}.get(base, TENSOR)
    if node.attr not in words:
        text = f"{base or '...'}.{node.attr}"[:80]
        expected = {
            "tl": "what computes: tl.load, tl.store, tl.dot, tl.where, tl.sum, tl.exp and their like",
            "tl.math": "a function that tl has too, such as tl.exp",
            "triton": "triton.cdiv and triton.next_power_of_2",
        }.get(base, "a method of a tensor, such as x.to(tl.float32)")
        remedy = "compute addresses: pointer + offsets" if "ptr" in node.attr or "desc" in node.attr else "remove it"
        yield refuse(node, text, expected, remedy)


def _check_call(node: ast.Call, functions: Collection[str]) -> Findings:
    if isinstance(node.func, ast.Name):
        if node.func.id not in functions and node.func.id not in BUILTINS:
            yield refuse(node, f"a call of {node.func.id[:80]}", "tl.* and functions of the program")
        elif node.func.id == "float" and [ast.unparse(each) for each in node.args] not in (["'inf'"], ["'-inf'"]):
            yield refuse(node, "float(...)", 'float("inf"), or a cast: x.to(tl.float32)', "use .to")
    elif not isinstance(node.func, ast.Attribute):
        yield refuse(node, "a call of a value", "tl.* and functions of the program")


# -- kernels and the plan


def list_disagreements(plan: BoundPlan, source: str) -> tuple[Diagnostic, ...]:
    """Where launches do not fit kernels, the first findings, each with the text of its line; none: they agree."""
    functions = list_functions(source)
    findings = (
        finding
        for launch in plan.launches
        if launch.kernel in functions
        for finding in _check_launch(launch, functions[launch.kernel])
    )
    return add_texts(tuple(islice(findings, MOST)), source)


def _check_launch(launch: BoundLaunch, function: ast.FunctionDef) -> Findings:
    where, constants = f"launch {launch.kernel}", list_constants(function)
    parameters = [each.arg for each in function.args.args if each.annotation is None]
    if len(parameters) != len(launch.arguments):
        given = f"{len(launch.arguments)} arguments"
        expected = f"one for each of {', '.join(parameters) or 'none'} of {function.name} on line {function.lineno}"
        remedy = "args are given in the order of the parameters that are no tl.constexpr"
        yield Diagnostic(KIND, f"{where}, args", given, expected, remedy, launch.line)
    meta = dict(launch.meta)
    for name in constants:
        if name not in meta:
            expected = f"an entry for each {CONSTEXPR} of {function.name}: {', '.join(constants)}"
            yield Diagnostic(KIND, f"{where}, meta", f"no {name}", expected, f"add {name}=...", launch.line)
    for name in meta:
        if name not in constants and name not in OPTIONS:
            expected = ", ".join((*constants, *OPTIONS))
            remedy = f"declare {name}: {CONSTEXPR} in {function.name}, or remove it"
            yield Diagnostic(KIND, f"{where}, meta", name, f"one of {expected}", remedy, launch.line)
    returned = next((each for each, _, _ in walk_nodes(function) if isinstance(each, ast.Return) and each.value), None)
    if returned is not None:
        expected = "a kernel that returns nothing"
        yield Diagnostic(KIND, f"kernel {function.name}", "a result", expected, "store it", returned.lineno)


# -- the canonical form


def write_canonical(source: str) -> str:
    """A text that is equal for programs that differ in names of their own, comments and layout only.

    Names that arguments are given by stay: those of constants, and those of calls by keyword.
    """
    functions = list_functions(source)
    nodes = (node for function in functions.values() for node, _, _ in walk_nodes(function))
    keywords = {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg}
    numbers = {name: f"f{place}" for place, name in enumerate(functions)}
    rows = [_rename(function, numbers, keywords | set(list_constants(function))) for function in functions.values()]
    plan = read_plan(source, PLAN_WORDS)
    lines = write_canonical_plan(plan, numbers, PLAN_WORDS) if isinstance(plan, LaunchPlan) else ""
    return lines + "\n".join(rows) + "\n"


def _rename(function: ast.FunctionDef, numbers: Mapping[str, str], kept: Collection[str]) -> str:
    new: dict[str, str] = dict(numbers)
    fixed = {"tl", "triton", *BUILTINS, *kept}
    if _is_text(function.body[0]):
        function.body[:1] = [] if len(function.body) > 1 else [ast.Pass()]
    for node, _, _ in walk_nodes(function):
        if isinstance(node, ast.arg) and node.arg not in fixed:
            node.arg = new.setdefault(node.arg, f"v{len(new)}")
        elif isinstance(node, ast.Name) and node.id not in fixed:
            node.id = new.setdefault(node.id, f"v{len(new)}")
    function.name = numbers[function.name]
    return ast.unparse(function)
