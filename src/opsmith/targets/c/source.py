"""Static checks of one translation unit, before any compiler sees it: findings of the stage PARSE.

Refused is what has no place in a kernel: other headers, inline assembly, code that runs when it is loaded, directives
that ask about this machine or change how the rest is read, names of what programs are judged with, and texts of a size
that no kernel has. The tokens of macros are looked at as they are written; `##` is refused, so that no name comes about
unseen. What a program is linked with is `imports`'s to judge. Grammar, types and what macros
grow to are left to the compiler and its limits: a parser that does not expand macros refuses right programs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from opsmith.records import Diagnostic
from opsmith.targets.native.source_checks import (
    KIND,
    Findings,
    Reason,
    SourceRules,
    check_attributes,
    check_directive,
    check_nesting,
    check_oddities,
    check_words,
    run_checks,
)
from opsmith.targets.native.tokens import LogicalLine, Token, TokenKind

FUNCTION = "kernel"
HEADERS = (
    "math.h",
    "stdint.h",
    "stddef.h",
    "stdlib.h",
    "string.h",
    "float.h",
    "limits.h",
    "stdbool.h",
    "immintrin.h",
    "omp.h",
)
ATTRIBUTES = frozenset(
    {"aligned", "always_inline", "assume_aligned", "cold", "const", "fallthrough", "flatten", "hot", "malloc"}
    | {"may_alias", "noclone", "noinline", "nonnull", "nothrow", "packed", "pure", "returns_nonnull", "simd"}
    | {"unused", "vector_size", "warn_unused_result", "alloc_size", "leaf"}
)
_PLACING = frozenset({"section", "alias", "target", "optimize", "target_clones"})  # common words: where called only
_STARTING = frozenset({"requires", "detach"})  # words of directives of OpenMP

# What is refused by its name: which names, what is expected instead, what to try.
_LOADING = "constructor|destructor|init_priority|ifunc|weakref|symver"
_REFUSED = tuple(
    (re.compile(names), expected, remedy)
    for names, expected, remedy in (
        ("asm|__asm|__asm__", "C without inline assembly", "use C or the intrinsics of <immintrin.h>"),
        (rf"({_LOADING})|__({_LOADING})_*", f"code that runs when {FUNCTION} is called, and only then", "remove it"),
        (
            "__has_include|__has_include_next|__has_embed|_Pragma|__pragma",
            "a program that does not ask about this machine",
            "use #pragma, or assume the headers that are allowed",
        ),
        (
            "__DATE__|__TIME__|__TIMESTAMP__",
            "a program that is the same whenever it is built",
            "remove it",
        ),
        (  # ours, of sanitizers and of linkers
            "(opsmith_|OPSMITH|__(tsan|asan|ubsan|msan|lsan|hwasan|sanitizer|wrap|real|interceptor)_|__SANITIZE_).*"
            "|_DYNAMIC|_GLOBAL_OFFSET_TABLE_|__ehdr_start|__bss_start|_edata|_end|__executable_start|__dso_handle"
            "|_r_debug|_rtld_global|_etext|__etext",
            "names of the program's own",
            "take another name, and declare only what the headers declare",
        ),
        (
            "(omp_(set_(?!(nest_)?lock$)|fulfill_event|event_handle_t|display_|target_|pause_)|GOMP_|__kmpc_).*",
            "a program that runs on the threads that it is given",
            "leave it out: the task says how many threads",
        ),
        (  # clocks, the callers' frames, and what processors say of themselves
            "_{1,2}rdtscp?|_rdpmc|_?_xgetbv|__builtin_(ia32_rd(tscp?|pmc)|readcyclecounter|cpu_(init|is|supports))"
            r"|__builtin_(frame_address|return_address|extract_return_addr|apply(_args)?)|__get_cpuid\w*"
            "|__cpuid(_count)?",
            "a program that depends on its inputs alone",
            "remove it",
        ),
    )
)


def check_source(source: str) -> tuple[Diagnostic, ...]:
    """What is refused, the first findings first; none: a compiler may see it. Never raises, whatever the text."""
    return run_checks(source, _check_tokens)


# -- the tokens


def _check_tokens(lines: Sequence[LogicalLine]) -> Findings:
    code = [token for line in lines if not line.is_directive for token in line.tokens]
    yield from check_oddities(lines, "C")
    for line in lines:
        yield from check_directive(line, _RULES)
        if line.is_directive:
            yield from _check_starting(line.tokens)
        yield from check_words(line.tokens, _RULES)
        yield from _check_placing(line.tokens)
    yield from check_attributes([token for line in lines for token in line.tokens], ATTRIBUTES)
    yield from tuple(check_nesting(code)) or _check_function([token.text for token in code])


def _check_placing(tokens: Sequence[Token]) -> Findings:
    for token, after in pairwise(tokens):
        if token.text.strip("_") in _PLACING and token.kind is TokenKind.NAME and after.text == "(":
            expected = "no attribute or function of this name"
            yield Diagnostic(KIND, "program", f"`{token.text}(`", expected, "remove it", token.line)
        if token.text == after.text == "[":
            yield Diagnostic(KIND, "program", "`[[`", "no attributes of C23", "use __attribute__", token.line)


def _find_reason(name: str) -> Reason | None:
    return next(((expected, remedy) for names, expected, remedy in _REFUSED if names.fullmatch(name)), None)


def _is_reserved(word: str) -> bool:
    return word in ATTRIBUTES | {FUNCTION, "void"} or word.strip("_") in ATTRIBUTES


_RULES = SourceRules(
    language="C",
    headers=HEADERS,
    pragmas=re.compile(r"omp( .*)?|GCC ivdep|GCC unroll \S+", re.DOTALL),
    pragma_forms="#pragma omp, GCC ivdep or GCC unroll N",
    is_reserved=_is_reserved,
    find_reason=_find_reason,
)


def _check_starting(tokens: Sequence[Token]) -> Findings:
    """Directives of OpenMP that outlive a call, or change what others mean; in macros too, which directives expand."""
    if [token.text for token in tokens[1:2]] not in (["pragma"], ["define"]):
        return
    for token in tokens[2:]:
        if token.kind is TokenKind.NAME and token.text in _STARTING:
            expected = "directives of OpenMP without requires and detach"
            yield Diagnostic(KIND, "directive", f"`{token.text}`", expected, "remove it", token.line)


# -- code


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
