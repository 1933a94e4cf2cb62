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
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from opsmith.errors import TaskError
from opsmith.records import Diagnostic, Stage, Task
from opsmith.targets import TARGETS, Checked, TaskFault, Trial, TrialResult

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


def parse(source: str) -> Program | Diagnostic:
    """The program of a text, or its first mistake."""
    copies: list[tuple[str, str, str]] = []
    words: list[str] = []
    for number, raw in enumerate(source.splitlines(), 1):
        line = raw.partition("\\")[0].split()
        if line[:1] == ["copy"] and len(line) == 4 and not words:
            copies.append((line[1], line[2], line[3]))
            continue
        for word in line:
            if word == "copy" or (word not in BINARY and not word.isidentifier()):
                return Diagnostic("LANG", "word", word, "a name or one of + - * / max", line=number, text=raw)
            words.append(word)
    return Program(tuple(copies), tuple(words)) if words else Diagnostic("LANG", "program", "nothing", "words")


class Tiny:
    name = "tiny"
    verifier = "tiny-1"
    comment = "\\"

    def read_task(self, text: str, task_id: str, path: str = "") -> Task:
        data = read_yaml(text)
        if not isinstance(data, dict) or not {"inputs", "want"} <= set(data):
            raise TaskError(f"{path or task_id}: expected a mapping with `inputs` and `want`")
        shown = {name: data[name] for name in ("inputs", "want")}
        body = yaml.safe_dump(shown, sort_keys=False, default_flow_style=None)
        return Task(task_id, self.name, body, data.get("impl"), path=path)

    def proposer_prompt(self) -> str:
        return BASE_PROMPT

    def guardian_prompt(self) -> str | None:
        return GUARDIAN_PROMPT

    def read_program(self, task: Task, text: str) -> str | None:
        return text.strip() + "\n" if isinstance(parse(text), Program) else None

    def check(self, task: Task, source: str) -> Checked:
        program = parse(source)
        if isinstance(program, Diagnostic):
            return Checked(Stage.PARSE, errors=(program,))
        inputs = read_yaml(task.text)["inputs"]
        for stage, errors in ((Stage.TYPE, _type_errors(program, inputs)), (Stage.AFFINE, _reuses(program))):
            if errors:
                return Checked(stage, errors=tuple(errors))
        return Checked(Stage.RUN, program)

    def trials(self, task: Task) -> Sequence[Trial]:
        data = read_yaml(task.text)
        lengths = {len(values) for values in [*data["inputs"].values(), data["want"]]}
        if len(lengths) != 1:
            raise TaskFault(Diagnostic("TASK", "inputs", f"lists of {sorted(lengths)} values", "lists of one length"))
        rows = zip(*data["inputs"].values(), data["want"], strict=True)
        names = list(data["inputs"])
        return [Trial(f"trial {i}", (dict(zip(names, row, strict=False)), row[-1])) for i, row in enumerate(rows)]

    def run(self, programs: Sequence[Any], trial: Trial) -> list[TrialResult | TaskFault]:
        return [self._run(program, trial) for program in programs]

    def _run(self, program: Program, trial: Trial) -> TrialResult:
        inputs, want = trial.data
        try:
            value = evaluate(program, inputs)
        except ZeroDivisionError:
            return TrialResult(Stage.RUN, (Diagnostic("RUN", trial.name, "a division by zero", "a number"),))
        if value != want:
            found = Diagnostic("DATA", trial.name, str(value), str(want))
            return TrialResult(Stage.MATCH, (found,), float(abs(value - want)))
        return TrialResult(Stage.MATCH, (), 0.0)

    def reference(self, trial: Trial) -> object:
        return trial.data[1]

    def canonical(self, source: str) -> str:
        program = parse(source)
        if isinstance(program, Diagnostic):
            raise ValueError(str(program))
        origin = {new: origin for origin, *both in program.copies for new in both}
        return " ".join(_origin(word, origin) for word in program.words)

    def repair(self, task: Task, source: str) -> str | None:
        program = parse(source)
        if isinstance(program, Diagnostic) or program.copies or not _reuses(program):
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

    def script(self, task: Task, source: str) -> str:
        return f"# {task.id}\n{source}"

    def cost(self, task: Task, source: str) -> Mapping[str, Any]:
        return {"words": len(source.split())}

    def sampler(self) -> TinySampler:
        return TinySampler()


def _origin(word: str, origin: Mapping[str, str]) -> str:
    while word in origin:
        word = origin[word]
    return word


