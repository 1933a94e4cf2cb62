"""What is refused of a C program before any compiler sees it, and what is not."""

import random
import re
import shutil
import subprocess

import pytest
from clocks import lasts_at_most
from targets.native.programs import PLAIN_SOFTMAX

from opsmith.running.toolchain import NO_COMPILER
from opsmith.targets.c.source import check_source
from opsmith.targets.native.source_checks import DEEPEST, LARGEST_SOURCE, LONGEST_LINE

KERNEL = "void kernel(const float *restrict x, float *restrict y, int64_t n) { y[0] = x[0]; }\n"
RICH = """/* A comment with "quotes", don't mind */ #include <math.h>
#include <stdint.h> // for int64_t
#include <immintrin.h>
#include <omp.h>
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define INLINE static inline __attribute__((always_inline, aligned(64)))
#define TILE (8)
#if defined(__AVX2__) && TILE > 4
typedef float v8 __attribute__((vector_size(32)));
#endif
float expf(float) __attribute__((simd("notinbranch")));
INLINE float twice(float section) { return MAX(section, 0.5e-3f) * 2; }
void helper(void);
#pragma omp declare simd
static float add(float a, float b) { return a \\
  + b; }
void kernel(const float *restrict x, float *restrict y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = twice(x[i]);
#pragma GCC ivdep
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; i++) y[i] += add(x[i], '"' - '\\'' + (i > 2 ? 1 : 0)) / 3;
  const char *text = "asm? /* no comment */ #include";
}
"""


@pytest.mark.parametrize("source", [PLAIN_SOFTMAX, RICH, KERNEL, RICH.replace("\n", "\r\n")])
def test_kernels_pass(source: str) -> None:
    assert check_source(source) == ()


