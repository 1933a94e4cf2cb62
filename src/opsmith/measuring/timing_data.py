"""Data for timing one task's programs: drawn, judged and counted by a worker, and kept for the next program.

What is kept are draws, some mixed inputs whose answers the worker has computed, the work, and how long partners take:
all that a program which comes after another of the same task need not wait for.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opsmith.judging.executed import TaskWorker
from opsmith.measuring.grain import is_fresh, list_inputs
from opsmith.measuring.roofline import ProblemWork
from opsmith.measuring.slots import NumpyMixer
from opsmith.measuring.timing import TimingError
from opsmith.problems.problem import Problem
from opsmith.records import Diagnostic
from opsmith.targets.native.layout import DrawLayout, TrialLayout, read_inputs, write_inputs
from opsmith.timing.inputs import InputMixer, Recipe, SlotLayout, draw_noises

DRAWS = 4  # that inputs are mixed of
_MOST_DRAWS, _MOST_BYTES = 256, 64 << 20  # where they cannot be mixed
_MOST_SIZES = 4  # shape sets of a task that are kept
_PREPARED_BYTES = 64 << 20  # of arrays, whose answers are kept
_ATTEMPTS = 20  # at inputs that lie far enough from every discrete decision

Draws = list[list[bytes]]


class WrongOutputError(TimingError):
    """A program was right for its verdict, and wrong while it was timed."""


@dataclass
class SizedData:
    """What is kept of one shape set."""

    sizes: Mapping[str, int]
    mixer: InputMixer
    work: ProblemWork | None = None
    recipes: dict[Recipe, str] = field(default_factory=dict)  # those whose answers are kept, and under which key
    call_ns: dict[bytes, float] = field(default_factory=dict)  # of one call of a partner, by what it is built to


@dataclass
class DataWorker:
    """A worker that draws inputs and compares outputs, and what is kept of its answers."""

    worker: TaskWorker
    kept_data: dict[tuple[tuple[str, int], ...], SizedData] = field(default_factory=dict)

    def prepare_data(self, problem: Problem, sizes: Mapping[str, int]) -> SizedData:
        """The data of a shape set, drawn unless it is kept. Raises TimingError."""
        key = tuple(sorted(sizes.items()))
        if key not in self.kept_data:
            self.kept_data[key] = self._draw_data(problem, sizes)
            while len(self.kept_data) > _MOST_SIZES:
                del self.kept_data[next(iter(self.kept_data))]
        return self.kept_data[key]

    def list_recipes(self, data: SizedData, count: int) -> list[Recipe]:
        """Recipes whose answers are kept, at most so many; made where there are too few. Raises TimingError."""
        if data.mixer.most_calls is not None:
            return []
        fitting = max(2, _PREPARED_BYTES // max(1, sum(data.mixer.layout.arrays.inputs)))
        for _ in range(_ATTEMPTS):
            if len(data.recipes) >= min(count, fitting):
                break
            self._prepare_recipe(data, data.mixer.draw_recipe(random.SystemRandom()))
        return [*data.recipes][:count]

    def check_outputs(self, data: SizedData, recipe: Recipe, outputs: Sequence[bytes]) -> bool:
        """Whether they could be judged. Raises WrongOutputError where they are wrong, TimingError."""
        answer: dict[str, Any] = {"is_forgotten": True}
        if recipe in data.recipes:
            answer = self._ask("check_prepared", [b"".join(outputs)], key=data.recipes[recipe])
        if "is_forgotten" in answer:
            data.recipes.pop(recipe, None)
            answer = self._compare_outputs(data.sizes, _encode_inputs(data, recipe), outputs)
        return self._read_answer(answer)

    def check_arrays(
        self, sizes: Mapping[str, int], layout: DrawLayout, inputs: Sequence[bytes], outputs: Sequence[bytes]
    ) -> bool:
        """As `check_outputs`, on inputs that were mixed elsewhere."""
        return self._read_answer(self._compare_outputs(sizes, write_inputs(TrialLayout((layout,)), inputs), outputs))

    def _compare_outputs(self, sizes: Mapping[str, int], inputs: bytes, outputs: Sequence[bytes]) -> dict[str, Any]:
        return self._ask("check_timed", [inputs, b"".join(outputs)], sizes=dict(sizes))

    def _read_answer(self, answer: Mapping[str, Any]) -> bool:
        errors = [Diagnostic(**error) for error in answer["errors"]]
        if errors:
            raise WrongOutputError(f"a wrong output while it was timed: {errors[0]}")
        return not answer["is_undecided"]

    def count_work(self, data: SizedData) -> ProblemWork:
        """Raises TimingError."""
        if data.work is None:
            data.work = self.count_work_at(data.sizes)
        return data.work

    def count_work_at(self, sizes: Mapping[str, int]) -> ProblemWork:
        """Raises TimingError."""
        return ProblemWork(**self._ask("count_work", sizes=dict(sizes))["work"])

    def _draw_data(self, problem: Problem, sizes: Mapping[str, int]) -> SizedData:
        first = secrets.randbits(40)  # nobody knows the data before
        layout, draw = self._ask_draw(sizes, first)
        count = DRAWS
        if not is_fresh(problem):
            count = max(DRAWS, min(_MOST_DRAWS, _MOST_BYTES // max(1, sum(layout.arrays.inputs))))
        draws = [draw, *(self._ask_draw(sizes, first + number)[1] for number in range(1, count))]
        inputs = list_inputs(problem, sizes)
        noises = draw_noises(inputs, secrets.randbits(64))  # which nobody knows before
        return SizedData(dict(sizes), NumpyMixer(layout, inputs, draws, noises))

    def _prepare_recipe(self, data: SizedData, recipe: Recipe) -> None:
        key = secrets.token_hex(8)
        if not self._ask("prepare_check", [_encode_inputs(data, recipe)], sizes=dict(data.sizes), key=key)[
            "is_undecided"
        ]:
            data.recipes[recipe] = key

    def draw_inputs(self, sizes: Mapping[str, int], seed: int = 0) -> bytes:
        """Those of one draw, as a program's process is given them. Raises TimingError."""
        return bytes(self._ask("draw_inputs", sizes=dict(sizes), seed=seed)["blobs"][0])

    def _ask_draw(self, sizes: Mapping[str, int], seed: int) -> tuple[SlotLayout, list[bytes]]:
        layout, (arrays,) = read_inputs(memoryview(self.draw_inputs(sizes, seed)))
        return SlotLayout(layout.draws[0]), [bytes(array) for array in arrays]

    def _ask(self, what: str, blobs: Sequence[bytes] = (), **arguments: Any) -> dict[str, Any]:
        answer = self.worker.ask_step(what, blobs, **arguments)
        if "problem" in answer:
            raise TimingError(str(answer["problem"]))
        return answer


def _encode_inputs(data: SizedData, recipe: Recipe) -> bytes:
    return write_inputs(TrialLayout((data.mixer.layout.arrays,)), data.mixer.mix_inputs(recipe))
