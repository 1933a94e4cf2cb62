"""The canonical form of C programs: equal when only names, comments and layout differ, and never otherwise."""

import importlib.util
import re
import sys

import pytest
from clocks import lasts_at_most
from targets.native.programs import PLAIN_SOFTMAX

from opsmith.errors import UsageError
from opsmith.targets.c import canonical
from opsmith.targets.c.canonical import write_canonical

HAS_PARSER = bool(importlib.util.find_spec("tree_sitter") and importlib.util.find_spec("tree_sitter_c"))
needs_parser = pytest.mark.skipif(not HAS_PARSER, reason="no parser of C: pip install 'opsmith[c]'")

PROGRAM = """#include <math.h>
#define TILE 8
#define MOST(l, r) ((l) > (r) ? (l) : (r) + TILE)
static float scale(float value, int times);
static const float table[4] = {1, 2};
struct pair { float first; };
static inline float __attribute__((hot)) sum(const float *restrict row, int64_t size) {
  float total = 0, other[3], *place;
#pragma omp simd reduction(+:total)
  for (int i = 0; i < size; i++) { total += row[i] * (float)size; }
  return total;
}
static float scale(float value, int times) { return value + times * TILE; }
void kernel(const float *restrict x, float *restrict y, int64_t n) {
  struct pair first;
  first.first = 1;
  if (n) { int row = sum(x, n); y[0] = MOST(row, n) + scale(1, 2); } else { int total; y[0] = TILE; }
  for (int i = 0, j; i < 3; i++) y[i] += table[i] + "total"[0];
}
"""


def rename(source: str, **names: str) -> str:
    """All names at once, but for those in texts."""
    return re.sub(rf'(?<!")\b({"|".join(names)})\b', lambda match: names[match[1]], source)


@needs_parser
@pytest.mark.parametrize(
    "other",
    [
        rename(PROGRAM, total="acc", row="line", size="count", i="k", scale="grow", sum="add", table="weights"),
        rename(PROGRAM, x="input", y="output", n="length", value="v", times="w", place="p", other="o", j="unused"),
        rename(PROGRAM, total="i", i="total"),
        rename(PROGRAM, l="left", r="right"),
        rename(PROGRAM, l="row", row="l", r="n", n="r"),
        PROGRAM.replace("\n  ", "  // a comment\n\n\t").replace("if (n)", "if /* is it? */ (\n n )"),
        PROGRAM.replace("float total = 0,", "float to\\\ntal = 0,"),
    ],
)
def test_names_comments_and_layout_do_not_matter(other: str) -> None:
    assert other != PROGRAM
    assert write_canonical(other) == write_canonical(PROGRAM)


@needs_parser
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("value + times", "times + value"),
        ("+= row", "-= row"),
        ("TILE 8", "TILE 9"),
        ("first.first", "first.second"),
        ('"total"', '"other"'),
        ("reduction(+:total)", "reduction(*:total)"),
        ("i++) y", "++i) y"),
        ("(l) > (r)", "(r) > (l)"),
        ("MOST(row, n)", "MOST(n, row)"),
        ("{1, 2}", "{1, 3}"),
        ("const float *restrict x, float *restrict y", "float *restrict y, const float *restrict x"),
        ("void kernel", "void other"),
        ("static inline", "inline"),
        ("(hot)", "(cold)"),
    ],
)
def test_all_else_does(before: str, after: str) -> None:
    assert before in PROGRAM
    assert write_canonical(PROGRAM.replace(before, after)) != write_canonical(PROGRAM)


@needs_parser
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("void kernel(int a) { a++ + a; }", "void kernel(int a) { a + ++a; }"),
        ("void kernel(int a, int b) { { int c = a, a = 2; } }", "void kernel(int a, int b) { { int c = b, b = 2; } }"),
        (
            "#define F(i) for (; i;)\nvoid kernel(int a, int b) { F(a) { a--; } }",
            "#define F(i) for (; i;)\nvoid kernel(int a, int b) { F(b) { b--; } }",
        ),
        (
            "#define LOOP for (;;)\nvoid kernel(int a, int b) { LOOP a = 3; }",
            "#define LOOP for (;;)\nvoid kernel(int a, int b) { LOOP b = 3; }",
        ),
        (
            "#define NEXT a + 1\nvoid kernel(int a, int b) { b = NEXT; }",
            "#define NEXT a + 1\nvoid kernel(int b, int a) { a = NEXT; }",
        ),
        (
            "#define NEXT (a + 1)\nvoid kernel(int a, int b) { b = NEXT; }",
            "#define NEXT (a + 1)\nvoid kernel(int b, int a) { a = NEXT; }",
        ),
        (
            "#define SWAP(p, q) (p) * q\nvoid kernel(int a, int b) { SWAP(a, b); b++; }",
            "#define SWAP(p, q) (p) * q\nvoid kernel(int a, int c) { SWAP(a, c); c++; }",
        ),
        (
            "#define NAME(p) (#p)\nvoid kernel(int a, int b) { NAME(a); }",
            "#define NAME(p) (#p)\nvoid kernel(int b, int a) { NAME(b); }",
        ),
        (
            "#define A 1\n#if defined(A)\nvoid kernel(int A) {}\n#endif",
            "#define A 1\n#if defined(A)\nvoid kernel(int B) {}\n#endif",
        ),
        ("#define A 3\nint x;\nvoid kernel(void) {}", "#define A 3 int x;\nvoid kernel(void) {}"),
        (
            "void kernel(int private) {\n#pragma omp parallel private(private)\n}",
            "void kernel(int shared) {\n#pragma omp parallel shared(shared)\n}",
        ),
        (
            "struct x {int a;}; struct w {float a;}; void kernel(void) { int x; struct x v; }",
            "struct x {int a;}; struct w {float a;}; void kernel(void) { int w; struct w v; }",
        ),
        ("void kernel(float x) { float sin(float); sin(x); }", "void kernel(float x) { float cos(float); cos(x); }"),
        ("void kernel(void) { extern int a; a = 1; }", "void kernel(void) { extern int b; b = 1; }"),
        ("int a; void kernel(void) { a = 1; }", "int b; void kernel(void) { b = 1; }"),
    ],
)
def test_programs_that_differ_have_different_forms(first: str, second: str) -> None:
    assert write_canonical(first) != write_canonical(second)


@needs_parser
def test_a_form_is_its_own_form() -> None:
    form = write_canonical(PLAIN_SOFTMAX)
    assert write_canonical(form.replace("$", "name")) == form


@needs_parser
@pytest.mark.parametrize(
    "text",
    [
        "void k(void){ int a = " + "a+\n" * 20_000 + "a; }",
        "void k(int " + "*\n" * 20_000 + "p) {}",
        "int f(" * 5000,
        "void k(void){" + "-\n" * 30_000 + "1; }",
        "void k(void){ " + "if (1) x; else\n" * 4000 + "x; }",
        "(int)\n" * 9000,
    ],
)
def test_deep_programs_are_walked_without_recursion(text: str) -> None:
    with lasts_at_most(10.0):
        assert write_canonical(text)


def test_a_missing_parser_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_c", None)
    monkeypatch.setattr(canonical, "load_parser", canonical.load_parser.__wrapped__)
    with pytest.raises(UsageError, match=r"opsmith\[c\]"):
        write_canonical("int a;")
