"""Plans of STeP tasks: a task split into smaller ones, and their programs joined again.

`statements` reads a reference, `expansion` writes composite calls out, `observation` runs it at several sizes,
`material` is the graph of its work, `cuts` where it comes apart, `forms` the stream types at borders, `splits` the
result; `children` makes tasks of parts, `joining` one program of several, `faults` checks a split. What runs code of a
task's author is called in workers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from opsmith.errors import TaskError
from opsmith.problems.faults import TaskFault
from opsmith.splits import Split
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.planning.children import list_child_specs
from opsmith.targets.step.planning.contracts import describe_contracts
from opsmith.targets.step.planning.expansion import Expander, list_fn_words, list_functions
from opsmith.targets.step.planning.faults import find_faults
from opsmith.targets.step.planning.joining import PartProgram, join_parts
from opsmith.targets.step.planning.material import WorkGraph
from opsmith.targets.step.planning.observation import LiveReference, observe_reference
from opsmith.targets.step.planning.renegotiation import list_alternatives
from opsmith.targets.step.planning.splits import SplitMaker
from opsmith.targets.step.planning.statements import Reference, UnreadableError, read_reference

MOST_REFUSED = 40  # splits with faults, before the first without
MOST_ALTERNATIVES = 6


def make_material(spec: TaskSpec) -> WorkGraph:
    """The work of a task. Raises TaskError in words where its reference cannot be taken apart."""
    problem = ""
    for read in (_read_expanded, read_reference, partial(read_reference, lower=False)):
        try:
            return WorkGraph(spec, observe_reference(spec, read(spec)))
        except UnreadableError as error:
            problem = problem or str(error)
        except TaskFault as fault:
            problem = problem or f"the reference, taken apart, fails: {fault}"
    raise TaskError(f"no split: {problem}")


def _read_expanded(spec: TaskSpec) -> Reference:
    """With composite calls written out where the functions offered lack them."""
    live = LiveReference(spec)
    expander = Expander(list_fn_words(spec.fns), live.look_up, list_functions(spec.global_code))
    return read_reference(spec, expander.expand_call, live)


class StepPlanning:
    """What a task can be split into, and how a split is judged, changed and joined."""

    find_faults = staticmethod(find_faults)
    list_children = staticmethod(list_child_specs)
    describe_contracts = staticmethod(describe_contracts)

    def list_splits(self, spec: TaskSpec) -> Iterator[Split]:
        """Splits of a task without faults, best first. Raises TaskError that says why there is none."""
        maker = SplitMaker(make_material(spec))
        if len(maker.material.work) < 2:
            raise TaskError("no split: the reference is a single operation on the task's streams")
        refused: list[str] = []
        is_splittable = False
        for split in maker.list_splits():
            faults = find_faults(spec, split)
            if not faults:
                is_splittable = True
                yield split
            refused += [str(fault) for fault in faults[:1]]
            if not is_splittable and len(refused) >= MOST_REFUSED:
                break
        if not is_splittable:
            reason = refused[0] if refused else "nothing crosses it whose dims are products of symbols"
            raise TaskError(f"no split: every cut of the reference has a fault, such as: {reason}")

    def renegotiate(self, spec: TaskSpec, split: Split, name: str) -> Split | None:
        """The split with another contract for what a part gives, the first without faults; None: there is none."""
        node = next((node for node in split.nodes if node.name == name), None)
        if node is None:
            return None
        alternatives = list_alternatives(spec, split, node)[:MOST_ALTERNATIVES]
        return next((changed for changed in alternatives if not find_faults(spec, changed)), None)

    def join_programs(self, spec: TaskSpec, split: Split, sources: Mapping[str, str]) -> str:
        """One program for the task from one for each part, by its name."""
        pairs = zip(split.nodes, list_child_specs(spec, split), strict=True)
        return join_parts(spec, split, [PartProgram(node, child, sources[node.name]) for node, child in pairs])
