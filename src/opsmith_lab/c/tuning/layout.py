"""The layout of a program that was rewritten: lines indented by their brackets."""

from __future__ import annotations

_WIDTH = 4


def indent_program(source: str) -> str:
    """Lines with four blanks for each open brace, and for a line that goes on; directives begin their line.

    >>> print(indent_program("void f(void) {\\nif (1) {\\n#pragma omp simd\\nx = 1;\\n}\\n}"))
    void f(void) {
        if (1) {
    #pragma omp simd
            x = 1;
        }
    }
    <BLANKLINE>
    """
    depth, brackets, goes_on, lines = 0, 0, False, []
    for raw in source.splitlines():
        line = raw.strip()
        if line.startswith("#") or not line:
            lines.append(line)
            continue
        level = max(0, depth - _count_closers(line))
        lines.append(" " * (_WIDTH * (level + (goes_on or brackets > 0))) + line)
        code = line.partition("//")[0].rstrip()
        depth += code.count("{") - code.count("}")
        brackets += code.count("(") - code.count(")")
        goes_on = bool(code) and brackets <= 0 and not code.endswith((";", "{", "}", "*/", ")", ":"))
    return "\n".join(lines).rstrip("\n") + "\n"


def _count_closers(line: str) -> int:
    """The braces that a line begins with and that close."""
    return len(line) - len(line.lstrip("}"))
