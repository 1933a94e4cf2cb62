"""Thirty definitions of FlashInfer Trace, written from the description of the format: what serving a language model asks
for, and some that cannot be a problem file. Short words stand for JSON: an axis is `name` or `name=size`, a tensor
`name: dtype [axes]`, a number `name: dtype`."""

from __future__ import annotations

import re
import textwrap
from typing import Any

DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
TENSOR = re.compile(r"(\w+): (\w+)(?: \[([^\]]*)\])?")


def define(
    head: str, axes: str, inputs: str, outputs: str, reference: str, constraints: list[str] | None = None
) -> dict[str, Any]:
    """`head`: `op_type/name`; the body of `reference` follows `def run(...)`, whose arguments are the inputs."""
    operator, name = head.split("/")
    pairs = [axis.split("=") for axis in axes.split()]
    specs = [
        {key: _read_spec(dtype, shape) for key, dtype, shape in TENSOR.findall(text)} for text in (inputs, outputs)
    ]
    body = textwrap.indent(textwrap.dedent(reference).strip("\n"), "    ") + "\n"
    return {
        "name": name,
        "op_type": operator,
        "axes": {key: {"type": "const", "value": int(size[0])} if size else {"type": "var"} for key, *size in pairs},
        "inputs": specs[0],
        "outputs": specs[1],
        "reference": f"import math\nimport torch\n\n@torch.no_grad()\ndef run({', '.join(specs[0])}):\n{body}",
        **({"constraints": constraints} if constraints else {}),
    }


def _read_spec(dtype: str, shape: str) -> dict[str, Any]:
    return {"shape": shape.split(", ") if shape else None, "dtype": DTYPES.get(dtype, dtype)}


