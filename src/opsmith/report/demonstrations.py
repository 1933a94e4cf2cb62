"""The demonstrations that a prompt shows: solved tasks with their programs, each with where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from opsmith.records import printable
from opsmith.report.conversations import is_tool_turn
from opsmith.store import Store
from opsmith.store.queries import SampleDetail


@dataclass(frozen=True)
class ShownExample:
    """A solved task in a prompt."""

    task: str
    run: str  # that solved it, or "import"
    round: int  # of that run, that solved it; -1: imported
    rate: float  # share of right samples in that round
    sample: str | None  # of the run that shows it; None: it was given to that run

    def __str__(self) -> str:
        """
        >>> print(ShownExample("sum_0", "r-1", 0, 0.25, None))
        sum_0: round 0 of r-1, rate 0.250
        """
        where = f"round {self.round} of {self.run}" if self.round >= 0 else self.run
        return f"{self.task}: {where}, rate {self.rate:.3f}"


class ExampleReader:
    """Finds the demonstrations of one run's prompts; what it has read it keeps."""

    def __init__(self, store: Store, run: str) -> None:
        self.store = store
        self.run = run

    @cached_property
    def _by_round(self) -> dict[int, tuple[tuple[str, str], ...]]:
        rounds = self.store.read_rounds(self.run, with_children=True)
        return {info.number: info.demonstrations for info, _ in rounds}

    @cached_property
    def _lines(self) -> dict[str, str]:
        """The programs of all rounds, as they are looked for."""
        names = {program for examples in self._by_round.values() for _, program in examples}
        return {name: _strip_lines(text) for name, text in self.store.read_texts(names).items()}

    @cached_property
    def _sources(self) -> dict[tuple[str, str], ShownExample]:
        """By task and program."""
        return {
            (own.experience.task.id, _strip_lines(own.experience.source)): ShownExample(
                own.experience.task.id, own.experience.origin or self.run, own.experience.round,
                own.experience.success_rate, own.sample,
            )
            for own in self.store.read_experiences(self.run, with_children=True)
        }  # fmt: skip

    def list_programs(self, number: int, prompt: str) -> dict[str, str]:
        """By task, the hash of the program: those of a round's demonstrations whose program stands in the prompt."""
        lines = _strip_lines(prompt)
        examples = self._by_round.get(number, ())
        return {task: name for task, name in examples if self._lines.get(name, " ") in lines}

    def list_shown(self, number: int, prompt: str) -> Iterator[ShownExample]:
        """The same, each with where it comes from, in their order."""
        for task, name in self.list_programs(number, prompt).items():
            source = self._sources.get((task, self._lines[name]))
            if source is not None:
                yield source

    def describe_shown(self, detail: SampleDetail) -> Iterator[str]:
        """What each request of a sample shows, as `opsmith show --prompt` says it."""
        for call in detail.calls:
            prompt = "\n".join(message.content for message in call.messages)
            for example in () if is_tool_turn(call.agent) else self.list_shown(detail.row.round, prompt):
                sample = f", sample {example.sample[:12]}" if example.sample else ""
                yield printable(f"the {call.agent} is shown {example}{sample}")


def _strip_lines(text: str) -> str:
    """Without indentation, so that a program is found wherever it stands in a prompt."""
    return "\n".join(["", *(line.strip() for line in text.strip().splitlines()), ""])
