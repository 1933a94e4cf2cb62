"""Small and odd tasks of nobody's family, for what takes references apart: texts by name, some with an oracle."""

from __future__ import annotations

from opsmith.records import Task
from opsmith.targets.step import STEP

BUF = '"Buffer(fp32, [D])"'


def fn(name: str, body: str, given: str, result: str, init: str = "") -> str:
    start = f", init: {init}" if init else ""
    return f'  - {{name: F, func_name: {name}, apply: "{body}"{start}, input_dtype: {given}, output_dtype: {result}}}\n'


def task(
    inputs: list[str],
    fns: list[str],
    outputs: list[str],
    *,
    parameters: list[str] | None = None,
    head: str = "",
    tail: str = "",
) -> str:
    text = head + "inputs:\n" + "".join(f"  - {{{row}}}\n" for row in inputs)
    if parameters:
        text += "parameters:\n" + "".join(f"  - {{{row}}}\n" for row in parameters)
    return text + "fns:\n" + "".join(fns) + "outputs:\n" + "".join(outputs) + tail


def out(name: str, dtype: str, dims: str, *texts: str) -> str:
    rows = "".join("      - |\n" + "".join(f"        {row}\n" for row in text.split("\n")) for text in texts)
    return f"  - name: {name}\n    dtype: {dtype}\n    dims: {dims}\n    data_transform:\n{rows}"


def stream(name: str, dims: str, dtype: str = "fp32", more: str = "data_gen: torch.randn") -> str:
    return f"name: {name}, dtype: {dtype}, dims: {dims}, {more}"


PAIR, BUFS = "[fp32, fp32]", f"[{BUF}, {BUF}]"
ADD = fn("u_add", "return [input[0] + input[1]]", PAIR, "fp32")
SUB = fn("u_sub", "return [input[0] - input[1]]", PAIR, "fp32")
MUL = fn("u_mul", "return [input[0] * input[1]]", PAIR, "fp32")
DIV = fn("u_div", "return [input[0] / input[1]]", PAIR, "fp32")
EXP = fn("u_exp", "return [torch.exp(input[0])]", "fp32", "fp32")
SUM = fn("u_sum", "return [state[0] + input[0]]", "fp32", "fp32", "[0]")
MAX = fn("u_max", "return [torch.maximum(state[0], input[0])]", "fp32", "fp32", "[-.inf]")
SQUARE = fn("u_sq", "return [input[0] * input[0]]", "fp32", "fp32")
ROOT = fn("u_root", "return [torch.sqrt(input[0] + 1e-5)]", "fp32", "fp32")
PER_D = fn("u_per", "return [input[0] / D_value]", "fp32", "fp32")
BADD = fn("v_add", "return [input[0] + input[1]]", BUFS, BUF)
BMUL = fn("v_mul", "return [input[0] * input[1]]", BUFS, BUF)
BSUB = fn("v_sub", "return [input[0] - input[1]]", BUFS, BUF)

