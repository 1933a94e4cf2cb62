"""Drawing: the data of a problem for a shape set and a seed, in the declared precision and raised to float64.

The process's own random state and default dtype are left as they were. Data is drawn in this order, with torch's CPU
generator seeded once: `global`, inputs, parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.authored import compile_transform
from opsmith.problems.bindings import Bindings, bind_tensors
from opsmith.problems.decisions import Unclear, find_unclear
from opsmith.problems.distributions import Shaping
from opsmith.problems.faults import make_fault
from opsmith.problems.generators import compute_inputs, make_tensor
from opsmith.problems.namespace import run_global
from opsmith.problems.precision import default_dtype, default_of, own_randomness, widen_floats
from opsmith.problems.problem import ATTEMPTS, Problem
from opsmith.problems.reference import clone_names
from opsmith.records import content_hash

Look = Callable[[Bindings, Bindings], Unclear | None]  # at data as declared and in float64

JITTERED = frozenset({"torch.rand", "torch.randn"})  # generators of continuous data ...
_CONTINUOUS = "uniform("  # ... and what an expression of such data begins with


def draw_data(problem: Problem, overrides: Mapping[str, int], seed: int, shaping: Shaping | None = None) -> Bindings:
    """The data of one seed in the declared precision. Raises TaskFault.

    `overrides` are sizes that win over the problem's own, also over those that `global` assigns.
    """
    if problem.drawn_from is not None:
        return compute_inputs(problem, draw_data(problem.drawn_from.problem, overrides, seed))
    with own_randomness(seed), default_dtype(default_of(False)):
        sizes, names, random_global = _run_watched(problem, overrides)
        chosen = {} if shaping is None else shaping.choose_tensors(problem)
        tensors: dict[str, Tensor] = {}
        for entry in problem.tensors:
            tensors[entry.name] = make_tensor(entry, sizes, {**names, **tensors}, chosen.get(entry.name))
    return bind_tensors(sizes, tensors, names, False, random_global)


def _derive_both(problem: Problem, origin: Bindings, seed_text: str) -> tuple[Bindings, Bindings]:
    declared = compute_inputs(problem, origin)
    return declared, widen_data(problem, declared, make_seed(seed_text))


def draws_numbers(problem: Problem) -> bool:
    """Whether `global` draws random numbers. Raises TaskFault when they are not those of torch's seeded generator."""
    if not problem.global_code:
        return False
    runs = []
    for _ in range(2):
        with own_randomness(0), default_dtype(default_of(False)):
            runs.append(_run_watched(problem, {}))
    (_, first, has_drawn), (_, second, _) = runs
    changed = [name for name, value in first.items() if not _is_same(value, second.get(name))]
    if changed:
        change = f"another {changed[0]} when it runs again"
        raise make_fault("TASK", "global", change, "the same names and numbers", "draw with torch, which is seeded")
    return has_drawn


def _is_same(value: Any, second: Any) -> bool:
    """Whether a number or a tensor is what it was; of anything else nothing is known."""
    if isinstance(value, Tensor):
        both = [widen_floats(each).nan_to_num() for each in (value, second) if isinstance(each, Tensor)]
        return len(both) == 2 and torch.equal(*both)
    return not isinstance(value, (bool, int, float)) or repr(value) == repr(second)  # which NaN equals


def _run_watched(problem: Problem, overrides: Mapping[str, int]) -> tuple[dict[str, int], dict[str, Any], bool]:
    """The sizes, what authors' code sees, and whether `global` drew numbers."""
    before = torch.default_generator.get_state()
    sizes, names = run_global(problem, overrides)
    return sizes, names, not torch.equal(before, torch.default_generator.get_state())


def widen_data(problem: Problem, bindings: Bindings, seed: int) -> Bindings:
    """The same numbers with every float raised to float64; `global` runs again under that default dtype."""
    tensors = {name: widen_floats(tensor) for name, tensor in bindings.input_data.items()}
    return _bind_wide(problem, bindings, seed, tensors)