def _type_errors(program: Program, inputs: Mapping[str, Any]) -> list[Diagnostic]:
    """Unknown names, and a stack that does not end with one value."""
    known = {*inputs, *(new for _, *both in program.copies for new in both)}
    unknown = [word for word in program.words if word not in BINARY and word not in known]
    depth = [1 if word not in BINARY else -1 for word in program.words]
    if unknown:
        return [Diagnostic("TYPE", "name", unknown[0], f"one of {', '.join(sorted(known))}")]
    if sum(depth) != 1 or any(sum(depth[: i + 1]) < 1 for i in range(len(depth))):
        return [Diagnostic("TYPE", "stack", f"{sum(depth)} values at the end", "one value")]
    return []


def _reuses(program: Program) -> list[Diagnostic]:
    used = Counter([*(word for word in program.words if word not in BINARY), *(name for name, *_ in program.copies)])
    twice = [name for name, count in used.items() if count > 1]
    return [Diagnostic("AFFINE", "name", f"{name} {used[name]} times", "once", f"copy {name} a b") for name in twice]


def evaluate(program: Program, inputs: Mapping[str, int]) -> int:
    values = dict(inputs)
    for name, *both in program.copies:
        values.update(dict.fromkeys(both, values[name]))
    stack: list[int] = []
    for word in program.words:
        stack.append(BINARY[word](*(stack.pop(-2), stack.pop())) if word in BINARY else values[word])
    return stack[0]


class TinySampler:
    def fit(self, examples: Sequence[tuple[Task, str]]) -> TinyPolicy:
        return TinyPolicy(tuple(program for _, program in examples))


@dataclass(frozen=True)
class TinyPolicy:
    """Draws operators as often as its examples use them, and now and then a whole example as a part."""

    examples: tuple[str, ...]

    def sample(self, task: Task, temperature: float, rng: random.Random) -> str:
        shapes = [TINY.canonical(example).split() for example in self.examples]
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

    def read_program(self, task: Task, text: str) -> str | None:
        return text if self.check(task, text).stage is Stage.RUN else None

    def check(self, task: Task, source: str) -> Checked:
        try:
            names = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        except (SyntaxError, ValueError) as error:
            return Checked(Stage.PARSE, errors=(Diagnostic("LANG", "program", str(error), "Python"),))
        if "solve" not in names:
            found = Diagnostic("TYPE", "program", f"functions {names}", "a function `solve`")
            return Checked(Stage.TYPE, errors=(found,))
        return Checked(Stage.RUN, source)

    def run(self, program: Any, trial: Trial) -> TrialResult:
        raise RuntimeError("a candidate of this language never runs where its task is known")

    def canonical(self, source: str) -> str:
        return ast.unparse(ast.parse(source))

    def repair(self, task: Task, source: str) -> str | None:
        return None

    def runtime(self) -> Sequence[Path]:
        return ()

    def inputs(self, trial: Trial) -> bytes:
        return json.dumps(trial.data[0]).encode()

    def execute(self, source: str, inputs: bytes) -> bytes:
        namespace: dict[str, Any] = {}
        exec(source, namespace)
        return json.dumps(namespace["solve"](**json.loads(inputs))).encode()

    def compare(self, trial: Trial, outputs: bytes) -> TrialResult:
        want = trial.data[1]
        try:
            value = json.loads(outputs)
        except ValueError:
            value = None
        if type(value) is not int:
            return TrialResult(Stage.RUN, (Diagnostic("OUT", trial.name, repr(outputs[:80]), "an integer"),))
        errors = () if value == want else (Diagnostic("DATA", trial.name, str(value), str(want)),)
        return TrialResult(Stage.MATCH, errors, float(abs(value - want)))


TINY = Tiny()
TINY_PYTHON = TinyPython()


def tiny_task(task_id: str, solution: str, *, seed: int = 0, trials: int = 4) -> Task:
    """A task whose wanted values are those of `solution` (its inputs are the names in it)."""
    program = parse(solution)
    assert isinstance(program, Program)
    rng = random.Random(f"{task_id} {seed}")
    names = sorted({word for word in program.words if word not in BINARY})
    rows = [{name: rng.randint(1, 50) for name in names} for _ in range(trials)]
    inputs = {name: [row[name] for row in rows] for name in names}
    data = {"inputs": inputs, "want": [evaluate(program, row) for row in rows], "impl": solution}
    return TINY.read_task(yaml.safe_dump(data, sort_keys=False), task_id)


def register() -> None:
    """Make the target known by its name, in this process."""
    TARGETS["tiny"] = lambda: TINY
