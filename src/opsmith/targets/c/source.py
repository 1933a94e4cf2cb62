"""Static checks of one translation unit, before any compiler sees it: findings of the stage PARSE.

Refused is what has no place in a kernel: other headers, inline assembly, code that runs when it is loaded, directives
that ask about this machine or change how the rest is read, and texts of a size that no kernel has. The tokens of macros
are looked at as they are written; `##` is refused, so that no name comes about unseen. Grammar, types and what macros
grow to are left to the compiler and its limits: a parser that does not expand macros refuses right programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise

from opsmith.records import Diagnostic, printable
from opsmith.targets.c.tokens import LogicalLine, Token, TokenKind, split_lines

KIND = "PARSE"
FUNCTION = "kernel"
LARGEST_SOURCE = 1 << 16  # bytes
LONGEST_LINE = 2000  # characters
DEEPEST = 100  # brackets within brackets
MOST = 5  # findings of one source
HEADERS = ("math", "stdint", "stddef", "stdlib", "string", "float", "limits", "stdbool", "immintrin", "omp")
DIRECTIVES = frozenset("include define undef if ifdef ifndef elif else endif pragma error".split())  # noqa: SIM905
ATTRIBUTES = frozenset(
    {"aligned", "always_inline", "assume_aligned", "cold", "const", "fallthrough", "flatten", "hot", "malloc"}
    | {"may_alias", "noclone", "noinline", "nonnull", "nothrow", "packed", "pure", "returns_nonnull", "simd"}
    | {"unused", "vector_size", "warn_unused_result", "alloc_size", "leaf"}
)
_ASSEMBLY = frozenset({"asm", "__asm", "__asm__"})
_LOADING = frozenset({"constructor", "destructor", "init_priority", "ifunc", "weakref", "symver"})
_PLACING = frozenset({"section", "alias", "target", "optimize", "target_clones"})  # common words: where called only
_ASKING = frozenset({"__has_include", "__has_include_next", "__has_embed", "_Pragma", "__pragma"})
_CHANGING = frozenset({"__DATE__", "__TIME__", "__TIMESTAMP__"})
_ODD_CHARACTER = re.compile(r"[^\t\x20-\x7e\x80-\U0010ffff]|[\ud800-\udfff]")
_OPENERS, _CLOSERS = {"(": ")", "[": "]", "{": "}"}, frozenset(")]}")

Findings = Iterator[Diagnostic]


def check_source(source: str) -> tuple[Diagnostic, ...]:
    """What is refused, the first findings first; none: a compiler may see it. Never raises, whatever the text."""
    findings = tuple(islice(_check_layout(source), MOST))
    if findings:
        return findings
    lines = split_lines(source)
    return tuple(islice(_add_texts(_check_tokens(lines), source), MOST))


def _add_texts(findings: Findings, source: str) -> Findings:
    """Each finding once, with the text of its line."""
    texts = source.split("\n")
    yielded: set[Diagnostic] = set()
    for finding in findings:
        if finding in yielded:
            continue
        yielded.add(finding)
        text = texts[finding.line - 1].strip()[:300] if finding.line else ""
        yield replace(finding, text=printable(text))


# -- the text


def _check_layout(source: str) -> Findings:
    size = len(source.encode("utf-8", "replace"))
    if size > LARGEST_SOURCE:
        expected = f"at most {LARGEST_SOURCE}"
        yield Diagnostic(KIND, "program", f"{size} bytes", expected, "compute tables instead of writing them out")
        return
    for number, line in enumerate(source.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            expected = f"at most {LONGEST_LINE}"
            yield Diagnostic(KIND, "line", f"{len(line)} characters", expected, "break the line", number)
        if character := _ODD_CHARACTER.search(line.removesuffix("\r")):
            given = f"the character U+{ord(character[0]):04X}"
            yield Diagnostic(KIND, "line", given, "text, tabs and line feeds", "remove it", number)


# -- the tokens


def _check_tokens(lines: Sequence[LogicalLine]) -> Findings:
    code = [token for line in lines if not line.is_directive for token in line.tokens]
    yield from _check_oddities(lines)
    for line in lines:
        if line.is_directive:
            yield from _check_directive(line)
        yield from _check_words(line.tokens)
    yield from _check_attributes([token for line in lines for token in line.tokens])
    yield from _check_nesting(code)


def _check_oddities(lines: Sequence[LogicalLine]) -> Findings:
    for token in (token for line in lines for token in line.tokens):
        if token.kind is TokenKind.ODD:
            remedy = "write plain C: no raw strings, trigraphs, digraphs or characters outside ASCII in code"
            yield Diagnostic(KIND, "text", f"`{printable(token.text[:20])}`", "a token of C", remedy, token.line)
        elif token.text == "##":
            remedy = "write the names out, or pass them to the macro whole"
            yield Diagnostic(KIND, "macro", "`##`", "names that can be read in the program", remedy, token.line)


def _check_words(tokens: Sequence[Token]) -> Findings:
    names = [token for token in tokens if token.kind is TokenKind.NAME]
    for token in names:
        reason = _find_reason(token.text.strip("_") if token.text.startswith("__") else token.text, token.text)
        if reason:
            yield Diagnostic(KIND, "program", f"`{token.text}`", *reason, token.line)
    for token, after in pairwise(tokens):
        if token.text.strip("_") in _PLACING and token.kind is TokenKind.NAME and after.text == "(":
            expected = "no attribute or function of this name"
            yield Diagnostic(KIND, "program", f"`{token.text}(`", expected, "remove it", token.line)


def _find_reason(stem: str, name: str) -> tuple[str, str] | None:
    """What is expected instead of a name, and what to try; None: nothing is wrong with it."""
    if name in _ASSEMBLY:
        return "C without inline assembly", "use C or the intrinsics of <immintrin.h>"
    if stem in _LOADING:
        return f"code that runs when {FUNCTION} is called, and only then", "remove it"
    if name in _ASKING:
        return "a program that does not ask about this machine", "use #pragma, or assume the headers that are allowed"
    if name in _CHANGING:
        return "a program that is the same whenever it is built", "remove it"
    return None


# -- directives


def _check_directive(line: LogicalLine) -> Findings:
    words = [token.text for token in line.tokens[1:]]
    number = line.tokens[0].line
    if not words:
        return
    check = _CHECKS.get(words[0])
    if words[0] not in DIRECTIVES:
        expected = f"one of {', '.join(sorted(DIRECTIVES))}"
        yield Diagnostic(KIND, "directive", f"#{words[0]}", expected, "remove it", number)
    elif check is not None:
        yield from check(line.tokens[2:], number)


def _check_include(tokens: Sequence[Token], number: int) -> Findings:
    path = "".join(token.text for token in tokens)
    if path not in {f"<{name}.h>" for name in HEADERS}:
        expected = f"one of {', '.join(f'<{name}.h>' for name in HEADERS)}"
        yield Diagnostic(KIND, "#include", path[:80] or "nothing", expected, "remove it", number)


def _check_definition(tokens: Sequence[Token], number: int) -> Findings:
    """Its own name and its parameters must not be ones that the checks rely on; its body must close what it opens."""
    name, body = tokens[0].text if tokens else "", list(tokens[1:])
    parameters = _list_parameters(body)
    for word in (name, *parameters):
        if word in ATTRIBUTES or word.strip("_") in ATTRIBUTES or word in {FUNCTION, "void"}:
            yield Diagnostic(KIND, "#define", f"`{word}`", "a name of the program's own", "take another name", number)
    if not _is_balanced(body):
        remedy = "write the brackets where the macro is used"
        yield Diagnostic(KIND, "#define", f"`{name}`", "a body that closes every bracket it opens", remedy, number)


def _list_parameters(body: Sequence[Token]) -> list[str]:
    """Those between a first bracket and its end; of a macro without parameters that is a part of its body."""
    if not body or body[0].text != "(":
        return []
    end = next((place for place, token in enumerate(body) if token.text == ")"), len(body))
    return [token.text for token in body[1:end] if token.kind is TokenKind.NAME]


def _is_balanced(tokens: Sequence[Token]) -> bool:
    open_brackets: list[str] = []
    for token in tokens:
        if token.text in _OPENERS:
            open_brackets.append(_OPENERS[token.text])
        elif token.text in _CLOSERS and (not open_brackets or open_brackets.pop() != token.text):
            return False
    return not open_brackets


def _check_pragma(tokens: Sequence[Token], number: int) -> Findings:
    words = [token.text for token in tokens]
    is_unrolling = words[:2] == ["GCC", "unroll"] and len(words) == 3
    if words[:1] != ["omp"] and words != ["GCC", "ivdep"] and not is_unrolling:
        given = f"#pragma {' '.join(words)[:80]}"
        yield Diagnostic(KIND, "directive", given, "#pragma omp, GCC ivdep or GCC unroll N", "remove it", number)


_CHECKS: dict[str, Callable[[Sequence[Token], int], Findings]] = {
    "include": _check_include,
    "define": _check_definition,
    "undef": _check_definition,
    "pragma": _check_pragma,
}


# -- code


def _check_attributes(tokens: Sequence[Token]) -> Findings:
    for place, token in enumerate(tokens):
        if token.text in ("__attribute__", "__attribute"):
            for name in _list_attributes(tokens[place + 1 :]):
                if name.strip("_") not in ATTRIBUTES:
                    expected = f"one of {', '.join(sorted(ATTRIBUTES))}"
                    yield Diagnostic(KIND, "attribute", name[:80], expected, "remove it", token.line)
        if token.text == "[" and place + 1 < len(tokens) and tokens[place + 1].text == "[":
            yield Diagnostic(KIND, "program", "`[[`", "no attributes of C23", "use __attribute__", token.line)


def _list_attributes(tokens: Sequence[Token]) -> list[str]:
    """The names at the second level of brackets, behind the keyword; what is none of these is given as it stands."""
    if [token.text for token in tokens[:2]] != ["(", "("]:
        return ["an attribute without its two brackets"]
    names, depth, is_first = [], 0, True
    for token in tokens:
        if depth == 2 and is_first and token.text not in (",", ")"):
            names.append(token.text)
            is_first = False
        depth += (token.text == "(") - (token.text == ")")
        is_first = is_first or (depth == 2 and token.text == ",")
        if depth == 0:
            return names
    return [*names, "an attribute without its end"]


def _check_nesting(tokens: Sequence[Token]) -> Findings:
    depth = 0
    for token in tokens:
        depth += (token.text in _OPENERS) - (token.text in _CLOSERS)
        if depth > DEEPEST:
            remedy = "move code to functions of its own"
            yield Diagnostic(
                KIND, "program", f"{depth} brackets", f"at most {DEEPEST} open at once", remedy, token.line
            )
            return
    yield from _check_function([token.text for token in tokens])


def _check_function(texts: Sequence[str]) -> Findings:
    for place in range(len(texts) - 2):
        if texts[place] == "void" and texts[place + 1] == FUNCTION and _is_definition(texts, place + 2):
            return
    remedy = "define it with the arguments that the task states"
    yield Diagnostic(KIND, "program", f"no definition of {FUNCTION}", f"void {FUNCTION}(...) {{ ... }}", remedy)


def _is_definition(texts: Sequence[str], start: int) -> bool:
    """Whether brackets that begin there are followed by a body."""
    depth = 0
    for place in range(start, len(texts) - 1):
        depth += (texts[place] == "(") - (texts[place] == ")")
        if depth == 0:
            return place > start and texts[place + 1] == "{"
    return False