def jitter_data(
    problem: Problem, bindings: Bindings, seed: int, rounding: float | None = None, is_by_row: bool = False
) -> Bindings:
    """`widen_data` with every continuous number moved by one rounding error, up or down: by `rounding` of itself, or as
    its declared type rounds. `is_by_row`: every float, by that of the largest number along the last axis."""
    continuous = {
        entry.name
        for entry in problem.tensors
        if entry.data_gen in JITTERED or (entry.type.is_floating and entry.expression.startswith(_CONTINUOUS))
    }
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, tensor in bindings.input_data.items():
        tensors[name] = widen_floats(tensor)
        if name in continuous or (is_by_row and tensor.is_floating_point() and tensor.numel()):
            signs = torch.randint(0, 2, tensor.shape, generator=generator).double() * 2 - 1
            step = torch.finfo(tensor.dtype).eps if rounding is None else rounding
            sizes = torch.where(tensors[name].isfinite(), tensors[name], 0.0)  # an infinity does not move
            if is_by_row and tensor.dim():
                sizes = sizes.abs().amax(-1, keepdim=True)
            tensors[name] = tensors[name] + step * signs * sizes
    return _bind_wide(problem, bindings, seed, tensors)


def _bind_wide(problem: Problem, bindings: Bindings, seed: int, tensors: dict[str, Tensor]) -> Bindings:
    """Wide bindings at the same sizes, on these tensors."""
    with own_randomness(seed), default_dtype(default_of(True)):
        _, names = run_global(problem, bindings.sizes)
    return bind_tensors(bindings.sizes, tensors, names, True, bindings.random_global)


def draw_with_margins(
    problem: Problem,
    overrides: Mapping[str, int],
    seed_text: str,
    attempts: int = ATTEMPTS,
    look: Look | None = None,
    shaping: Shaping | None = None,
) -> tuple[Bindings, Bindings]:
    """The first draw that is not unclear: (declared, wide). Without a `look` only margins are looked at.

    The seed of an attempt is a hash of `seed_text` and the attempt's number. Raises TaskFault after so many draws.
    """
    if problem.drawn_from is not None:
        parent = problem.drawn_from.problem

        def look_at_both(declared: Bindings, wide: Bindings) -> Unclear | None:
            narrow = find_unclear(parent, declared, wide)
            return narrow or (look and look(*_derive_both(problem, declared, seed_text)))

        origin, _ = draw_with_margins(parent, overrides, seed_text, attempts, look_at_both)
        return _derive_both(problem, origin, seed_text)
    look = look or partial(find_unclear, problem)
    unclear: Unclear | None = None
    for attempt in range(attempts):
        seed = make_seed(seed_text, attempt)
        declared = draw_data(problem, overrides, seed, shaping)
        wide = widen_data(problem, declared, seed)
        unclear = look(declared, wide)
        if unclear is None:
            return declared, wide
    sizes = ", ".join(f"{name} = {size}" for name, size in sorted(declared.sizes.items()) if name in problem.symbols)
    assert unclear is not None
    reason = f"{unclear.given} in all of {attempts} draws at {sizes}"
    raise make_fault("TASK", unclear.where, reason, "data that decides clearly", unclear.remedy, unclear.text)


def draw_case(problem: Problem, overrides: Mapping[str, int], number: int) -> tuple[Bindings, Bindings]:
    """Hand-made input `number`: a draw at these sizes, changed by its text: (declared, wide). Raises TaskFault."""
    label, seed_text, text = f"cases[{number}]", f"case {number}", problem.cases[number].text
    if problem.drawn_from is not None:
        return _derive_both(problem, draw_case(problem.drawn_from.problem, overrides, number)[0], seed_text)
    plain, _ = draw_with_margins(problem, overrides, seed_text)
    namespace = clone_names(plain)
    with default_dtype(default_of(False)), torch.no_grad():
        holds = compile_transform(text, label).run_text(namespace)
    tensors = namespace["input_data"]
    changed = {name for name, tensor in plain.input_data.items() if not _is_like(tensors.get(name), tensor)}
    if changed or tensors.keys() != plain.input_data.keys():
        change = f"other shapes or dtypes of {sorted(changed)}"
        raise make_fault("TASK", label, change, "the tensors of the draw, changed")
    if not (isinstance(holds, (bool, int, float, Tensor)) and bool(torch.as_tensor(holds).all())):
        raise make_fault("TASK", label, "data without the property", "a last expression that is true", text=text)
    declared = bind_tensors(plain.sizes, tensors, dict(plain.namespace), False, plain.random_global)
    return declared, widen_data(problem, declared, make_seed(seed_text))


def _is_like(tensor: Any, own: Tensor) -> bool:
    return isinstance(tensor, Tensor) and tensor.shape == own.shape and tensor.dtype == own.dtype


def make_seed(text: str, attempt: int = 0) -> int:
    """A seed for torch's generators, the same on every machine."""
    return int(content_hash("step data", text, str(attempt))[:15], 16)
