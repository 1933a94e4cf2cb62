"""Which programs are judged for a mutation score? Four populations of spoiled programs and one of right ones.

    edits     single edits of the program (`edits`); those that the checker refuses are only counted
    repaired  edits that break the affine rule only, with Copies inserted: the rule hides what a program computes
    chains    longer well-typed ways (`chains`), one for each different meaning, of which a sample is judged
    fns       the program over functions with a single edit (`fn_edits`)
    variants  right by construction (`variants`), or chains of equal normal form

Programs are told apart up to the names of locals. What is drawn depends on the program alone.
"""

from __future__ import annotations

import ast
import difflib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from opsmith.records import Stage, Task
from opsmith.targets.step import spec_of
from opsmith.targets.step.ir import write_spec
from opsmith.targets.step.language.canonical import canonical
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.copies import insert_copies
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import Fn, TaskSpec
from opsmith.targets.step.mutation.chains import LONGEST, rerouted
from opsmith.targets.step.mutation.edits import edits
from opsmith.targets.step.mutation.fn_edits import fn_edits
from opsmith.targets.step.mutation.normal_form import Fields, Terms, normal_form
from opsmith.targets.step.mutation.straight import straight
from opsmith.targets.step.mutation.variants import variants

POPULATIONS = ("edits", "repaired", "chains", "fns", "variants")
WAYS = 1500  # chains looked at per task
CHAINS, DETOURS = 60, 20  # judged of those: chains of another meaning, and of the same

Item = TypeVar("Item")
Meaning = tuple[Fields, ...]


@dataclass(frozen=True)
class Mutant:
    """A program to judge. `change`: the lines by which it differs; `is_right`: by normal form or by construction."""

    population: str
    change: str
    task: Task
    source: str
    is_right: bool


class Populations:
    """The populations around a task's own program; `sample` bounds how many of each are looked at.

    Raises ValueError for a task without a right program.
    """

    def __init__(self, task: Task, sample: int | None = None) -> None:
        self.task, self.spec, self.sample = task, spec_of(task.text), sample
        self.program = straight(self.spec, task.impl or "")
        self.text = str(self.program)
        self.refused: Counter[str] = Counter()  # edits, by the stage of the checker that refuses them
        self._terms = Terms()
        self._right = self._meaning(_graph(self.spec, self.text))
        self._seen: set[Meaning] = set()  # meanings of what is judged

    def mutants(self) -> Iterator[Mutant]:
        """All that is to be judged; edits that the checker refuses are counted in `refused` as they come by."""
        yield from self._edits()
        yield from self._chains()
        yield from (self._mutant("variants", "", str(found.program)) for found in variants(self.spec, self.program))
        for fn in self.spec.fns:
            yield from (self._over(fn, changed) for changed in self._drawn(list(fn_edits(fn))))

    def _edits(self) -> Iterator[Mutant]:
        self.refused.clear()
        self._seen = {self._right}
        texts = dict.fromkeys(str(edit.program) for edit in edits(self.spec, self.program))
        names = {canonical(self.text)}
        for text in self._drawn(list(texts)):
            stage = check_program(self.spec, text).stage
            source: str | None = text
            if stage is not Stage.RUN:
                self.refused[stage.name] += 1
                source = insert_copies(self.spec, text) if stage is Stage.AFFINE else None
            if source is not None and canonical(source) not in names:
                names.add(canonical(source))
                yield self._mutant("edits" if stage is Stage.RUN else "repaired", text, source)

    def _chains(self) -> Iterator[Mutant]:
        longest = LONGEST if self.sample is None else LONGEST - 1
        graph = _graph(self.spec, self.text)
        texts = sorted({str(program) for program in rerouted(self.spec, self.program, graph, longest)})
        right, wrong = self._by_meaning(self._drawn(texts, WAYS))
        yield from (self._mutant("chains", text, text) for text in self._drawn(wrong, CHAINS))
        yield from (self._mutant("variants", text, text) for text in self._drawn(right, DETOURS))

    def _by_meaning(self, texts: Sequence[str]) -> tuple[list[str], list[str]]:
        """The well-typed programs of the right meaning, and the first one of every meaning not met before."""
        right: list[str] = []
        wrong: dict[Meaning, str] = {}
        for text in texts:
            graph = check_program(self.spec, text).graph
            if graph is not None and self._meaning(graph) == self._right:
                right.append(text)
            elif graph is not None and self._meaning(graph) not in self._seen:
                wrong.setdefault(self._meaning(graph), text)
        return right, list(wrong.values())

    def _mutant(self, population: str, shown: str, source: str) -> Mutant:
        meaning = self._meaning(_graph(self.spec, source))
        self._seen.add(meaning)
        is_right = population == "variants" or meaning == self._right
        return Mutant(population, difference(self.text, shown or source), self.task, source, is_right)

    def _over(self, fn: Fn, changed: Fn) -> Mutant:
        fns = tuple(changed if other is fn else other for other in self.spec.fns)
        change = f"{fn.func_name}\n{difference(_definition(fn), _definition(changed))}"
        task = replace(self.task, text=write_spec(replace(self.spec, fns=fns)))
        return Mutant("fns", change, task, self.text, is_right=False)

    def _meaning(self, graph: Graph) -> Meaning:
        return normal_form(self._terms, graph)

    def _drawn(self, items: Sequence[Item], most: int | None = None) -> Sequence[Item]:
        """At most so many, and at most `sample`, in their order; the same ones every time."""
        most = min(len(items), *(bound for bound in (most, self.sample) if bound is not None), len(items))
        if most == len(items):
            return items
        return [items[at] for at in sorted(random.Random(self.text).sample(range(len(items)), most))]


def difference(old: str, new: str) -> str:
    """The lines that only one of two texts has, each after `- ` or `+ `."""
    lines = difflib.ndiff(old.splitlines(), new.splitlines())
    return "".join(f"{line}\n" for line in lines if line[0] in "+-")


def _graph(spec: TaskSpec, source: str) -> Graph:
    report = check_program(spec, source)
    if report.graph is None:
        raise ValueError(f"the program to mutate: given one that the checker refuses: {report.errors[0]}")
    return report.graph


def _definition(fn: Fn) -> str:
    """Body and start values as text, without comments and layout."""
    body = ast.unparse(ast.parse("def body():\n" + "\n".join(f" {line}" for line in fn.apply.splitlines())))
    start = "" if fn.init is None else f"init: {[float(value) for value in fn.init]}\n"
    return "\n".join(line.strip() for line in body.splitlines()[1:]) + f"\n{start}"
