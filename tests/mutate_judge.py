"""Mutation of the judge: small faults are put into its code one by one; does a test that runs the line notice?

    python tests/mutate_judge.py                       # the pure modules whole, 400 mutants of judging: hours on a core
    python tests/mutate_judge.py problems/compare      # one module whole; what was tried before is not tried again
    python tests/mutate_judge.py --write experiments/judge-mutation.md     # the page, from all that was tried

Each mutant is a copy of src/ with one file changed. A process that holds torch and pytest forks for each; the fork
imports that copy, as the workers do that it starts, and runs the tests that reach the changed lines, the likeliest
killers first, until one fails. Which tests reach which lines is traced once, in workers and candidates too. What a
quick test of one process can kill is tried before that, by new code for a function in a fork that has read all tests.

Not mutated: annotations, docstrings, texts of messages, assertions (`strict=True` among them). Survivors that are explained, as equivalent to the
original or as words for people alone, stand in EXPLAINED by the text of their change, so that a rewritten line asks anew.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import hashlib
import json
import math
import mmap
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/opsmith"
STATE = Path(tempfile.gettempdir()) / f"opsmith-mutants-{os.getuid()}{str(ROOT).replace(os.sep, '-')}"
EXPLAINED = ROOT / "tests/mutants_explained.toml"
PURE = [
    *(f"problems/{name}" for name in ("compare", "tolerance", "native_limits")),
    *(f"problems/{name}" for name in ("hidden_sizes", "size_kinds", "scalar_draws")),
    *(f"measuring/{name}" for name in ("claims", "intervals", "pairs")),
]
FOLDERS = "judging problems measuring targets/native targets/step targets/command suites executors security"
FURTHER = """profiling/test_texts.py report/test_run_speeds.py results/test_bests.py results/test_optimisation.py
cli/test_verify_command.py cli/test_check_command.py learn/test_loop.py mcp/test_service.py"""
HITS = "PYTHON_MUTANTS_HITS"  # a name that workers' environments keep
TIMED_OUT, BROKEN = 99, 98  # exit codes
FIRST_S = 2.0  # of tests, before the others are read
QUICK_S = 2.5  # of tests in this process
SLACK_S, FACTOR = 40.0, 4.0  # a test's limit: its own seconds times this, and this more


# -- mutants


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    module: str  # problems/compare
    place: str  # the function
    line: int
    lines: tuple[int, ...]  # whose tests are asked; (): those of the whole file
    kind: str
    before: str
    after: str
    number: int  # among those of the same place and words
    text: str  # the whole file

    @property
    def name(self) -> str:
        return f"{self.place}: {self.before} -> {self.after}" + (f" #{self.number}" if self.number else "")

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.module}\n{self.text}".encode()).hexdigest()[:16]


_COMPARED: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
_COMPUTED: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_TWINS = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor", "minimum": "maximum"}
_TWINS |= {"maximum": "minimum", "zeros_like": "ones_like", "argmax": "argmin", "startswith": "endswith"}
_SYMMETRIC = {"min", "max", "minimum", "maximum", "hypot", "equal"}
_DROPPED = {"abs", "sorted", "list", "set", "tuple", "round", "sqrt", "reversed", "isfinite"}
_COMPOUND = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try)
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def change_expression(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The kinds of a change and what stands in the expression's place."""
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                for other in _COMPARED[type(operator)]:
                    changed = copy.deepcopy(node)
                    changed.ops[index] = other()
                    yield "comparison", changed
        case ast.BoolOp():
            yield "and, or", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
            for index in range(len(node.values)):
                left = node.values[:index] + node.values[index + 1 :]
                yield "condition", ast.BoolOp(node.op, left) if left[1:] else left[0]
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield "not, sign", node.operand
        case ast.BinOp() if type(node.op) in _COMPUTED:
            yield "arithmetic", ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right)
        case ast.Constant(value=bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield "constant", ast.Constant(value + 1)
            yield "constant", ast.Constant(value - 1)
        case ast.Constant(value=float() as value):
            yield "constant", ast.Constant(value * 2 if value else 1.0)
            yield "constant", ast.Constant(value / 2 if value else -1.0)
        case ast.IfExp():
            yield "condition", node.body
            yield "condition", node.orelse
        case ast.Call():
            yield from _change_call(node)


def _change_call(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in _TWINS:
        changed = copy.deepcopy(node)
        if isinstance(changed.func, ast.Attribute):
            changed.func.attr = _TWINS[name]
        else:
            changed.func = ast.Name(_TWINS[name])
        yield "call", changed
    if name in _DROPPED and len(node.args) <= 1:
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) and not node.args else node.args
        yield from (("call", argument) for argument in receiver)
    if (
        len(node.args) > 1
        and name not in _SYMMETRIC
        and not any(isinstance(argument, ast.Starred) for argument in node.args[:2])
    ):
        yield "arguments", ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)
    for keyword in node.keywords:
        if keyword.arg and keyword.arg != "strict" and name != "dataclass":
            left = [other for other in node.keywords if other is not keyword]
            yield "arguments", ast.Call(node.func, node.args, left)


