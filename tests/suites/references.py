"""Independent NumPy references of the 26 tasks, in index notation.

Each takes a task's inputs and parameters by name, as arrays whose axes are the dims in reverse (outermost first, the
axes of a Buffer or Multihot last), and returns one array per output. They share nothing with the torch text of the
task files: sums are written out over named indices, the maximum is not split off, choices sort by (-value, index).
Lower-case m, n, k, d, e run over the sizes of the same upper-case name; sizes are read off the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Reference = Callable[..., tuple[Array, ...]]


def sigmoid(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))


def silu(z: float) -> float:
    return z * sigmoid(z)


def gelu(z: float) -> float:
    return z * 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))


def softmax(z: Array) -> Array:
    top = max(z)
    return np.array([math.exp(v - top) / math.fsum(math.exp(w - top) for w in z) for v in z])


def vector_matrix(x: Array, W: Array) -> Array:
    """(x W)[d] = sum over k of x[k] W[k,d]."""
    return np.array([math.fsum(x[k] * W[k, d] for k in range(len(x))) for d in range(W.shape[1])])


def dot(x: Array, w: Array) -> float:
    return math.fsum(a * b for a, b in zip(x, w, strict=True))


def largest(values: Sequence[float], count: int) -> list[int]:
    """The indices of the `count` largest values (of all, if there are fewer); of equal ones the lowest index first."""
    return sorted(range(len(values)), key=lambda i: (-values[i], i))[:count]


def ones_at(indices: Sequence[int], length: int) -> Array:
    return np.array([1.0 if i in indices else 0.0 for i in range(length)])


# ---------------------------------------------------------------- attn


def attention(E0: Array, E1: Array) -> tuple[Array]:
    """S0[n,d] = sum_m exp(E0[n,m]) E1[n,m][d] / sum_m exp(E0[n,m])."""
    N, M, D = E1.shape
    out = np.empty((N, D))
    for n, d in np.ndindex(N, D):
        weight = softmax(E0[n])
        out[n, d] = math.fsum(weight[m] * E1[n, m, d] for m in range(M))
    return (out,)


# ---------------------------------------------------------------- bmm, gemm


def bmm_0(E0: Array, E1: Array) -> tuple[Array]:
    """S0[m,n,d] = sum_k E0[m,k,n] E1[m,k,d]."""
    (M, K, N), D = E0.shape, E1.shape[2]
    out = np.empty((M, N, D))
    for m, n, d in np.ndindex(M, N, D):
        out[m, n, d] = math.fsum(E0[m, k, n] * E1[m, k, d] for k in range(K))
    return (out,)


def bmm_1(E0: Array, E1: Array) -> tuple[Array]:
    """S0[m,n,d] = sum_k E0[m,n,k] E1[m,k,d]."""
    (M, N, K), D = E0.shape, E1.shape[2]
    out = np.empty((M, N, D))
    for m, n, d in np.ndindex(M, N, D):
        out[m, n, d] = math.fsum(E0[m, n, k] * E1[m, k, d] for k in range(K))
    return (out,)


def bmm_2(E0: Array, E1: Array) -> tuple[Array]:
    """S0[m,n,d] = sum_k E0[m,n,k] E1[m,d,k]."""
    (M, N, K), D = E0.shape, E1.shape[1]
    out = np.empty((M, N, D))
    for m, n, d in np.ndindex(M, N, D):
        out[m, n, d] = math.fsum(E0[m, n, k] * E1[m, d, k] for k in range(K))
    return (out,)


def contraction(E0: Array, E1: Array) -> tuple[Array]:
    """S0[m,n] = sum_k E0[k,m,n] E1[k,m,n]."""
    K, M, N = E0.shape
    out = np.empty((M, N))
    for m, n in np.ndindex(M, N):
        out[m, n] = math.fsum(E0[k, m, n] * E1[k, m, n] for k in range(K))
    return (out,)


def gemm_2(E0: Array, E1: Array) -> tuple[Array]:
    """S0[n,m] = sum_k E0[n,m,k] E1[n,k]."""
    N, M, K = E0.shape
    out = np.empty((N, M))
    for n, m in np.ndindex(N, M):
        out[n, m] = math.fsum(E0[n, m, k] * E1[n, k] for k in range(K))
    return (out,)


# ---------------------------------------------------------------- norm


def layer_norm(E0: Array) -> tuple[Array]:
    """S0[n,d] = (E0[n,d] - mu[n]) / sqrt(var[n] + 1e-5), var the mean squared distance from the mean mu."""
    N, D = E0.shape
    out = np.empty((N, D))
    for n in range(N):
        mu = math.fsum(E0[n]) / D
        var = math.fsum((E0[n, d] - mu) ** 2 for d in range(D)) / D
        for d in range(D):
            out[n, d] = (E0[n, d] - mu) / math.sqrt(var + 1e-5)
    return (out,)


def rms_norm(E0: Array) -> tuple[Array]:
    """S0[n,d] = E0[n,d] / sqrt(mean over d of E0[n,d]^2 + 1e-5)."""
    N, D = E0.shape
    out = np.empty((N, D))
    for n, d in np.ndindex(N, D):
        out[n, d] = E0[n, d] / math.sqrt(math.fsum(v * v for v in E0[n]) / D + 1e-5)
    return (out,)


# ---------------------------------------------------------------- rope


def rotated(x: Array, position: float, pairs: Sequence[tuple[int, int]]) -> Array:
    """Entries (a, b) of pair number i are turned by position * 10000^(-2i/D)."""
    out = np.empty(len(x))
    for i, (a, b) in enumerate(pairs):
        angle = position * 10000.0 ** (-2 * i / len(x))
        out[a] = x[a] * math.cos(angle) - x[b] * math.sin(angle)
        out[b] = x[a] * math.sin(angle) + x[b] * math.cos(angle)
    return out


def rope_0(E0: Array, E1: Array) -> tuple[Array]:
    """Position at (m, n): the sum of E0[m,0..n] minus one; entry i is paired with entry i + D/2."""
    M, N, D = E1.shape
    out, pairs = np.empty((M, N, D)), [(i, i + D // 2) for i in range(D // 2)]
    for m, n in np.ndindex(M, N):
        out[m, n] = rotated(E1[m, n], math.fsum(E0[m, : n + 1]) - 1, pairs)
    return (out,)


def rope_1(E0: Array, E1: Array) -> tuple[Array]:
    """As rope_0, entry 2i paired with entry 2i + 1."""
    M, N, D = E1.shape
    out, pairs = np.empty((M, N, D)), [(2 * i, 2 * i + 1) for i in range(D // 2)]
    for m, n in np.ndindex(M, N):
        out[m, n] = rotated(E1[m, n], math.fsum(E0[m, : n + 1]) - 1, pairs)
    return (out,)


def rope_2(E0: Array, E1: Array) -> tuple[Array]:
    """As rope_0, the increment of row m being E0[m] for every n."""
    return rope_0(np.array([[step] * E1.shape[1] for step in E0]), E1)


# ---------------------------------------------------------------- index


def affinities(x: Array, Wg: Array) -> Array:
    """One softmax over the experts per row of x."""
    return np.array([softmax(vector_matrix(row, Wg)) for row in x])


def index_0(E0: Array, Wg: Array) -> tuple[Array, Array]:
    affinity = affinities(E0, Wg)
    return np.array([ones_at(largest(row, 1), len(row)) for row in affinity]), affinity


def index_1(E0: Array, Wg: Array) -> tuple[Array, Array]:
    affinity = affinities(E0, Wg)
    M, E = affinity.shape
    marks = np.zeros((M, E))
    for e in range(E):
        for m in largest([affinity[m, e] for m in range(M)], 3):
            marks[m, e] = 1.0
    return marks, affinity


def index_2(E0: Array, Wg: Array) -> tuple[Array, Array]:
    score = np.array([sigmoid(dot(row, Wg)) for row in E0])
    return ones_at(largest(list(score), 3), len(score)), score


def two_layer_score(x: Array, Wa_0: Array, Wa_1: Array) -> float:
    return sigmoid(dot(np.array([silu(h) for h in vector_matrix(x, Wa_0)]), Wa_1))


def index_3(E0: Array, Wa_0: Array, Wa_1: Array) -> tuple[Array]:
    """(1, 0) where the score is above one half, else (0, 1)."""
    M, N, _ = E0.shape
    out = np.zeros((M, N, 2))
    for m, n in np.ndindex(M, N):
        out[m, n, 0 if two_layer_score(E0[m, n], Wa_0, Wa_1) > 0.5 else 1] = 1.0
    return (out,)


# ---------------------------------------------------------------- expert, etoe


def updated(x: Array, gain: float, W: Array) -> Array:
    """gain * gelu(x W) + x."""
    return np.array([gain * gelu(h) + v for h, v in zip(vector_matrix(x, W), x, strict=True)])


def feed_forward(x: Array, W_0: Array, W_1: Array) -> Array:
    """gelu(x W_0) W_1."""
    return vector_matrix(np.array([gelu(h) for h in vector_matrix(x, W_0)]), W_1)


def expert_0(E0: Array, E1: Array, W: Array, Wg: Array) -> tuple[Array]:
    out = E0.copy()
    for m, n in np.ndindex(E0.shape[:2]):
        if E1[m, n, 0] == 1:
            out[m, n] = updated(E0[m, n], sigmoid(dot(E0[m, n], Wg)), W)
    return (out,)


def expert_1(E0: Array, E1: Array, E2: Array, **W: Array) -> tuple[Array]:
    """S0[m,n] = sum_e E1[m,n][e] E2[m,n][e] F_e(E0[m,n])."""
    out = np.zeros(E0.shape)
    for m, n, e in np.ndindex(E1.shape):
        if E1[m, n, e] == 1:
            out[m, n] += E2[m, n, e] * feed_forward(E0[m, n], W[f"W{e}_0"], W[f"W{e}_1"])
    return (out,)


def expert_2(E0: Array, E1: Array, E2: Array, W: Array) -> tuple[Array]:
    return (np.array([updated(x, a, W) if mark == 1 else x for x, mark, a in zip(E0, E1, E2, strict=True)]),)


def mixture(count: int) -> Reference:
    """The weighted sum over the `count` experts with the largest affinity, not renormalised."""

    def reference(E0: Array, Wg: Array, **W: Array) -> tuple[Array]:
        out = np.zeros(E0.shape)
        for m, n in np.ndindex(E0.shape[:2]):
            affinity = softmax(vector_matrix(E0[m, n], Wg))
            for e in largest(list(affinity), count):
                out[m, n] += affinity[e] * feed_forward(E0[m, n], W[f"W{e}_0"], W[f"W{e}_1"])
        return (out,)

    return reference


def etoe_2(E0: Array, Wg: Array, W: Array) -> tuple[Array]:
    score = [sigmoid(dot(row, Wg)) for row in E0]
    picked = largest(score, 3)
    return (np.array([updated(x, score[m], W) if m in picked else x for m, x in enumerate(E0)]),)


def etoe_3(E0: Array, Wa_0: Array, Wa_1: Array, W: Array, Wg: Array) -> tuple[Array]:
    out = E0.copy()
    for m, n in np.ndindex(E0.shape[:2]):
        x = E0[m, n]
        if two_layer_score(x, Wa_0, Wa_1) > 0.5:
            out[m, n] = updated(x, sigmoid(dot(x, Wg)), W)
    return (out,)


REFERENCES: dict[str, Reference] = {
    "attn_0": attention,
    "attn_1": attention,
    "attn_2": attention,
    "bmm_0": bmm_0,
    "bmm_1": bmm_1,
    "bmm_2": bmm_2,
    "gemm_0": contraction,
    "gemm_1": contraction,
    "gemm_2": gemm_2,
    "norm_0": layer_norm,
    "norm_1": layer_norm,
    "norm_2": rms_norm,
    "rope_0": rope_0,
    "rope_1": rope_1,
    "rope_2": rope_2,
    "index_0": index_0,
    "index_1": index_1,
    "index_2": index_2,
    "index_3": index_3,
    "expert_0": expert_0,
    "expert_1": expert_1,
    "expert_2": expert_2,
    "etoe_0": mixture(1),
    "etoe_1": mixture(2),
    "etoe_2": etoe_2,
    "etoe_3": etoe_3,
}
