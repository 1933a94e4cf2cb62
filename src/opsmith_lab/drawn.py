"""Problems that a seed draws, each with a plain program in C: what a tuner is tried on that it was not written for.

Six kinds: a chain of operations on elements, a reduction over an axis, a matrix product with operations behind it, a
norm of rows, a stencil, and distances between rows. Operators, axes, layouts and sizes are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent

KINDS = ("chain", "reduction", "product", "norm", "stencil", "distance")


@dataclass(frozen=True)
class DrawnProblem:
    """A problem file, and a right program as a textbook would write it."""

    name: str
    text: str
    program: str


@dataclass(frozen=True)
class _Operator:
    """One operation on an element, in both languages; `z` is the element."""

    torch: str
    c: str


_OPERATORS = (
    _Operator("torch.tanh(z)", "tanhf(z)"),
    _Operator("torch.sigmoid(z)", "1.0f / (1.0f + expf(-z))"),
    _Operator("torch.relu(z)", "fmaxf(z, 0.0f)"),
    _Operator("torch.exp(-z.abs())", "expf(-fabsf(z))"),
    _Operator("torch.log1p(z * z)", "log1pf(z * z)"),
    _Operator("z * 0.75 + 0.125", "z * 0.75f + 0.125f"),
    _Operator("z / (1 + z.abs())", "z / (1.0f + fabsf(z))"),
    _Operator("torch.nn.functional.gelu(z)", "0.5f * z * (1.0f + erff(z * 0.70710678f))"),
)
Sizes = tuple[int, int, int, int, int]  # of a dim: of the file itself, odd; timed: small, odd, large
_HEAD = "#include <math.h>\n#include <stdint.h>\n\n"


def draw_problems(seed: int) -> list[DrawnProblem]:
    """One of each kind; equal for equal seeds."""
    rng = random.Random(f"drawn problems {seed}")
    return [_DRAWERS[kind](rng, f"drawn_{seed}_{kind}") for kind in KINDS]


def write_problems(folder: Path, seed: int) -> list[Path]:
    """The problem files, with their programs in `plain/`. Raises OSError."""
    paths = []
    for problem in draw_problems(seed):
        path, program = folder / f"{problem.name}.yaml", folder / "plain" / f"{problem.name}.c"
        program.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(problem.text, "utf-8")
        program.write_text(problem.program, "utf-8")
        paths.append(path)
    return paths


# -- texts


def _write_problem(name: str, inputs: dict[str, str], output: str, reference: str, sizes: dict[str, Sizes]) -> str:
    """`inputs`: shapes by name."""

    def write_sizes(place: int) -> str:
        return "{" + ", ".join(f"{dim}: {numbers[place]}" for dim, numbers in sizes.items()) + "}"

    lines = [f"problem: {name}", "group: drawn", f"dims: {write_sizes(0)}", "inputs:"]
    lines += [f"  - {{name: {key}, dtype: fp32, shape: {shape}, data: normal}}" for key, shape in inputs.items()]
    lines += ["outputs:", f"  - {{name: y, dtype: fp32, shape: {output}}}", "reference: |"]
    lines += [f"  def {name}({', '.join(inputs)}):", indent(dedent(reference).strip(), "      ")]
    ones = "{" + ", ".join(f"{dim}: 1" for dim in sizes) + "}"
    lines += ["shapes:", f"  tiny: {ones}", f"  odd: {write_sizes(1)}"]
    lines += ["bench:", f"  small: {write_sizes(2)}", f"  odd: {write_sizes(3)}", f"  large: {write_sizes(4)}"]
    return "\n".join(lines) + "\n"


def _write_program(inputs: Sequence[str], dims: Sequence[str], body: str) -> str:
    arguments = [*(f"const float *restrict {name}" for name in inputs), "float *restrict y"]
    arguments += [f"int64_t {dim}" for dim in dims]
    return f"{_HEAD}void kernel({', '.join(arguments)})\n{{\n{indent(dedent(body).strip(), '    ')}\n}}\n"


def _draw_sizes(rng: random.Random, small: int, large: int) -> Sizes:
    """A base size, an odd one, and three that are timed: a small one, an odd one, a large one."""
    base, odd = rng.randrange(24, 72), rng.choice((7, 13, 29, 37, 67))
    middle = rng.randrange(small, large) | 1
    return base, odd, rng.randrange(small // 2, small), middle, rng.randrange(large // 2, large)


def _write_steps(operators: Sequence[_Operator]) -> tuple[str, str]:
    """The operations one after the other, in both languages."""
    return "\n".join(f"z = {each.torch}" for each in operators), "\n".join(f"z = {each.c};" for each in operators)


def _fill(template: str, **texts: str) -> str:
    """Texts of several lines keep the indentation of the place that they fill."""
    lines = []
    for line in dedent(template).strip().splitlines():
        blanks = line[: len(line) - len(line.lstrip())]
        key = line.strip()
        lines.append(indent(texts[key[1:]], blanks) if key.startswith("@") else line)
    filled = "\n".join(lines)
    for key, text in texts.items():
        filled = filled.replace(f"<{key}>", text)
    return filled


# -- kinds


def _draw_chain(rng: random.Random, name: str) -> DrawnProblem:
    """Operations on each element, with a vector along one of the axes."""
    torch_steps, c_steps = _write_steps(rng.sample(_OPERATORS, rng.randrange(2, 5)))
    is_row, sign = rng.random() < 0.5, rng.choice("+*-")
    reference = _fill(
        "z = x <sign> v<view>\n@steps\nreturn z", sign=sign, view="" if is_row else "[:, None]", steps=torch_steps
    )
    body = _fill(
        """
        for (int64_t m = 0; m < M; m++) {
            for (int64_t n = 0; n < N; n++) {
                float z = x[m * N + n] <sign> v[<place>];
                @steps
                y[m * N + n] = z;
            }
        }
        """,
        sign=sign,
        place="n" if is_row else "m",
        steps=c_steps,
    )
    sizes = {"M": _draw_sizes(rng, 64, 512), "N": _draw_sizes(rng, 256, 1024)}
    inputs = {"x": "[M, N]", "v": "[N]" if is_row else "[M]"}
    return DrawnProblem(
        name, _write_problem(name, inputs, "[M, N]", reference, sizes), _write_program(list(inputs), "MN", body)
    )


def _draw_reduction(rng: random.Random, name: str) -> DrawnProblem:
    """A sum, a largest or a smallest number over an axis, of elements after an operation."""
    torch_steps, c_steps = _write_steps([rng.choice(_OPERATORS)])
    is_last = rng.random() < 0.5
    torch_fold, start, c_fold = rng.choice(
        (
            ("z.sum(<axis>)", "0.0f", "total += z;"),
            ("z.amax(<axis>)", "-INFINITY", "total = fmaxf(total, z);"),
            ("z.amin(<axis>)", "INFINITY", "if (z < total) {\n    total = z;\n}"),
            ("z.square().sum(<axis>)", "0.0f", "total += z * z;"),
        )
    )
    reference = _fill("z = x\n@steps\nreturn <fold>", steps=torch_steps, fold=torch_fold)
    body = _fill(
        """
        for (int64_t i = 0; i < <outer>; i++) {
            float total = <start>;
            for (int64_t j = 0; j < <inner>; j++) {
                float z = x[<place>];
                @steps
                @fold
            }
            y[i] = total;
        }
        """,
        outer="M" if is_last else "N",
        inner="N" if is_last else "M",
        place="i * N + j" if is_last else "j * N + i",
        start=start,
        steps=c_steps,
        fold=c_fold,
    )
    sizes = {"M": _draw_sizes(rng, 96, 768), "N": _draw_sizes(rng, 192, 1024)}
    text = _write_problem(
        name, {"x": "[M, N]"}, "[M]" if is_last else "[N]", reference.replace("<axis>", str(-is_last)), sizes
    )
    return DrawnProblem(name, text, _write_program(["x"], "MN", body))


def _draw_product(rng: random.Random, name: str) -> DrawnProblem:
    """A product of matrices, either of them transposed, a bias and operations behind it."""
    torch_steps, c_steps = _write_steps(rng.sample(_OPERATORS, rng.randrange(1, 3)))
    is_turned, is_second_turned = rng.random() < 0.5, rng.random() < 0.3
    reference = _fill(
        "z = a<first> @ b<second> + bias\n@steps\nreturn z",
        first=".T" if is_turned else "",
        second=".T" if is_second_turned else "",
        steps=torch_steps,
    )
    body = _fill(
        """
        for (int64_t row = 0; row < M; row++) {
            for (int64_t column = 0; column < N; column++) {
                float z = bias[column];
                for (int64_t k = 0; k < K; k++) {
                    z += a[<first>] * b[<second>];
                }
                @steps
                y[row * N + column] = z;
            }
        }
        """,
        first="k * M + row" if is_turned else "row * K + k",
        second="column * K + k" if is_second_turned else "k * N + column",
        steps=c_steps,
    )
    sizes = {dim: _draw_sizes(rng, 80, 256) for dim in "MNK"}
    inputs = {
        "a": "[K, M]" if is_turned else "[M, K]",
        "b": "[N, K]" if is_second_turned else "[K, N]",
        "bias": "[N]",
    }
    return DrawnProblem(
        name, _write_problem(name, inputs, "[M, N]", reference, sizes), _write_program(list(inputs), "MNK", body)
    )


def _draw_norm(rng: random.Random, name: str) -> DrawnProblem:
    """Rows divided by what all their elements give together."""
    torch_fold, c_fold, torch_scale, c_scale = rng.choice(
        (
            (
                "z.square().mean(-1, keepdim=True)",
                "total += z * z;",
                "(s + 0.01).sqrt()",
                "sqrtf(total / (float)N + 0.01f)",
            ),
            ("z.abs().mean(-1, keepdim=True)", "total += fabsf(z);", "(s + 0.01)", "(total / (float)N + 0.01f)"),
            ("z.exp().mean(-1, keepdim=True)", "total += expf(z);", "s", "(total / (float)N)"),
        )
    )
    torch_steps, c_steps = _write_steps([rng.choice(_OPERATORS)])
    is_centred = rng.random() < 0.5
    reference = _fill(
        "z = x<centre>\ns = <fold>\nz = z / <scale> * weight\n@steps\nreturn z",
        centre=" - x.mean(-1, keepdim=True)" if is_centred else "",
        fold=torch_fold,
        scale=torch_scale,
        steps=torch_steps,
    )
    centre = (
        "float centre = 0.0f;\nfor (int64_t n = 0; n < N; n++) {\n    centre += x[m * N + n];\n}\ncentre /= (float)N;"
    )
    body = _fill(
        """
        for (int64_t m = 0; m < M; m++) {
            @centre
            float total = 0.0f;
            for (int64_t n = 0; n < N; n++) {
                float z = x[m * N + n] - centre;
                @fold
            }
            float scale = <scale>;
            for (int64_t n = 0; n < N; n++) {
                float z = (x[m * N + n] - centre) / scale * weight[n];
                @steps
                y[m * N + n] = z;
            }
        }
        """,
        centre=centre if is_centred else "float centre = 0.0f;",
        fold=c_fold,
        scale=c_scale,
        steps=c_steps,
    )
    sizes = {"M": _draw_sizes(rng, 64, 512), "N": _draw_sizes(rng, 256, 1024)}
    inputs = {"x": "[M, N]", "weight": "[N]"}
    return DrawnProblem(
        name, _write_problem(name, inputs, "[M, N]", reference, sizes), _write_program(list(inputs), "MN", body)
    )


def _draw_stencil(rng: random.Random, name: str) -> DrawnProblem:
    """Weighted neighbours along the rows or the columns, with zeros beyond the border."""
    radius, is_along_rows = rng.randrange(1, 5), rng.random() < 0.6
    taps, (torch_steps, c_steps) = 2 * radius + 1, _write_steps([rng.choice(_OPERATORS)])
    padding = f"({radius}, {radius})" if is_along_rows else f"(0, 0, {radius}, {radius})"
    window = "p[:, r:r + x.shape[1]]" if is_along_rows else "p[r:r + x.shape[0]]"
    reference = _fill(
        f"p = torch.nn.functional.pad(x, {padding})\n"
        f"z = sum({window} * taps[r] for r in range({taps}))\n@steps\nreturn z",
        steps=torch_steps,
    )
    body = _fill(
        """
        for (int64_t m = 0; m < M; m++) {
            for (int64_t n = 0; n < N; n++) {
                float z = 0.0f;
                for (int64_t r = 0; r < <taps>; r++) {
                    int64_t near = <axis> + r - <radius>;
                    if (near >= 0 && near < <size>) {
                        z += x[<place>] * taps[r];
                    }
                }
                @steps
                y[m * N + n] = z;
            }
        }
        """,
        taps=str(taps),
        radius=str(radius),
        axis="n" if is_along_rows else "m",
        size="N" if is_along_rows else "M",
        place="m * N + near" if is_along_rows else "near * N + n",
        steps=c_steps,
    )
    sizes = {"M": _draw_sizes(rng, 64, 384), "N": _draw_sizes(rng, 192, 768)}
    inputs = {"x": "[M, N]", "taps": f"[{taps}]"}
    return DrawnProblem(
        name, _write_problem(name, inputs, "[M, N]", reference, sizes), _write_program(list(inputs), "MN", body)
    )


def _draw_distance(rng: random.Random, name: str) -> DrawnProblem:
    """How far each row of one matrix is from each row, or column, of another one."""
    torch_fold, c_fold = rng.choice(
        (
            ("d.abs().sum(1)", "total += fabsf(d);"),
            ("d.square().sum(1)", "total += d * d;"),
            ("d.abs().amax(1)", "total = fmaxf(total, fabsf(d));"),
        )
    )
    is_turned = rng.random() < 0.7
    reference = f"d = a[:, :, None] - b{'' if is_turned else '.T'}[None]\nreturn {torch_fold}"
    body = _fill(
        """
        for (int64_t i = 0; i < M; i++) {
            for (int64_t j = 0; j < N; j++) {
                float total = 0.0f;
                for (int64_t k = 0; k < K; k++) {
                    float d = a[i * K + k] - b[<place>];
                    @fold
                }
                y[i * N + j] = total;
            }
        }
        """,
        place="k * N + j" if is_turned else "j * K + k",
        fold=c_fold,
    )
    sizes = {dim: _draw_sizes(rng, 48, 160) for dim in "MNK"}
    inputs = {"a": "[M, K]", "b": "[K, N]" if is_turned else "[N, K]"}
    return DrawnProblem(
        name, _write_problem(name, inputs, "[M, N]", reference, sizes), _write_program(list(inputs), "MNK", body)
    )


_DRAWERS: dict[str, Callable[[random.Random, str], DrawnProblem]] = {
    "chain": _draw_chain,
    "reduction": _draw_reduction,
    "product": _draw_product,
    "norm": _draw_norm,
    "stencil": _draw_stencil,
    "distance": _draw_distance,
}
