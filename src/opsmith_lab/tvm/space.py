"""The processes in which MetaSchedule works: a nursery that imports TVM once, and a confined fork for each request.

A request names a function whose loops are blocks and the sizes that it is tuned at; the answers are decisions (which
tiles, how far unrolled), or the statements of the scheduled function. Nothing here measures: programs are judged and
timed as any other. There is no cost model, so nothing needs xgboost. Nobody else imports this.
"""

from __future__ import annotations

import json
import math
import random
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

sys.modules.setdefault("torch", None)  # type: ignore[arg-type]  # it would be imported for a bridge: seconds
sys.modules.setdefault("tvm.s_tir.tensor_intrin", ModuleType("tensor_intrin"))  # of GPUs: parsing them takes 15 s

import tvm
from tvm import s_tir, tirx
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.schedule import Instruction, Trace
from tvm.script.ir_builder import IRBuilder
from tvm.script.parser import tirx as script
from tvm.script.parser.core.diagnostics import Source
from tvm.script.parser.core.parser import Parser

from opsmith.running.channel import read_frame, write_frame
from opsmith.running.sandbox import Sandbox, confine_candidate
from opsmith.targets.native.signature import FUNCTION

WIDEST_TILE = 16  # entries of all inner loops of a tile
_SECONDS = 40  # of processor time
_VECTOR, _LARGEST_INNER = 16, 64  # elements
_UNROLLED = (0, 16, 64, 512)  # statements
_DRAWS, _PARENTS, _FRESH = 32, 4, 0.3  # tries at a new schedule; the best ones kept; how often one is drawn anew


def load_space() -> None:
    """Nothing more than the imports."""


