"""Static checks of one CUDA source, before any compiler sees it: findings of the stage PARSE.

Refused is what has no place in kernels: host code (it is ours), other headers, inline assembly, memory and launches of
the device's own, variables that keep state between calls, clocks, printing, and whatever asks who compiles it. Grammar
and types are left to NVRTC. What is right CUDA and cannot be emulated is another question (`unsupported`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from opsmith.errors import UsageError
from opsmith.records import Diagnostic, printable
from opsmith.targets.cuda.agreement import list_ambiguous
from opsmith.targets.cuda.builtin_variables import BUILTINS, check_builtins
from opsmith.targets.cuda.syntax import list_kernels, parse_program, read_text
from opsmith.targets.native.source_checks import (
    KIND,
    DirectiveChecks,
    Findings,
    check_definition,
    check_directive,
    check_nesting,
    check_oddities,
    run_checks,
)
from opsmith.targets.native.tokens import LogicalLine, Token, TokenKind

if TYPE_CHECKING:
    from tree_sitter import Node

HEADERS = (  # that programs may include; those of the language are enough for most
    *("cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"),
    *("cooperative_groups.h", "cooperative_groups/reduce.h", "cooperative_groups/scan.h"),
    *("math_constants.h", "cuda_runtime.h", "stdint.h", "stddef.h", "float.h", "limits.h", "math.h"),
    *("cstdint", "cstddef", "cfloat", "climits", "cmath"),
)
GPU_HEADERS = (  # of what only a GPU runs
    *("mma.h", "cuda_pipeline.h", "cuda_awbarrier.h", "cooperative_groups/memcpy_async.h"),
    *("cuda/barrier", "cuda/pipeline", "cuda/ptx", "cuda/atomic", "cuda/std/atomic"),
)
ATTRIBUTES = frozenset(
    {"aligned", "always_inline", "const", "fallthrough", "flatten", "may_alias", "noinline", "nothrow", "packed"}
    | {"pure", "unused", "maybe_unused", "nodiscard", "likely", "unlikely", "shared", "device", "constant", "global"}
)
RESERVED = re.compile(r"_*opsmith|__tsan|__asan|__ubsan|__sanitizer", re.IGNORECASE)

_WORDS: dict[str, tuple[str, str]] = {}  # by a name: what is expected instead, and what to try


def _refuse_words(expected: str, remedy: str, names: str) -> None:
    _WORDS.update(dict.fromkeys(names.split(), (expected, remedy)))


_refuse_words("CUDA C++ without inline assembly", "use intrinsics such as __shfl_down_sync", "asm __asm __asm__")
_refuse_words(
    "memory of the plan or of a block",
    "use a workspace of the plan, or __shared__ memory",
    "malloc calloc realloc free alloca __builtin_alloca new delete",
)
_refuse_words("a kernel that only computes", "remove it", "printf puts fprintf assert __assert_fail __trap __brkpt")
_refuse_words("a kernel whose result depends on its inputs alone", "remove it", "clock clock64 __clock __clock64")
_refuse_words(
    "a kernel whose result depends on its inputs alone", "remove it", "globaltimer __globaltimer __nv_globaltimer"
)
_refuse_words("arrays", "read the array itself", "cudaTextureObject_t cudaSurfaceObject_t texture surface")
_refuse_words("variables of a call", "use a workspace of the plan", "__managed__ __grid_constant__")
_refuse_words("code that runs when a kernel is launched, and only then", "remove it", "constructor destructor ifunc")
_refuse_words("a program that does not ask about this machine", "remove it", "__has_include __has_embed _Pragma")
_refuse_words("a program that is the same whenever it is built", "remove it", "__DATE__ __TIME__ __TIMESTAMP__")
_refuse_words("a program that is the same for every compiler", "remove it", "__CUDA_ARCH__ __CUDACC__ __CUDACC_RTC__")
_refuse_words("a program that is the same for every compiler", "remove it", "__NVCC__ __GNUC__ __clang__ __cplusplus")
_refuse_words("a program that is the same for every compiler", "remove it", "__FILE__ __BASE_FILE__ __INCLUDE_LEVEL__")
_refuse_words("a program that is the same for every compiler", "take another name", "unix linux i386")

_HOST_ONLY = re.compile(r"cuda(?!Texture|Surface)[A-Z]\w+|cu[A-Z][a-z]\w+|cublas\w*|cudnn\w*")
_BUILTIN = re.compile(r"__builtin_(?!(expect|assume|assume_aligned|unreachable|trap)$)\w+")  # each compiler has others
_TEXTURE = re.compile(r"tex[123]D\w*|texCubemap\w*|surf[123]D\w*")
_CONDITIONALS = frozenset({"if", "ifdef", "ifndef", "elif"})
_CONSTANT = frozenset({"const", "constexpr", "__constant__", "constinit"})
_FUNCTIONS = frozenset({"function_definition", "lambda_expression"})


def check_source(source: str) -> tuple[Diagnostic, ...]:
    """What is refused, the first findings first; none: a compiler may see it. Never raises, whatever the text."""
    return run_checks(source, lambda lines: _check_tokens(lines, source))


def _check_tokens(lines: Sequence[LogicalLine], source: str) -> Findings:
    code = [token for line in lines if not line.is_directive for token in line.tokens]
    yield from check_oddities(lines, "CUDA C++")
    yield from _check_directives(lines)
    for line in lines:
        yield from _check_words(line.tokens)
    yield from _check_attributes([token for line in lines for token in line.tokens])
    yield from tuple(check_nesting(code)) or _check_syntax(source)


# -- words


def _check_words(tokens: Sequence[Token]) -> Findings:
    for token in tokens:
        reason = _find_reason(token.text) if token.kind is TokenKind.NAME else None
        if reason:
            yield Diagnostic(KIND, "program", f"`{token.text}`", *reason, token.line)
    for token, after in pairwise(tokens):
        if token.text == "<<" and after.text.startswith("<") and after.place == token.place + 2:
            remedy = "kernels are launched by the plan: write a line `// launch ...` for each"
            yield Diagnostic(KIND, "program", "`<<<`", "no launches in code", remedy, token.line)
        if token.text == "long" and after.text == "double":
            expected = "a type of one size everywhere"
            yield Diagnostic(KIND, "program", "`long double`", expected, "use double", token.line)
        if token.text == "main" and after.text == "(":
            remedy = "leave out all host code: a plan in comment lines takes its place"
            yield Diagnostic(KIND, "program", "`main`", "kernels and their helpers only", remedy, token.line)


def _find_reason(name: str) -> tuple[str, str] | None:
    """What is expected instead of a name, and what to try; None: nothing is wrong with it."""
    if name in _WORDS:
        return _WORDS[name]
    if _HOST_ONLY.fullmatch(name):
        return "kernels and their helpers only", "leave out all host code: a plan in comment lines takes its place"
    if _TEXTURE.fullmatch(name):
        return _WORDS["texture"]
    if _BUILTIN.fullmatch(name):
        return "a program that is the same for every compiler", "use functions of CUDA"
    if RESERVED.match(name):
        return "a name of the program's own", "take another name"
    return None


# -- directives


def _check_directives(lines: Sequence[LogicalLine]) -> Findings:
    own: set[str] = set()
    for place, line in enumerate(lines):
        words = [token.text for token in line.tokens[1:]]
        if not line.is_directive or not words:
            continue
        yield from check_directive(line, _CHECKS)
        if words[0] in _CONDITIONALS and not _is_guard(lines[place : place + 3]):
            yield from _check_condition(line.tokens[2:], own, line.tokens[0].line)
        if words[0] == "define":
            own.update(words[1:2])


def _is_guard(lines: Sequence[LogicalLine]) -> bool:
    """Whether they are #ifndef X, #define X and #endif, and nothing else."""
    rows = [[token.text for token in line.tokens[:3]] for line in lines]
    words = [row[1:2] for row in rows if row[:1] == ["#"]]
    return words == [["ifndef"], ["define"], ["endif"]] and rows[0][2:] == rows[1][2:]


