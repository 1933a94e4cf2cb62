"""The length of an axis as an expression of sizes, fitted to samples: products and quotients, which a dim can say, and
affine and floored forms, which a constraint can. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from opsmith.problems.constraints import follow_constraints
from opsmith.problems.dims import DimError, parse_dim

Sizes = Mapping[str, int]
Points = Sequence[tuple[int, int]]  # the size that was varied, and the length of the axis

LARGEST_STRIDE, LARGEST_FACTOR = 64, 16


@dataclass(frozen=True)
class AxisForm:
    """An expression: of a dim (`2*M/K`), or of a constraint where `is_dim` is false (`(H - 3)//2 + 1`)."""

    text: str
    is_dim: bool = True


@dataclass(frozen=True)
class Variation:
    """What was seen of one axis: its length at the base sizes, and for each size that moves it, the points."""

    length: int
    points: Mapping[str, Points]


def fit_axis(variation: Variation, base: Sizes, joint: Sequence[tuple[Sizes, int]]) -> AxisForm | None:
    """An expression that agrees with all samples, `joint` ones (several sizes moved at once) too; None: none does."""
    names = list(variation.points)
    if not names:
        return AxisForm(str(variation.length))
    product = _fit_product(variation, base)
    if product is not None:
        return product if _agrees(product, joint) else None
    form = _fit_single(names[0], variation.points[names[0]]) if len(names) == 1 else _fit_sum(variation, base)
    return form if form is not None and _agrees(form, joint) else None


def _fit_product(variation: Variation, base: Sizes) -> AxisForm | None:
    """A monomial in all sizes, each with the exponent 1, 2 or -1."""
    powers: dict[str, int] = {}
    for name, points in variation.points.items():
        power = next((power for power in (1, -1, 2) if _is_power(variation.length, base[name], points, power)), None)
        if power is None:
            return None
        powers[name] = power
    coefficient = Fraction(variation.length)
    for name, power in powers.items():
        coefficient /= Fraction(base[name]) ** power
    top = [str(coefficient.numerator)] if coefficient.numerator != 1 else []
    top += [name for name, power in powers.items() for _ in range(power)]
    bottom = [str(coefficient.denominator)] if coefficient.denominator != 1 else []
    bottom += [name for name, power in powers.items() if power < 0]
    return AxisForm("/".join(["*".join(top) or "1", *bottom]))


def _is_power(length: int, size: int, points: Points, power: int) -> bool:
    return all(Fraction(moved, length) == Fraction(varied, size) ** power for varied, moved in points)


def _fit_single(name: str, points: Points) -> AxisForm | None:
    """An affine form, or one that is floored once."""
    for factor in range(1, LARGEST_FACTOR + 1):
        for stride in range(1, LARGEST_STRIDE + 1):
            form = _fit_floor(name, points, factor, stride)
            if form is not None:
                return form
    return None


def _fit_floor(name: str, points: Points, factor: int, stride: int) -> AxisForm | None:
    """`(factor*n + c)//stride`, with the c that lies in the bounds of every point."""
    low = max(length * stride - factor * size for size, length in points)
    high = min((length + 1) * stride - 1 - factor * size for size, length in points)
    if low > high:
        return None
    offsets = sorted(range(low, min(high, low + stride) + 1), key=abs)
    offset = next((offset for offset in offsets if offset % stride == 0), offsets[0])  # else the nearest to 0
    return AxisForm(_write_floor(name, factor, offset, stride), False)


def _write_floor(name: str, factor: int, offset: int, stride: int) -> str:
    scaled = name if factor == 1 else f"{factor}*{name}"
    if stride == 1:
        return f"{scaled}{_write_offset(offset)}"
    ones, small = divmod(offset, stride)
    if ones > 0:  # (n + 5)//2 is (n + 1)//2 + 2
        return f"{_write_floor(name, factor, small, stride)} + {ones}"
    inner = f"({scaled}{_write_offset(offset)})" if offset or factor != 1 else scaled
    return f"{inner}//{stride}"


def _write_offset(offset: int) -> str:
    return "" if not offset else f" + {offset}" if offset > 0 else f" - {-offset}"


def _fit_sum(variation: Variation, base: Sizes) -> AxisForm | None:
    """A sum of multiples of sizes, and a constant."""
    terms, summand = [], variation.length
    for name, points in variation.points.items():
        slopes = {Fraction(length - variation.length, size - base[name]) for size, length in points}
        if len(slopes) != 1 or (slope := slopes.pop()).denominator != 1 or slope < 1:
            return None
        terms.append(name if slope == 1 else f"{slope}*{name}")
        summand -= int(slope) * base[name]
    return AxisForm(" + ".join(terms) + _write_offset(summand), False)


def _agrees(form: AxisForm, joint: Sequence[tuple[Sizes, int]]) -> bool:
    return all(evaluate_form(form, sizes) == length for sizes, length in joint)


def evaluate_form(form: AxisForm, sizes: Sizes) -> int | None:
    """Its value; None: it is not whole."""
    if form.is_dim:
        try:
            return parse_dim(form.text).value(sizes)
        except DimError:
            return None

    followed = follow_constraints([f"axis == {form.text}"], {**sizes, "axis": 1})
    return None if followed is None else followed["axis"]
