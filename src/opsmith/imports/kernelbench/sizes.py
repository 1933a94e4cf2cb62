"""Which sizes a module works at: smaller ones, those that may vary, and the shape sets of a problem.

A sampler is asked, which tells shapes and work at any sizes, or nothing where the module fails.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from opsmith.imports.kernelbench.axes import AxisForm, Sizes, Variation, evaluate_form, fit_axis
from opsmith.imports.kernelbench.sampling import Axis, Sample

FLOOR = 16  # no size is halved below it ...
BATCH_FLOOR = 2  # ... but a batch
STEPS = 400  # of shrinking
SECONDS = 6.0  # for varying one module's sizes
MOST_SECONDS = 20.0  # for all samples, of processor time
_CLOSE = (1, 2, 3, 4, 5, 6, 7, 8, -1, -2)
_FAR = (2, 3, 4)
_GRAINS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32, 48, 64, 96, 128)
LEAST_POINTS = 3
TIED = 8  # sizes below are more often equal by chance


@dataclass
class ModuleSampler:
    """Samples by sizes; each is taken once."""

    take: Callable[[Sizes], Sample | None]
    seconds: float = 0.0  # of all samples
    latest: float = 0.0  # of the last one
    _samples: dict[tuple[tuple[str, int], ...], Sample | None] = field(default_factory=dict)

    def sample(self, sizes: Sizes) -> Sample | None:
        """None: the module fails there."""
        key = tuple(sizes.items())
        if key not in self._samples:
            if self.seconds > MOST_SECONDS:
                return None
            start = time.process_time()
            self._samples[key] = self.take(sizes)
            self.latest = time.process_time() - start
            self.seconds += self.latest
        return self._samples[key]


@dataclass(frozen=True)
class WorkLimits:
    """The most that a shape set may hold and compute."""

    bytes_moved: int
    operations: int

    def measure_excess(self, sample: Sample) -> float:
        """How far beyond the limits: at most 1 is within."""
        return max(sample.bytes_moved / self.bytes_moved, sample.operations / self.operations)


# -- smaller sizes


def shrink_sizes(sampler: ModuleSampler, sizes: Sizes, limits: WorkLimits, floor: int = FLOOR) -> Sizes:
    """These sizes halved, the largest first, until they are within the limits or nothing can be halved any more."""
    for _ in range(STEPS):
        sample = sampler.sample(sizes)
        if sample is None or limits.measure_excess(sample) <= 1:
            return sizes
        smaller = next(_list_smaller(sampler, sizes, sample, floor), None)
        if smaller is None:
            return sizes
        sizes = smaller
    return sizes


def _list_smaller(sampler: ModuleSampler, sizes: Sizes, sample: Sample, floor: int) -> Iterator[Sizes]:
    """Sizes at which the module works, in the same form and with less work."""
    halves = [name for name in sizes if sizes[name] // 2 >= (BATCH_FLOOR if is_batch(name) else floor)]
    names = sorted(halves, key=lambda name: -sizes[name])
    single = [(name,) for name in names]
    pairs = [*itertools.combinations(names, 2)] if len(names) < 12 else []
    pairs.sort(key=lambda pair: sizes[pair[0]] != sizes[pair[1]])
    for chosen in [*single, *pairs, *([tuple(names)] if len(names) > 2 else [])]:
        smaller = {name: size // 2 if name in chosen else size for name, size in sizes.items()}
        shrunk = sampler.sample(smaller)
        if shrunk is None or shrunk.form != sample.form:
            continue
        if (shrunk.bytes_moved, shrunk.operations) < (sample.bytes_moved, sample.operations):
            yield smaller


def is_batch(name: str) -> bool:
    return "batch" in name.lower() or name in ("B", "bs")


# -- sizes that may vary


@dataclass(frozen=True)
class AxisPlan:
    """What sizes mean for a module's tensors."""

    dims: tuple[str, ...]
    fixed: tuple[str, ...]  # integers of the file that move an axis, and do not vary
    axes: Mapping[Axis, AxisForm]
    grains: Mapping[str, int]  # dim -> what it must be a multiple of, where that is not 1
    ties: Mapping[str, str] = field(default_factory=dict)  # integer of the file -> the dim that it must equal

    def tie_sizes(self, sizes: Sizes) -> dict[str, int]:
        """These sizes, with tied ones equal."""
        return {name: sizes[self.ties.get(name, name)] for name in sizes}