def _check_condition(tokens: Sequence[Token], own: set[str], number: int) -> Findings:
    """Two compilers see one program, which must not be able to tell which of them does."""
    for token in tokens:
        if token.kind is TokenKind.NAME and token.text not in own | {"defined", "true", "false"}:
            expected = "names that the program defines above"
            yield Diagnostic(KIND, "directive", f"`{token.text}`", expected, "decide without #if", number)


def _check_include(tokens: Sequence[Token], number: int) -> Findings:
    path = "".join(token.text for token in tokens)
    if path not in {f"<{name}>" for name in (*HEADERS, *GPU_HEADERS)}:
        bare = path.strip('"<>')
        remedy = f"write <{bare}>" if bare in HEADERS else "remove it"
        expected = f"one of {', '.join(f'<{name}>' for name in HEADERS)}"
        yield Diagnostic(KIND, "#include", printable(path[:80]) or "nothing", expected, remedy, number)


def _check_pragma(tokens: Sequence[Token], number: int) -> Findings:
    words = [token.text for token in tokens]
    if words[:1] not in (["unroll"], ["nounroll"]):
        given = f"#pragma {' '.join(words)[:80]}"
        yield Diagnostic(KIND, "directive", printable(given), "#pragma unroll or #pragma unroll N", "remove it", number)


