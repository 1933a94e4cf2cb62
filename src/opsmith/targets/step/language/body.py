"""Is a text, as a whole, a program? Models that are prompted in bare Python wrap theirs in `def body(E0, ...)`."""

from __future__ import annotations

import ast

from opsmith.targets.step.language.program import MAX_TEXT, dedent, parse


def read_program(inputs: tuple[str, ...], text: str) -> str | None:
    """The program's text, out of its `def body(...)` if it has one whose parameters are the inputs in order; else None.

    A program parses as Python and ends in `return`; what is inside is the checker's question.
    """
    if len(text) > MAX_TEXT:
        return None
    source = dedent(text)
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if tree.body and isinstance(tree.body[-1], ast.Return):
        return source
    wrapper = tree.body[0] if len(tree.body) == 1 else None
    return _unwrapped(inputs, wrapper, source) if isinstance(wrapper, ast.FunctionDef) else None


def _unwrapped(inputs: tuple[str, ...], wrapper: ast.FunctionDef, source: str) -> str | None:
    arguments = wrapper.args
    others = (arguments.posonlyargs, arguments.kwonlyargs, arguments.defaults, arguments.vararg, arguments.kwarg)
    names = tuple(argument.arg for argument in arguments.args)
    if wrapper.name != "body" or names != inputs or any(others) or wrapper.decorator_list:
        return None
    first = wrapper.body[0]
    if not isinstance(wrapper.body[-1], ast.Return) or first.lineno == wrapper.lineno:
        return None
    return dedent("\n".join(source.split("\n")[wrapper.lineno :]))
