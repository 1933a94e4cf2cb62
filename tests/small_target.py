"""A new language in sixty lines: one arithmetic expression, `x * (y + 1)`, of a task's inputs."""

import ast
import operator

import yaml

from opsmith.records import Diagnostic
from opsmith.targets import Trial
from opsmith.targets.interpreted import Case, Interpreted, ProgramError

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


class Small(Interpreted):
    name = "small"
    verifier = "small-1"
    prompt = """\
language: one expression of the inputs with + - *, such as x * (y + 1)
answer: a YAML mapping with the program under impl
"""
    stages = ("PARSE", "NAMES")
    task_keys = ("inputs", "want")

    def parse_program(self, task, source):
        try:
            tree = ast.parse(source.strip(), mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise ProgramError("PARSE", Diagnostic("LANG", "program", str(error), "an expression")) from error
        for node in ast.walk(tree):
            if not isinstance(node, (ast.BinOp, ast.Name, ast.Constant, ast.Load, *OPERATORS)):
                raise ProgramError("PARSE", Diagnostic("LANG", "program", type(node).__name__, "names, + - * and ()"))
        inputs = yaml.safe_load(task.text)["inputs"]
        if unknown := {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(inputs):
            raise ProgramError("NAMES", Diagnostic("TYPE", "name", min(unknown), f"one of {', '.join(inputs)}"))
        return tree

    def list_trials(self, task):
        data = yaml.safe_load(task.text)
        rows = [dict(zip(data["inputs"], row, strict=True)) for row in zip(*data["inputs"].values(), strict=True)]
        return [Trial(f"trial {i}", Case(row, data["want"][i])) for i, row in enumerate(rows)]

    def evaluate_program(self, program, inputs):
        if isinstance(program, ast.BinOp):
            sides = (self.evaluate_program(side, inputs) for side in (program.left, program.right))
            return OPERATORS[type(program.op)](*sides)
        return inputs[program.id] if isinstance(program, ast.Name) else program.value

    def make_sampler(self):
        return self

    def fit_policy(self, examples):
        return self

    def sample_program(self, task, temperature, rng):
        return f" {rng.choice('+-*')} ".join(yaml.safe_load(task.text)["inputs"]) + "\n"


TARGET = Small()