def serve_request(fds: Sequence[int], sandbox: Sandbox) -> None:
    """One request as JSON, one answer."""
    request = json.loads(read_frame(fds[0]) or b"{}")
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 1))
    confine_candidate(sandbox, [Path("/dev/urandom")])
    try:
        answer = answer_request(request)
    except Exception as error:  # whatever TVM raises: the program is none that it schedules
        answer = {"problem": f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"[:500]}
    write_frame(fds[0], json.dumps(answer).encode())


def answer_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """What `do` names: `list` the choices, `draw` decisions, or `write` what decisions make."""
    space = Space(request["text"], request["sizes"], int(request.get("seed", 0)))
    if request["do"] == "list":
        return {"choices": [[_describe_choice(trace, each) for each in _list_samples(trace)] for trace in space.traces]}
    if request["do"] == "draw":
        tried = [(tuple(entry[:2]), entry[2]) for entry in request["tried"]]
        return {"decisions": space.draw_decisions(tried)}
    return space.write_schedule(*request["decisions"])


class Space:
    """The schedules of a function at given sizes."""

    def __init__(self, text: str, sizes: Mapping[str, int], seed: int) -> None:
        self._sizes, self._function = dict(sizes), _parse_function(text)
        self._rng, self._module = (
            random.Random(seed),
            self._make_module({name: tirx.IntImm("int64", size) for name, size in sizes.items()}),
        )
        self._generator = _make_generator()
        self._context = ms.TuneContext(
            self._module,
            target=tvm.target.Target({"kind": "llvm", "num-cores": 1}),
            space_generator=self._generator,
            rand_state=seed % (2**31 - 2) + 1,
            num_threads=1,
        )
        self.traces = [schedule.trace for schedule in self._context.generate_design_space()]

    def draw_decisions(self, tried: Sequence[tuple[tuple[Any, Any], float | None]]) -> list[Any] | None:
        """A schedule that was not tried: one of the best ones mutated, or one drawn anew; None: none was found."""
        earlier = {json.dumps(decisions) for decisions, _ in tried}
        ranked = sorted((each for each in tried if each[1]), key=lambda each: -(each[1] or 0))[:_PARENTS]
        for _ in range(_DRAWS):
            if ranked and self._rng.random() > _FRESH:
                parent = self._rng.choice(ranked)[0]
                decisions = self._mutate(*parent)
            else:
                decisions = self._draw_anew()
            decisions = None if decisions is None else [decisions[0], list(map(_round_tile, decisions[1]))]
            if decisions is None or json.dumps(decisions) in earlier:
                continue
            if max(self._find_factors(_decide(self.traces[decisions[0]], decisions[1])).values()) > 1:
                return decisions
        return None

    def _draw_anew(self) -> list[Any] | None:
        number = self._rng.randrange(len(self.traces))
        schedule = s_tir.Schedule(self._module, seed=self._rng.randrange(1, 2**31))
        try:
            Trace(self.traces[number].insts, {}).apply_to_schedule(schedule, remove_postproc=True)
        except Exception:  # TVM's own: what was drawn does not apply
            return None
        decisions = _read_decisions(schedule.trace)
        return [number, decisions] if self._finish(schedule) else None

    def _mutate(self, number: int, decisions: Sequence[Any]) -> list[Any] | None:
        trace = _decide(self.traces[number], decisions)
        mutators = self._generator.mutator_probs
        (mutator,) = self._rng.choices(list(mutators), [float(each) for each in mutators.values()])
        trace = mutator.apply(trace)
        if trace is None:
            return None
        schedule = s_tir.Schedule(self._module)
        try:
            trace.apply_to_schedule(schedule, remove_postproc=True)
        except Exception:  # TVM's own: what was drawn does not apply
            return None
        opened = _read_decisions(schedule.trace)
        return [number, opened] if self._finish(schedule) else None

    def _finish(self, schedule: Any) -> bool:
        return all(each.apply(schedule) for each in self._generator.postprocs)

    def write_schedule(self, number: int, decisions: Sequence[Any]) -> dict[str, Any]:
        """`text`: the scheduled function for all sizes of which `factors` are divisors, `{SIZE}_of` the quotients.

        Inner tiles are as decided, and the outermost one takes what a size has more of.
        """
        trace = _decide(self.traces[number], decisions)
        factors = self._find_factors(trace)
        quotients = {name: tirx.Var(f"{name}_of", "int64") for name in factors}
        schedule = s_tir.Schedule(self._make_module({name: quotients[name] * factors[name] for name in factors}))
        _free_outermost(trace).apply_to_schedule(schedule, remove_postproc=True)
        if not self._finish(schedule):
            raise ValueError("a post-processor refuses the schedule")
        return {"text": schedule.mod[FUNCTION].script(), "factors": factors}

    def _find_factors(self, trace: Any) -> dict[str, int]:
        """By size, what all inner tiles of loops of that length divide."""
        factors = dict.fromkeys(self._sizes, 1)
        for sample in _list_samples(trace):
            if sample.kind.name == "SamplePerfectTile":
                tile = [int(each) for each in trace.decisions[sample]]
                for name, size in self._sizes.items():
                    if math.prod(tile) == size:
                        factors[name] = math.lcm(factors[name], math.prod(tile[1:]))
        return factors

    def _make_module(self, sizes: Mapping[str, Any]) -> Any:
        parameters = {each.name: each for each in self._function.params}
        function = self._function.specialize({parameters[name]: size for name, size in sizes.items()})
        return tvm.IRModule({FUNCTION: function.with_attr("global_symbol", FUNCTION)})


def _parse_function(text: str) -> Any:
    parser = Parser(Source(text), {})
    with IRBuilder() as builder:
        parser.parse(extra_vars={"T": script})
    return builder.get()


def _make_generator() -> Any:
    """The usual rules of a processor, without threads."""
    rules, mutator = ms.schedule_rule, ms.mutator
    return ms.space_generator.PostOrderApply(
        sch_rules=[
            rules.InlineConstantScalars(),
            rules.AutoInline(
                into_producer=False,
                into_consumer=True,
                inline_const_tensor=True,
                disallow_if_then_else=True,
                require_injective=True,
                require_ordered=True,
                disallow_op=["tirx.exp"],
            ),
            rules.AddRFactor(max_jobs_per_core=16, max_innermost_factor=_LARGEST_INNER),
            rules.MultiLevelTiling(
                structure="SSRSRS",
                max_innermost_factor=_LARGEST_INNER,
                reuse_write=rules.ReuseType(req="may", levels=[1, 2], scope="global"),
            ),
            rules.ParallelizeVectorizeUnroll(-1, _VECTOR, list(_UNROLLED), unroll_explicit=True),
            rules.RandomComputeLocation(),
        ],
        postprocs=[ms.postproc.RewriteParallelVectorizeUnroll(), ms.postproc.RewriteReductionBlock()],
        mutator_probs={
            mutator.MutateTileSize(): 0.85,
            mutator.MutateUnroll(): 0.1,
            mutator.MutateComputeLocation(): 0.05,
        },
    )


def _list_samples(trace: Any) -> Iterator[Any]:
    """The instructions of a trace that leave a choice."""
    return (each for each in trace.insts if each in trace.decisions)


def _describe_choice(trace: Any, sample: Any) -> dict[str, Any]:
    """`extent` and `parts` of a tile, or else the number of `options`; 0: a place in the program, left as it is."""
    if sample.kind.name == "SamplePerfectTile":
        tile = _write_decision(trace.decisions[sample])
        return {"extent": math.prod(tile), "parts": len(tile)}
    options = len(sample.attrs[0]) if sample.kind.name == "SampleCategorical" else 0
    return {"options": options, "default": _write_decision(trace.decisions[sample])}


def _read_decisions(trace: Any) -> list[Any]:
    return [_write_decision(trace.decisions[each]) for each in _list_samples(trace)]


def _write_decision(decision: Any) -> Any:
    return [int(each) for each in decision] if hasattr(decision, "__len__") else int(decision)


def _round_tile(decision: Any) -> Any:
    """A tile whose inner part is a power of two, at most WIDEST_TILE: then it divides many a size."""
    if not isinstance(decision, list):
        return decision
    extent, inner = math.prod(decision), list[int]()
    left = math.gcd(extent, WIDEST_TILE)
    for factor in reversed(decision[1:]):
        inner.insert(0, math.gcd(left, factor))
        left //= inner[0]
    return [extent // math.prod(inner), *inner]


def _decide(trace: Any, decisions: Sequence[Any]) -> Any:
    """The trace with other decisions. Raises ValueError."""
    return Trace(trace.insts, dict(zip(_list_samples(trace), decisions, strict=True)))


def _free_outermost(trace: Any) -> Any:
    """The trace with splits by numbers, the outermost factor left open."""
    numbers: dict[int, Any] = {}
    rows, decisions = [], {}
    for row in trace.insts:
        if row.kind.name == "SamplePerfectTile":
            tile = [None, *(tirx.IntImm("int64", int(each)) for each in list(trace.decisions[row])[1:])]
            numbers |= dict(zip(map(hash, row.outputs), tile, strict=True))
            continue
        opened = row
        if row.kind.name == "Split":
            inputs = [numbers.get(hash(each), each) for each in row.inputs]
            opened = Instruction(row.kind, inputs, list(row.attrs), list(row.outputs))
        rows.append(opened)
        if row in trace.decisions:
            decisions[opened] = trace.decisions[row]
    return Trace(rows, decisions)