def change_statement(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The same for a statement; the test of a compound one is an expression."""
    match node:
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            yield "statement", "if 0: yield"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            yield "statement", "pass"
        case ast.AugAssign():
            yield "statement", "pass"
            if type(node.op) in _COMPUTED:
                yield "arithmetic", ast.unparse(ast.AugAssign(node.target, _COMPUTED[type(node.op)](), node.value))
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement", "pass"
        case ast.Continue():
            yield "statement", "break"
        case ast.Break():
            yield "statement", "continue"
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield "return", "return None"
            if isinstance(value, ast.Tuple | ast.List | ast.ListComp | ast.Dict):
                yield "return", "return ()"


def list_mutants(module: str) -> list[Mutant]:
    """All of a module, in the order of its text, each once."""
    text = (PACKAGE / f"{module}.py").read_text("utf-8")
    data = text.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    mutants, names, texts = [], Counter[tuple[str, ...]](), {text}

    def add(node: Any, place: str, lines: tuple[int, ...], kind: str, after: str) -> None:
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        changed = data[:begin] + after.encode() + data[end:]
        before = " ".join(ast.unparse(node).split())
        after = " ".join(after.split())
        if changed.decode() in texts:
            return
        compile(changed, module, "exec")
        texts.add(changed.decode())
        number = names[place, before, after]
        names[place, before, after] += 1
        mutants.append(Mutant(module, place, node.lineno, lines, kind, before, after, number, changed.decode()))

    for node, place, lines, is_test in _walk_code(ast.parse(text)):
        for kind, expression in change_expression(node):
            add(node, place, lines, kind, f"({ast.unparse(ast.fix_missing_locations(expression))})")
        for kind, statement in change_statement(node):
            add(node, place, lines, kind, statement)
        if is_test:
            for value in ("True", "False"):
                add(node, place, lines, "condition", value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            add(node, place, lines, "constant", repr(f"{node.value}-"))
    return mutants


def _walk_code(tree: ast.Module) -> Iterator[tuple[ast.AST, str, tuple[int, ...], bool]]:
    """What may be changed: nodes, their function, the lines that show that they run, whether one is a condition."""

    def visit(node: ast.AST, place: str, lines: tuple[int, ...], is_test: bool) -> Iterator[Any]:
        if isinstance(node, ast.stmt):
            if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert) or _is_for_types(node):
                return
            if isinstance(node, _DEFINING):
                place = f"{place}.{node.name}" if place else node.name
            last = node.body[0].lineno - 1 if isinstance(node, _COMPOUND) else node.end_lineno or 0
            lines = () if isinstance(node, _DEFINING) or not place else tuple(range(node.lineno, last + 1)) or lines
        if isinstance(node, ast.JoinedStr) or _is_message(node):
            return
        if isinstance(node, ast.keyword) and node.arg == "strict":  # an assertion of zip
            return
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)) or is_test is None:
            yield node, place, lines, is_test is True
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or name in {"annotation", "returns", "decorator_list", "bases"}:
                    continue
                is_condition = (name == "test" and isinstance(node, ast.If)) or name == "ifs"
                # None: a text that is compared or looked up, and no words of a message
                is_key = isinstance(child, ast.Constant) and isinstance(node, ast.Compare | ast.Subscript)
                yield from visit(child, place, lines, None if is_key else is_condition)

    return visit(tree, "", (), False)


def _is_for_types(node: ast.stmt) -> bool:
    """Checks and aliases of types, and docstrings."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Expr(value=ast.Constant()):
            return True
        case (
            ast.Assign(value=ast.Subscript(value=ast.Name())) | ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar")))
        ):
            return True
    return False


def _is_message(node: ast.AST) -> bool:
    """The making of an error, whose arguments are words, or of a line of a log."""
    name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return name.endswith(("Error", "logger.warning", "log.warning"))


# -- which tests reach which lines


class Hits:
    """A byte for each line of the modules, shared by all processes of a test."""

    def __init__(self, source: Path, file: Path) -> None:
        self.bases: dict[str, int] = {}
        self.modules: list[tuple[str, int, int]] = []
        size = 0
        for module in [*PURE, *list_judging()]:
            path = source / f"opsmith/{module}.py"
            length = len(path.read_text("utf-8").splitlines()) + 1
            self.bases[str(path)] = size
            self.modules.append((module, size, size + length))
            size += length
        if not file.exists():
            file.write_bytes(bytes(size))
        with file.open("r+b") as opened:
            self.bytes = mmap.mmap(opened.fileno(), size)

    def trace(self) -> None:
        import threading

        tracers = {name: self._make_tracer(base) for name, base in self.bases.items()}

        def start(frame: FrameType, event: str, argument: Any) -> Any:
            return tracers.get(frame.f_code.co_filename)

        threading.settrace(start)
        sys.settrace(start)

    def _make_tracer(self, base: int) -> Any:
        marks = self.bytes

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                marks[base + frame.f_lineno] = 1
            return trace

        return trace

    def read(self) -> dict[str, list[int]]:
        lines = {
            module: [line for line, mark in enumerate(self.bytes[begin:end]) if mark]
            for module, begin, end in self.modules
        }
        self.bytes[:] = bytes(len(self.bytes))
        return {module: numbers for module, numbers in lines.items() if numbers}


def start_tracing() -> None:
    """Called by `sitecustomize` in processes that a traced test starts."""
    if HITS in os.environ:
        source, file = os.environ[HITS].split(os.pathsep)
        Hits(Path(source), Path(file)).trace()


def list_judging() -> list[str]:
    return sorted(f"judging/{path.stem}" for path in (PACKAGE / "judging").glob("[!_]*.py"))


class Recorder:
    """A plugin of pytest: seconds and lines of every test that passes."""

    def __init__(self, hits: Hits) -> None:
        self.hits, self.tests, self.failed = hits, {}, []  # type: ignore[var-annotated]
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        lines = self.hits.read()
        if lines and nodeid not in self.failed:
            self.tests[nodeid] = {"seconds": self.seconds[nodeid], "lines": lines}


def collect_coverage(slot: Path, again: Sequence[str]) -> dict[str, Any]:
    """By test: its seconds and the lines that it reaches. Of these folders and files anew."""
    file = STATE / "coverage.json"
    known: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    folders = again if known else f"{FOLDERS} {FURTHER}".split()
    if not folders:
        return known
    hits_file = STATE / "hits"
    hits_file.unlink(missing_ok=True)
    (slot / "src/sitecustomize.py").write_text("from mutate_judge import start_tracing\n\nstart_tracing()\n", "utf-8")
    child = os.fork()
    if not child:
        enter_slot(slot, STATE / "coverage.txt")
        hits = Hits(slot / "src", hits_file)
        os.environ[HITS] = f"{slot / 'src'}{os.pathsep}{hits_file}"
        hits.trace()
        recorder = Recorder(hits)
        import pytest

        code = pytest.main([*OPTIONS, f"--basetemp={slot / 'tmp'}", *(f"tests/{name}" for name in folders)], [recorder])
        traced = tuple(f"tests/{name}" for name in folders)
        older = {name: test for name, test in known.items() if not name.startswith(traced)}
        print(f"exit code {int(code)}; failed: {recorder.failed}", flush=True)
        file.write_text(json.dumps(older | recorder.tests), "utf-8")
        os._exit(0)
    os.waitpid(child, 0)
    (slot / "src/sitecustomize.py").unlink()
    print((STATE / "coverage.txt").read_text("utf-8")[-300:], flush=True)
    return dict(json.loads(file.read_text("utf-8")))


# -- running


OPTIONS = ["-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-W", "ignore::pytest.PytestAssertRewriteWarning"]


def make_slot(number: int) -> Path:
    """A copy of src/ of its own, with what was compiled."""
    slot = STATE / f"slot{number}"
    shutil.rmtree(slot, ignore_errors=True)
    shutil.copytree(ROOT / "src", slot / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    return slot


def enter_slot(slot: Path, output: Path) -> None:
    """In a fork: from here on `opsmith` is the slot's, here and in what is started here."""
    os.setsid()
    os.chdir(ROOT)
    log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.path[:0] = [str(slot / "src"), str(ROOT / "tests")]
    os.environ["PYTHONPATH"] = f"{slot / 'src'}{os.pathsep}{ROOT / 'tests'}"
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(slot / "hypothesis")


class Chooser:
    """A plugin of pytest: the tests of one mutant in their order, each with its limit. It writes who failed."""

    def __init__(self, tests: Sequence[tuple[str, float]], output: Path) -> None:
        self.tests, self.output = dict(tests), output

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in self.tests if name in by_name]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        def give_up(number: int, frame: Any) -> None:
            self.output.write_text(nodeid, "utf-8")
            os._exit(TIMED_OUT)

        signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_REAL, FACTOR * self.tests.get(nodeid, 1.0) + SLACK_S)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.output.write_text(report.nodeid, "utf-8")


