"""Two samples side by side: verdicts and costs, programs line by line, and what differs in their prompts."""

from __future__ import annotations

from dataclasses import dataclass

from opsmith.records import Usage
from opsmith.report.attempts import CandidateView, SampleView, sample_view
from opsmith.report.conversations import ExampleReader
from opsmith.report.differences import Difference, PairedPrograms, find_difference, pair_programs
from opsmith.report.tables import format_cost
from opsmith.store import Store
from opsmith.store.rows import PROPOSER


@dataclass(frozen=True)
class SampleSide:
    """One of the two."""

    run: str  # whole id
    model: str  # that the run asked
    is_language_model: bool
    sample: SampleView
    counted: CandidateView | None  # what the sample counts by; None: it has no verdict
    facts: tuple[tuple[str, str], ...]  # (name, what it is here), the same names for both


@dataclass(frozen=True)
class PromptsBeside:
    """What the proposer was asked in its first request; demonstrations by task, in the order of the prompt."""

    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    both: tuple[str, ...]
    changed: tuple[str, ...]  # of `both`: shown with another program
    is_system_same: bool
    difference: Difference | None  # of the user messages; None: they are the same


@dataclass(frozen=True)
class SamplesBeside:
    sides: tuple[SampleSide, SampleSide]
    programs: PairedPrograms | None  # None: one of them has no program
    prompts: PromptsBeside | None  # None: one of them was not asked for
    differing: frozenset[str]  # names of facts

    @property
    def is_one_task(self) -> bool:
        return self.sides[0].sample.task == self.sides[1].sample.task


def compare_samples(store: Store, first: tuple[str, str], second: tuple[str, str]) -> SamplesBeside:
    """Two samples by (run, id); ids may be cut. Raises UsageError for one that does not exist."""
    sides = _read_side(store, *first), _read_side(store, *second)
    programs = [side.counted.source if side.counted is not None else None for side in sides]
    pairs = zip(*(side.facts for side in sides), strict=True)
    return SamplesBeside(
        sides=sides,
        programs=None if None in programs else pair_programs(programs[0] or "", programs[1] or ""),
        prompts=_compare_prompts(store, *sides),
        differing=frozenset(fact[0] for fact, counterpart in pairs if fact != counterpart),
    )


def _read_side(store: Store, name: str, sample_name: str) -> SampleSide:
    run = store.summarise_run(store.find_run(name)).info
    sample = sample_view(store, run.id, sample_name)
    counted = next((candidate for candidate in sample.candidates if candidate.final), None)
    facts = _list_facts(run.id, sample, counted)
    return SampleSide(run.id, run.model, run.is_language_model, sample, counted, facts)


def _list_facts(run: str, sample: SampleView, counted: CandidateView | None) -> tuple[tuple[str, str], ...]:
    usage = Usage.total(call.usage for call in sample.calls)
    error = counted.max_abs_error if counted is not None else None
    return (
        ("run", run),
        ("task", sample.task),
        ("round", str(sample.round)),
        ("temperature", f"{sample.temperature:g}"),
        ("number", str(sample.number)),
        ("program by", counted.agent if counted is not None and counted.source is not None else "–"),
        ("largest error of all trials", "–" if error is None else f"{error:.3g}"),
        ("requests", f"{usage.requests:,}"),
        ("input tokens", f"{usage.input_tokens:,}"),
        ("output tokens", f"{usage.output_tokens:,}"),
        ("cost", format_cost(usage)),
    )


def _compare_prompts(store: Store, first: SampleSide, second: SampleSide) -> PromptsBeside | None:
    prompts = _read_prompt(first), _read_prompt(second)
    if prompts[0] is None or prompts[1] is None:
        return None
    ours, theirs = (
        ExampleReader(store, side.run).list_programs(side.sample.round, prompt[1])
        for side, prompt in zip((first, second), (prompts[0], prompts[1]), strict=True)
    )
    both = tuple(task for task in ours if task in theirs)
    return PromptsBeside(
        only_first=tuple(task for task in ours if task not in theirs),
        only_second=tuple(task for task in theirs if task not in ours),
        both=both,
        changed=tuple(task for task in both if ours[task] != theirs[task]),
        is_system_same=prompts[0][0] == prompts[1][0],
        difference=find_difference(prompts[1][1], prompts[0][1], "the first prompt"),
    )


def _read_prompt(side: SampleSide) -> tuple[str, str] | None:
    """The system messages and the others of the proposer's first request; None: there is none."""
    call = next((call for call in side.sample.calls if call.agent == PROPOSER), None)
    if call is None:
        return None
    system = [text for role, text in call.messages if role == "system"]
    return "\n".join(system), "\n".join(text for role, text in call.messages if role != "system")
