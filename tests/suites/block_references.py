"""The 14 blocks in NumPy, written from their formulas: second references, unlike the PyTorch of the task files.

Arrays have the tensors' axes: outermost dim first. What is one line there is loops here, and the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def sigmoid(x: Array) -> Array:
    return np.exp(-np.logaddexp(0, -x))


def gelu(x: Array) -> Array:
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def softmax(x: Array) -> Array:
    """Over the last axis."""
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def rms(x: Array, epsilon: float) -> Array:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + epsilon)


def layer(x: Array) -> Array:
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def attend(query: Array, key: Array, value: Array, is_causal: bool = False) -> Array:
    """One query after the other, over the keys that it may see."""
    result = np.zeros((*query.shape[:-1], value.shape[-1]))
    for place in np.ndindex(*query.shape[:-1]):
        seen = slice(0, place[-1] + 1) if is_causal else slice(None)
        scores = key[place[:-1]][seen] @ query[place] / np.sqrt(query.shape[-1])
        result[place] = softmax(scores) @ value[place[:-1]][seen]
    return result


def rotate(x: Array, position: Array) -> Array:
    """Each pair (i, i + half) as a complex number, turned by position * 10000^(-i / half)."""
    half = x.shape[-1] // 2
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(
        1j * position[..., None] * 10000.0 ** (-np.arange(half) / half)
    )
    return np.concatenate([turned.real, turned.imag], axis=-1)


def rms_norm_linear(E0, gain, W):
    return [rms(E0, 1e-6) @ (gain[:, None] * W)]


def layer_norm_linear(E0, gain, shift, W, bias):
    return [layer(E0) @ (gain[:, None] * W) + (shift @ W + bias)]


def swiglu_mlp(E0, W_gate, W_up, W_down):
    gate = E0 @ W_gate
    return [E0 + (gate * sigmoid(gate) * (E0 @ W_up)) @ W_down]


def geglu_mlp(E0, E1, W, bias):
    K = len(E1)
    total = np.zeros_like(E0)
    for k in range(K):
        value, gate = E0 @ W[:, k] + bias[k], E0 @ W[:, K + k] + bias[K + k]
        total += np.outer(value * gelu(gate), E1[k])
    return [total]


def rope_attention(E0, E1, Wq, Wk, Wv):
    return [attend(rotate(rms(E0 @ Wq, 1e-6), E1), rotate(rms(E0 @ Wk, 1e-6), E1), E0 @ Wv)]


def causal_attention(E0, E1, E2, Wo):
    return [attend(E0, E1, E2, is_causal=True) @ Wo]


def grouped_query_attention(E0, E1, E2, Wq, Wo):
    result = np.zeros_like(E0)
    for h in range(Wq.shape[1]):
        for g in range(Wq.shape[2]):
            query = E0 @ Wq[:, h, g]
            scores = np.einsum("md,mnd->mn", query, E1[:, h]) / np.sqrt(query.shape[-1])
            result += np.einsum("mn,mnd->md", softmax(scores), E2[:, h]) @ Wo[h, g]
    return [result]


def moe_switch(E0, Wr, **weights):
    result = E0.copy()
    for n, x in enumerate(E0):
        probability = softmax(x @ Wr)
        best = int(probability.argmax())
        result[n] += probability[best] * (np.maximum(x @ weights[f"W{best}_up"], 0) @ weights[f"W{best}_down"])
    return [result]


def moe_shared_expert(E0, gain, Wr, **weights):
    def ask_expert(name, x):
        gate = x @ weights[f"W{name}_gate"]
        return (gate * sigmoid(gate) * (x @ weights[f"W{name}_up"])) @ weights[f"W{name}_down"]

    result = E0.copy()
    for place in np.ndindex(*E0.shape[:-1]):
        x = rms(E0[place], 1e-6) * gain
        logits = x @ Wr
        best, second = np.argsort(-logits, kind="stable")[:2]
        share = sigmoid(logits[best] - logits[second])
        routed = share * ask_expert(best, x) + (1 - share) * ask_expert(second, x)
        result[place] += ask_expert("s", x) + routed
    return [result]


def residual_chain(E0, Wa, Wb, Wc):
    first = E0 + gelu(rms(E0, 1e-5) @ Wa) @ Wb
    return [first + np.tanh(rms(first, 1e-5) @ Wc)]


def transformer_layer(E0, Wq, Wk, Wv, Wo, W_up, W_down):
    x = layer(E0)
    first = E0 + attend(x @ Wq, x @ Wk, x @ Wv) @ Wo
    return [first + gelu(layer(first) @ W_up) @ W_down]


def gated_linear_attention(E0, Wq, Wk, Wv, Wa):
    """As a sum over all earlier tokens, each weighted by the product of the decays since."""

    def feature(x):
        return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))

    query, key, value, decay = feature(E0 @ Wq), feature(E0 @ Wk), E0 @ Wv, sigmoid(E0 @ Wa)
    result = np.zeros_like(value)
    for m, n in np.ndindex(*E0.shape[:-1]):
        for earlier in range(n + 1):
            left = decay[m, earlier + 1 : n + 1].prod()
            result[m, n] += (query[m, n] @ key[m, earlier]) * left * value[m, earlier]
    return [result]


def classifier_loss(E0, E1, W, bias):
    logits = E0.mean(axis=1) @ W + bias
    loss = np.logaddexp.reduce(logits, axis=-1) - logits[E1 == 1]
    return [loss, np.array([loss.mean()])]


def quantised_linear(E0, E1, E2, W, W_scale, bias):
    total = np.array([[((row - zero) * column).sum() for column in W.T] for row, zero in zip(E0, E1, strict=True)])
    return [np.minimum(np.maximum((total * np.outer(E2, W_scale) + bias) / 64, -128), 127)]


REFERENCES: Mapping[str, Callable[..., list[Array]]] = {
    formula.__name__: formula
    for formula in (
        rms_norm_linear,
        layer_norm_linear,
        swiglu_mlp,
        geglu_mlp,
        rope_attention,
        causal_attention,
        grouped_query_attention,
        moe_switch,
        moe_shared_expert,
        residual_chain,
        transformer_layer,
        gated_linear_attention,
        classifier_loss,
        quantised_linear,
    )
}