THIRTY = [
    define(
        "norm/rmsnorm_quant_fp8_h512", "tokens h=512", "x: bf16 [tokens, h]; weight: bf16 [h]; scale: f32; eps: f32", "y: e4m3 [tokens, h]",
        """
        wide = x.to(torch.float32)
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight.to(torch.float32)
        return (normed / scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
        """,
    ),
    define(
        "norm/fused_add_rmsnorm_h768", "tokens h=768", "x: bf16 [tokens, h]; residual: bf16 [tokens, h]; weight: bf16 [h]",
        "y: bf16 [tokens, h]; sums: bf16 [tokens, h]",
        """
        sums = x.to(torch.float32) + residual.to(torch.float32)
        y = sums * torch.rsqrt(sums.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.to(torch.float32)
        return y.to(torch.bfloat16), sums.to(torch.bfloat16)
        """,
    ),
    define(
        "norm/layernorm_h256", "tokens h=256", "x: f32 [tokens, h]; gamma: f32 [h]; beta: f32 [h]; eps: f32", "y: f32 [tokens, h]",
        "return torch.nn.functional.layer_norm(x, (256,), gamma, beta, eps)",
    ),
    define(
        "gemm/fp8_rowwise_n256_k512", "M N=256 K=512", "A: e4m3 [M, K]; B: e4m3 [N, K]; sa: f32 [M]; sb: f32 [N]", "C: bf16 [M, N]",
        "return (A.to(torch.float32) @ B.to(torch.float32).T * sa[:, None] * sb).to(torch.bfloat16)",
    ),
    define(
        "gemm/fp8_tensorwise_mixed_k256", "M N=128 K=256", "A: e5m2 [M, K]; B: e4m3 [N, K]; sa: f32; sb: f32", "C: f16 [M, N]",
        "return (sa * sb * (A.float() @ B.float().T)).half()",
    ),
    define(
        "gemm/fp8_blockwise_n256_k512", "M N=256 K=512 kb=4 nb=2",
        "A: e4m3 [M, K]; sa: f32 [M, kb]; B: e4m3 [N, K]; sb: f32 [nb, kb]", "C: bf16 [M, N]",
        """
        a = A.to(torch.float32) * sa.repeat_interleave(128, 1)
        b = B.to(torch.float32) * sb.repeat_interleave(128, 0).repeat_interleave(128, 1)
        return (a @ b.T).to(torch.bfloat16)
        """,
    ),
    define(
        "gemm/bmm_fp8_k64", "batch M N K=64", "A: e4m3 [batch, M, K]; B: e4m3 [batch, K, N]; scale: f32", "C: bf16 [batch, M, N]",
        "return (torch.bmm(A.to(torch.float32), B.to(torch.float32)) * scale).to(torch.bfloat16)",
    ),
    define(
        "gemm/w4a16_g128_n256_k512", "M N=256 K=512 half=256 groups=4",
        "x: f16 [M, K]; packed: uint8 [N, half]; scale: f16 [N, groups]; zero: uint8 [N, groups]", "y: f16 [M, N]",
        """
        low, high = (packed & 15).to(torch.float32), (packed >> 4).to(torch.float32)
        numbers = torch.stack([low, high], -1).reshape(256, 512)
        weight = (numbers - (zero & 15).to(torch.float32).repeat_interleave(128, 1)) * scale.float().repeat_interleave(128, 1)
        return (x.to(torch.float32) @ weight.T).to(torch.float16)
        """,
    ),
    define(
        "gemm/int8_per_channel_n128_k256", "M N=128 K=256", "A: int8 [M, K]; B: int8 [N, K]; sa: f32 [M]; sb: f32 [N]", "C: bf16 [M, N]",
        "return ((A.long() @ B.long().T).to(torch.float32) * sa[:, None] * sb).to(torch.bfloat16)",
    ),
    define(
        "gemm/nvfp4_n128_k256", "M N=128 K=256 half=128 blocks=16",
        "A: float4_e2m1fn_x2 [M, half]; sa: e4m3 [M, blocks]; B: float4_e2m1fn_x2 [N, half]; sb: e4m3 [N, blocks]", "C: bf16 [M, N]",
        "return torch.zeros(A.shape[0], 128)",
    ),
    define(
        "gemm/mxfp8_n128_k256", "M N=128 K=256 blocks=8",
        "A: e4m3 [M, K]; ea: float8_e8m0fnu [M, blocks]; B: e4m3 [N, K]; eb: float8_e8m0fnu [N, blocks]", "C: bf16 [M, N]",
        "return torch.zeros(A.shape[0], 128)",
    ),
    define(
        "quantization/per_token_fp8_h512", "tokens h=512", "x: bf16 [tokens, h]", "q: e4m3 [tokens, h]; scale: f32 [tokens]",
        """
        wide = x.to(torch.float32)
        scale = wide.abs().amax(-1).clamp(min=1e-10) / torch.finfo(torch.float8_e4m3fn).max
        q = (wide / scale[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn)
        return q, scale
        """,
    ),
    define(
        "quantization/per_group_fp8_h512", "tokens h=512 groups=4", "x: f16 [tokens, h]", "q: e4m3 [tokens, h]; scale: f32 [tokens, groups]",
        """
        wide = x.float().reshape(-1, 4, 128)
        scale = wide.abs().amax(-1).clamp(min=1e-10) / 448.0
        return (wide / scale[..., None]).clamp(-448, 448).reshape(-1, 512).to(torch.float8_e4m3fn), scale
        """,
    ),
    define(
        "quantization/gradients_e5m2", "n", "x: f32 [n]; scale: f32", "q: e5m2 [n]",
        "return torch.clamp(x * scale, -57344.0, 57344.0).to(dtype=torch.float8_e5m2)",
    ),
    define(
        "quantization/fake_quant_h256", "tokens h=256", "x: f32 [tokens, h]; weight: f32 [h, h]", "y: f32 [tokens, h]",
        """
        rounded = x.clamp(-448, 448).to(torch.float8_e4m3fn).to(torch.float32)
        return rounded @ weight
        """,
    ),
    define(
        "quantization/packbits", "bytes bits", "x: bool [bits]", "y: uint8 [bytes]",
        """
        rows = x.reshape(-1, 8).to(torch.uint8)
        return sum(rows[:, i] << i for i in range(8)).to(torch.uint8)
        """,
        ["bits == 8 * bytes"],
    ),
    define(
        "page/dequantise_kv_fp8_d64", "pages size=16 heads=2 d=64",
        "cache: e4m3 [pages, size, heads, d]; k_scale: f32 [heads]", "k: bf16 [pages, size, heads, d]",
        "return (cache.to(torch.float32) * k_scale[:, None]).to(torch.bfloat16)",
    ),
    define(
        "page/append_kv_fp8_d64", "tokens rows d=64", "cache: e4m3 [rows, d]; k: bf16 [tokens, d]; places: int32 [tokens]; scale: f32", "updated: e4m3 [rows, d]",
        """
        updated = cache.to(torch.float32).clone()
        for token, place in enumerate(places.tolist()):
            updated[place] = (k[token].to(torch.float32) / scale).clamp(-448, 448)
        return updated.to(torch.float8_e4m3fn)
        """,
    ),
    define(
        "gqa_paged/decode_fp8_kv_h4_kv2_d64", "batch len_indptr num_indices pages h=4 kv=2 d=64 ps=1",
        "q: bf16 [batch, h, d]; k_cache: e4m3 [pages, ps, kv, d]; v_cache: e4m3 [pages, ps, kv, d]; kv_indptr: int32 [len_indptr]; kv_indices: int32 [num_indices]; k_scale: f32; v_scale: f32; sm_scale: f32",
        "output: bf16 [batch, h, d]; lse: f32 [batch, h]",
        """
        k_all, v_all = k_cache.squeeze(1).to(torch.float32) * k_scale, v_cache.squeeze(1).to(torch.float32) * v_scale
        output = torch.zeros_like(q, dtype=torch.float32)
        lse = torch.full(q.shape[:2], -float("inf"), dtype=torch.float32)
        for b in range(q.shape[0]):
            chosen = kv_indices[int(kv_indptr[b]) : int(kv_indptr[b + 1])].long()
            if chosen.numel() == 0:
                continue
            for head in range(4):
                k, v = k_all[chosen, head // 2], v_all[chosen, head // 2]
                logits = k @ q[b, head].to(torch.float32) * sm_scale
                lse[b, head] = torch.logsumexp(logits, 0) / math.log(2.0)
                output[b, head] = torch.softmax(logits, 0) @ v
        return output.to(torch.bfloat16), lse
        """,
        ["len_indptr == batch + 1", "num_indices == kv_indptr[-1].item()"],
    ),
    define(
        "gqa_ragged/prefill_causal_h4_kv2_d64", "total_q total_kv len_indptr h=4 kv=2 d=64",
        "q: bf16 [total_q, h, d]; k: bf16 [total_kv, kv, d]; v: bf16 [total_kv, kv, d]; qo_indptr: int32 [len_indptr]; kv_indptr: int32 [len_indptr]; sm_scale: f32",
        "output: bf16 [total_q, h, d]",
        """
        output = torch.zeros_like(q, dtype=torch.float32)
        for b in range(len(qo_indptr) - 1):
            q0, q1, k0, k1 = int(qo_indptr[b]), int(qo_indptr[b + 1]), int(kv_indptr[b]), int(kv_indptr[b + 1])
            for i in range(q0, q1):
                last = k1 - (q1 - 1 - i)
                if last <= k0:
                    continue
                keys, values = k[k0:last].to(torch.float32).repeat_interleave(2, 1), v[k0:last].to(torch.float32).repeat_interleave(2, 1)
                logits = torch.einsum("hd,nhd->hn", q[i].to(torch.float32), keys) * sm_scale
                output[i] = torch.einsum("hn,nhd->hd", torch.softmax(logits, -1), values)
        return output.to(torch.bfloat16)
        """,
        ["total_q == qo_indptr[-1].item()", "total_kv == kv_indptr[-1].item()"],
    ),
    define(
        "mla_paged/decode_h4_c128_r32", "batch len_indptr num_indices pages h=4 c=128 r=32 ps=1",
        "q_nope: bf16 [batch, h, c]; q_pe: bf16 [batch, h, r]; ckv: bf16 [pages, ps, c]; kpe: bf16 [pages, ps, r]; kv_indptr: int32 [len_indptr]; kv_indices: int32 [num_indices]; sm_scale: f32",
        "output: bf16 [batch, h, c]",
        """
        output = torch.zeros(q_nope.shape, dtype=torch.float32)
        for b in range(q_nope.shape[0]):
            chosen = kv_indices[int(kv_indptr[b]) : int(kv_indptr[b + 1])].long()
            if len(chosen) == 0:
                continue
            c, p = ckv[chosen, 0].to(torch.float32), kpe[chosen, 0].to(torch.float32)
            logits = (q_nope[b].to(torch.float32) @ c.T + q_pe[b].to(torch.float32) @ p.T) * sm_scale
            output[b] = torch.softmax(logits, -1) @ c
        return output.to(torch.bfloat16)
        """,
        ["len_indptr == batch + 1", "num_indices == kv_indptr[-1].item()"],
    ),
    define(
        "attention/softcap_alibi_h4_d64", "n h=4 d=64", "q: f16 [n, h, d]; k: f16 [n, h, d]; v: f16 [n, h, d]; slopes: f32 [h]; softcap: f32; window: int32", "y: f16 [n, h, d]",
        """
        n = q.shape[0]
        distance = torch.arange(n)[None] - torch.arange(n)[:, None]
        logits = torch.einsum("ihd,jhd->hij", q.float(), k.float()) / 8.0
        if softcap is not None and softcap > 0:
            logits = softcap * torch.tanh(logits / softcap)
        logits = logits + slopes[:, None, None] * distance
        logits = logits.masked_fill((distance > 0) | (distance < -window), -float("inf"))
        return torch.einsum("hij,jhd->ihd", torch.softmax(logits, -1), v.float()).half()
        """,
    ),
    define(
        "rope/cos_sin_cache_h4_d64", "tokens positions h=4 d=64", "q: bf16 [tokens, h, d]; k: bf16 [tokens, h, d]; cache: f32 [positions, d]; ids: int64 [tokens]",
        "q_out: bf16 [tokens, h, d]; k_out: bf16 [tokens, h, d]",
        """
        cos, sin = cache[ids].chunk(2, -1)
        def turn(x):
            a, b = x.to(torch.float32).chunk(2, -1)
            return torch.cat([a * cos[:, None] - b * sin[:, None], b * cos[:, None] + a * sin[:, None]], -1).to(torch.bfloat16)
        return turn(q), turn(k)
        """,
    ),
    define(
        "activation/gelu_tanh_and_mul_fp8", "tokens double half", "x: bf16 [tokens, double]; scale: f32", "y: e4m3 [tokens, half]",
        """
        gate, up = x.to(torch.float32).chunk(2, -1)
        y = torch.nn.functional.gelu(gate, approximate="tanh") * up
        return torch.clamp(y * scale, min=-448.0, max=448.0).to(torch.float8_e4m3fn)
        """,
        ["double == 2 * half"],
    ),
    define(
        "moe/routing_sigmoid_e32_g4_k4", "tokens e=32 k=4", "logits: f32 [tokens, e]; bias: bf16 [e]; factor: f32", "weights: f32 [tokens, k]; ids: int32 [tokens, k]",
        """
        scores = torch.sigmoid(logits.to(torch.float32))
        biased = (scores + bias.to(torch.float32)).reshape(-1, 4, 8)
        groups = biased.topk(2, -1).values.sum(-1).topk(2, -1).indices
        kept = torch.zeros(biased.shape[:2], dtype=torch.bool).scatter(1, groups, True)
        ids = biased.masked_fill(~kept[..., None], -float("inf")).reshape(-1, 32).topk(4, -1).indices
        weights = scores.gather(1, ids)
        return weights / weights.sum(-1, keepdim=True) * factor, ids.to(torch.int32)
        """,
    ),
    define(
        "moe/fused_fp8_e8_h128_i128", "tokens k=2 e=8 h=128 i=128 i2=256 one=1",
        "x: e4m3 [tokens, h]; sx: f32 [tokens]; w1: e4m3 [e, i2, h]; s1: f32 [e]; w2: e4m3 [e, h, i]; s2: f32 [e]; ids: int32 [tokens, k]; weights: f32 [tokens, k]; local_expert_offset: int32",
        "y: bf16 [tokens, h]",
        """
        wide = x.to(torch.float32) * sx[:, None]
        y = torch.zeros_like(wide)
        for e in range(8):
            rows, slots = torch.where(ids == e + local_expert_offset)
            gate, up = (wide[rows] @ w1[e].to(torch.float32).T * s1[e]).chunk(2, -1)
            hidden = torch.nn.functional.silu(gate) * up
            y.index_add_(0, rows, hidden @ w2[e].to(torch.float32).T * s2[e] * weights[rows, slots, None])
        return y.to(torch.bfloat16)
        """,
    ),
    define(
        "sampling/top_p_renorm_v512", "batch v=512", "probs: f32 [batch, v]; top_p: f32 [batch]", "y: f32 [batch, v]",
        """
        probs = probs.abs() / probs.abs().sum(-1, keepdim=True)
        ordered, order = probs.sort(-1, descending=True)
        kept = ordered.cumsum(-1) - ordered < top_p.abs()[:, None]
        y = torch.zeros_like(probs).scatter(1, order, ordered * kept)
        return y / y.sum(-1, keepdim=True)
        """,
    ),
    define(
        "sampling/top_k_top_p_v512", "batch v=512", "probs: f32 [batch, v]; top_k: int32 [batch]", "samples: int64 [batch]",
        "return torch.multinomial(probs.abs(), 1)[:, 0]",
    ),
    define(
        "lora/gather_adapters_d64", "tokens adapters d=64", "x: f16 [tokens, d]; a: f16 [adapters, d]; which: int16 [tokens]", "y: f32 [tokens]",
        "return (x.float() * a[which.long()].float()).sum(-1)",
    ),
    define(
        "gdn/decode_h2_k32_v32", "batch h=2 k=32 v=32",
        "q: bf16 [batch, h, k]; key: bf16 [batch, h, k]; value: bf16 [batch, h, v]; state: f32 [batch, h, v, k]; g: f32 [batch, h]; beta: bf16 [batch, h]; scale: f32",
        "output: bf16 [batch, h, v]; new_state: f32 [batch, h, v, k]",
        """
        key = torch.nn.functional.normalize(key.to(torch.float32), dim=-1)
        decayed = state * torch.exp(-g.abs())[..., None, None]
        delta = torch.sigmoid(beta.to(torch.float32))[..., None] * (value.to(torch.float32) - (decayed @ key[..., None])[..., 0])
        new_state = decayed + delta[..., None] * key[..., None, :]
        return ((new_state @ q.to(torch.float32)[..., None])[..., 0] * scale).to(torch.bfloat16), new_state
        """,
    ),
]  # fmt: skip
