"""Texts that try everything before they run: each is a finding at the stage named, and the next verdict is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from targets.native.programs import needs_compiler

from languages.c.fixture_programs import load_c_task
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome
from opsmith.running.sandbox import Sandbox
from opsmith.suites import task_files

pytestmark = needs_compiler
RIGHT = (task_files("kernels")[0].parent / "plain" / "row_sum.c").read_text("utf-8")
SECRET = "TOP-SECRET"
OPEN = "#include <stdint.h>\nvoid kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N) {\n"


def write_kernel(body: str, before: str = "") -> str:
    return f"{before}\n{OPEN}{body}\n}}\n"


DOUBLING = "#define A0 y[0] += x[0];\n" + "".join(f"#define A{n} A{n - 1} A{n - 1}\n" for n in range(1, 33))
SOURCES: dict[str, tuple[str, str]] = {
    "nothing": ("", "PARSE"),
    "a megabyte in a line": (write_kernel(f"// {'x' * (1 << 20)}"), "PARSE"),
    "a megabyte in lines": (write_kernel("y[0] = 0;\n" * 100_000), "PARSE"),
    "a character that is none": (write_kernel("y[0] = 0; \0"), "PARSE"),
    "half a character": (write_kernel("y[0] = 0; // \ud800"), "PARSE"),
    "deep brackets": (write_kernel(f"y[0] = {'(' * 20_000}x[0]{')' * 20_000};"), "PARSE"),
    "deep blocks": (write_kernel("{\n" * 20_000 + "}\n" * 20_000), "PARSE"),
    "an open comment": (write_kernel("/* "), "PARSE"),
    "a file of the system": (write_kernel("y[0] = 0;", '#include "/etc/passwd"'), "PARSE"),
    "a file by a macro": (write_kernel("y[0] = 0;", '#define P "/etc/passwd"\n#include P'), "PARSE"),
    "a question for a file": (write_kernel("y[0] = 0;", '#if __has_include("/etc/passwd")\n#endif'), "PARSE"),
    "a file as bytes": (write_kernel("y[0] = 0;", 'const char t[] = {\n#embed "/etc/passwd"\n};'), "PARSE"),
    "another file's name": (write_kernel("y[0] = 0;", '#line 1 "/etc/passwd"'), "PARSE"),
    "assembly": (write_kernel('__asm__("syscall");'), "PARSE"),
    "assembly of a file": (write_kernel("y[0] = 0;", '__asm__(".incbin \\"/etc/passwd\\"");'), "PARSE"),
    "assembly as a name": (write_kernel("y[0] = 0;", 'extern int call(int) __asm__("system");'), "PARSE"),
    "assembly by splices": (write_kernel('as\\\nm("syscall");'), "PARSE"),
    "a constructor": (write_kernel("y[0] = 0;", "__attribute__((constructor)) void begin(void) {}"), "PARSE"),
    "a constructor by a macro": (
        write_kernel("y[0] = 0;", "#define C __constructor__\n__attribute__((C)) void begin(void) {}"),
        "PARSE",
    ),
    "a section that is called": (
        write_kernel("y[0] = 0;", '__attribute__((section(".init_array"))) void *p = 0;'),
        "PARSE",
    ),
    "a function chosen at load": (write_kernel("y[0] = 0;", 'int f(void) __attribute__((ifunc("g")));'), "PARSE"),
    "a pragma for the compiler": (write_kernel("y[0] = 0;", "#pragma GCC diagnostic ignored"), "PARSE"),
    "a pragma in a line": (write_kernel('_Pragma("GCC optimize (0)")'), "PARSE"),
    "a pasted name": (write_kernel("y[0] = 0;", "#define P(a, b) a##b\nP(as, m)"), "PARSE"),
    "macros that double": (write_kernel("A32", DOUBLING), "COMPILE"),
    "a macro that calls itself": (write_kernel("y[0] = F(1);", "#define F(x) G(x)\n#define G(x) F(x) + F(x)"), "COMPILE"),
    "a large constant array": (write_kernel("y[0] = t[0];", "char t[2000000000] = {1};"), "COMPILE"),
    "a large empty array": (write_kernel("y[0] = t[0];", "char t[1ul << 30];"), "RUN"),
    "a huge empty array": (write_kernel("y[0] = t[0];", "char t[1ul << 40];"), "COMPILE"),
    "a large array on the stack": (write_kernel("volatile char t[1ul << 30]; t[0] = 1; y[0] = t[0];"), "RUN"),
    "many errors": (write_kernel("y[0] = z;\n" * 5000), "COMPILE"),
    "the program's end": (write_kernel("y[0] = 0;", "void _init(void) {}"), "COMPILE"),
    "a function that nobody has": (write_kernel("nobody(); y[0] = 0;", "void nobody(void);"), "COMPILE"),
    "names of ours": (write_kernel("y[0] = 0;", "int opsmith_heap_fill = 3; void opsmith_fill(void) {}"), "PARSE"),
    "a name of a sanitizer": (
        write_kernel("y[0] = 0;", 'const char *__asan_default_options(void) { return "help=1"; }'),
        "PARSE",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPSMITH_API_KEY", SECRET)
        with Pool(1, trial_deadline=3.0, sandbox=Sandbox(memory=1 << 30)) as shared:
            assert shared.verify(load_c_task("kernels/row_sum", False), RIGHT).passed
            yield shared


@pytest.mark.parametrize("name", SOURCES)
def test_a_hostile_text_is_a_finding_and_the_next_verdict_is_right(pool: Pool, name: str) -> None:
    source, stage = SOURCES[name]
    task = load_c_task("kernels/row_sum", False)
    verdict = pool.verify(task, source)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.REFUSED, Boundary.CANDIDATE), verdict.message
    assert verdict.stage.name == stage, verdict.message
    for secret in (SECRET, "root:", "/usr/", "/tmp/"):
        assert secret not in verdict.message
    assert len(verdict.message) < 10_000
    assert pool.verify(task, RIGHT).passed


def test_a_program_that_takes_names_of_libraries_takes_them_for_itself_alone(pool: Pool) -> None:
    """Its malloc, write and main are its own: Python's stay what they are."""
    functions = "long write(int a, const void *b, unsigned long c) { return -1; }\nint main(void) { return 7; }\n"
    right = RIGHT.replace("void kernel", f"{functions}void kernel", 1)
    assert pool.verify(load_c_task("kernels/row_sum", False), right).passed
