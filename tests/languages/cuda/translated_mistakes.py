"""Wrong programs in C of the suite `kernels`, in CUDA: their mistakes as edits of the plain program of the problem.

The names are those of the attacks on C, class `mistakes`. What only C has (its heap, its stack, headers) does not translate;
memory that nobody wrote has programs of its own in the attacks on CUDA.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import opsmith

PLAIN = Path(opsmith.__file__).parent / "suites" / "kernels" / "plain"

Edits = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Mistake:
    """One mistake, and where it is refused."""

    name: str  # `softmax__constant`
    edits: Edits
    stage: str = "MATCH"

    @property
    def problem(self) -> str:
        return self.name.partition("__")[0]

    def write_program(self) -> str:
        """The plain program with the mistake. Raises ValueError where an edit does not fit once."""
        source = (PLAIN / f"{self.problem}.cu").read_text("utf-8")
        for old, new in self.edits:
            if source.count(old) != 1:
                raise ValueError(f"{self.name}: {source.count(old)} places of {old!r}")
            source = source.replace(old, new)
        return source


def _edit(name: str, *edits: tuple[str, str], stage: str = "MATCH") -> Mistake:
    return Mistake(name, edits, stage)


MISTAKES = (
    _edit("batched_gemm__constant", ("__float2half_rn(sums[i])", "__float2half_rn(sums[i] / 1024.0f * 1020.0f)")),
    _edit("batched_gemm__stride", ("b + batch * K * N", "b")),
    _edit(
        "bias_gelu_residual__constant",
        (
            "return 0.5f * value * erfcf(-0.70710678f * value);",
            "return 0.5f * value * (1.0f + tanhf(0.79788456f * (value + 0.044715f * value * value * value)));",
        ),
    ),
    _edit("bias_gelu_residual__tail", ("if (N % 4 != 0) {", "if (N < 4) {")),
    _edit("conv1d__bound", ("l - (R - 1) + r", "l - R + r")),
    _edit("conv1d__order", ("l - (R - 1) + r", "l - r")),
    _edit("conv1d__stated_sizes_only", ("if (from >= 0 &&", "if (r < 6 && from >= 0 &&")),
    _edit("conv2d__bound", ("column < 2 * W", "column < 2 * W - 1")),
    _edit("conv2d__stride", ("2 * h0 - 1 + i / WIDE", "h0 - 1 + i / WIDE")),
    _edit("cross_entropy__bound", ("row[target[blockIdx.x]]", "row[target[blockIdx.x] - 1]")),
    _edit("cross_entropy__constant", ("float largest = -CUDART_INF_F;", "float largest = -100.0f;")),
    _edit("cross_entropy__stated_sizes_only", ("row[target[blockIdx.x]]", "row[min(target[blockIdx.x], 299ll)]")),
    _edit("embedding_bag__bound", ("starts[bag + 1] : T;", "starts[bag + 1] : T - 1;")),
    _edit("embedding_bag__constant", ("float>(end - start)", "float>(max(end - start, 2ll))")),
    _edit("embedding_bag__counter", ("float>(end - start)", "float>((end - start) & 255)")),
    _edit("gather__stated_sizes_only", ("grid=(cdiv(T, 8))", "grid=(min(cdiv(T, 8), 17))")),
    _edit("gather__stride", ("table + index[t] * D", "table + index[t] * (D > 1 ? D - 1 : D)"), stage="RUN"),
    _edit("gemm_at__bound", ("k0 < K; k0", "k0 < max(K - 1, 1ll); k0"), ("k < K && m0", "k < K - 1 && m0")),
    _edit("gemm_at__stride", ("a[k * M + m0 + column]", "a[min(k * K + m0 + column, K * M - 1)]")),
    _edit("gemm_at__tail", ("grid=(cdiv(M, 32), cdiv(N, 32))", "grid=(max(M // 32, 1), max(N // 32, 1))")),
    _edit("gemm_bias_relu__order", ("fmaxf(sums[i][j] + bias[n], 0.0f)", "fmaxf(sums[i][j], 0.0f) + bias[n]")),
    _edit("gemm_bias_relu__stated_sizes_only", ("k0 < K; k0", "k0 < min(K, 80ll); k0")),
    _edit("gemm_bias_relu__stride", ("a[(m0 + row) * K", "a[(m0 + row) * min(N, K)")),
    _edit("gemm_bias_relu__tail", ("k0 < K; k0", "k0 + DEPTH <= max(K, 16ll); k0")),
    _edit(
        "grouped_gemm__bound",
        ("if (tile < tiles) {", "if (tile < max(tiles, 1ll)) {"),
    ),
    _edit("grouped_gemm__constant", ("__float2bfloat16(sums[i])", "__float2bfloat16(sums[i] * (31.0f / 32.0f))")),
    _edit("inclusive_scan__bound", ("out[n] = value;", "out[n] = value - row[n];")),
    _edit("inclusive_scan__carry", ("carry += sums[WARPS - 1];", "carry = sums[WARPS - 1];")),
    _edit(
        "inclusive_scan__stated_sizes_only",
        ("value += warp > 0", "carry = start % 512 ? carry : 0.0f;\n        value += warp > 0"),
    ),
    _edit("int8_gemm__constant", ("n < N ? b[k * N + n] : 0", "n < N ? b[k * N + n] + 1 : 0")),
    _edit("int8_gemm__overflow", ("sums[i] += sum;", "sums[i] += static_cast<short>(sum);")),
    _edit("int8_gemm__scale", ("scale_b[n];", "scale_b[min(m, N - 1)];")),
    _edit("int8_gemm__tail", ("m < M && from + i < K ?", "m < M && from + i < K / 4 * 4 ?")),
    _edit(
        "layer_norm__constant", ("rsqrtf(sum_block(squares) / N + eps)", "1.0f / (sqrtf(sum_block(squares) / N) + eps)")
    ),
    _edit("layer_norm__stride", ("__ldg(&weight[n])", "__ldg(&weight[blockIdx.x % N])")),
    _edit("masked_attention__constant", ("weight = expf(score - next)", "weight = exp2f(1.44f * (score - next))")),
    _edit("masked_attention__masked_row", ("sum > 0.0f ? result[d] / sum : 0.0f", "result[d] / sum")),
    _edit(
        "masked_attention__overflow",
        ("weight = expf(score - next), correction = expf(largest - next)", "weight = expf(score), correction = 1.0f"),
    ),
    _edit("max_pool2d__bound", ("column <= 2 * w + 1", "column <= 2 * w")),
    _edit("max_pool2d__constant", ("float largest = -CUDART_INF_F;", "float largest = -1000.0f;")),
    _edit("max_pool2d__stride", ("image[row * 2 * W + column]", "image[row * W + column]")),
    _edit(
        "mean_variance__constant", ("variance[m] = square / count;", "variance[m] = square / max(count - 1.0f, 1.0f);")
    ),
    _edit(
        "rms_norm__constant",
        ("scale_pairs(x + start, weight, y + start, N, eps)", "scale_pairs(x + start, weight, y + start, N, 1e-4f)"),
        (
            "scale_singles(x + start, weight, y + start, N, eps)",
            "scale_singles(x + start, weight, y + start, N, 1e-4f)",
        ),
    ),
    _edit(
        "rms_norm__tail",
        (
            "n < N / 2; n += blockDim.x) {\n        const float2 pair = __bfloat1622float2(x2[n]);",
            "n < N / 8 * 4; n += blockDim.x) {\n        const float2 pair = __bfloat1622float2(x2[n]);",
        ),
    ),
    _edit("rope__constant", ("first * c - second * s", "first * c + second * s")),
    _edit(
        "rope__low_precision",
        ("c = __ldg(&cosine[t * D + d])", "c = __int_as_float(__float_as_int(__ldg(&cosine[t * D + d])) & 0xffff0000)"),
    ),
    _edit("rope__stated_sizes_only", ("t = head / H;", "t = head / H % 130;")),
    _edit(
        "rope__stride",
        ("place = head * 2 * D + d;", "place = head * 2 * D + 2 * d;"),
        ("x[place + D]", "x[place + 1]"),
        ("y[place + D]", "y[place + 1]"),
    ),
    _edit("row_max_argmax__bound", ("n < N; n", "n < max(N - 1, 1ll); n")),
    _edit("row_max_argmax__constant", ("Peak peak = {-CUDART_INF_F, N};", "Peak peak = {-100.0f, 0};")),
    _edit("row_max_argmax__tie", ("place < position", "place > position")),
    _edit("row_sum__bound", ("n = threadIdx.x; n", "n = threadIdx.x + 1; n")),
    _edit("row_sum__tail", ("n < N; n", "n < N / 8 * 8; n")),
    _edit("scale_shift_silu__bound", ("l < L; l", "l < L - 1; l")),
    _edit(
        "scale_shift_silu__overflow", ("value / (1.0f + expf(-value))", "value * expf(value) / (1.0f + expf(value))")
    ),
    _edit(
        "scale_shift_silu__stated_sizes_only",
        ("min(B * C, 65535)", "min(B * C, 134)"),
        ("row += gridDim.y", "row += B * C"),
    ),
    _edit("scale_shift_silu__stride", ("factor = scale[row]", "factor = scale[(row + L) % (B * C)]")),
    _edit("scatter_add__tail", ("i % D], rows[i]);", "i % D], i % D < D / 4 * 4 ? rows[i] : 0.0f);")),
    _edit("softmax__constant", ("Sum sum = {-CUDART_INF_F, 0.0f};\n    for", "Sum sum = {0.0f, 0.0f};\n    for")),
    _edit(
        "softmax__stated_sizes_only",
        ("n += blockDim.x) {\n        sum.add", "n += blockDim.x) {\n        if (n >= 320) continue;\n        sum.add"),
    ),
    _edit("softmax__tail", ("* scale;", "* (n < N / 4 * 4 ? scale : 1.0f);")),
    _edit("top_k__bound", ("n < columns; n", "n < columns - 1; n")),
    _edit("top_k__constant", ("best[rank] = -CUDART_INF_F;\n        places", "best[rank] = -500.0f;\n        places")),
    _edit("top_k__order", ("value[m * K + lane] = own_value;", "value[m * K + K - 1 - lane] = own_value;")),
)
