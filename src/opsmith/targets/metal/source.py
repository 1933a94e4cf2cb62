"""Static checks of one Metal program, before any compiler sees it: findings of the stage PARSE.

Refused is what has no place in kernels, what another compiler than Apple's would take (words of OpenCL and of CUDA,
`double`, pointers without an address space), and what asks who compiles. Grammar and types are left to clang.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from opsmith.records import Diagnostic, printable
from opsmith.targets.metal.agreement import check_attributes, check_kernels
from opsmith.targets.metal.syntax import SPACES, find_threadgroup, list_kernels, split_at_commas
from opsmith.targets.native.recognition import Beginnings, read_code
from opsmith.targets.native.source_checks import (
    HOST_CODE,
    KIND,
    Findings,
    Reason,
    SourceRules,
    check_nesting,
    check_text,
    list_reasons,
    run_checks,
)
from opsmith.targets.native.tokens import LogicalLine, Token

_NUMBERS = "bool char uchar short ushort int uint long ulong float half bfloat size_t ptrdiff_t int8_t uint8_t int16_t "
_NUMBERS += "uint16_t int32_t uint32_t int64_t uint64_t unsigned signed"
_NUMBER_TYPES = frozenset(_NUMBERS.split())
_VECTOR = re.compile(r"(?:packed_)?(?:u?char|u?short|u?int|u?long|float|half|bfloat)[234]")
_ATOMIC = re.compile(r"atomic_\w+")
_BEGINNING_WORDS = """
kernel using namespace constant constexpr static inline template typedef struct enum union void auto device thread
threadgroup
"""
_BEGINNINGS = Beginnings(
    frozenset(_BEGINNING_WORDS.split()) | _NUMBER_TYPES, re.compile(rf"{_VECTOR.pattern}|{_ATOMIC.pattern}|\[")
)

_WORDS = list_reasons(
    ("float: Metal has no double", "write float", "double double2 double3 double4"),
    ("Metal without inline assembly", "use functions of Metal", "asm"),
    ("memory of the plan or of a threadgroup", "use a workspace of the plan", "malloc calloc free new delete"),
    ("a kernel that only computes", "remove it", "printf assert os_log throw try catch"),
    ("Metal's C++", "write it without", "goto virtual dynamic_cast typeid thread_local register noexcept friend"),
    ("Metal's own library", "metal:: in place of std::", "std"),
    ("Metal's positions: parameters with attributes", "uint gid [[thread_position_in_grid]]",
     "threadIdx blockIdx blockDim gridDim get_global_id get_local_id get_group_id get_local_size"),
    ("threadgroup_barrier(mem_flags::mem_threadgroup)", "write it", "barrier work_group_barrier"),
    ("a name of Metal", "write as_type<T>(x)", "as_float as_int as_uint as_half reinterpret_cast_"),
    ("a program that does not ask about this machine", "remove it", "__has_include __has_builtin _Pragma"),
)  # fmt: skip

_OPENCL_PARTS = re.compile(r"s[0-9a-fA-F]+|lo|hi|even|odd")
_RESERVED = re.compile(r"_*opsmith|__", re.IGNORECASE)
_BEFORE_TYPES = frozenset({"const", "volatile", "static", "inline", "unsigned", "metal", "::"})  # else a product
_NOT_VARIABLES = frozenset({"constant", "using", "typedef", "static_assert"})
_TYPE_WORDS = frozenset({"struct", "enum", "union", "class"})


def is_program(text: str) -> bool:
    """Whether it begins and ends as Metal does, closes every brace that it opens, and defines a kernel or tries to.

    >>> is_program("kernel void f(device float *y) { *y = 1; }"), is_program("Use kernel void f(device float *y) { }")
    (True, False)
    """
    return "kernel" in text and any(token.text == "kernel" for token in read_code(text, _BEGINNINGS))


def check_source(source: str) -> tuple[Diagnostic, ...]:
    """What is refused, the first findings first; none: a compiler may see it. Never raises, whatever the text."""
    return run_checks(source, lambda lines: _check_lines(lines, source))


def _check_lines(lines: Sequence[LogicalLine], source: str) -> Findings:
    code = [token for line in lines if not line.is_directive for token in line.tokens]
    yield from check_text(lines, _RULES)
    yield from check_attributes(source)
    yield from tuple(check_nesting(code)) or _check_code(code, source)


def _check_code(code: Sequence[Token], source: str) -> Findings:
    yield from check_kernels(list_kernels(source))
    yield from _check_pointers(code)
    yield from _check_threadgroup(source)
    yield from _check_variables(code)
    yield from _check_parts(code)


# -- words


def _find_reason(name: str) -> Reason | None:
    """What is expected instead of a name, and what to try; None: nothing is wrong with it."""
    if name in _WORDS:
        return _WORDS[name]
    if _RESERVED.match(name) or name.startswith("__builtin"):
        remedy = "use Metal's own words: kernel, device, threadgroup, constant, thread; or take another name"
        return "a name of Metal or of the program", remedy
    return None


def _check_parts(code: Sequence[Token]) -> Findings:
    """Words of OpenCL that clang would take: `.s0`, `.lo`, and (float4)(a, b), which is another value in Metal."""
    own = {after.text for token, after in pairwise(code) if token.text not in (".", "->")}
    for token, after in pairwise(code):
        if token.text == "." and _OPENCL_PARTS.fullmatch(after.text) and after.text not in own:
            yield Diagnostic(
                KIND, "program", f"`.{after.text}`", "components x y z w or r g b a", "use swizzles", after.line
            )
    for place in range(len(code) - 3):
        words = [token.text for token in code[place : place + 4]]
        if words[0] == "(" and _VECTOR.fullmatch(words[1]) and words[2:] == [")", "("]:
            end, depth = place + 3, 0
            for end in range(place + 3, len(code)):
                depth += (code[end].text in "([{") - (code[end].text in ")]}")
                if depth == 0:
                    break
            if len(split_at_commas(code[place + 4 : end])) > 1:
                given = f"`({words[1]})(...)` with several values, which has the value of the last one"
                remedy = f"write {words[1]}(...)"
                yield Diagnostic(KIND, "program", given, "a constructor", remedy, code[place].line)


def _is_reserved(word: str) -> bool:
    """Whether it is one that the checks or the language rely on."""
    return word in SPACES or word in _NUMBER_TYPES or word in _KEYWORDS or bool(_VECTOR.fullmatch(word))


_KEYWORDS = frozenset(
    {"kernel", "void", "const", "static", "if", "for", "while", "return", "launch", "workspace", "metal", "using"}
    | {"namespace", "struct"}
)
_UNREAD = "a macro without # and without kernel or threadgroup, which must be read in the program"
_RULES = SourceRules(
    language="Metal",
    headers=("metal_stdlib",),
    other_headers=re.compile(r"metal_\w+|simd/simd\.h"),
    pragmas=re.compile(r"((no)?unroll|clang loop|METAL fp)( .*)?", re.DOTALL),
    pragma_forms="#pragma unroll or #pragma METAL fp ...",
    is_reserved=_is_reserved,
    find_reason=_find_reason,
    unread=dict.fromkeys(("#", "kernel", "threadgroup"), (_UNREAD, "write it where the macro is used")),
    pairs={
        ("long", "long"): ("`long long`", "long: it has 64 bits in Metal", "write long"),
        ("main", "("): ("`main`", *HOST_CODE),
    },
)


# -- address spaces


def _check_pointers(code: Sequence[Token]) -> Findings:
    """Whether pointers and references say what memory they lead to: clang takes them without."""
    types = _NUMBER_TYPES | {
        after.text for token, after in pairwise(code) if token.text in (*_TYPE_WORDS, "typename", "class")
    }
    for place, token in enumerate(code):
        if token.text not in ("*", "&") or place == 0:
            continue
        start = place - 1
        while start >= 0 and code[start].text in ("const", "volatile"):
            start -= 1
        is_type = (
            code[start].text in types or _VECTOR.fullmatch(code[start].text) or _ATOMIC.fullmatch(code[start].text)
        )
        if not is_type or code[start - 1].text in (".", "->"):
            continue
        begin = start
        while begin >= 0 and code[begin].text not in ("(", ",", ";", "{", "}", "<", ")"):
            begin -= 1
        words = {entry.text for entry in code[begin + 1 : place]}
        if not words & SPACES and _BEFORE_TYPES.issuperset(entry.text for entry in code[begin + 1 : start]):
            given = f"`{' '.join(entry.text for entry in code[begin + 1 : place + 2])[:80]}`"
            expected = "device, constant, threadgroup or thread before the type"
            remedy = "name the address space of what it points to"
            yield Diagnostic(KIND, "pointer", printable(given), expected, remedy, token.line)


def _check_threadgroup(source: str) -> Findings:
    for place, is_variable, is_first in find_threadgroup(source):
        if is_variable and not is_first:
            expected = "threadgroup first in a declaration of the kernel's own body, or before a pointer's type"
            line = source.count("\n", 0, place) + 1
            yield Diagnostic(
                KIND, "variable", "`threadgroup` elsewhere", expected, "write `threadgroup T name[n];`", line
            )


def _check_variables(code: Sequence[Token]) -> Findings:
    """Variables that outlive a call, and those of the program that are not in constant memory."""
    opened, begin = list[str](), 0  # what each open bracket is of
    for place, token in enumerate(code):
        if token.text in "([{":
            words = [entry.text for entry in code[begin:place]]
            is_type = token.text == "{" and "(" not in words and _TYPE_WORDS & set(words)
            is_space = token.text == "{" and words[:1] == ["namespace"]
            opened.append("namespace" if is_space else "type" if is_type else token.text)
        elif token.text in ")]}" and opened:
            closed = opened.pop()
            if closed in ("{", "type") and not {"(", "["} & set(opened):
                begin = place + (closed == "{")
        if token.text == "static" and "{" in opened:
            expected = "no variables that keep values from one call to the next"
            yield Diagnostic(
                KIND, "variable", "`static` in a function", expected, "use a workspace of the plan", token.line
            )
        if token.text == ";" and not {"{", "type", "(", "["} & set(opened):
            yield from _check_statement(code[begin:place])
        if token.text == ";" or (token.text == "{" and opened[-1] != "{"):
            begin = place + 1


def _check_statement(tokens: Sequence[Token]) -> Findings:
    words = [token.text for token in tokens]
    if not tokens or _NOT_VARIABLES & set(words) or words[0] == "}":
        return
    head = words[: words.index("=")] if "=" in words else words
    if "(" in head or head[0] in _TYPE_WORDS or head[0] == "template" or len(head) < 2:
        return
    given = f"`{' '.join(head)[:80]}` outside of all functions"
    expected = "constant memory: `constant T name = value;`"
    yield Diagnostic(KIND, "variable", printable(given), expected, "write constant before it", tokens[0].line)
