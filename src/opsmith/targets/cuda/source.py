"""Static checks of one CUDA source, before any compiler sees it: findings of the stage PARSE.

Refused is what has no place in kernels: host code (it is ours), other headers, inline assembly, memory and launches of
the device's own, variables that keep state between calls, clocks, printing, and whatever asks who compiles it. Grammar
and types are left to NVRTC. What is right CUDA and cannot be emulated is another question (`unsupported`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opsmith.errors import UsageError
from opsmith.records import Diagnostic, printable
from opsmith.targets.cuda.builtin_variables import BUILTINS, check_builtins
from opsmith.targets.cuda.syntax import list_kernels, parse_program, read_text
from opsmith.targets.gpu.agreement import list_ambiguous
from opsmith.targets.native.source_checks import (
    HOST_CODE,
    KIND,
    Findings,
    Reason,
    SourceRules,
    check_attributes,
    check_nesting,
    check_text,
    list_reasons,
    run_checks,
)
from opsmith.targets.native.tokens import LogicalLine

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

_SAME_TEXT = "a program that is the same for every compiler"
_WORDS = list_reasons(
    ("CUDA C++ without inline assembly", "use intrinsics such as __shfl_down_sync", "asm __asm __asm__"),
    (
        "memory of the plan or of a block",
        "use a workspace of the plan, or __shared__ memory",
        "malloc calloc realloc free alloca __builtin_alloca new delete",
    ),
    ("a kernel that only computes", "remove it", "printf puts fprintf assert __assert_fail __trap __brkpt"),
    (
        "a kernel whose result depends on its inputs alone",
        "remove it",
        "clock clock64 __clock __clock64 globaltimer __globaltimer __nv_globaltimer",
    ),
    ("arrays", "read the array itself", "cudaTextureObject_t cudaSurfaceObject_t texture surface"),
    ("variables of a call", "use a workspace of the plan", "__managed__ __grid_constant__"),
    ("code that runs when a kernel is launched, and only then", "remove it", "constructor destructor ifunc"),
    ("a program that does not ask about this machine", "remove it", "__has_include __has_embed _Pragma"),
    ("a program that is the same whenever it is built", "remove it", "__DATE__ __TIME__ __TIMESTAMP__"),
    (
        _SAME_TEXT,
        "remove it",
        "__CUDA_ARCH__ __CUDACC__ __CUDACC_RTC__ __NVCC__ __GNUC__ __clang__ __cplusplus __FILE__ __BASE_FILE__ "
        "__INCLUDE_LEVEL__",
    ),
    (_SAME_TEXT, "take another name", "unix linux i386"),
)

_HOST_ONLY = re.compile(r"cuda(?!Texture|Surface)[A-Z]\w+|cu[A-Z][a-z]\w+|cublas\w*|cudnn\w*")
_BUILTIN = re.compile(r"__builtin_(?!(expect|assume|assume_aligned|unreachable|trap)$)\w+")  # each compiler has others
_TEXTURE = re.compile(r"tex[123]D\w*|texCubemap\w*|surf[123]D\w*")
_CONSTANT = frozenset({"const", "constexpr", "__constant__", "constinit"})
_FUNCTIONS = frozenset({"function_definition", "lambda_expression"})


def check_source(source: str) -> tuple[Diagnostic, ...]:
    """What is refused, the first findings first; none: a compiler may see it. Never raises, whatever the text."""
    return run_checks(source, lambda lines: _check_tokens(lines, source))


def _check_tokens(lines: Sequence[LogicalLine], source: str) -> Findings:
    code = [token for line in lines if not line.is_directive for token in line.tokens]
    yield from check_text(lines, _RULES)
    yield from check_attributes([token for line in lines for token in line.tokens], ATTRIBUTES, has_brackets=True)
    yield from tuple(check_nesting(code)) or _check_syntax(source)


# -- words


def _find_reason(name: str) -> Reason | None:
    """What is expected instead of a name, and what to try; None: nothing is wrong with it."""
    if name in _WORDS:
        return _WORDS[name]
    if _HOST_ONLY.fullmatch(name):
        return HOST_CODE
    if _TEXTURE.fullmatch(name):
        return _WORDS["texture"]
    if _BUILTIN.fullmatch(name):
        return _SAME_TEXT, "use functions of CUDA"
    if RESERVED.match(name):
        return "a name of the program's own", "take another name"
    return None


def _is_reserved(word: str) -> bool:
    """Whether it is one that the checks or the language rely on."""
    return word.startswith("__") or word in ATTRIBUTES or word in _WORDS or word in _KEYWORDS


_KEYWORDS = frozenset(
    {"void", "const", "static", "extern", "if", "for", "while", "return", "float", "int", "launch", "workspace"}
    | BUILTINS
)
_RULES = SourceRules(
    language="CUDA C++",
    headers=HEADERS,
    other_headers=re.compile("|".join(map(re.escape, GPU_HEADERS))),
    pragmas=re.compile(r"(no)?unroll( .*)?", re.DOTALL),
    pragma_forms="#pragma unroll or #pragma unroll N",
    is_reserved=_is_reserved,
    find_reason=_find_reason,
    unread={"#": (_SAME_TEXT, "use what a macro is given, not how it is written")},
    pairs={
        ("<<", "<"): (
            "`<<<`",
            "no launches in code",
            "kernels are launched by the plan: write a line `// launch ...` for each",
        ),
        ("long", "double"): ("`long double`", "a type of one size everywhere", "use double"),
        ("main", "("): ("`main`", *HOST_CODE),
    },
)


# -- code


def _check_syntax(source: str) -> Findings:
    try:
        root = parse_program(source)
    except UsageError:
        return  # said before anything is judged
    yield from list_ambiguous(list_kernels(source), "a __device__ template")
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
