"""Lazy answers: whether one would pass that a program can give without doing the work.

Each is given in place of one tensor, beside the right values of all others, at every trial: if no trial refuses it, the
data is too weak or the task too easy. An input, or another output, counts as an answer where it can be broadcast to the
output's shape or holds as many numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.audit.findings import Finding, State
from opsmith.problems.audit.material import Material, OutputPlace, SingleTrial

Trial = SingleTrial[Any]
Guess = Callable[[Trial, Tensor], Tensor | None]  # from a trial and the right value; None: it does not fit there


def check_answers(material: Material[Any]) -> Iterator[Finding]:
    """A finding per answer that passes everywhere, or one that all were refused."""
    tried = 0
    survivors: list[Finding] = []
    for place in material.output_places:
        for name, guess in _list_guesses(material, place).items():
            tried += 1
            if _passes_everywhere(material, place, guess):
                survivors.append(_describe_survivor(material, place, name))
    yield from survivors
    if not survivors:
        yield Finding("answers", State.FINE, f"{tried} refused")


def _describe_survivor(material: Material[Any], place: OutputPlace, name: str) -> Finding:
    tried = f"{place.name} = {name}"
    result = f"passes all {len(material.trials)} trials"
    if name == _OTHER_SEED:
        result += ": the output does not depend on the data that is drawn"
    return Finding("answers", State.FAULTY, tried, result, f"data or `cases` for which {place.name} is not {name}")


_MEAN = "the mean of the expected value"
_OTHER_SEED = "the expected value of another seed"


def _list_guesses(material: Material[Any], place: OutputPlace) -> Mapping[str, Guess]:
    """The answers to try; of the tensors those that fit at the base shape."""
    guesses: dict[str, Guess] = {
        "zeros": lambda _, right: torch.zeros_like(right),
        "ones": lambda _, right: torch.ones_like(right),
        _MEAN: lambda _, right: torch.full_like(right, float(_take_mean(right))),
        _OTHER_SEED: lambda trial, right: _take_other_seed(material, place, trial, right),
    }
    if all(_pick_expected(trial, place).numel() == 1 for trial in material.trials):
        del guesses[_MEAN]  # of one number: it is the right answer
    tensors = {entry.name: _guess_input(entry.name) for entry in material.problem.tensors}
    tensors |= {output.name: _guess_output(output) for output in material.output_places if output != place}
    first = material.trials[0]
    right = _pick_expected(first, place)
    return guesses | {name: guess for name, guess in tensors.items() if guess(first, right) is not None}


def _pick_expected(trial: Trial, place: OutputPlace) -> Tensor:
    """The expected value at a place."""
    return trial.expected_values[place.output][place.tensor]


def _take_mean(right: Tensor) -> Tensor:
    finite = right.double()[torch.isfinite(right.double())]
    return finite.mean() if finite.numel() else torch.zeros(())


def _take_other_seed(material: Material[Any], place: OutputPlace, trial: Trial, right: Tensor) -> Tensor | None:
    other_seed = material.find_another(trial)
    return None if other_seed is None else _pick_expected(other_seed, place).to(right.dtype)


def _guess_input(name: str) -> Guess:
    return lambda trial, right: _fit_tensor(trial.data.input_data[name], right)


def _guess_output(place: OutputPlace) -> Guess:
    return lambda trial, right: _fit_tensor(_pick_expected(trial, place), right)


def _fit_tensor(tensor: Tensor, right: Tensor) -> Tensor | None:
    """The tensor in the shape and dtype of `right`, where it can be broadcast or has as many numbers."""
    if tensor.numel() == right.numel():
        return tensor.reshape(right.shape).to(right.dtype)
    try:
        return tensor.expand(right.shape).to(right.dtype)
    except RuntimeError:
        return None


def _passes_everywhere(material: Material[Any], place: OutputPlace, guess: Guess) -> bool:
    """Whether no trial refuses it; where it does not fit, it cannot be given."""
    for trial in material.trials:
        answer = trial.expected_values
        value = guess(trial, answer[place.output][place.tensor])
        if value is None:
            return False
        answer[place.output][place.tensor] = value
        if not trial.accepts_answer(answer):
            return False
    return True
