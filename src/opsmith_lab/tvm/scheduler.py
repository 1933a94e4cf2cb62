"""MetaSchedule behind the `Scheduler` protocol: a right program and its sizes in, decisions or a program out."""

from __future__ import annotations

import ast
import atexit
import json
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from opsmith.errors import UsageError, VerifierError
from opsmith.running.nursery import Nursery, Services
from opsmith.running.sandbox import Sandbox
from opsmith.targets.tvm.source import DECORATOR, check_source, read_function
from opsmith_lab.tvm.blocks import write_blocks
from opsmith_lab.tvm.script import split_guard, write_guarded

_PLACE = "opsmith_lab.tvm.space"
_SERVICES = Services(f"{_PLACE}:load_space", "", {"candidate": f"{_PLACE}:serve_request"})
_LIMITS = Sandbox(memory=2 << 30)
_SECONDS, _LONGEST = 60.0, 1 << 24
_MISSING = "expected the packages of the extra; try: pip install 'opsmith[metaschedule]' (320 MB installed)"


class TvmScheduler:
    """Schedules of TVMScript programs. Raises UsageError where a package is missing."""

    def __init__(self) -> None:
        for package in ("tvm", "psutil"):
            if find_spec(package) is None:
                raise UsageError(f"schedules: package {package!r} is not installed; {_MISSING}")

    @cached_property
    def _nursery(self) -> Nursery:
        nursery = Nursery(_SERVICES)
        atexit.register(nursery.close)
        return nursery

    def list_choices(self, source: str, sizes: Mapping[str, int]) -> list[list[dict[str, Any]]]:
        choices: list[list[dict[str, Any]]] = self._ask(source, sizes, {"do": "list"}).get("choices", [])
        return choices

    def draw_decisions(
        self, source: str, sizes: Mapping[str, int], tried: Sequence[tuple[str, float | None]], seed: int
    ) -> str | None:
        entries = [[*json.loads(decisions), ratio] for decisions, ratio in tried]
        decisions = self._ask(source, sizes, {"do": "draw", "tried": entries, "seed": seed}).get("decisions")
        return None if decisions is None else json.dumps(decisions)

    def write_program(self, source: str, sizes: Mapping[str, int], decisions: str) -> str | None:
        answer = self._ask(source, sizes, {"do": "write", "decisions": json.loads(decisions)})
        if "text" not in answer:
            return None
        head, plain = _split_function(source)
        body = write_guarded(answer["text"], answer["factors"], plain)
        return _write_function(read_function(source), head, body)

    def _ask(self, source: str, sizes: Mapping[str, int], request: Mapping[str, Any]) -> dict[str, Any]:
        """What a confined fork answers; nothing where the program is none that can be scheduled."""
        text = write_schedulable(source)
        if text is None or self._nursery.missing:
            return {}
        process = self._nursery.fork_candidate(_LIMITS, "")
        deadline = time.monotonic() + _SECONDS
        try:
            process.channel.send(json.dumps({**request, "text": text, "sizes": dict(sizes)}).encode(), deadline)
            answer: dict[str, Any] = json.loads(process.channel.receive(_LONGEST, deadline))
        except (TimeoutError, EOFError, OSError, ValueError, VerifierError):
            return {}
        finally:
            self._nursery.kill(process)
        return answer


def write_schedulable(source: str) -> str | None:
    """The program with blocks in place of loops, without a schedule that it has; None: it cannot be scheduled."""
    if check_source(source):
        return None
    function, (head, plain) = read_function(source), _split_function(source)
    notes = (
        (each.arg, ast.unparse(each.annotation).removeprefix("T.")) for each in function.args.args if each.annotation
    )
    numbers = {name: dtype for name, dtype in notes if dtype != "handle"}
    body = write_blocks(head, plain, numbers)
    return None if body is None else _write_function(function, head, body)


def _split_function(source: str) -> tuple[list[ast.stmt], Sequence[ast.stmt]]:
    """What every program for the problem begins with, and what this one computes."""
    body = read_function(source).body
    count = sum(isinstance(row, ast.Assign) and "T.match_buffer(" in ast.unparse(row) for row in body)
    return body[:count], split_guard(body[count:])


def _write_function(function: ast.FunctionDef, head: Sequence[ast.stmt], body: str) -> str:
    rows = [*map(ast.unparse, head), *body.split("\n")]
    return "\n".join(
        [DECORATOR, f"def {function.name}({ast.unparse(function.args)}):", *(f"    {row}" for row in rows), ""]
    )
