"""Would an answer pass that a program can give without doing the task?

Each is given in place of one field, beside the right values of all others, at every trial: if no trial refuses it, the
data is too weak or the task too easy. An input, or another output, counts as an answer where it can be broadcast to the
output's shape or holds as many numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from opsmith.targets import Trial
from opsmith.targets.audited import Finding, State
from opsmith.targets.step.audit.material import Material, Place

Guess = Callable[[Trial, Tensor], Tensor | None]  # from a trial and the right value; None: it does not fit there


def check_answers(material: Material) -> Iterator[Finding]:
    """A finding per answer that passes everywhere, or one that all were refused."""
    tried = 0
    survivors: list[Finding] = []
    for place in material.places:
        for name, guess in _guesses(material, place).items():
            tried += 1
            if _passes_everywhere(material, place, guess):
                survivors.append(_survivor(material, place, name))
    yield from survivors
    if not survivors:
        yield Finding("answers", State.FINE, f"{tried} refused")


def _survivor(material: Material, place: Place, name: str) -> Finding:
    tried = f"{place.name} = {name}"
    found = f"passes all {len(material.trials)} trials"
    if name == _OTHER_SEED:
        found += ": the output does not depend on the data that is drawn"
    return Finding("answers", State.FAULTY, tried, found, f"data or `cases` for which {place.name} is not {name}")


_MEAN = "the mean of the expected value"
_OTHER_SEED = "the expected value of another seed"


def _guesses(material: Material, place: Place) -> Mapping[str, Guess]:
    """The answers to try; of the tensors those that fit at the base shape."""
    guesses: dict[str, Guess] = {
        "zeros": lambda _, wanted: torch.zeros_like(wanted),
        "ones": lambda _, wanted: torch.ones_like(wanted),
        _MEAN: lambda _, wanted: torch.full_like(wanted, float(_mean(wanted))),
        _OTHER_SEED: lambda trial, wanted: _of_another_seed(material, place, trial, wanted),
    }
    if all(material.expected(trial)[place.output][place.field].numel() == 1 for trial in material.trials):
        del guesses[_MEAN]  # of one number: it is the right answer
    first = material.trials[0]
    right = material.expected(first)[place.output][place.field]
    others = {entry.name: _input_as_answer(material, entry.name) for entry in material.tensors}
    others |= {other.name: _output_as_answer(material, other) for other in material.places if other != place}
    return guesses | {name: guess for name, guess in others.items() if guess(first, right) is not None}


def _mean(wanted: Tensor) -> Tensor:
    finite = wanted[torch.isfinite(wanted)].double()
    return finite.mean() if finite.numel() else torch.zeros(())


def _of_another_seed(material: Material, place: Place, trial: Trial, wanted: Tensor) -> Tensor | None:
    other = material.another(trial)
    return None if other is None else material.expected(other)[place.output][place.field].to(wanted.dtype)


def _input_as_answer(material: Material, name: str) -> Guess:
    def guess(trial: Trial, wanted: Tensor) -> Tensor | None:
        return _fitted(material.bindings(trial).input_data[name], wanted)

    return guess


def _output_as_answer(material: Material, other: Place) -> Guess:
    def guess(trial: Trial, wanted: Tensor) -> Tensor | None:
        return _fitted(material.expected(trial)[other.output][other.field], wanted)

    return guess


def _fitted(tensor: Tensor, wanted: Tensor) -> Tensor | None:
    """The tensor in the shape and dtype of `wanted`, where it can be broadcast or has as many numbers."""
    if tensor.numel() == wanted.numel():
        return tensor.reshape(wanted.shape).to(wanted.dtype)
    try:
        return tensor.expand(wanted.shape).to(wanted.dtype)
    except RuntimeError:
        return None


def _passes_everywhere(material: Material, place: Place, guess: Guess) -> bool:
    """Whether no trial refuses it; where it does not fit, it cannot be given."""
    for trial in material.trials:
        answer = material.expected(trial)
        value = guess(trial, answer[place.output][place.field])
        if value is None:
            return False
        answer[place.output][place.field] = value
        if not material.passes(trial, answer):
            return False
    return True
