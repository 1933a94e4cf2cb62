"""Candidates that are compiled and loaded: who builds them, what of a build becomes which verdict, and what they may."""

import json
import shutil
from dataclasses import replace

import pytest
from compiled_target import Compiled, double_task
from harmful import SMALL, needs_isolation

from opsmith.judging.pool import Pool
from opsmith.records import FOR_PEOPLE, Boundary, Outcome, Stage, dumps, verdict_from_json
from opsmith.targets.hidden import NOT_SHOWN

pytestmark = [
    needs_isolation,
    pytest.mark.skipif(
        shutil.which("gcc") is None, reason="no C compiler: install Debian's packages gcc and libc6-dev"
    ),
]

TASK = double_task()
RIGHT = "long solve(long x) { return 2 * x; }\n"
COMPILE = Stage("COMPILE")


@pytest.fixture(scope="module")
def pool():
    with Pool(2, trial_deadline=3.0, sandbox=SMALL) as shared:
        assert shared.verify(TASK, RIGHT).passed
        yield shared


def with_headers(body: str) -> str:
    headers = "errno.h fcntl.h pthread.h signal.h stdio.h stdlib.h string.h sys/mman.h sys/socket.h unistd.h"
    return "".join(f"#include <{name}>\n" for name in headers.split()) + f"long solve(long x) {{ {body} }}\n"


def test_the_verdict_says_what_built_the_program(pool):
    verdict = pool.verify(TASK, RIGHT)
    assert (verdict.message, verdict.build) == ("passed: 2 trials", "gcc -O1")
    assert verdict_from_json(json.loads(dumps(verdict))) == verdict
    assert '"build"' not in dumps(replace(verdict, build=""))


@pytest.mark.parametrize(
    ("source", "stage", "words"),
    [
        ("int main;\n", Stage("PARSE"), "no `solve`"),
        ("long solve(long x) { return 2 * }\n", COMPILE, "expected expression"),
        ("long solve(long x) { return 3 * x; }\n", Stage.MATCH, "given:    9"),
        ("long solve(long x) { return *(volatile long *)8; }\n", Stage.RUN, "SIGSEGV"),
        ("void exit(int);\nlong solve(long x) { exit(0); }\n", Stage.RUN, "ended with status 0"),
        ("long solve(long x) { for (;;) ; }\n", Stage.RUN, "within 3 s for this trial"),
        ("long solve(long x) { return 1 / (x - x); }\n", Stage.RUN, "SIGFPE"),
        ("long solve(long x) { volatile char a[1 << 30]; a[0] = x; return solve(x) + a[0]; }\n", Stage.RUN, "SIGSEGV"),
        ("long other(long);\nlong solve(long x) { return other(x); }\n", Stage.RUN, "undefined symbol"),
    ],
)
def test_a_wrong_program_is_refused_where_it_goes_wrong(pool, source, stage, words):
    verdict = pool.verify(TASK, source)
    assert (verdict.outcome, verdict.stage, verdict.charged_to) == (Outcome.REFUSED, stage, Boundary.CANDIDATE)
    assert words in verdict.message
    assert bool(verdict.build) == (stage != Stage("PARSE"))
    assert pool.verify(TASK, RIGHT).passed


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return fork() < 0 && errno == EPERM ? 2 * x : 0;", ""),
        ("return socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM ? 2 * x : 0;", ""),
        ('return open("/etc/passwd", O_RDONLY) < 0 && errno == EACCES ? 2 * x : 0;', ""),
        ('return open("/tmp/made", O_CREAT | O_WRONLY, 0600) < 0 && errno == EACCES ? 2 * x : 0;', ""),
        ("return kill(getppid(), 9) < 0 && errno == EPERM ? 2 * x : 0;", ""),
        ("pthread_t t; return pthread_create(&t, 0, (void *(*)(void *))abort, 0) ? 2 * x : 0;", ""),
        ("for (int fd = 3; fd < 64; fd++) ftruncate(fd, 0); return 2 * x;", ""),
        ("for (int fd = 3; fd < 64; fd++) fallocate(fd, 0, 0, 1 << 30); return 2 * x;", ""),
        ("for (int fd = 3; fd < 64; fd++) close(fd); return 2 * x;", "a process that"),
        ("char b[64] = {0}; for (int fd = 3; fd < 64; fd++) write(fd, b, 64); return 2 * x;", "RUN"),
        ("for (;;) if (!malloc(1 << 20)) return 2 * x;", ""),
    ],
)
def test_what_a_program_tries_has_no_effect_on_others(pool, body, words):
    verdict = pool.verify(TASK, with_headers(body))
    assert (words in verdict.message) if words else verdict.passed, verdict.message
    assert pool.verify(TASK, RIGHT).passed


def test_threads_run_only_where_the_build_says_so(pool):
    body = "long sum = 0;\n#pragma omp parallel for reduction(+:sum) num_threads(2)\nfor (int i = 0; i < 2; i++) sum += x; return sum;"
    source = f"long solve(long x) {{ {body} }}\n"
    assert pool.verify(TASK, "// threads\n" + source).passed
    assert pool.verify(TASK, source).stage == Stage.RUN


