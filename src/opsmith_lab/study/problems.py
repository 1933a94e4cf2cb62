"""The sets of problems: BBOB in two and five dimensions, synthetic functions, and physical systems in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from opsmith.errors import UsageError
from opsmith_lab.study.synthetic import list_synthetic
from opsmith_lab.study.trajectory import Array, BlackBox, Domain

FEW = 8  # problems of each large set that stand for it in the set `few`


@cache
def list_bbob(dimension: int) -> tuple[BlackBox, ...]:
    """The 24 functions in two instances each. Raises UsageError where `cocoex` is missing."""
    try:
        import cocoex  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(f"set bbob-{dimension}d: {error}; try: pip install 'opsmith[study]'") from None
    suite = cocoex.Suite("bbob", "", f"dimensions:{dimension} instance_indices:1-2")
    domain = Domain((-5.0,) * dimension, (5.0,) * dimension)

    def make_box(place: int) -> BlackBox:
        problem = suite.get_problem(place)
        return BlackBox(
            problem.id, f"bbob-{dimension}d", domain, lambda points: np.array([problem(point) for point in points])
        )

    return tuple(make_box(place) for place in range(len(suite)))


def lose_yield(points: Array) -> Array:
    """A -> B -> C in a plug-flow reactor, both of first order: 1 less the yield of B. Temperature K, residence s."""
    temperature, residence = points.T
    first, second = 2e4 * np.exp(-6e4 / (8.314 * temperature)), 4e9 * np.exp(-1.05e5 / (8.314 * temperature))
    made = first / (second - first) * (np.exp(-first * residence) - np.exp(-second * residence))
    return np.asarray(1 - made)


def amplify_vibration(points: Array) -> Array:
    """Den Hartog's damped absorber of 5 % of the mass: the largest amplification of an undamped main mass."""
    tuning, damping = points[:, :1], points[:, 1:]
    g2 = np.linspace(0.6, 1.4, 401) ** 2
    loss = (2 * damping) ** 2 * g2
    own = loss + (g2 - tuning**2) ** 2
    joint = loss * (g2 * 1.05 - 1) ** 2 + (0.05 * tuning**2 * g2 - (g2 - 1) * (g2 - tuning**2)) ** 2
    return np.asarray(np.sqrt(own / joint).max(axis=1))


def price_pipe(points: Array) -> Array:
    """Hot water of 2 kg/s at 90 C: yearly cost of a metre: pumping, heat lost through the insulation, material."""
    diameter, insulation = points.T
    speed = 2 / (970 * math.pi * diameter**2 / 4)
    friction = 0.316 / (970 * speed * diameter / 3.2e-4) ** 0.25  # Blasius
    pumping = friction / diameter * 970 * speed**2 / 2 * (2 / 970) / 0.6  # W
    outer = diameter / 2 + insulation
    lost = 2 * math.pi * 80 / (np.log(outer / (diameter / 2)) / 0.035 + 1 / (outer * 10))  # W
    volume = math.pi * (outer**2 - diameter**2 / 4)
    return np.asarray(8.76 * (0.25 * pumping + 0.08 * lost) + 60 * diameter + 250 * volume)


def change_orbit(points: Array) -> Array:
    """From a low orbit of 7,000 km to 42,164 km with 28.5 degrees of inclination, in three burns: km/s in all.

    Apoapsis of the transfer in 10^6 m, inclination taken out in the first and in the second burn in degrees.
    """
    apoapsis, first, second = points[:, 0] * 1e6, points[:, 1], points[:, 2]
    low, high = 7.0e6, 4.2164e7

    def move(radius: float | Array, axis: float | Array) -> Array:
        return np.asarray(np.sqrt(3.986004e14 * (2 / radius - 1 / axis)))

    def burn(before: Array, after: Array, angle: Array) -> Array:
        return np.asarray(np.sqrt(before**2 + after**2 - 2 * before * after * np.cos(np.radians(angle))))

    out, back = (low + apoapsis) / 2, (high + apoapsis) / 2
    total = burn(move(low, low), move(low, out), first) + burn(move(apoapsis, out), move(apoapsis, back), second)
    return np.asarray((total + burn(move(high, back), move(high, high), 28.5 - first - second)) / 1e3)


def reflect_light(points: Array) -> Array:
    """Four layers on glass, of magnesium fluoride and titania in turn, nm each: mean reflectance of 400 to 700 nm."""
    waves = np.linspace(400, 700, 31)
    electric, magnetic = (np.full((len(points), len(waves)), index + 0j) for index in (1.0, 1.52))
    for layer in (3, 2, 1, 0):
        index = (1.38, 2.35)[layer % 2]
        phase = 2 * math.pi * index * points[:, layer : layer + 1] / waves
        electric, magnetic = (
            np.cos(phase) * electric + 1j * np.sin(phase) / index * magnetic,
            1j * index * np.sin(phase) * electric + np.cos(phase) * magnetic,
        )
    return np.asarray((np.abs((electric - magnetic) / (electric + magnetic)) ** 2).mean(axis=1))


def find_side_lobe(points: Array) -> Array:
    """Ten antennas in a line, alike on both sides of the middle, at gaps in wavelengths: the highest side lobe, dB."""
    places = np.cumsum(points, axis=1) - points[:, :1] / 2
    sines = np.linspace(0, 1, 361)
    field = np.abs(np.cos(2 * math.pi * places[:, :, None] * sines).mean(axis=1))
    falls = np.diff(field, axis=1) < 0
    beyond = np.where(np.cumprod(falls, axis=1) == 1, 0, field[:, 1:])  # past the main lobe
    return np.asarray(20 * np.log10(np.maximum(beyond.max(axis=1), 1e-6)))


def _box(name: str, evaluate: Callable[[Array], Array], unit: str, **axes: tuple[float, float]) -> BlackBox:
    lower, upper = zip(*axes.values(), strict=True)
    words = tuple(axis.replace("_", " ", 1).replace("_per_", "/") for axis in axes)
    return BlackBox(name, "physical", Domain(lower, upper), evaluate, unit, words)


PHYSICAL = (
    _box("plug-flow reactor", lose_yield, "1", temperature_K=(450.0, 800.0), residence_s=(1.0, 120.0)),
    _box("vibration absorber", amplify_vibration, "1", tuning_1=(0.7, 1.3), damping_1=(0.01, 0.6)),
    _box("hot pipe", price_pipe, "EUR/(m year)", diameter_m=(0.02, 0.2), insulation_m=(0.002, 0.3)),
    _box("orbit", change_orbit, "km/s", apoapsis_Mm=(42.2, 400.0), first_deg=(0.0, 14.0), second_deg=(0.0, 28.5)),
    _box("coating", reflect_light, "1", **{f"layer{i}_nm": (5.0, 200.0) for i in range(1, 5)}),
    _box("antenna", find_side_lobe, "dB", **{f"gap{i}_wavelengths": (0.3, 1.2) for i in range(1, 6)}),
)


def _list_few() -> tuple[BlackBox, ...]:
    """As many requests as a chat model's study can ask by default: FEW of each large set, evenly spaced."""
    large = (list_bbob(2), list_bbob(5), list_synthetic())
    return (*(boxes[place * len(boxes) // FEW] for boxes in large for place in range(FEW)), *PHYSICAL)


SETS: Mapping[str, Callable[[], tuple[BlackBox, ...]]] = {
    "bbob-2d": lambda: list_bbob(2),
    "bbob-5d": lambda: list_bbob(5),
    "synthetic": list_synthetic,
    "physical": lambda: PHYSICAL,
    "few": _list_few,
}
