"""Targets of one's own with a mistake in one method: `failing_target:check_program` fails there, and so on.

`failing_target:returns_run_programs` gives what is none of the protocol's, `failing_target:python_compare_outputs` executes its
candidates, and `failing_target:LACKING` has next to nothing; `failing_target:LEAST` has what every target has and no more.
"""

from functools import cache
from typing import Any

from tiny_target import TINY, Tiny, TinyPython


def fail(self: object, *given: object) -> Any:
    return {}["a key"]


PLACE = f"failing_target.py:{fail.__code__.co_firstlineno + 1}, in fail"


def return_nothing(self: object, *given: object) -> Any:
    return None


@cache
def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    base = TinyPython if name.startswith("python_") else Tiny
    method = name.removeprefix("python_").removeprefix("returns_")
    body = {method: return_nothing if "returns_" in name else fail}
    return type("Failing", (base,), {**body, "__module__": __name__})()


class Lacking:
    name = "lacking"
    verifier = "lacking-1"
    read_task = TINY.read_task
    check_program = TINY.check_program


class Least:
    name = "least"
    verifier = "least-1"
    comment = TINY.comment
    stages = TINY.stages
    read_task = TINY.read_task
    base_prompt = TINY.base_prompt
    read_program = TINY.read_program
    check_program = TINY.check_program
    list_trials = TINY.list_trials
    run_programs = TINY.run_programs


LACKING, LEAST = Lacking(), Least()