TEXTS = {
    # a norm whose mean is needed twice, numbers one by one
    "standardised": task(
        [stream("X", "[D, N]")],
        [PER_D, DIV, SUM, SUB, ROOT, SQUARE],
        [out("Y", "fp32", "[D, N]", "torch.nn.functional.layer_norm(input_data['X'], (D_value,), eps=1e-5)")],
    ),
    # the same with learned scale and shift, rows as elements
    "affine_norm": task(
        [stream("X", "[N]", BUF)],
        [
            fn("r_mean", "return [input[0].mean(0, keepdim=True).expand(D_value)]", BUF, BUF),
            BSUB,
            fn("r_sq", "return [input[0] ** 2]", BUF, BUF),
            fn("r_div", "return [input[0] / torch.sqrt(input[1] + 1e-5)]", BUFS, BUF),
            fn("r_out", "return [input[0] * input_data['G'] + input_data['B']]", BUF, BUF),
        ],
        [
            out(
                "Y",
                BUF,
                "[N]",
                "torch.nn.functional.layer_norm(input_data['X'], (D_value,), input_data['G'], input_data['B'])",
            )
        ],
        parameters=[stream("G", "[D]"), stream("B", "[D]")],
    ),
    # a gate beside a projection, a projection back, what came in added
    "gated": task(
        [stream("X", "[N]", BUF)],
        [
            fn("g_up", "return [input[0] @ input_data['U']]", BUF, '"Buffer(fp32, [K])"'),
            fn("g_gate", "return [input[0] @ input_data['V']]", BUF, '"Buffer(fp32, [K])"'),
            fn("g_silu", "return [input[0] * torch.sigmoid(input[0])]", '"Buffer(fp32, [K])"', '"Buffer(fp32, [K])"'),
            fn(
                "g_mul",
                "return [input[0] * input[1]]",
                '["Buffer(fp32, [K])", "Buffer(fp32, [K])"]',
                '"Buffer(fp32, [K])"',
            ),
            fn("g_down", "return [input[0] @ input_data['W']]", '"Buffer(fp32, [K])"', BUF),
            BADD,
        ],
        [
            out(
                "Y",
                BUF,
                "[N]",
                "x = input_data['X']\nhidden = torch.nn.functional.silu(x @ input_data['V']) * (x @ input_data['U'])\nx + hidden @ input_data['W']",
            )
        ],
        parameters=[stream("U", "[K, D]"), stream("V", "[K, D]"), stream("W", "[D, K]")],
    ),
    # softmax of scores, weighted sum of rows
    "pooled": task(
        [stream("S", "[M, N]"), stream("X", "[M, N]", BUF)],
        [
            EXP,
            SUM,
            DIV,
            SUB,
            MAX,
            fn("p_scale", "return [input[0] * input[1]]", f"[fp32, {BUF}]", BUF),
            fn("p_sum", "return [state[0] + input[0]]", BUF, BUF, "[0]"),
        ],
        [
            out(
                "Y",
                BUF,
                "[N]",
                "w = torch.softmax(input_data['S'], dim=-1)\n(w.unsqueeze(-1) * input_data['X']).sum(1)",
            )
        ],
    ),
    # several outputs, one of two fields, one used by another
    "moments": task(
        [stream("X", "[D, N]")],
        [PER_D, SUM, SUB, SQUARE, ROOT, DIV],
        [
            out("A", "fp32", "[N]", "mean = input_data['X'].mean(1)"),
            out("B", "[fp32, fp32]", "[N]", "var = (input_data['X'] - mean[:, None]).pow(2).mean(1)", "mean"),
            out("C", "fp32", "[D, N]", "input_data['X'] / (var + 1e-5).sqrt()[:, None]"),
        ],
    ),
    # decisions as bools
    "masked": task(
        [stream("X", "[M, N]"), stream("K0", "[M, N]", "bool", "data_gen: binary")],
        [
            fn(
                "m_pick", "return [torch.where(input[1], input[0], torch.zeros_like(input[0]))]", "[fp32, bool]", "fp32"
            ),
            fn("m_pos", "return [input[0] > 0]", "fp32", "bool"),
            fn("m_and", "return [input[0] & input[1]]", "[bool, bool]", "bool"),
            SUM,
            EXP,
        ],
        [
            out(
                "Y",
                "fp32",
                "[N]",
                "x = input_data['X']\nlive = (x > 0) & input_data['K0']\ntorch.where(live, x.exp(), torch.zeros_like(x)).sum(-1)",
            )
        ],
        tail="margins:\n  - |\n    input_data['X'].abs()\n",
    ),
    # places as ints
    "places": task(
        [stream("X", "[M, N]"), stream("P", "[M, N]", "int64", "data_gen: randint, min: 0, max: 6")],
        [
            fn("i_twice", "return [input[0] * 2]", "int64", "int64"),
            fn("i_plus", "return [input[0] + 1]", "int64", "int64"),
            fn("i_as", "return [input[0].to(input[1].dtype) * input[1]]", "[int64, fp32]", "fp32"),
            SUM,
            EXP,
        ],
        [
            out(
                "Y",
                "fp32",
                "[N]",
                "p = input_data['P'] * 2 + 1\n(p.to(input_data['X'].dtype) * input_data['X']).exp().sum(1)",
            )
        ],
    ),
    # rows routed by a decision on their first number
    "routed": task(
        [stream("X", "[N]", BUF)],
        [
            fn(
                "t_route",
                "p = (input[0][0] > 0).to(input[0].dtype)\\nreturn [torch.stack([p, 1 - p])]",
                BUF,
                '"Multihot(fp32, E)"',
            ),
            fn("t_sin", "return [torch.sin(input[0])]", BUF, BUF),
            fn("t_cos", "return [torch.cos(input[0])]", BUF, BUF),
            fn("t_sum", "return [state[0] + input[0]]", BUF, BUF, "[0]"),
            fn("t_tanh", "return [torch.tanh(input[0])]", BUF, BUF),
            fn("t_sq", "return [input[0] * input[0]]", BUF, BUF),
        ],
        [
            out(
                "Y",
                BUF,
                "[N]",
                "x = torch.tanh(input_data['X'])\nhot = torch.stack([(x[:, 0] > 0), (x[:, 0] <= 0)], 1).to(x.dtype)\ny = hot[:, :1] * torch.sin(x) + hot[:, 1:] * torch.cos(x)\ny * y",
            )
        ],
        head="global: |\n  E_value = 2\n  ctx[E] = E_value\n",
        tail="margins:\n  - |\n    input_data['X'][:, 0].abs()\n",
    ),
    # a loop that carries a state
    "carried": task(
        [stream("X", "[M, N]")],
        [EXP, fn("c_step", "return [0.5 * state[0] + input[0]]", "fp32", "fp32", "[0]"), SUM, MUL],
        [
            out(
                "Y",
                "fp32",
                "[N]",
                "x = input_data['X'].exp()\nh = torch.zeros_like(x[:, 0])\nrows = []\nfor m in range(M_value):\n    h = 0.5 * h + x[:, m]\n    rows.append(h)\nh = torch.stack(rows, 1)\n(h * x).sum(-1)",
            )
        ],
    ),
    # modules and a function of global
    "modular": task(
        [stream("X", "[N]", BUF)],
        [
            fn("n_lin", "return [lin(input[0])]", BUF, BUF),
            fn("n_mean", "return [input[0].mean(-1, keepdim=True).expand(D_value)]", BUF, BUF),
            BSUB,
            BMUL,
            fn("n_half", "return [input[0] / 2]", BUF, BUF),
            fn("n_scale", "return [torch.rsqrt(input[0] + 1e-5)]", BUF, BUF),
        ],
        [out("Y", BUF, "[N]", "halve(norm(lin(input_data['X'])))")],
        head="global: |\n  lin = torch.nn.Linear(D_value, D_value)\n  norm = torch.nn.LayerNorm(D_value)\n  def halve(x):\n      y = x / 2\n      return y\n",
    ),
    # shares kept as columns
    "shares": task(
        [stream("X", "[M, N]"), stream("Z", "[M, N]")],
        [EXP, SUM, DIV, MUL, ADD],
        [
            out(
                "Y",
                "fp32",
                "[M, N]",
                "x = input_data['X'].exp()\ny = x / x.sum(dim=1, keepdim=True)\nz = y * input_data['Z']\nz / z.sum(dim=1, keepdim=True).exp() + y",
            )
        ],
    ),
    # rows become columns
    "turned": task(
        [stream("X", "[M, N]")],
        [fn("w_turn", "return [input[0].T]", '"Buffer(fp32, [M, N])"', '"Buffer(fp32, [N, M])"'), EXP, SUM, DIV],
        [out("Y", "fp32", "[N, M]", "x = input_data['X'].exp().T\nx / x.sum(-1, keepdim=True)")],
    ),
    # axes of products
    "blocked": task(
        [stream("X", "[2*M*N, K]")],
        [SUM, EXP, MAX, SUB],
        [
            out(
                "Y",
                "fp32",
                "[N, K]",
                "x = input_data['X'].reshape(K_value, N_value, M_value * 2)\ntop = x.amax(-1)\nlow = x.sum(-1)\n(top - low).exp()",
            )
        ],
    ),
    # a chain of residuals over parameters
    "residual": task(
        [stream("X", "[N]", BUF)],
        [
            fn("q_a", "return [torch.relu(input[0] @ input_data['A'])]", BUF, BUF),
            fn("q_b", "return [torch.tanh(input[0] * input_data['s'])]", BUF, BUF),
            BADD,
            BMUL,
            BSUB,
        ],
        [
            out(
                "Y",
                BUF,
                "[N]",
                "x = input_data['X']\nx = x + torch.relu(x @ input_data['A'])\ny = torch.tanh(x * input_data['s'])\nz = (x - y) * y\nz + x",
            )
        ],
        parameters=[stream("A", "[D, D]"), stream("s", "[D]")],
    ),
    # in-place statements, tuples, a lambda and a comprehension
    "untidy": task(
        [stream("X", "[M, N]"), stream("Z", "[M, N]")],
        [EXP, ADD, MUL, SUM, MAX, SUB],
        [
            out(
                "Y",
                "fp32",
                "[N]",
                "a, b = input_data['X'], input_data['Z']\nsquash = lambda t: t.exp()\nc = squash(a) + b\nc[:, 0] += 1\nc = c * c\ntop, _ = c.max(dim=-1)\nsum([row for row in (top, c.sum(-1))])",
            ),
            out("W", "fp32", "[M, N]", "d = (c - b).exp()"),
        ],
    ),
}

