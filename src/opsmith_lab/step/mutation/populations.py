"""The programs that are judged for a mutation score: four populations of spoiled programs and one of right ones.

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
from opsmith.targets.step.language.canonical import canonical_text
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.copies import insert_copies
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import FnSpec, TaskSpec
from opsmith_lab.step.mutation.chains import LONGEST, reroute_program
from opsmith_lab.step.mutation.edits import edit_program
from opsmith_lab.step.mutation.fn_edits import edit_fn
from opsmith_lab.step.mutation.fn_laws import parse_body
from opsmith_lab.step.mutation.normal_form import Fields, Terms, normal_form
from opsmith_lab.step.mutation.straight import read_straight
from opsmith_lab.step.mutation.variants import rewrite_program

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
        self.program = read_straight(self.spec, task.impl or "")
        self.text = str(self.program)
        self.refused: Counter[str] = Counter()  # edits, by the stage of the checker that refuses them
        self._terms = Terms()
        self._right = self._find_meaning(_check_graph(self.spec, self.text))
        self._seen: set[Meaning] = set()  # meanings of what is judged

    def iterate_mutants(self) -> Iterator[Mutant]:
        """All that is to be judged; edits that the checker refuses are counted in `refused` as they come by."""
        yield from self._mutate_program()
        yield from self._mutate_chains()
        yield from (
            self._make_mutant("variants", "", str(variant.program))
            for variant in rewrite_program(self.spec, self.program)
        )
        for fn in self.spec.fns:
            yield from (self._mutate_fn(fn, changed) for changed in self._draw_sample(list(edit_fn(fn))))

    def _mutate_program(self) -> Iterator[Mutant]:
        self.refused.clear()
        self._seen = {self._right}
        texts = dict.fromkeys(str(edit.program) for edit in edit_program(self.spec, self.program))
        names = {canonical_text(self.text)}
        for text in self._draw_sample(list(texts)):
            stage = check_program(self.spec, text).stage
            source: str | None = text
            if stage != Stage.RUN:
                self.refused[stage.name] += 1
                source = insert_copies(self.spec, text) if stage == Stage("AFFINE") else None
            if source is not None and canonical_text(source) not in names:
                names.add(canonical_text(source))
                yield self._make_mutant("edits" if stage == Stage.RUN else "repaired", text, source)

    def _mutate_chains(self) -> Iterator[Mutant]:
        longest = LONGEST if self.sample is None else LONGEST - 1
        graph = _check_graph(self.spec, self.text)
        texts = sorted({str(program) for program in reroute_program(self.spec, self.program, graph, longest)})
        right, wrong = self._by_meaning(self._draw_sample(texts, WAYS))
        yield from (self._make_mutant("chains", text, text) for text in self._draw_sample(wrong, CHAINS))
        yield from (self._make_mutant("variants", text, text) for text in self._draw_sample(right, DETOURS))

    def _by_meaning(self, texts: Sequence[str]) -> tuple[list[str], list[str]]:
        """The well-typed programs of the right meaning, and the first one of every meaning not met before."""
        right: list[str] = []
        wrong: dict[Meaning, str] = {}
        for text in texts:
            graph = check_program(self.spec, text).graph
            if graph is not None and self._find_meaning(graph) == self._right:
                right.append(text)
            elif graph is not None and self._find_meaning(graph) not in self._seen:
                wrong.setdefault(self._find_meaning(graph), text)
        return right, list(wrong.values())

    def _make_mutant(self, population: str, text: str, source: str) -> Mutant:
        meaning = self._find_meaning(_check_graph(self.spec, source))
        self._seen.add(meaning)
        is_right = population == "variants" or meaning == self._right
        return Mutant(population, diff_lines(self.text, text or source), self.task, source, is_right)

    def _mutate_fn(self, fn: FnSpec, changed: FnSpec) -> Mutant:
        fns = tuple(changed if candidate is fn else candidate for candidate in self.spec.fns)
        change = f"{fn.func_name}\n{diff_lines(_definition_text(fn), _definition_text(changed))}"
        task = replace(self.task, text=write_spec(replace(self.spec, fns=fns)))
        return Mutant("fns", change, task, self.text, is_right=False)

    def _find_meaning(self, graph: Graph) -> Meaning:
        return normal_form(self._terms, graph)

    def _draw_sample(self, entries: Sequence[Item], limit: int | None = None) -> Sequence[Item]:
        """At most so many, and at most `sample`, in their order; the same ones every time."""
        limit = min(len(entries), *(bound for bound in (limit, self.sample) if bound is not None), len(entries))
        if limit == len(entries):
            return entries
        return [entries[place] for place in sorted(random.Random(self.text).sample(range(len(entries)), limit))]


def diff_lines(old: str, new: str) -> str:
    """The lines that only one of two texts has, each after `- ` or `+ `."""
    lines = difflib.ndiff(old.splitlines(), new.splitlines())
    return "".join(f"{line}\n" for line in lines if line[0] in "+-")


def _check_graph(spec: TaskSpec, source: str) -> Graph:
    report = check_program(spec, source)
    if report.graph is None:
        raise ValueError(f"the program to mutate: given one that the checker refuses: {report.errors[0]}")
    return report.graph


def _definition_text(fn: FnSpec) -> str:
    """Body and start values as text, without comments and layout."""
    body = ast.unparse(parse_body(fn))
    start = "" if fn.init is None else f"init: {[float(value) for value in fn.init]}\n"
    return "\n".join(line.strip() for line in body.splitlines()[1:]) + f"\n{start}"
