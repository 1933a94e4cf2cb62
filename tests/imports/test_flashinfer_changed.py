"""Definitions that somebody has broken anywhere: each becomes a problem that reads back, or a refusal with a reason."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from imports.definitions import MASKED_MAX, RMS_NORM, SEGMENTS

from opsmith.errors import TaskError
from opsmith.imports.flashinfer.conversion import ImportRefusalError, convert_definition
from opsmith.imports.flashinfer.dataset import ReadDefinition
from opsmith.imports.flashinfer.formats import Definition, read_json, read_model
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.reading import read_problem
from opsmith.problems.problem import Provenance

NAMES = ["", "a", "state", "torch", "run", "lambda", "\u00e9", "x" * 150, "a b", "\u2028", "1", "min"]
NUMBERS = [None, 0, 1, -1, 2**40, 10**40, 1.5, True]
PARTS = [[], ["m"], {}, {"type": "var"}, {"type": "const", "value": 1}, {"type": "const", "value": 2**31 - 1}]
TENSORS = [{"shape": None, "dtype": "bool"}, {"shape": [], "dtype": "int8"}, "int8", "bfloat16"]
CONSTRAINTS = ["m == n", "m == m", "m == 1", "min(m, n) == 3", "x == y", "n == m * m * m", "m % 0 == 1"]
CODE = [
    "def run(x, mask):\n  return x, x",
    "def run(*a):\n  return a",
    "async def run(x, mask):\n  return x",
    "run = 1",
    "def run(x, mask): return torch.float32, x.float().half()\n",
    "\x00",
    "class run: pass",
]
VALUES = [*NAMES, *NUMBERS, *PARTS, *TENSORS, *CONSTRAINTS, *CODE]
CHANGES = 400


def list_places(data: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield (*place, key)
        yield from list_places(data[key], (*place, key))


def change_somewhere(definition: dict[str, Any], source: random.Random) -> dict[str, Any]:
    """One to three values replaced, or keys renamed."""
    changed: dict[str, Any] = json.loads(json.dumps(definition))
    for _ in range(source.randint(1, 3)):
        *path, last = source.choice(list(list_places(changed)))
        parent: Any = changed
        for key in path:
            parent = parent[key]
        if isinstance(parent, dict) and source.random() < 0.3:
            parent[source.choice(NAMES)] = parent.pop(last)
        else:
            parent[last] = json.loads(json.dumps(source.choice(VALUES)))
    return changed


@pytest.mark.parametrize("definition", [RMS_NORM, SEGMENTS, MASKED_MAX], ids=lambda definition: definition["name"])
def test_a_changed_definition_is_a_problem_or_a_reason(definition: dict[str, Any]) -> None:
    """Everything runs that would be tried in a worker, as far as the conversion is told."""
    source = random.Random(str(definition["name"]))
    endings = [convert_changed(change_somewhere(definition, source)) for _ in range(CHANGES)]
    assert sum(not reason for reason in endings) > CHANGES // 50
    assert all(len(reason) < 2000 for reason in endings)


def convert_changed(data: dict[str, Any]) -> str:
    """Why it is refused; "": it reads back as the same problem."""
    text = json.dumps(data)
    source = Provenance("flashinfer", "a.json", "0" * 64, text=text)
    try:
        definition = read_model(Definition, read_json(text))
        read = ReadDefinition(definition, text, "0" * 64, (), ())
        converted = convert_definition(read, source, 1_000_000, lambda _, sets: [""] * len(sets))
    except (TaskError, ImportRefusalError) as error:
        return str(error)
    assert read_problem(write_problem(converted.file)) == converted.file
    return ""