@dataclass
class Run:
    """A fork at work on a mutant."""

    mutant: Mutant
    slot: Path
    end: float
    begin: float
    further: list[tuple[str, float]]  # tests to run if these pass
    share: float  # how many there are at once


class Killing:
    """Mutants against their tests, in as many slots at once as are given."""

    def __init__(self, slots: list[Path], tests: dict[str, Any], options: argparse.Namespace) -> None:
        self.free, self.tests, self.budget, self.is_quick = slots, tests, options.budget, options.quick
        self.killers: dict[str, Counter[str]] = defaultdict(Counter)  # by module
        self.running: dict[int, Run] = {}
        self.stamp = int(time.time())
        self.results = {
            key: row
            for key, row in read_results().items()
            if row["state"] in DETECTED or not options.again or options.again not in row["name"]
        }

    def choose_tests(self, mutant: Mutant) -> list[tuple[str, float]]:
        """Those that reach it: the best killers of its module, then file by file, the quickest first."""
        lines = set(mutant.lines)
        names = {
            name: test["seconds"]
            for name, test in self.tests.items()
            if mutant.module in test["lines"] and (not lines or lines & set(test["lines"][mutant.module]))
        }
        first = [name for name, _ in self.killers[mutant.module].most_common(6) if names.get(name, 9.0) < 3.0]
        by_file = [list(group) for _, group in groupby(sorted(names), key=lambda name: name.partition("::")[0])]
        room = mutant.module.partition("/")[0]
        by_file.sort(
            key=lambda group: (
                not group[0].startswith(f"tests/{room}/"),
                sum(names[name] for name in group) / len(group),
            )
        )
        rest = [name for group in by_file for name in sorted(group, key=names.__getitem__) if name not in first]
        return [(name, names[name]) for name in [*first, *rest]]

    def run_all(self, mutants: Sequence[Mutant]) -> None:
        waiting = [mutant for mutant in mutants if mutant.key not in self.results]
        print(f"{len(mutants)} mutants, {len(waiting)} to try", flush=True)
        by_module = sorted(waiting, key=lambda mutant: mutant.module)
        for _, group in groupby(by_module, key=lambda mutant: mutant.module):
            self._kill_in_place(list(group))
        self.results = read_results()
        waiting = [mutant for mutant in waiting if self.results.get(mutant.key, {}).get("state") not in DETECTED]
        print(f"{len(waiting)} are left", flush=True)
        if self.is_quick:
            for mutant in waiting:
                self.note(mutant, "survived", "", 0.0, 0)
            return
        for mutant in waiting:
            tests, seconds = [], 0.0
            for name, own in self.choose_tests(mutant):
                seconds += own
                if seconds <= self.budget or not tests:
                    tests.append((name, own))
            if not tests:
                self.note(mutant, "unreached", "", 0.0, 0)
                continue
            while not self.free:
                self._wait()
            self._start(mutant, tests)
        while self.running:
            self._wait()

    def _kill_in_place(self, mutants: Sequence[Mutant]) -> None:
        """Most mutants fall to a test of one process: they need neither a copy nor a worker."""
        child = os.fork()
        if not child:
            slot = self.free[0]
            enter_slot(slot, slot / "output")
            import pytest

            chosen = [(mutant, self._choose_quick(mutant)) for mutant in mutants if mutant.lines or not mutant.place]
            files = sorted({name.partition("::")[0] for _, tests in chosen for name in tests})
            if files:
                pytest.main([*OPTIONS, f"--basetemp={slot / 'tmp'}", "--tb=line", *files], [InPlace(self, chosen)])
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)

    def _choose_quick(self, mutant: Mutant) -> list[str]:
        seconds, chosen = 0.0, []
        for name, own in self.choose_tests(mutant):
            if own < 0.5 and seconds < QUICK_S:
                seconds += own
                chosen.append(name)
        return chosen

    def _start(self, mutant: Mutant, tests: list[tuple[str, float]], share: float = 1.0) -> None:
        """A few tests first, since most mutants fall to them, and reading files of tests costs more than they do."""
        files, seconds, size = set[str](), 0.0, 0
        while size < len(tests) and (not size or (len(files) <= 3 * share and seconds < FIRST_S * share)):
            files.add(tests[size][0].partition("::")[0])
            seconds += tests[size][1]
            size += 1
        tests, further = tests[:size], tests[size:]
        slot = self.free.pop()
        file = slot / f"src/opsmith/{mutant.module}.py"
        file.write_text(mutant.text, "utf-8")
        self.stamp += 1  # compiled files are told apart by whole seconds
        os.utime(file, (self.stamp, self.stamp))
        (slot / "killer").unlink(missing_ok=True)
        begin = time.monotonic()
        child = os.fork()
        if not child:
            run_tests(slot, tests)
        end = begin + 60 + 2 * FACTOR * sum(own for _, own in tests)
        self.running[child] = Run(mutant, slot, end, begin, further, share)

    def _wait(self) -> None:
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child in self.running:
                break
            for late in [pid for pid, run in self.running.items() if time.monotonic() > run.end]:
                os.kill(late, signal.SIGKILL)
            time.sleep(0.02)
        run = self.running.pop(child)
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what its tests left behind
        killer = (run.slot / "killer").read_text("utf-8") if (run.slot / "killer").exists() else ""
        state = {0: "survived", TIMED_OUT: "timed out", -signal.SIGKILL: "timed out"}.get(code, "killed")
        shutil.copy2(PACKAGE / f"{run.mutant.module}.py", run.slot / f"src/opsmith/{run.mutant.module}.py")
        self.free.append(run.slot)
        if code in (5, BROKEN):  # no tests
            print("BROKEN", run.mutant.name, (run.slot / "output").read_text()[-2000:], flush=True)
            return
        if state == "survived" and run.further:
            self._start(run.mutant, run.further, 5 * run.share)
            return
        if state == "killed" and killer:
            self.killers[run.mutant.module][killer] += 1
        self.note(run.mutant, state, killer, time.monotonic() - run.begin, code)

    def note(self, mutant: Mutant, state: str, killer: str, seconds: float, code: int) -> None:
        row = {"key": mutant.key, "module": mutant.module, "line": mutant.line, "kind": mutant.kind}
        row |= {"name": mutant.name, "state": state, "killer": killer, "seconds": round(seconds, 2), "code": code}
        self.results[mutant.key] = row
        with (STATE / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if state != "killed":
            print(f"{state}: {mutant.module}.py:{mutant.line} {mutant.name}", flush=True)


class InPlace:
    """A plugin of pytest that forks for every mutant once all tests are read, and gives the loaded function its code."""

    def __init__(self, killing: Killing, chosen: Sequence[tuple[Mutant, list[str]]]) -> None:
        self.killing, self.chosen = killing, chosen

    def pytest_runtestloop(self, session: Any) -> bool:
        items = {item.nodeid: item for item in session.items}
        if session.testsfailed:
            raise SystemExit(f"{session.testsfailed} files of tests cannot be read")
        for mutant, names in self.chosen:
            begin = time.monotonic()
            child = os.fork()
            if not child:
                self._run(session, mutant, [items[name] for name in names if name in items])
            while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < begin + 20:
                time.sleep(0.005)
            if not ended[0]:
                os.kill(child, signal.SIGKILL)
                ended = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(ended[1])
            killer = self.killing.free[0] / "killer"
            if code == 1:
                self.killing.note(mutant, "killed", killer.read_text("utf-8"), time.monotonic() - begin, code)
        return True

    def _run(self, session: Any, mutant: Mutant, items: Sequence[Any]) -> None:
        code = BROKEN
        try:
            code = 0
            if replace_code(mutant):
                for item, following in zip(items, [*items[1:], None], strict=True):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    if session.testsfailed:
                        (self.killing.free[0] / "killer").write_text(item.nodeid, "utf-8")
                        code = 1
                        break
        finally:
            os._exit(code)


def replace_code(mutant: Mutant) -> bool:
    """Give the function that holds the change its new code, in the loaded module. False: it is none."""
    name = f"opsmith.{mutant.module.replace('/', '.')}"
    owner: Any = sys.modules.get(name) or __import__(name, fromlist=["_"])
    code = compile(mutant.text, owner.__file__, "exec")
    if not mutant.place:  # a constant: functions that are loaded read the new one
        namespace = dict(vars(owner))
        exec(code, namespace)
        constants = {name: value for name, value in namespace.items() if not callable(value) and name[:2] != "__"}
        vars(owner).update(constants)
        return True
    for part in mutant.place.split("."):
        owner = vars(owner)[part]
        code = next(const for const in code.co_consts if getattr(const, "co_name", None) == part)
        while not isinstance(owner, type) and not hasattr(owner, "__code__"):
            owner = next(getattr(owner, at) for at in ("__wrapped__", "func", "fget", "__func__") if hasattr(owner, at))
        if hasattr(owner, "__code__"):
            getattr(owner, "__wrapped__", owner).__code__ = code
            return True
    return False


def run_tests(slot: Path, tests: Sequence[tuple[str, float]]) -> None:
    """In a fork; its exit code says what became of the mutant."""
    code = BROKEN
    try:
        enter_slot(slot, slot / "output")
        import pytest

        files = list(dict.fromkeys(name.partition("::")[0] for name, _ in tests))
        chooser = Chooser(tests, slot / "killer")
        code = int(pytest.main([*OPTIONS, "-x", f"--basetemp={slot / 'tmp'}", "--tb=line", *files], [chooser]))
    finally:
        sys.stdout.flush()
        os._exit(code)


def read_results() -> dict[str, Any]:
    """The last word on each mutant."""
    file = STATE / "results.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    return {row["key"]: row for row in rows}


# -- the sample and the page


def draw_sample(modules: Sequence[str], number: int, seed: int) -> list[Mutant]:
    """Mutants of all modules and kinds, as many of each as its share, but one at least."""
    strata: dict[tuple[str, str], list[Mutant]] = defaultdict(list)
    for module in modules:
        for mutant in list_mutants(module):
            strata[module, mutant.kind].append(mutant)
    total = sum(map(len, strata.values()))
    source = random.Random(seed)
    chosen = [
        source.sample(mutants, max(1, math.ceil(number * len(mutants) / total)))
        for _, mutants in sorted(strata.items())
    ]
    sample = [mutant for mutants in chosen for mutant in mutants]
    source.shuffle(sample)  # what is tried first is a sample as well
    return sample


def bound_share(part: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z = 1.959964
    middle, spread = part + z * z / 2, z * math.sqrt(part * (total - part) / total + z * z / 4)
    return (middle - spread) / (total + z * z), (middle + spread) / (total + z * z)


EQUIVALENT = "equivalent"  # what an explanation of EXPLAINED begins with: no test can tell the two apart
OTHERS = ("words", "speed", "spare", "open")  # ... of hints alone, of time alone, a second guard behind another, a hole


def write_page(mutants: Sequence[Mutant], options: argparse.Namespace) -> str:
    """The counts by file, and a line for each survivor."""
    results, explained = read_results(), tomllib.loads(EXPLAINED.read_text("utf-8"))
    rows = [(mutant, results[mutant.key]["state"]) for mutant in mutants if mutant.key in results]
    why = {mutant.key: explained.get(mutant.module, {}).get(mutant.name, "not explained") for mutant, _ in rows}
    groups = [(f"`{module}`", [row for row in rows if row[0].module == module]) for module in PURE]
    sampled = [row for row in rows if row[0].module not in PURE]
    groups += [("**pure modules, whole**", [row for row in rows if row[0].module in PURE])]
    groups += [(f"`{module}`", [row for row in sampled if row[0].module == module]) for module in list_judging()]
    groups += [("**judging, sampled**", sampled), ("**all**", rows)]
    lines = [PAGE.format(sample=len(sampled), seed=options.seed, untried=len(mutants) - len(rows))]
    for label, group in groups:
        states = Counter(state for _, state in group)
        equivalent = sum(why[mutant.key].startswith(EQUIVALENT) for mutant, state in group if state not in DETECTED)
        detected, judged = sum(states[state] for state in DETECTED), len(group) - equivalent
        low, high = bound_share(detected, judged) if judged else (0.0, 1.0)
        score = f"{detected / judged:.1%} [{low:.1%}, {high:.1%}]" if judged else ""
        figures = (len(group), states["killed"], states["timed out"], equivalent, judged - detected, score)
        lines.append(f"| {label} | {' | '.join(map(str, figures))} |")
    for module in [*PURE, *list_judging()]:
        left = [mutant for mutant, state in rows if mutant.module == module and state not in DETECTED]
        lines += [f"\n### `{module}`\n"] if left else []
        lines += [f"- {mutant.line}, `{_shorten(mutant.name)}`: {why[mutant.key]}" for mutant in left]
    return "\n".join(lines) + "\n"


DETECTED = ("killed", "timed out")
PAGE = """# The judge judged

Small faults were put into the judge's own code, one at a time; the tests that reach the changed lines were run against
each. `make mutation` does it again (`tests/mutate_judge.py`, hours on one core), and writes this page.

The pure modules are mutated whole. Of `judging` a sample of {sample} mutants was drawn (seed {seed}), of every module
and every kind of change as many as its share. Kinds: comparisons and their borders, constants, `and` / `or` / `not`,
conditions that always or never hold, arithmetic, calls (`min` for `max`, none), arguments that are swapped or left out,
statements left out, results left out. Words of messages, annotations and assertions are not mutated. Not tried: {untried}.

*Score*: killed and timed out (a test never ended) of all that are not equivalent to the original, with Wilson's 95 %
interval; what survived is counted as missed whatever its reason, which stands below in a line.

| file | mutants | killed | timed out | equivalent | missed | score |
|---|---|---|---|---|---|---|"""


def _shorten(text: str) -> str:
    return (text if len(text) <= 170 else f"{text[:167]}...").replace("`", "'")


def main() -> int:
    options = read_options()
    STATE.mkdir(exist_ok=True)
    names = options.modules or [*PURE, "judging"]
    mutants = [mutant for module in names if module != "judging" for mutant in list_mutants(module)]
    if "judging" in names:
        mutants += draw_sample(list_judging(), options.sample, options.seed)
    if options.list:
        print(*(f"{mutant.module}.py:{mutant.line} {mutant.kind}: {mutant.name}" for mutant in mutants), sep="\n")
        print(len(mutants), Counter(mutant.module for mutant in mutants))
        return 0
    if options.write:
        Path(options.write).write_text(write_page(mutants, options), "utf-8")
        return 0
    import hypothesis  # noqa: F401 - before the forks
    import numpy as np  # noqa: F401
    import pytest  # noqa: F401
    import torch  # noqa: F401
    import yaml  # noqa: F401

    slots = [make_slot(number) for number in range(options.jobs)]
    tests = collect_coverage(slots[0], options.trace.split())
    print(f"{len(tests)} tests reach these modules", flush=True)
    Killing(slots, tests, options).run_all(mutants)
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", help="whole, but of `judging` a sample; none: all")
    parser.add_argument("--sample", type=int, default=300, help="and one at least of each file and kind")
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--budget", type=float, default=90.0, help="seconds of tests for one mutant, the quickest first"
    )
    parser.add_argument("--trace", default="", help="folders or files under tests/ whose tests are new or changed")
    parser.add_argument("--again", nargs="?", const=": ", help="try those again that survived [whose name has this]")
    parser.add_argument("--quick", action="store_true", help="what tests of one process can say, and no more")
    parser.add_argument("--list", action="store_true", help="say the mutants and try none")
    parser.add_argument("--write", help="the page, from what was tried")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
