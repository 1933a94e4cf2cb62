"""Launch plans as they are written: what is read, and what each mistake is told."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsmith.records import Diagnostic
from opsmith.targets.gpu.plan import Launch, LaunchPlan, PlanWords, Workspace
from opsmith.targets.gpu.reading import MOST, read_plan

KERNEL = "__global__ void row_sum(const float *x, float *y) {\n}\n"
LAUNCH = "// launch row_sum grid=(cdiv(N, 256), M, 1) block=(256, 1, 1) args=(x, y, M, N)"


def read_mistakes(*lines: str) -> list[Diagnostic]:
    plan = read_plan("\n".join((*lines, KERNEL)))
    assert isinstance(plan, tuple), plan
    return list(plan)


def test_a_plan_is_read_with_its_lines() -> None:
    source = (
        "// Sums of rows, first by parts.\n// workspace tmp: fp32 [M, cdiv(N,256)]\n\n"
        "// launch row_sum grid=(cdiv(N,256),M) block=( 256 ) shared=4 * 256 args=(x, tmp, M, N)\n"
        f"/* then\n   the parts */\n#include <cuda_fp16.h>\n// launch parts grid=M block=32 args=(tmp, y, M, N,)\n{KERNEL}"
    )
    launches = (
        Launch("row_sum", ("cdiv(N, 256)", "M", "1"), ("256", "1", "1"), "4 * 256", ("x", "tmp", "M", "N"), 4),
        Launch("parts", ("M", "1", "1"), ("32", "1", "1"), "0", ("tmp", "y", "M", "N"), 8),
    )
    plan = read_plan(source)
    assert plan == LaunchPlan((Workspace("tmp", "fp32", ("M", "cdiv(N, 256)"), 2),), launches)


def test_what_a_plan_writes_is_read_as_the_same_plan() -> None:
    plan = read_plan(f"// workspace tmp: fp16 [3]\n{LAUNCH}\n{LAUNCH.replace('args', 'shared=N%7 args')}\n{KERNEL}")
    assert isinstance(plan, LaunchPlan)
    assert read_plan(plan.write_lines()) == plan


@pytest.mark.parametrize(
    "prose",
    [
        "// launch one block for each row",
        "// workspace is not needed",
        "// Launches are cheap: one for each row.",
        "// each launch grid = rows",
        "# workspaces",
    ],
)
def test_prose_about_launches_is_no_plan(prose: str) -> None:
    plan = read_plan(f"{prose}\n{LAUNCH}\n{KERNEL}")
    assert isinstance(plan, LaunchPlan)
    assert len(plan.launches) == 1


def test_what_a_comment_holds_is_no_plan() -> None:
    old = "/* as it was:\n// launch row_sum grid=(M / 2) args=(x)\n launch row_sum grid=(M)\n*/\n"
    plan = read_plan(f"{old}{LAUNCH}\n{KERNEL}")
    assert isinstance(plan, LaunchPlan)
    assert [launch.line for launch in plan.launches] == [5]


def test_a_macro_of_several_lines_may_stand_before_a_plan() -> None:
    plan = read_plan(f"#define TWICE(x) \\\n  ((x) + \\\n  (x))\n{LAUNCH}\n{KERNEL}")
    assert isinstance(plan, LaunchPlan)


def test_code_that_looks_a_little_like_a_plan_is_code() -> None:
    body = (
        "  // launch of the last group\n  launch(grid, block);\n  workspace[3] = launch; // workspace of this block\n"
    )
    assert isinstance(read_plan(f"{LAUNCH}\n{KERNEL}{body}"), LaunchPlan)


@pytest.mark.parametrize(
    ("line", "given_", "expected", "remedy"),
    [
        ("//launch k grid=(M) block=(32) args=(x)", "`//launch`", "begins with `// launch `", "`// launch k grid=(M) block=(32) args=(x)`"),
        ("# launch k grid=(M) block=(32) args=(x)", "`# launch`", "begins with `// launch `", "`// launch k grid="),
        ("/* launch k grid=(M) block=(32) args=(x) */", "`/* launch`", "begins with `// launch `", "args=(x)`"),
        ("/// launch k grid=(M) block=(32) args=(x)", "`/// launch`", "begins with `// launch `", "`// launch k"),
        ("  // launch k grid=(M) block=(32) args=(x)", "`  // launch`", "begins with `// launch `", "`// launch k"),
        ("// Launch k grid=(M) block=(32) args=(x)", "`// Launch`", "begins with `// launch `", "`// launch k"),
        ("launch k grid=(M) block=(32) args=(x)", "`launch` at column 1", "begins with `// launch `", "`// launch k"),
        ("//workspace tmp: fp32 [M]", "`//workspace`", "begins with `// workspace `", "`// workspace tmp: fp32 [M]`"),
        ("// launch grid=(M) block=(32) args=(x)", "no name of a kernel", "a kernel first", ""),
        ("// launch k block=(32) args=(x)", "no grid=", "grid, block and args", "add grid=(...)"),
        ("// launch k grid=(M) args=(x)", "no block=", "grid, block and args", "add block=(...)"),
        ("// launch k grid=(M) block=(32)", "no args=", "grid, block and args", "add args=(...)"),
        ("// launch k gird=(M) block=(32) args=(x)", "gird=", "one of grid, block, shared, args", "write grid="),
        ("// launch k grid=(M) block=(32) args=(x) meta=(B=2)", "meta=", "one of grid, block, shared, args", ""),
        ("// launch k grid=(M) grid=(N) block=(32) args=(x)", "grid twice", "grid once", ""),
        ("// launch k(x) grid=(M) block=(32) args=(x)", "`(x)`", "grid=(...), block=(...) and args=(...)", ""),
        ("// launch k<<<M, 32>>>(x, N)", "`<<<M, 32>>>(x, N)`", "grid=(...), block=(...) and args=(...)", ""),
        ("// launch k grid=(M), block=(32), args=(x)", "a `,` behind grid", "spaces between keys", "remove it"),
        ("// launch k grid=(M, N, 1, 1) block=(32) args=(x)", "4 entries", "1 to 3: x, y, z", "grid=(x, y, z)"),
        ("// launch k grid=() block=(32) args=(x)", "0 entries", "1 to 3: x, y, z", "grid=(x, y, z)"),
        ("// launch k grid=M, N block=(32) args=(x)", "`M, N`", "grid=(x, y, z)", "add the brackets"),
        ("// launch k grid=[M, N] block=(32) args=(x)", "`[`", "round brackets", ""),
        ("// launch k grid=(M block=(32) args=(x)", "`(`, which nothing closes", "as many closing brackets", ""),
        ("// launch k grid=(M)) block=(32) args=(x)", "`)`, which closes nothing", "as many opening brackets", ""),
        ("// launch k grid=(N / 256) block=(32) args=(x)", "`/`", "an operator (+ - * // %) or the end", "write // (rounded down) or cdiv"),
        ("// launch k grid=(N ** 2) block=(32) args=(x)", "`**`", "an operator", "write a product"),
        ("// launch k grid=(N * 0.5) block=(32) args=(x)", "the number 0.5", "a whole number", "N * 3 // 4"),
        ("// launch k grid=(0x10) block=(32) args=(x)", "the number 0x10", "in decimal digits", ""),
        ("// launch k grid=(9223372036854775808) block=(32) args=(x)", "the number 9223372036854775808", "at most", ""),
        ("// launch k grid=(ceil(N)) block=(32) args=(x)", "the function ceil", "one of cdiv, next_pow2", "write cdiv"),
        ("// launch k grid=(dim3(N, 1)) block=(32) args=(x)", "the function dim3", "one of cdiv", ""),
        ("// launch k grid=(cdiv(N)) block=(32) args=(x)", "cdiv of 1", "cdiv of 2", ""),
        ("// launch k grid=(min(N)) block=(32) args=(x)", "min of 1", "min of 2 to 8", ""),
        ("// launch k grid=(N +) block=(32) args=(x)", "the end", "a number, a dim, a function or (", ""),
        ("// launch k grid=(, N) block=(32) args=(x)", "the end", "a number, a dim, a function or (", ""),
        ("// launch k grid=(N > 4 ? 1 : 2) block=(32) args=(x)", "`>`", "an operator", ""),
        ("// launch k grid=(x.shape) block=(32) args=(x)", "`.`", "an operator", ""),
        ("// launch k grid=(M) block=(32) shared= args=(x)", "the end", "a number, a dim, a function or (", ""),
        ("// launch k grid=(M) block=(32) args=(x, M*N)", "`M*N`", "names of arrays, dims and scalars", "compute in the kernel"),
        ("// launch k grid=(M) block=(32) args=(x, 256)", "`256`", "names of arrays, dims and scalars", "compute in the kernel"),
        ("// launch k grid=(M) block=(32) args=(&x)", "`&x`", "names of arrays, dims and scalars", ""),
        ("// launch k grid=(M) block=(32) args=x", "`x`", "args=(x, y, N)", "add the brackets"),
        ("// workspace tmp: float [M]", "the type float", "one of fp32, fp16", "write fp32"),
        ("// workspace tmp: fp23 [M]", "the type fp23", "one of fp32, fp16", "write fp32"),
        ("// workspace tmp: fp32", "`tmp: fp32`", "a name, a type and a shape", ""),
        ("// workspace tmp: fp32 []", "an empty shape", "at least one size", "[1]"),
        ("// workspace tmp: fp32 [M / 2]", "`/`", "an operator", "cdiv"),
        ("// workspace 2: fp32 [M]", "`2: fp32 [M]`", "a name, a type and a shape", ""),
        (f"// launch k grid=({'(' * 30}M{')' * 30}) block=(32) args=(x)", "more than 20 brackets", "a plain expression", ""),
        (f"// launch k grid=({'-' * 150}M) block=(32) args=(x)", "more than 20 brackets", "a plain expression", ""),
        (f"// launch k grid=({'M+' * 200}M) block=(32) args=(x)", "an expression of 401 characters", "at most 200", ""),
        (f"// launch k grid=(M) block=(32) args=({', '.join(['x'] * 65)})", "65 arguments", "at most 64", ""),
        (f"// launch k grid=(M) block=(32) args=({'x' * 3000})", "3039 characters", "at most 2000", ""),
    ],
)  # fmt: skip
def test_a_mistake_of_a_plan_is_a_finding_with_its_line(line: str, given_: str, expected: str, remedy: str) -> None:
    (finding,) = read_mistakes("// a program", line)
    assert (finding.kind, finding.line) == ("PARSE", 2)
    assert finding.given.startswith(given_)
    assert expected in finding.expected
    assert remedy in finding.remedy
    assert finding.text == line.strip()[:300]


def test_a_finding_says_the_column() -> None:
    line = "// launch k grid=(M, N / 2) block=(32) args=(x)"
    (finding,) = read_mistakes(line)
    assert finding.column is not None
    assert line[finding.column - 1 :].startswith("/ 2")


def test_a_program_without_a_launch_is_told_how_one_is_written() -> None:
    (finding,) = read_mistakes("// sums of rows")
    assert finding.given == "a program without a launch line"
    assert "// launch row_sum grid=" in finding.expected
    assert finding.line is None


def test_a_misspelt_launch_is_shown_where_it_stands() -> None:
    (finding,) = read_mistakes("// sums of rows\n// lanch k grid=(M) block=(32) args=(x, y)")
    assert (finding.line, finding.given) == (2, "`// lanch`")
    assert finding.remedy == "write `// launch k grid=(M) block=(32) args=(x, y)`"


def test_prose_about_a_grid_is_no_misspelt_launch() -> None:
    (finding,) = read_mistakes("// one block of grid=(M) sums a row")
    assert finding.given == "a program without a launch line"


def test_a_plan_behind_the_kernels_is_told_to_move() -> None:
    plan = read_plan(f"{KERNEL}{LAUNCH}\n")
    assert isinstance(plan, tuple)
    assert (plan[0].line, plan[0].expected) == (3, "the plan before the first declaration")
    assert plan[0].remedy == f"move it up: `{LAUNCH}`"


def test_every_line_is_told_its_mistake_up_to_a_limit() -> None:
    findings = read_mistakes(*["// launch k grid=(M) block=(32)"] * 7)
    assert [finding.line for finding in findings] == list(range(1, MOST + 1))


def test_plans_are_not_longer_than_anybody_needs() -> None:
    assert read_mistakes(*[LAUNCH] * 65)[0].given == "more than 64 launches"
    assert read_mistakes(*["// workspace a: fp32 [M]"] * 33, LAUNCH)[0].given == "more than 32 workspaces"


PIECES = st.sampled_from(
    [*"()[]{},=:/*-+% \n\r\t", "// launch ", "// workspace ", "k", "grid", "fp32", "cdiv", "9", "é", "\0", "/*", "*/"]
)


@given(st.lists(PIECES, max_size=60).map("".join))
def test_no_text_makes_reading_fail(text: str) -> None:
    plan = read_plan(text)
    assert isinstance(plan, LaunchPlan) or all(isinstance(finding, Diagnostic) for finding in plan)


@pytest.mark.parametrize(
    "text",
    [
        "// launch k grid=(" + "(" * 5000,
        "launch" + " " * 100_000 + "x",
        ("/" * 2000 + "\n") * 200,
        ("launch a " * 200 + "\n") * 100,
        "/* " * 50_000,
        "// launch k grid=(2 * 2) block=(1) args=(x)\n" * 3000,
    ],
)
def test_no_text_takes_long_to_read(text: str) -> None:
    begin = time.perf_counter()
    read_plan(text)
    assert time.perf_counter() - begin < 5


def test_the_page_shows_what_is_said() -> None:
    page = (Path(__file__).parents[3] / "docs" / "launch-plans.md").read_text("utf-8")
    shown = page.partition("```text\n")[2].partition("```")[0]
    finding = read_mistakes("// sums", "// launch row_sum grid=(N / 256) block=(256) args=(x, y, M, N)")[0]
    assert finding.block() == shown.rstrip()
    example = page.partition("```cuda\n")[2].partition("```")[0]
    assert isinstance(read_plan(f"{example}\n{KERNEL}"), LaunchPlan)


# -- another language: comments that begin with #, numbers that a kernel is compiled for, no blocks

HASHED = PlanWords(
    comment="#",
    has_block_comments=False,
    keys=("grid", "meta", "args"),
    needed=("grid", "args"),
    preamble=re.compile(r"\s*(import\b|from\b|$)"),
)
JIT = "@triton.jit\ndef row_sum(x, y, M, N, BLOCK: tl.constexpr):\n    pass\n"


def read_hashed(*lines: str) -> LaunchPlan | tuple[Diagnostic, ...]:
    return read_plan("\n".join((*lines, JIT)), HASHED)


def test_a_plan_in_another_kind_of_comment_is_read_with_its_meta() -> None:
    plan = read_hashed(
        "# Sums // of rows /* as they are",
        "import triton",
        "# workspace tmp: fp32 [M]",
        "# launch row_sum grid=(cdiv(N, BLOCK), M) meta=(BLOCK=next_pow2(N), num_warps = 4,) args=(x, tmp, M, N)",
    )
    meta = (("BLOCK", "next_pow2(N)"), ("num_warps", "4"))
    launch = Launch("row_sum", ("cdiv(N, BLOCK)", "M", "1"), ("1", "1", "1"), "0", ("x", "tmp", "M", "N"), 4, meta)
    assert plan == LaunchPlan((Workspace("tmp", "fp32", ("M",), 3),), (launch,))
    assert isinstance(plan, LaunchPlan)
    lines = plan.write_lines(HASHED)
    assert lines.splitlines()[1] == (
        "# launch row_sum grid=(cdiv(N, BLOCK), M, 1) meta=(BLOCK=next_pow2(N), num_warps=4) args=(x, tmp, M, N)"
    )
    assert read_hashed("", "", lines.splitlines()[0], lines.splitlines()[1]) == plan


@pytest.mark.parametrize(
    ("line", "where", "given", "expected", "remedy"),
    [
        (
            "# launch row_sum grid=(M) block=(256) args=(x)",
            "launch row_sum",
            "block=",
            "one of grid, meta, args",
            "",
        ),
        (
            "# launch row_sum grid=(M)",
            "launch row_sum",
            "no args=",
            "grid and args: `# launch row_sum grid=(M, 1, 1) meta=(BLOCK=next_pow2(N), num_warps=4) args=(x, y, M, N)`",
            "add args=(...)",
        ),
        (
            "# launch row_sum grid=(M) meta=(256) args=(x)",
            "launch row_sum, meta",
            "`256`",
            "a name and a size: BLOCK=next_pow2(N)",
            "",
        ),
        ("# launch row_sum grid=(M) meta=(B=1, B=2) args=(x)", "launch row_sum, meta", "B twice", "B once", ""),
        (
            "# launch row_sum grid=(M) meta=B args=(x)",
            "launch row_sum, meta",
            "`B`",
            "meta=(BLOCK=256)",
            "add the brackets",
        ),
        (
            "# launch row_sum grid=(M) meta=(B=N/2) args=(x)",
            "launch row_sum, meta",
            "`/`",
            "an operator (+ - * // %) or the end",
            "write // (rounded down) or cdiv(a, b) (rounded up)",
        ),
        (
            "// launch row_sum grid=(M) args=(x)",
            "launch line",
            "`// launch`",
            "a line that begins with `# launch `",
            "write `# launch row_sum grid=(M) args=(x)`",
        ),
        (
            "# lanch row_sum grid=(M) args=(x)",
            "launch line",
            "`# lanch`",
            "a line that begins with `# launch `",
            "write `# launch row_sum grid=(M) args=(x)`",
        ),
    ],
)
def test_a_word_that_the_language_does_not_have_is_a_finding(
    line: str, where: str, given: str, expected: str, remedy: str
) -> None:
    findings = read_hashed("import triton", line)
    assert isinstance(findings, tuple)
    finding = findings[0]
    assert (finding.line, finding.where, finding.given) == (2, where, given)
    assert (finding.expected, finding.remedy) == (expected, remedy)


def test_a_language_with_blocks_has_no_meta() -> None:
    (finding,) = read_mistakes(f"{LAUNCH} meta=(BLOCK=256)")
    assert (finding.given, finding.expected) == ("meta=", "one of grid, block, shared, args")


def test_a_program_without_a_plan_is_shown_one_of_its_language() -> None:
    findings = read_hashed("import triton")
    assert isinstance(findings, tuple)
    assert findings[0].expected.startswith("at least one line such as `# launch row_sum grid=(M, 1, 1) meta=(BLOCK=")
    assert findings[0].remedy == "each launch names a kernel, its grid and its arguments, on one line"