@pytest.mark.parametrize(
    ("target", "boundary", "words"),
    [
        ("FAILING", Boundary.SANDBOX, "the disk is full"),
        ("BREAKING", Boundary.TARGET, "KeyError: 'a key' at compiled_target.py"),
    ],
)
def test_a_build_that_fails_leaves_the_candidate_unjudged(pool, target, boundary, words):
    verdict = pool.verify(replace(TASK, target=f"compiled_target:{target}"), RIGHT)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, boundary)
    assert words in verdict.message


def test_builds_of_one_task_run_at_the_same_time(pool):
    sources = [RIGHT + f"// at once {number}\n" for number in range(4)]
    assert all(verdict.passed for verdict in pool.verify_all(TASK, sources))
    futures = [pool.submit(TASK, source) for source in sources]
    assert all(future.result().passed for future in futures)
    assert not Compiled.at_once.broken


HIDDEN = double_task([(5, 10, ""), (8, 0, "too little memory for x = 8"), (11, 22, "")])


def test_hidden_sizes_are_tried_after_the_stated_ones(pool):
    verdict = pool.verify(HIDDEN, RIGHT)
    assert verdict.passed
    assert verdict.trials == 4
    assert verdict.warnings == ("too little memory for x = 8", "one size could not be drawn")


@pytest.mark.parametrize(
    ("source", "stage", "note"),
    [
        ("long solve(long x) { return x == 11 ? 0 : 2 * x; }\n", Stage.MATCH, "22"),
        ("long solve(long x) { return x == 11 ? *(volatile long *)8 : 2 * x; }\n", Stage.RUN, "SIGSEGV"),
    ],
)
def test_a_failure_at_hidden_sizes_tells_a_model_nothing_of_them(pool, source, stage, note):
    verdict = pool.verify(HIDDEN, source)
    assert (verdict.outcome, verdict.stage, verdict.trials) == (Outcome.REFUSED, stage, 4)
    assert [error.where for error in verdict.errors] == [NOT_SHOWN]
    assert "11" not in verdict.message
    (words,) = (warning for warning in verdict.warnings if warning.startswith(FOR_PEOPLE))
    assert "x = 11" in words
    assert note in words


def test_a_failure_at_run_is_explained_once_more_on_its_own_inputs(pool):
    task = replace(HIDDEN, target="compiled_target:DIAGNOSING")
    crash = "long solve(long x) { return x == 21 ? *(volatile long *)8 : 2 * x; }\n"
    verdict = pool.verify(task, crash)
    assert [error.kind for error in verdict.errors] == ["RUN", "ASAN"]
    assert (verdict.errors[1].given, verdict.errors[1].line) == ('at {"x": 21}', 1)
    hidden = pool.verify(task, crash.replace("21", "11"))
    assert [(error.where, error.line) for error in hidden.errors] == [(NOT_SHOWN, None)] * 2
    assert any('at {"x": 11}' in warning for warning in hidden.warnings)
    wrong = pool.verify(task, "long solve(long x) { return 3 * x; }\n")
    assert [error.kind for error in wrong.errors] == ["DATA"]


def test_an_explanation_that_fails_changes_no_verdict(pool):
    task = replace(TASK, target="compiled_target:UNEXPLAINING")
    verdict = pool.verify(task, "long solve(long x) { return *(volatile long *)8; }\n")
    assert (verdict.outcome, verdict.stage, len(verdict.errors)) == (Outcome.REFUSED, Stage.RUN, 1)
    assert "KeyError: 'a key'" in verdict.warnings[0]


def test_a_fault_of_the_runtime_gets_its_line_and_loses_it_at_hidden_sizes(pool):
    task = replace(HIDDEN, target="compiled_target:LOCATING")
    program = "long solve(long x) {\n  return x == 21 ? -2 : 2 * x;\n}\n"
    (error,) = pool.verify(task, program).errors
    assert (error.kind, error.line, error.text) == ("RUN", 2, "  return x == 21 ? -2 : 2 * x;")
    (hidden,) = pool.verify(task, program.replace("21", "11")).errors
    assert (hidden.where, hidden.line, hidden.text) == (NOT_SHOWN, None, "")


def test_words_that_cannot_be_located_stay_as_they_are(pool):
    task = replace(TASK, target="compiled_target:LOCATING")
    verdict = pool.verify(task, "long solve(long x) { return *(volatile long *)8; }\n")
    assert (verdict.outcome, verdict.stage, verdict.errors[0].line) == (Outcome.REFUSED, Stage.RUN, None)
    assert "could not be located: ValueError" in verdict.warnings[0]
    assert not pool.verify(task, "long solve(long x) { return -99; }\n").errors[0].line


def test_a_verdict_names_the_compiler_that_its_verifier_needs(pool):
    assert pool.verify(replace(TASK, target="compiled_target:VERSIONED"), RIGHT).verifier == "compiled-1 (gcc 99)"