ORACLES = {
    "standardised": """
        A, B = step.Copy().apply(X)
        A, C = step.Copy().apply(A)
        mean = step.Map(fn=u_per).apply(step.Accum(fn=u_sum, b=1).apply(A))
        c = step.Map(fn=u_sub).apply((B, step.RepeatRef().apply((mean, C))))
        c, d = step.Copy().apply(c)
        c, e = step.Copy().apply(c)
        var = step.Map(fn=u_per).apply(step.Accum(fn=u_sum, b=1).apply(step.Map(fn=u_sq).apply(c)))
        root = step.Map(fn=u_root).apply(var)
        return step.Map(fn=u_div).apply((d, step.RepeatRef().apply((root, e))))
    """,
    "pooled": """
        A, B = step.Copy().apply(step.Map(fn=u_exp).apply(S))
        A, C = step.Copy().apply(A)
        w = step.Map(fn=u_div).apply((B, step.RepeatRef().apply((step.Accum(fn=u_sum, b=1).apply(A), C))))
        return step.Accum(fn=p_sum, b=1).apply(step.Map(fn=p_scale).apply((w, X)))
    """,
    "gated": """
        A, B = step.Copy().apply(X)
        A, C = step.Copy().apply(A)
        h = step.Map(fn=g_mul).apply((step.Map(fn=g_silu).apply(step.Map(fn=g_gate).apply(A)), step.Map(fn=g_up).apply(B)))
        return step.Map(fn=v_add).apply((C, step.Map(fn=g_down).apply(h)))
    """,
    "carried": """
        x = step.Map(fn=u_exp).apply(X)
        x, y = step.Copy().apply(x)
        return step.Accum(fn=u_sum, b=1).apply(step.Map(fn=u_mul).apply((step.Scan(fn=c_step, b=1).apply(x), y)))
    """,
}


def read_odd_task(name: str) -> Task:
    return STEP.read_task(TEXTS[name], f"{name}_0")