REFUSED = {  # what stands before a right kernel -> words of the finding, at line 1 unless the last word says another
    '#include "/etc/passwd"': "expected one of <math.h>",
    "#include <stdio.h>": "given <stdio.h>",
    "#include </usr/include/math.h>": "given </usr/include/math.h>",
    "#include <../math.h>": "given <../math.h>",
    "#define PLACE <math.h>\n#include PLACE": "given PLACE",
    "#include": "given nothing",
    '#inc\\\nlude "secret.h"': 'given "secret.h"',
    '#inc\\ \t\nlude "secret.h"': 'given "secret.h"',
    '/* a\n */ # /* b */ include "secret.h"': 'given "secret.h"',
    '??=include "secret.h"': "given `??=`",
    '%:include "secret.h"': "given `%:`",
    '#include_next <math.h>': "given #include_next",
    '#embed "/etc/passwd"': "given #embed",
    '#line 7 "other.c"': "given #line",
    '# 7 "other.c"': "given #7",
    "#import <math.h>": "given #import",
    "#pragma GCC optimize(\"fast-math\")": "expected #pragma omp, GCC ivdep or GCC unroll N",
    "#pragma GCC poison float": "GCC poison",
    "#pragma GCC target(\"avx512f\")": "GCC target",
    "#pragma redefine_extname sin cos": "redefine_extname",
    "#pragma GCC unroll 3 4": "GCC unroll 3 4",
    '_Pragma("GCC optimize(3)")': "given `_Pragma`",
    "#if __has_include(</etc/passwd>)\n#endif": "given `__has_include`",
    "#if 0\nint a = __has_embed;\n#endif": "given `__has_embed`",
    'void f(void) { asm("nop"); }': "given `asm`",
    'void f(void) { __asm__ volatile("nop"); }': "given `__asm__`",
    '__asm(".incbin \\"/etc/passwd\\"");': "given `__asm`",
    "#define A asm": "given `asm`",
    "#define P(a, b) a##b": "given `##`",
    "#define P(a, b) a%:%:b": "given `%:`",
    'register int r __asm("rax");': "given `__asm`",
    'const char *s = R"x( " )x"; asm("nop");': "given `R\"`",
    'const char *s = u8R"(a)";': "given `u8R\"`",
    "__attribute__((constructor)) void f(void) {}": "runs when kernel is called",
    "__attribute__((__destructor__)) void f(void) {}": "given `__destructor__`",
    "#define C constructor": "given `constructor`",
    "#define A(x) __attribute__((x))\nA(constructor) void f(void) {}": "given x",
    "#define A(noinline) __attribute__((noinline))": "given `noinline`",
    "#define pure constructor": "given `pure`",
    "#define S(x) __attribute__((aligned(x)))\nint z S(8), section(\".init_array\"));": "given `section(`",
    '__attribute__((section(".init_array"))) void *p;': "given `section(`",
    '__attribute__((alias("kernel"))) void f(void);': "given `alias(`",
    '__attribute__((optimize("fast-math"))) void f(void);': "given `optimize(`",
    '__attribute__((target("avx512f"))) void f(void);': "given `target(`",
    "__attribute__((visibility(\"hidden\"))) int a;": "given visibility",
    "__attribute__ (aligned(8)) int a;": "without its two brackets",
    "__attribute__((aligned(8)": "without its end",
    "[[gnu::constructor]] void f(void) {}": "`constructor`",
    "[ [gnu::hot]] void f(void) {}": "given `[[`",
    "#define OPEN (": "a body that closes every bracket",
    "#define kernel other": "given `kernel`",
    "#undef void": "given `void`",
    "int a = __TIME__[0];": "the same whenever it is built",
    "extern void opsmith_fill(void);": "given `opsmith_fill`",
    "void __tsan_write4(void *at) {}": "given `__tsan_write4`",
    "extern char __wrap_malloc[];": "given `__wrap_malloc`",
    "#ifdef __SANITIZE_THREAD__\n#endif": "given `__SANITIZE_THREAD__`",
    "extern char _DYNAMIC[];": "given `_DYNAMIC`",
    "void f(void) { omp_set_num_threads(9); }": "given `omp_set_num_threads`",
    "void omp_fulfill_event(long event);": "given `omp_fulfill_event`",
    "long f(void) { return __rdtsc(); }": "given `__rdtsc`",
    "#pragma omp requires atomic_default_mem_order(relaxed)": "given `requires`",
    "#define R requires\n#pragma omp R dynamic_allocators": "given `requires`",
    "#pragma omp task detach(event)": "given `detach`",
    "int $a;": "given `$`",
    "int é;": "given `é`",
    'char *s = "open;': 'given `"`',
    "/* never closed": "given `/* never closed",
    "int a\x00;": "given the character U+0000",
    "int a;\x0c": "given the character U+000C",
    "x" * (LONGEST_LINE + 1): f"at most {LONGEST_LINE}",
    "int a;\n" * 10_000: f"at most {LARGEST_SOURCE}",
    "int a = " + "(\n" * (DEEPEST + 1) + "1" + ")\n" * (DEEPEST + 1) + ";": f"at most {DEEPEST} open at once",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_place_in_a_kernel(text: str) -> None:
    findings = check_source(f"{text}\n{KERNEL}")
    assert findings
    assert any(REFUSED[text] in str(finding) for finding in findings)
    assert {finding.kind for finding in findings} == {"PARSE"}


def test_a_finding_says_its_line() -> None:
    first, second = check_source(f"#include <math.h>\n\\\n\\\n#include <stdio.h>\nint a; /*\n\n*/ asm('x');\n{KERNEL}")
    assert (first.line, first.text) == (4, "#include <stdio.h>")
    assert (second.line, second.text) == (7, "*/ asm('x');")


@pytest.mark.parametrize(
    "source",
    ["", "int x;", "void kernel(float *x);", "static int kernel;", "void other(void) { kernel(1); }", "void kernel",
     "// void kernel(void) {}", '"void kernel(void) {}"', "#define K void kernel(void) {}"],
)  # fmt: skip
def test_a_kernel_must_be_defined(source: str) -> None:
    assert "no definition of kernel" in str(check_source(source)[0])


@pytest.mark.parametrize(
    "text",
    ["/*\n", '"\n', "\\\n", "(\n", "a+\n", "'\n", "#define x\n", "/*" + "*\n", "__attribute__((\n", "__attribute__((hot\n",
     "void kernel(\n", "void kernel()\n", "??=\n", "#include <\n", "/**/\n", "#define f(a\n", "{}\n", "\ud800\n", "é\n"],
)  # fmt: skip
def test_no_text_takes_long(text: str) -> None:
    """As large as it may be; quadratic work would take a minute."""
    with lasts_at_most(5.0):
        assert len(check_source(text * ((LARGEST_SOURCE - 1) // len(text.encode("utf-8", "replace"))))) <= 5


PIECES = [
    *("asm", "__as", "m__", "__asm__", "\\\n", "\n", "\n", "#define A ", "#define B(x) ", "A", "B(", "x", ")", "(", '"', "'"),
    *("/*", "*/", "//", 'R"', "??/", "%:", "#", "##", "include", '"k.h"', "<math.h>", "constructor", "const", "ructor"),
    *("__attribute__((", "))", "aligned", 'section("a")', ",", " ", "\r\n", "\\ \n", "[[", '_Pragma("x")', "__VA_ARGS__"),
    *("#undef ", "u8", "L", "\\", "1", ".5e+", "#if 0\n", "#endif\n", "{", "}", ";", "noinline", "#pragma omp ", "target"),
]  # fmt: skip


@pytest.mark.skipif(shutil.which("gcc") is None, reason=NO_COMPILER)
def test_nothing_refused_comes_about_in_the_preprocessor() -> None:
    """Of texts put together at random, those that pass hold none of these names once gcc has expanded them."""
    rng, passed = random.Random(5), 0
    while passed < 100:
        source = "int q;\n" + "".join(rng.choices(PIECES, k=rng.randint(2, 9))) + f"\n{KERNEL}"
        if not re.search("as|truct|sect|Pragma|#", source[7 : -len(KERNEL)]) or check_source(source):
            continue
        passed += 1
        command = ["gcc", "-E", "-P", "-std=gnu17", "-xc", "-"]
        text = subprocess.run(command, input=source, capture_output=True, text=True, check=False).stdout
        bare = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'|\.?\b[0-9]([eEpP][+-]|[\w.])*', "", text)
        refused = {"asm", "__asm__", "constructor", "_Pragma", "section"} & set(re.findall(r"[A-Za-z_]\w*", bare))
        assert not refused, source