class SizeVariation:
    """Moves one size after the other, and sees what follows for the tensors of the problem: all but `unused` ones. What
    moves a `rigid` one does not vary."""

    def __init__(
        self, sampler: ModuleSampler, base: Sizes, unused: Collection[str] = (), rigid: Collection[str] = ()
    ) -> None:
        self._sampler, self._base, self._unused, self._rigid = sampler, dict(base), unused, rigid
        sample = sampler.sample(base)
        assert sample is not None
        self._sample: Sample = sample
        self._points: dict[str, dict[int, Mapping[Axis, int]]] = {}  # name -> size -> lengths
        self._deadline = time.process_time() + SECONDS
        self._ties: dict[str, str] = {}

    def plan_sizes(self) -> AxisPlan:
        for name in self._base:
            self._points[name] = self._vary_size(name)
        self._tie_equal_sizes()
        moving = {name for name in self._base if self._list_moved(name)}
        dims = {name for name in moving if len(self._points[name]) >= LEAST_POINTS}
        dims = {name for name in dims if not any(label in self._rigid for label, _ in self._list_moved(name))}
        while True:
            axes, unfit = self._fit_axes(dims)
            if not unfit:
                break
            dims -= {self._choose_fixed(unfit, dims)}
        ordered = tuple(name for name in self._base if name in dims)
        ties = {name: dim for name, dim in self._ties.items() if dim in dims}
        fixed = tuple(name for name in self._base if name not in dims and name not in ties)
        grains = {name: grain for name in ordered if (grain := self._find_grain(name)) > 1}
        return AxisPlan(ordered, fixed, axes, grains, ties)

    def _tie_equal_sizes(self) -> None:
        """Sizes that cannot be moved alone may move together where they are equal."""
        stuck = [name for name in self._base if len(self._points[name]) < LEAST_POINTS and self._base[name] >= TIED]
        for size in {self._base[name] for name in stuck}:
            leader, *rest = [name for name in stuck if self._base[name] == size]
            if not rest:
                continue
            self._ties |= dict.fromkeys(rest, leader)
            self._points[leader] = self._vary_size(leader)
            if len(self._points[leader]) < LEAST_POINTS:
                for name in rest:
                    del self._ties[name]

    def _set_sizes(self, changed: Sizes) -> dict[str, int]:
        sizes = {**self._base, **changed}
        return {name: sizes[self._ties.get(name, name)] for name in sizes}

    def _vary_size(self, name: str) -> dict[int, Mapping[Axis, int]]:
        size = self._base[name]
        close = [size + step for step in _CLOSE]
        grains = [size + step for step in _GRAINS if step not in _CLOSE]
        sizes = dict.fromkeys([*close, *(size * factor for factor in _FAR), size // 2, *grains])
        points: dict[int, Mapping[Axis, int]] = {}
        for number, varied in enumerate(varied for varied in sizes if varied >= 1 and varied != size):
            if number >= len(close) + 2 and len(points) >= LEAST_POINTS:
                break
            if len(points) >= LEAST_POINTS and self._is_proportional(name, points):
                break
            if time.process_time() > self._deadline:
                break
            sample = self._sampler.sample(self._set_sizes({name: varied}))
            if sample is not None and sample.form == self._sample.form:
                points[varied] = self._list_lengths(sample)
        return points

    def _list_lengths(self, sample: Sample) -> dict[Axis, int]:
        return {axis: length for axis, length in sample.lengths.items() if axis[0] not in self._unused}

    def _is_proportional(self, name: str, points: Mapping[int, Mapping[Axis, int]]) -> bool:
        """Whether every axis that it moves is a multiple of it: more points would say nothing new."""
        size = self._base[name]
        return all(
            length in (base, Fraction(base * varied, size))
            for axis, base in self._list_lengths(self._sample).items()
            for varied, lengths in points.items()
            for length in [lengths[axis]]
        )

    def _list_moved(self, name: str) -> set[Axis]:
        base = self._sample.lengths
        return {
            axis for lengths in self._points[name].values() for axis, length in lengths.items() if length != base[axis]
        }

    def _moves_input(self, name: str) -> bool:
        return any(label.startswith("input") for label, _ in self._list_moved(name))

    def _fit_axes(self, dims: set[str]) -> tuple[dict[Axis, AxisForm], set[Axis]]:
        axes: dict[Axis, AxisForm] = {}
        joint = self._sample_jointly(dims)
        lengths_here = self._list_lengths(self._sample)
        for axis, length in lengths_here.items():
            names = [name for name in self._base if name in dims and axis in self._list_moved(name)]
            points = {name: [(size, lengths[axis]) for size, lengths in self._points[name].items()] for name in names}
            form = fit_axis(Variation(length, points), self._base, [(sizes, lengths[axis]) for sizes, lengths in joint])
            if form is not None and all(map(self._moves_input, _list_entangled(form, names))):
                axes[axis] = form
        return axes, set(lengths_here) - set(axes)

    def _sample_jointly(self, dims: set[str]) -> list[tuple[Sizes, Mapping[Axis, int]]]:
        """All dims moved at once, to sizes at which each works alone."""
        samples: list[tuple[Sizes, Mapping[Axis, int]]] = []
        for number in range(3):
            moved: dict[str, int] = {}
            for name in dims:
                choices = sorted(self._points[name])
                moved[name] = choices[(number * 3 + len(name)) % len(choices)]
            sizes = self._set_sizes(moved)
            sample = self._sampler.sample(sizes)
            if sample is not None and sample.form == self._sample.form:
                samples.append((sizes, self._list_lengths(sample)))
        return samples

    def _choose_fixed(self, unfit: set[Axis], dims: set[str]) -> str:
        """The size that is given up: one that moves no input, else the smallest."""
        involved = [name for name in dims if self._list_moved(name) & unfit]

        def rank(name: str) -> tuple[bool, int, str]:
            return self._moves_input(name), self._base[name], name

        return min(involved or dims, key=rank)

    def _find_grain(self, name: str) -> int:
        """What the size must be a multiple of, as far as the samples say."""
        differences = [abs(varied - self._base[name]) for varied in self._points[name]]
        grain = math.gcd(*differences) if differences else 1
        return grain if self._base[name] % grain == 0 else 1


def _list_entangled(form: AxisForm, names: Sequence[str]) -> list[str]:
    """The sizes that a form ties to others by more than a product: they may vary only where an input has them. So the
    side of a window, or a number of groups, stays what it is."""
    if form.is_dim:
        return [name for name in names if f"/{name}" in form.text]
    return list(names) if len(names) > 1 else []


# -- shape sets


def choose_sets(sampler: ModuleSampler, plan: AxisPlan, base: Sizes, limits: WorkLimits) -> dict[str, Sizes]:
    """The sets for verdicts beside the base, by name: the module works there, and every axis is as the plan says."""
    tiny = {**base, **{name: max(plan.grains.get(name, 1), 1) for name in plan.dims}}
    sets = {"tiny": tiny, "odd": _move_sizes(plan, base, 0.6), "wide": _move_sizes(plan, base, 1.3)}
    return keep_sound(sampler, plan, sets, limits, [base])


def choose_bench(
    sampler: ModuleSampler, plan: AxisPlan, base: Sizes, large: Sizes, limits: WorkLimits, is_example: bool
) -> dict[str, Sizes]:
    """The sets that are timed: small, odd, large. `is_example`: base is no size that anybody asked to have timed."""
    grown = grow_sizes(sampler, plan, large, limits)
    sets = {"small": dict(base), "odd": _move_sizes(plan, large, 0.8), "large": grown}
    if is_example or sets["small"] == sets["large"]:
        sets["small"] = _move_sizes(plan, base, 0.5)
    chosen = keep_sound(sampler, plan, sets, limits, [])
    for name, factor in (("odd", 0.9), ("odd", 0.5), ("medium", 0.7), ("less", 0.4), ("least", 0.3)):
        if len(chosen) < 3 and name not in chosen:
            chosen |= keep_sound(sampler, plan, {name: _move_sizes(plan, large, factor)}, limits, [*chosen.values()])
    return chosen


def _move_sizes(plan: AxisPlan, base: Sizes, factor: float) -> Sizes:
    """Sizes near these times the factor, odd where a dim may be."""
    moved = {}
    for name in plan.dims:
        grain = plan.grains.get(name, 1)
        multiple = max(1, round(base[name] * factor / grain))
        moved[name] = grain * (multiple | 1)
    return {**base, **moved}


def grow_sizes(sampler: ModuleSampler, plan: AxisPlan, sizes: Sizes, limits: WorkLimits, times: int = 1) -> Sizes:
    """Doubled so many times, the smallest first, as long as they stay within the limits."""
    grown = dict(sizes)
    for _ in range(times):
        for name in sorted(plan.dims, key=lambda name: grown[name]):
            doubled = plan.tie_sizes({**grown, name: 2 * grown[name]})
            if (sample := sampler.sample(doubled)) and limits.measure_excess(sample) <= 1:
                grown = doubled
    return grown


def keep_sound(
    sampler: ModuleSampler, plan: AxisPlan, sets: Mapping[str, Sizes], limits: WorkLimits, used: Sequence[Sizes]
) -> dict[str, Sizes]:
    chosen: dict[str, Sizes] = {}
    for name, sizes in sets.items():
        sound = _find_sound(sampler, plan, sizes, limits)
        if sound is not None and sound not in [*used, *chosen.values()]:
            chosen[name] = sound
    return chosen


def _find_sound(sampler: ModuleSampler, plan: AxisPlan, sizes: Sizes, limits: WorkLimits) -> Sizes | None:
    """These sizes, or larger ones where the module needs them."""
    for factor in (1, 2, 3, 4, 8, 16):
        larger = plan.tie_sizes({name: size * factor if name in plan.dims else size for name, size in sizes.items()})
        sample = sampler.sample(larger)
        if sample is None:
            continue
        if limits.measure_excess(sample) > 1:
            return None
        if agrees_with_plan(plan, sample, larger):
            return larger
    return None


def agrees_with_plan(plan: AxisPlan, sample: Sample, sizes: Sizes) -> bool:
    return all(evaluate_form(form, sizes) == sample.lengths.get(axis) for axis, form in plan.axes.items())
