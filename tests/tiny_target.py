"""A second language, tiny but real: a stack calculator in postfix notation, in which every input is used at most once.

    copy x x1 x2        \\ x is used up; x1 and x2 have its value
    x1 y + x2 *         \\ (x + y) * x

A task gives each input's values, one per trial, and the values wanted. It goes through the whole loop (prompt, reply,
verdict, experience, selection) to show that nothing outside a target's folder knows STeP.

`TINY_PYTHON` has the same tasks and another language: Python that defines `solve`, with the inputs as its arguments. Its
candidates are executed.
"""

from __future__ import annotations

import ast
import json
import operator
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml

from opsmith.records import CYCLES, OFF_CHIP_BYTES, ON_CHIP_BYTES, Diagnostic, Stage, Task, content_hash
from opsmith.targets import TARGETS, TaskFault, Trial, TrialResult
from opsmith.targets.interpreted import Case, Interpreted, ProgramError
from opsmith.targets.protocols import GUARDIAN

BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "max": max,
}
BASE_PROMPT = """\
language: >
  Postfix notation. Words: names of inputs, + - * / max. Every name is used at most once; a line `copy x a b` uses up x
  and makes a and b. A backslash opens a comment.
answer: a YAML mapping with the program under impl
examples:
- inputs: {p: [1, 2], q: [3, 5]}
  want: [4, 7]
  impl: |
    p q +
"""
GUARDIAN_PROMPT = """\
job: make every name of the program under input_impl be used at most once, by lines `copy x a b` in front of it
"""


@dataclass(frozen=True)
class Program:
    copies: tuple[tuple[str, str, str], ...]
    words: tuple[str, ...]


@lru_cache(maxsize=256)
def read_yaml(text: str) -> Any:
    return yaml.safe_load(text)


def parse(source: str) -> Program:
    """The program of a text. Raises ProgramError with its first mistake."""
    copies: list[tuple[str, str, str]] = []
    words: list[str] = []
    for number, raw in enumerate(source.splitlines(), 1):
        line = raw.partition("\\")[0].split()
        if line[:1] == ["copy"] and len(line) == 4 and not words:
            copies.append((line[1], line[2], line[3]))
            continue
        for word in line:
            if word == "copy" or (word not in BINARY and not word.isidentifier()):
                finding = Diagnostic("LANG", "word", word, "a name or one of + - * / max", line=number, text=raw)
                raise ProgramError("PARSE", finding)
            words.append(word)
    if not words:
        raise ProgramError("PARSE", Diagnostic("LANG", "program", "nothing", "words"))
    return Program(tuple(copies), tuple(words))


class Tiny(Interpreted):
    name = "tiny"
    verifier = "tiny-1"
    prompt = BASE_PROMPT
    comment = "\\"
    stages = ("PARSE", "TYPE", "AFFINE")
    task_keys = ("inputs", "want")
    repaired_stage = "AFFINE"

    def base_prompt(self, role: str) -> str | None:
        return GUARDIAN_PROMPT if role == GUARDIAN else super().base_prompt(role)

    def parse_program(self, task: Task, source: str) -> Program:
        program = parse(source)
        refuse_untyped(program, read_yaml(task.text)["inputs"])
        if errors := find_reuses(program):
            raise ProgramError("AFFINE", *errors)
        return program

    def list_trials(self, task: Task) -> Sequence[Trial]:
        data = read_yaml(task.text)
        lengths = {len(values) for values in [*data["inputs"].values(), data["want"]]}
        if len(lengths) != 1:
            raise TaskFault(Diagnostic("TASK", "inputs", f"lists of {sorted(lengths)} values", "lists of one length"))
        rows = zip(*data["inputs"].values(), strict=True)
        inputs = [dict(zip(data["inputs"], row, strict=True)) for row in rows]
        return [Trial(f"trial {i}", Case(row, data["want"][i])) for i, row in enumerate(inputs)]

    def evaluate_program(self, program: Program, inputs: Mapping[str, int]) -> int:
        values = dict(inputs)
        for name, *both in program.copies:
            values.update(dict.fromkeys(both, values[name]))
        stack: list[int] = []
        for word in program.words:
            stack.append(BINARY[word](*(stack.pop(-2), stack.pop())) if word in BINARY else values[word])
        return stack[0]

    def canonical_form(self, source: str) -> str:
        program = parse(source)
        origin = {new: origin for origin, *both in program.copies for new in both}
        return " ".join(find_origin(word, origin) for word in program.words)

    def repair_program(self, task: Task, source: str) -> str | None:
        try:
            program = parse(source)
        except ProgramError:
            return None
        if program.copies or not find_reuses(program):
            return None
        lines, words = [], list(program.words)
        for name, uses in Counter(word for word in words if word not in BINARY).items():
            last = name
            for use in range(1, uses):
                lines.append(f"copy {last} {name}_{use} {name}_{use}r")
                words[words.index(name)] = f"{name}_{use}"
                last = f"{name}_{use}r"
            if uses > 1:
                words[words.index(name)] = last
        return "\n".join([*lines, " ".join(words)]) + "\n"

    def problem_digest(self, task: Task) -> str:
        return content_hash("tiny", task.text)

    def adapt_task(self, task: Task) -> Task:
        return replace(self.read_task(task.text, task.id, task.path), group=task.group)

    def write_script(self, task: Task, source: str) -> str:
        return f"# {task.id}\n{source}"

    objectives = (CYCLES, ON_CHIP_BYTES, OFF_CHIP_BYTES)

    def estimate_cost(self, task: Task, source: str) -> Mapping[str, Any]:
        words = len(source.split())
        return {"words": words, "cycles": 10 * words}

    def make_sampler(self) -> Tiny:
        return self

    def fit_policy(self, examples: Sequence[tuple[Task, str]]) -> TinyPolicy:
        return TinyPolicy(tuple(program for _, program in examples))


