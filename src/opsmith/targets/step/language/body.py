"""Programs that are a text as a whole. Models that are prompted in bare Python wrap theirs in `def body(E0, ...)`.

Some answer with the whole script around it.
"""

from __future__ import annotations

import ast

from opsmith.targets.step.language.program import MAX_TEXT, dedent_program, parse_program


def read_program(inputs: tuple[str, ...], text: str) -> str | None:
    """The program's text, out of its `def body(...)` if it has one whose parameters are the inputs in order; else None.

    Of a script, the last such function counts, and nothing else of it is looked at. A program parses as Python and ends
    in `return`; what is inside is the checker's question.
    """
    if len(text) > MAX_TEXT:
        return None
    source = dedent_program(text)
    try:
        tree = parse_program(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if tree.body and isinstance(tree.body[-1], ast.Return):
        return source
    bodies = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "body"]
    return _unwrap_body(inputs, bodies[-1], source) if bodies else None


def _unwrap_body(inputs: tuple[str, ...], wrapper: ast.FunctionDef, source: str) -> str | None:
    arguments = wrapper.args
    excluded = (arguments.posonlyargs, arguments.defaults, arguments.vararg, arguments.kwarg)
    names = tuple(argument.arg for argument in arguments.args)
    if names != inputs or any(excluded) or wrapper.decorator_list or not _only_captures(arguments):
        return None
    first, last = wrapper.body[0], wrapper.body[-1]
    if not isinstance(last, ast.Return) or first.lineno == wrapper.lineno:
        return None
    return dedent_program("\n".join(source.split("\n")[wrapper.lineno : last.end_lineno]))


def _only_captures(arguments: ast.arguments) -> bool:
    """Whether keyword parameters only hand in names of the script, as generated scripts do: `*, N=N`."""
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return all(isinstance(value, ast.Name) and value.id == argument.arg for argument, value in pairs)
