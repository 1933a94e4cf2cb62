"""Forms: the stream types that a tensor may cross a border in, those first that functions on both sides speak.

Shapes  a tensor [N, D] is fp32 [D, N], or Buffer(fp32, [D]) [N], or Buffer(fp32, [D, N]) [1]; an axis of 1 that is kept
        for broadcasting is left out, or stretched to what it is combined with; rows of 0 and 1 may be Multihots
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opsmith.problems.dims import Dim, make_literal
from opsmith.targets.step.language.spec import FnSpec
from opsmith.targets.step.language.types import Buffer, Field, Multihot, Scalar, fields_of
from opsmith.targets.step.planning.observation import ValueType
from opsmith.targets.step.planning.vocabulary import read_fn_words
from opsmith.targets.step.planning.writing import write_size

ONE = make_literal(1)


@dataclass(frozen=True)
class BorderForm:
    """A stream type for a value, and texts that lead from the value to it and back: `{}` stands for the tensor."""

    dtype: Field
    dims: tuple[Dim, ...]
    leave: str = "{}"
    enter: str = "{}"
    cost: float = 0.0  # how unusual it is

    @property
    def key(self) -> tuple[Field, tuple[Dim, ...]]:
        return self.dtype, self.dims


@dataclass(frozen=True)
class _Layout:
    """A tensor's shape after a conversion."""

    shape: tuple[Dim, ...]
    leave: str = "{}"
    enter: str = "{}"
    cost: float = 0.0


def list_forms(type_: ValueType, stretched: Sequence[tuple[Dim, ...]], fns: Sequence[FnSpec]) -> list[BorderForm]:
    """All forms of a value, the plainest first. `stretched`: shapes that its axes of 1 may be stretched to."""
    forms: dict[tuple[Field, tuple[Dim, ...]], BorderForm] = {}
    for layout in _list_layouts(type_.shape, stretched):
        for form in _list_fields(layout, type_.scalar, fns):
            forms.setdefault(form.key, form)
    return sorted(forms.values(), key=lambda form: form.cost)


def _list_layouts(shape: tuple[Dim, ...], stretched: Sequence[tuple[Dim, ...]]) -> Iterator[_Layout]:
    ones = [axis for axis, dim in enumerate(shape) if dim == ONE]
    if not shape:
        yield _Layout((ONE,), "{}.reshape(1)", "{}.reshape(())")
        return
    if ones and len(ones) < len(shape):
        leave = "{}" + "".join(f".squeeze({axis})" for axis in reversed(ones))
        enter = "{}" + "".join(f".unsqueeze({axis})" for axis in ones)
        yield _Layout(tuple(dim for dim in shape if dim != ONE), leave, enter)
    elif len(ones) > 1:
        yield _Layout((ONE,), "{}.reshape(1)", f"{{}}.reshape({', '.join('1' * len(ones))})")
    for target in stretched:
        if ones and len(target) == len(shape) and target != shape:
            lengths = ", ".join(write_size(dim) for dim in target)
            places = ", ".join(":1" if axis in ones else ":" for axis in range(len(shape)))
            yield _Layout(target, f"{{}}.expand({lengths})", f"{{}}[{places}]", 1.0)
    yield _Layout(shape, cost=0.6 if ones and len(shape) > 1 else 0.0)
    if len(shape) > 1:
        turned = (*shape[:-2], shape[-1], shape[-2])
        yield _Layout(turned, "{}.transpose(-2, -1)", "{}.transpose(-2, -1)", 20.0)


def _list_fields(layout: _Layout, scalar: str, fns: Sequence[FnSpec]) -> Iterator[BorderForm]:
    for name, leave, enter, cost in _list_scalars(scalar, fns):
        chain = (leave.replace("{}", layout.leave), layout.enter.replace("{}", enter))
        elem = Scalar(name)
        shape = layout.shape
        for count in range(len(shape)):
            yield _make_form(elem, shape, count, chain, layout.cost + cost)
        yield BorderForm(
            Buffer(elem, tuple(reversed(shape))),
            (ONE,),
            f"{chain[0]}.unsqueeze(0)",
            chain[1].replace("{}", "{}.squeeze(0)", 1),
            layout.cost + cost + 0.8,
        )
        for hot in {field for fn in fns for field in list_multihots(fn)}:
            if len(shape) > 1 and shape[-1] == hot.length and hot.scalar.name == name:
                outer = tuple(reversed(shape[:-1]))
                yield BorderForm(hot, outer, *chain, layout.cost + cost + 0.2)


def _list_scalars(scalar: str, fns: Sequence[FnSpec]) -> Iterator[tuple[str, str, str, float]]:
    """The value's number type; for decisions and counts also fp32, if functions know no other."""
    yield scalar, "{}", "{}", 0.0
    if scalar in ("bool", "int64", "int32"):
        back = {"bool": "torch.bool", "int64": "torch.int64", "int32": "torch.int32"}[scalar]
        yield "fp32", "{}.to(torch.get_default_dtype())", f"{{}}.to({back})", 0.5


def _make_form(elem: Scalar, shape: tuple[Dim, ...], count: int, chain: tuple[str, str], cost: float) -> BorderForm:
    inner = tuple(reversed(shape[len(shape) - count :]))
    outer = tuple(reversed(shape[: len(shape) - count]))
    return BorderForm(Buffer(elem, inner) if inner else elem, outer, *chain, cost + 0.05 * count)


def list_multihots(fn: FnSpec) -> Iterator[Multihot]:
    for dtype in (fn.input_dtype, fn.output_dtype):
        for own in fields_of(dtype):
            if isinstance(own, Multihot):
                yield own


def rank_form(form: BorderForm, made_by: Sequence[str], taken_by: Sequence[str], fns: Sequence[FnSpec]) -> float:
    """How well functions fit a border: higher is better. `made_by`, `taken_by`: operations on its two sides."""
    return -form.cost + _fit_side(form, made_by, fns, False) + _fit_side(form, taken_by, fns, True)


def _fit_side(form: BorderForm, operations: Sequence[str], fns: Sequence[FnSpec], is_input: bool) -> float:
    best = 0.0
    for fn in fns:
        if form.dtype not in fields_of(fn.input_dtype if is_input else fn.output_dtype):
            continue
        best = max(best, 3.0 if read_fn_words(fn).shares(operations) else 1.0)
    return best