def find_origin(word: str, origin: Mapping[str, str]) -> str:
    while word in origin:
        word = origin[word]
    return word


def refuse_untyped(program: Program, inputs: Mapping[str, Any]) -> None:
    """Raises ProgramError for unknown names, and a stack that does not end with one value."""
    names = {*inputs, *(new for _, *both in program.copies for new in both)}
    unknown = [word for word in program.words if word not in BINARY and word not in names]
    depths = list(accumulate(1 if word not in BINARY else -1 for word in program.words))
    if unknown:
        raise ProgramError("TYPE", Diagnostic("TYPE", "name", unknown[0], f"one of {', '.join(sorted(names))}"))
    if depths[-1] != 1 or min(depths) < 1:
        raise ProgramError("TYPE", Diagnostic("TYPE", "stack", f"{depths[-1]} values at the end", "one value"))


def find_reuses(program: Program) -> list[Diagnostic]:
    used = Counter([*(word for word in program.words if word not in BINARY), *(name for name, *_ in program.copies)])
    twice = [name for name, count in used.items() if count > 1]
    return [Diagnostic("AFFINE", "name", f"{name} {used[name]} times", "once", f"copy {name} a b") for name in twice]


@dataclass(frozen=True)
class TinyPolicy:
    """Draws operators as often as its examples use them, and now and then a whole example as a part."""

    examples: tuple[str, ...]

    def sample_program(self, task: Task, temperature: float, rng: random.Random) -> str:
        shapes = [TINY.canonical_form(example).split() for example in self.examples]
        seen = Counter(word for shape in shapes for word in shape if word in BINARY)
        weights = [0.3 + 3.0 * seen[word] / (1 + sum(seen.values())) for word in BINARY]
        names = list(read_yaml(task.text)["inputs"])
        return " ".join(_Draw(names, shapes, weights, rng).expression(0.6 + 0.4 * temperature)) + "\n"


@dataclass
class _Draw:
    """One program in the making."""

    names: list[str]
    shapes: list[list[str]]
    weights: list[float]
    rng: random.Random
    unused: list[str] = field(default_factory=list)

    def name(self) -> str:
        """An input, rarely one that was used already."""
        if not self.unused or self.rng.random() < 0.1:
            self.unused = self.rng.sample(self.names, len(self.names))
        return self.unused.pop()

    def expression(self, grow: float) -> list[str]:
        if self.rng.random() > grow:
            return [self.name()]
        left = self.example() if self.shapes and self.rng.random() < 0.6 else self.expression(grow * 0.7)
        return [*left, *self.expression(grow * 0.7), *self.rng.choices(list(BINARY), self.weights)]

    def example(self) -> list[str]:
        shape = self.rng.choice(self.shapes)
        names = {word: self.name() for word in dict.fromkeys(shape) if word not in BINARY}
        return [names.get(word, word) for word in shape]


class TinyPython(Tiny):
    """Programs are Python, so they run in processes of their own (the `Executed` protocol)."""

    name = "tiny_python"
    comment = "#"
    stages = ("PARSE", "TYPE")

    def parse_program(self, task: Task, source: str) -> Any:
        try:
            names = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        except (SyntaxError, ValueError) as error:
            raise ProgramError("PARSE", Diagnostic("LANG", "program", str(error), "Python")) from error
        if "solve" not in names:
            raise ProgramError("TYPE", Diagnostic("TYPE", "program", f"functions {names}", "a function `solve`"))
        return source

    def read_program(self, task: Task, text: str) -> str | None:
        return text if self.check_program(task, text).stage == Stage.RUN else None

    def evaluate_program(self, program: Any, inputs: Mapping[str, int]) -> int:
        raise RuntimeError("a candidate of this language never runs where its task is known")

    def canonical_form(self, source: str) -> str:
        return ast.unparse(ast.parse(source))

    def runtime_paths(self) -> Sequence[Path]:
        return ()

    def encode_inputs(self, trial: Trial) -> bytes:
        return json.dumps(trial.data.inputs).encode()

    def execute_program(self, source: str, inputs: bytes) -> bytes:
        namespace: dict[str, Any] = {}
        exec(source, namespace)
        return json.dumps(namespace["solve"](**json.loads(inputs))).encode()

    def compare_outputs(self, trial: Trial, outputs: bytes) -> TrialResult:
        try:
            value = json.loads(outputs)
        except ValueError:
            value = None
        if type(value) is not int:
            return TrialResult(Stage.RUN, (Diagnostic("OUT", trial.name, repr(outputs[:80]), "an integer"),))
        return self.compare_value(trial, value)


TINY = Tiny()
TINY_PYTHON = TinyPython()


def tiny_task(task_id: str, solution: str, *, seed: int = 0, trials: int = 4) -> Task:
    """A task whose wanted values are those of `solution` (its inputs are the names in it)."""
    program = parse(solution)
    rng = random.Random(f"{task_id} {seed}")
    names = sorted({word for word in program.words if word not in BINARY})
    rows = [{name: rng.randint(1, 50) for name in names} for _ in range(trials)]
    inputs = {name: [row[name] for row in rows] for name in names}
    data = {"inputs": inputs, "want": [TINY.evaluate_program(program, row) for row in rows], "impl": solution}
    return TINY.read_task(yaml.safe_dump(data, sort_keys=False), task_id)


def register() -> None:
    """Make the target known by its name, in this process."""
    TARGETS["tiny"] = lambda: TINY