def _check_definition(tokens: Sequence[Token], number: int) -> Findings:
    yield from check_definition(tokens, number, _is_reserved)
    if any(token.text == "#" for token in tokens):
        expected = "a program that is the same for every compiler"
        yield Diagnostic(KIND, "macro", "`#`", expected, "use what a macro is given, not how it is written", number)


def _is_reserved(word: str) -> bool:
    """Whether it is one that the checks or the language rely on."""
    return word.startswith("__") or word in ATTRIBUTES or word in _WORDS or word in _KEYWORDS


_KEYWORDS = frozenset(
    {"void", "const", "static", "extern", "if", "for", "while", "return", "float", "int", "launch", "workspace"}
    | BUILTINS
)
_CHECKS: DirectiveChecks = {
    "include": _check_include,
    "define": _check_definition,
    "undef": _check_definition,
    "pragma": _check_pragma,
}


# -- code


def _check_attributes(tokens: Sequence[Token]) -> Findings:
    for place, token in enumerate(tokens):
        is_gnu = token.text in ("__attribute__", "__attribute")
        is_standard = token.text == "[" and [after.text for after in tokens[place + 1 : place + 2]] == ["["]
        if is_gnu or is_standard:
            for name in _list_attributes(tokens[place + 1 :]):
                if name.strip("_") not in ATTRIBUTES:
                    expected = f"one of {', '.join(sorted(ATTRIBUTES))}"
                    yield Diagnostic(KIND, "attribute", printable(name[:80]), expected, "remove it", token.line)


def _list_attributes(tokens: Sequence[Token]) -> Iterator[str]:
    """The names within the brackets that follow, but for their arguments."""
    depth, opener = 0, tokens[0].text if tokens else ""
    closer, level = {"(": (")", 2), "[": ("]", 1)}.get(opener, ("", 0))
    for place, token in enumerate(tokens):
        if depth == level and token.kind is TokenKind.NAME:
            yield token.text
        depth += (token.text in ("(", opener)) - (token.text in (")", closer))
        if depth <= 0 and place:
            return
        if not level:
            yield "an attribute without its brackets"
            return


def _check_syntax(source: str) -> Findings:
    try:
        root = parse_program(source)
    except UsageError:
        return  # said before anything is judged
    yield from list_ambiguous(list_kernels(source))
    for node, is_local in _walk_declarations(root):
        yield from _check_variable(node, is_local)
    yield from check_builtins(root)


def _walk_declarations(root: Node) -> Iterator[tuple[Node, bool]]:
    """All declarations, and whether each stands within a function, by a stack of our own."""
    stack = [(root, False)]
    while stack:
        node, is_local = stack.pop()
        if node.type == "declaration":
            yield node, is_local
        is_local = is_local or node.type in _FUNCTIONS
        stack.extend((child, is_local) for child in reversed(node.named_children))


def _check_variable(node: Node, is_local: bool) -> Findings:
    """Whether it outlives a call: memory that a later call may read."""
    declarators = node.children_by_field_name("declarator")
    if not declarators or any(_is_prototype(declarator) for declarator in declarators):
        return
    words = {read_text(child) for child in node.children if child not in declarators}
    if words & _CONSTANT or "__shared__" in words or (is_local and "static" not in words):
        return
    text = printable(" ".join(read_text(node).split())[:60])
    remedy = "make it const, or use a workspace of the plan, which each call writes before it reads it"
    expected = "no variables that keep values from one call to the next"
    yield Diagnostic(KIND, "variable", f"`{text}`", expected, remedy, node.start_point[0] + 1)


def _is_prototype(declarator: Node) -> bool:
    """Whether it declares a function, or a function's pointer or reference result."""
    while declarator.type in ("pointer_declarator", "reference_declarator"):
        inner = declarator.child_by_field_name("declarator") or next(iter(declarator.named_children), None)
        if inner is None:
            return False
        declarator = inner
    return declarator.type == "function_declarator"
