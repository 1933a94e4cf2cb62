"""Programs that do other things at other sizes: wrong ones, each right at all sizes that its task states, and right ones.

A wrong program is a task's own with one stream spoiled at some sizes only: in a loop that runs there, by an element of
a list that is chosen there, or by a number that a primitive is given. A right one does what its task's reference does
at every size, in loops over sizes, experts and heads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from opsmith.records import Task
from opsmith.suites import load_tasks
from opsmith.targets import get_target


@dataclass(frozen=True)
class Sized:
    """One program of a task; `why` names the mechanism."""

    task: str
    why: str
    program: str

    def __str__(self) -> str:
        return f"{self.task}: {self.why}"


# ---------------------------------------------------------------- wrong ones

# task -> (the stream that is spoiled, the statements that spoil a stream R)
SPOILS = {
    "gemm_2": ("E6", "R, X = step.Copy().apply(R)\nR = step.Map(fn=fn_mul).apply((R, X))"),
    "norm_2": ("E9", "R = step.Map(fn=fn_addeps).apply(R)"),
    "rope_1": ("E2", "R = step.Scan(fn=fn_sum, b=1).apply(R)"),
    "bmm_1": ("E7", "R = step.Accum(fn=fn_sum, b=1).apply(step.Repeat(n=2).apply(R))"),
    "expert_0": ("E13", "R = step.Accum(fn=fn_sum, b=1).apply(step.Repeat(n=3).apply(R))"),
    "powers_0": ("E2", "R = step.Scan(fn=fn_mul, b=1).apply(R)"),
    "prefix_0": ("E2", "R = step.Scan(fn=fn_add, b=1).apply(R)"),
    "blocks_0": ("E2", "R = step.Accum(fn=fn_add, b=1).apply(step.Repeat(n=2).apply(R))"),
    "skip_0": ("E8", "R = step.Map(fn=fn_relu).apply(R)"),
    "digits_0": ("E9", "R = step.Map(fn=fn_negate).apply(R)"),
    "extrema_0": ("E3", "R = step.Accum(fn=fn_add, b=1).apply(step.Repeat(n=2).apply(R))"),
    "totals_0": ("E5", "R = step.Accum(fn=fn_sum, b=1).apply(step.Repeat(n=2).apply(R))"),
    "pairs_0": ("E2", "R = step.Scan(fn=fn_max, b=1).apply(R)"),
}
_ZEROS = {  # a product that is 0 at every tested size of a symbol
    name: "*".join(f"({name}_value-{size})" for size in sizes)
    for name, sizes in {
        "K": (1, 2, 4, 9, 10, 17, 64),
        "D": (2, 4, 6, 10, 16, 64),
        "N": (1, 3, 4, 7, 11, 19, 64),
    }.items()
}
LOOPS = [  # task, and how often its stream is spoiled
    ("gemm_2", "K_value - 64"),
    ("gemm_2", f"({_ZEROS['K']}) * ({_ZEROS['K']}) // 1000000007 // 1000000007"),
    ("gemm_2", "(M_value - N_value) // 17"),
    ("gemm_2", "K_value // 1000003"),
    ("norm_2", "D_value - D_value // 2 * 2"),
    ("norm_2", "N_value // 65"),
    ("norm_2", "1, 1 + D_value // 65"),
    ("rope_1", "M_value - 32"),
    ("rope_1", "M_value * N_value // 3001"),
    ("bmm_1", "K_value // M_value // 10"),
    ("bmm_1", "(M_value * N_value * K_value * D_value) // 9000000"),
    ("expert_0", "(M_value + N_value) // 97"),
    ("expert_0", "N_value // 100 - N_value // 104"),
    ("powers_0", "1 // (1 + (D_value - 12) * (D_value - 12))"),
    ("powers_0", "N_value // (2 * D_value * D_value)"),
    ("prefix_0", "M_value // 40, M_value // 20 * (M_value // 40)"),
    ("blocks_0", "M_value // 33"),
    ("skip_0", "(D_value + 1) // 2 - D_value // 2"),
    ("digits_0", "M_value // 33 - M_value // 34"),
    ("extrema_0", "M_value // 33, M_value // 66, -1"),
    ("totals_0", "2 * (M_value // 40), 0, -1"),
    ("pairs_0", "N_value // 70"),
]
CHOICES = [  # task, and which of (right, wrong) is taken
    ("gemm_2", "[K_value // 65]"),
    ("gemm_2", "[1 // ((K_value - 777) * (K_value - 777) + 1)]"),
    ("gemm_2", "[1 // ((M_value - N_value) * (M_value - N_value) + (M_value - 6) * (M_value - 6) + 1)]"),
    ("norm_2", "[D_value - D_value // 2 * 2]"),
    ("norm_2", "[(N_value - N_value // 97 * 97) // 96]"),
    ("norm_2", "[len([i for i in range(N_value)]) // 65 // (1 + N_value // 130)]"),
    ("rope_1", "[[0, 0, 1, 0][M_value // 32 // (1 + M_value // 128)]]"),
    ("rope_1", "[(M_value * M_value + 1) // 1026 // (1 + M_value * M_value // 2052)]"),
    ("bmm_1", "[D_value // 66 - D_value // 67]"),
    (
        "bmm_1",
        "[-(D_value // -65) - 1 - (D_value - 1) // 65 + D_value // 100000 * 0 + K_value // 512 - K_value // 513]",
    ),
    (
        "expert_0",
        "[(N_value // 64) * (M_value // 32) - (N_value // 64) * (M_value // 32)"
        " + 1 // ((M_value - 33) * (M_value - 33) + 1)]",
    ),
    ("powers_0", "[1 // (1 + (N_value - 13) * (N_value - 13))]"),
    (
        "prefix_0",
        "[1 // (1 + (K_value - M_value * N_value) * (K_value - M_value * N_value) + 1 // (M_value * N_value))]",
    ),
    ("blocks_0", "[(K_value // 8 - K_value // 9) // 8 // (1 + (K_value // 8 - K_value // 9) // 16)]"),
    ("skip_0", "[D_value - 2 * (D_value // 2)]"),
    ("digits_0", "[D_value // 5 - (D_value - 1) // 5 - D_value // 10 + (D_value - 1) // 10]"),
    ("totals_0", "[1 // (1 + (M_value - 1003) * (M_value - 1003))]"),
    ("pairs_0", "[D_value // 128 // (1 + D_value // 256)]"),
]
ARGUMENTS = [  # task, what makes the mechanism, the last application and the one in its place
    (
        "blocks_0",
        "n of Repeat",
        "return E2",
        "return step.Accum(fn=fn_add, b=1).apply(step.Repeat(n=1 + K_value // 65).apply(E2))",
    ),
    (
        "gemm_2",
        "n of Repeat, a dim for some",
        "return E6",
        "return step.Accum(fn=fn_add, b=1).apply(step.Repeat(n=1 + K_value // 3 // 22).apply(E6))",
    ),
    ("prefix_0", "b of Scan", "b=2", "b=2 - M_value // 33"),
    ("prefix_0", "b of Scan, at odd multiples", "b=2", "b=2 - 1 // (1 + (N_value - 21) * (N_value - 21))"),
    ("blocks_0", "S of Reshape", "S=M,", "S=[M, N][1 // (1 + (M_value - 2 * N_value) * (M_value - 2 * N_value))],"),
    ("digits_0", "N of Partition", "N=3", "N=3 + M_value // 33"),
    ("prefix_0", "an entry of L", "L=[1]", "L=[1 + K_value // 65]"),
    ("norm_2", "a fn out of a list", "fn=fn_sqrt", "fn=[fn_sqrt, fn_square][N_value // 65 - N_value // 130]"),
    (
        "norm_2",
        "a zip that stops early",
        "E7 = step.Map(fn=fn_sqrt).apply(E6)",
        "E7 = step.Map(fn=fn_sqrt).apply(E6)\nfor f, i in zip([fn_addeps, fn_addeps], range(N_value // 65)):\n"
        "    E7 = step.Map(fn=f).apply(E7)",
    ),
    (
        "gemm_2",
        "loops in loops",
        "return E6",
        "for i in range(K_value // 8):\n    for j in range(8, i):\n        E6, X = step.Copy().apply(E6)\n"
        "        E6 = step.Map(fn=fn_mul).apply((E6, X))\nreturn E6",
    ),
]


def wrong_programs() -> Iterator[Sized]:
    impls = {task.id: task.impl or "" for task in load_tasks(("step26", "step_extra"))}
    for task, times in LOOPS:
        name, spoil = SPOILS[task]
        yield Sized(task, f"range({times})", _after(impls[task], name, _loop(name, spoil, times)))
    for task, index in CHOICES:
        name, spoil = SPOILS[task]
        yield Sized(task, f"[right, wrong]{index}", _after(impls[task], name, _choice(name, spoil, index)))
    for task, why, old, new in ARGUMENTS:
        assert impls[task].count(old) == 1, (task, old)
        yield Sized(task, why, impls[task].replace(old, new))


def _after(impl: str, name: str, more: str) -> str:
    """The program with statements after the one that binds a name."""
    lines = impl.splitlines()
    at = next(at for at, line in enumerate(lines) if line.strip().startswith(f"{name} = ")) + 1
    return "\n".join([*(line.strip() for line in lines[:at]), more, *(line.strip() for line in lines[at:])])


def _loop(name: str, spoil: str, times: str) -> str:
    body = "\n".join(f"    {line}" for line in spoil.replace("R", name).replace(f"{name}ep", "Rep").splitlines())
    return f"for spoiling in range({times}):\n{body}"


def _choice(name: str, spoil: str, index: str) -> str:
    wrong = spoil.replace("Repeat", "?").replace("R", "WRONG").replace("?", "Repeat")
    return f"{name}, WRONG = step.Copy().apply({name})\n{wrong}\n{name} = [{name}, WRONG]{index}"


# ---------------------------------------------------------------- right ones

_FNS = {  # name -> what goes in, what comes out, start values, body
    "fn_inc": ("fp32", "fp32", None, "input[0] + 1"),
    "fn_neg": ("fp32", "fp32", None, "-input[0]"),
    "fn_half": ("fp32", "fp32", None, "input[0] / 2"),
    "fn_mul": (["fp32", "fp32"], "fp32", None, "input[0] * input[1]"),
    "fn_mean": (["fp32", "fp32"], "fp32", None, "(input[0] + input[1]) / 2"),
    "fn_add": ("fp32", "fp32", [0], "state[0] + input[0]"),
    "fn_max": ("fp32", "fp32", ["-inf"], "torch.maximum(state[0], input[0])"),
}


def own_task(
    name: str, inputs: dict[str, str], output: str, reference: str, sizes: dict[str, list[int]] | None = None
) -> Task:
    """A task of vectors over the functions above. `sizes`: further symbols, with the sizes they have beside 3."""
    sizes = sizes or {}
    streams = {key: text.partition(" ") for key, text in inputs.items()}
    text = {
        "test_name": name,
        "global": "".join(f"{symbol}_value = 3\nctx[{symbol}] = {symbol}_value\n" for symbol in sizes),
        "inputs": [
            {"name": key, "dtype": dtype, "dims": yaml.safe_load(dims), **_data(dtype)}
            for key, (dtype, _, dims) in streams.items()
            if key.startswith("E")
        ],
        "parameters": [
            {"name": key, "dtype": dtype, "dims": yaml.safe_load(dims), "data_gen": "torch.rand"}
            for key, (dtype, _, dims) in streams.items()
            if not key.startswith("E")
        ],
        "fns": [
            {
                "name": fn,
                "func_name": fn,
                "apply": f"return [{body}]",
                "input_dtype": given,
                "output_dtype": made,
                **({"init": init} if init else {}),
            }
            for fn, (given, made, init, body) in _FNS.items()
        ],
        "outputs": [
            {"name": "S0", "dtype": "fp32", "dims": yaml.safe_load(output), "data_transform": [reference]},
        ],
        "shapes": {f"{symbol}{size}": {symbol: size} for symbol, all_ in sizes.items() for size in all_},
    }
    return get_target("step").read_task(yaml.safe_dump(text, sort_keys=False), name)


def _data(dtype: str) -> dict[str, object]:
    return {"min": 0, "max": 1} if dtype.startswith("Multihot") else {"data_gen": "torch.rand"}


_X = "input_data['E0']"
_ROW = {"E0": "fp32 [N]", "W": "fp32 [K]", "V": "fp32 [M]"}  # parameters make their symbols sizes of the task
_LOOP = "{head}\nfor i in range({times}):\n    {body}\nreturn {result}"
_MERGED = "E2, E3 = step.Copy().apply(E1)\nparts = step.Partition(N={n}).apply((E0, E2))\n"
_MERGE = "\nreturn step.Merge(fn=fn_add).apply((made, E3))"
_ROUTED = {"E0": "fp32 [M]", "E1": "Multihot(fp32,E) [M]"}
_EXPERTS = {"E": [1, 2, 5, 8]}
_COUNT = "input_data['E1'].sum(-1)"


def _repeated(body: str, times: str, head: str = "A = E0", result: str = "A") -> str:
    return _LOOP.format(head=head, times=times, body=body, result=result)


def own_right() -> Iterator[tuple[Task, str]]:
    """Tasks written for this, and programs that are right at all their sizes."""
    inc, neg = "A = step.Map(fn=fn_inc).apply(A)", "A = step.Map(fn=fn_neg).apply(A)"
    power = "X, Y = step.Copy().apply(X)\n    A = step.Map(fn=fn_mul).apply((A, Y))"
    yield (
        own_task("power", _ROW, "[N]", f"{_X} ** K_value"),
        _repeated(power, "K_value - 1", "A, X = step.Copy().apply(E0)"),
    )
    sign = f"{_X} * (-1) ** K_value"
    yield own_task("sign", _ROW, "[N]", sign), _repeated(neg, "K_value")
    parity = "A, B = step.Copy().apply(E0)\nB = step.Map(fn=fn_neg).apply(B)\nreturn [A, B][K_value - K_value // 2 * 2]"
    yield own_task("sign_by_parity", _ROW, "[N]", sign), parity
    yield (
        own_task("halved", {"E0": "fp32 [D, N]"}, "[D, N]", f"{_X} / 2.0 ** D_value"),
        _repeated("A = step.Map(fn=fn_half).apply(A)", "D_value"),
    )
    yield (
        own_task("counted", _ROW, "[N]", f"{_X} + K_value * M_value"),
        _repeated(f"for j in range(M_value):\n        {inc}", "K_value"),
    )
    yield (
        own_task("squared", _ROW, "[N]", f"{_X} + K_value * K_value"),
        _repeated(f"for j in range(K_value):\n        {inc}", "K_value"),
    )
    yield (
        own_task("at_most_three", _ROW, "[N]", f"{_X} + min(K_value, 3)"),
        ("for i, f in zip(range(K_value), [fn_inc, fn_inc, fn_inc]):\n    E0 = step.Map(fn=f).apply(E0)\nreturn E0"),
    )
    yield (
        own_task("triangle", _ROW, "[N]", f"{_X} + K_value * (K_value - 1) // 2"),
        _repeated(f"for j in range(i):\n        {inc}", "K_value"),
    )
    yield (
        own_task("blocks_of_ten", _ROW, "[N]", f"{_X} + K_value // 10 + 2 * (M_value // 50)"),
        _repeated(inc, "K_value // 10 + 2 * (M_value // 50)"),
    )
    yield own_task("far_blocks", _ROW, "[N]", f"{_X} + K_value // 100003"), _repeated(inc, "K_value // 100003")
    smooth = "A, B = step.Copy().apply(A)\n    A = step.Map(fn=fn_mean).apply((A, step.Map(fn=fn_inc).apply(B)))"
    yield own_task("drift", _ROW, "[N]", f"{_X} + M_value / 2"), _repeated(smooth, "M_value")
    halves = "E1 = step.Reshape(S=D_value // 2, L=[0]).apply(E0)\nreturn step.Accum(fn=fn_max, b=1).apply(E1)"
    yield own_task("halves", {"E0": "fp32 [D, N]"}, "[2, N]", f"{_X}.unflatten(1, (2, D_value // 2)).amax(-1)"), halves
    heads = {"E0": "fp32 [H*D, N]"}
    head = "E1 = step.Reshape(S=D, L=[0]).apply(E0)\nA = step.Accum(fn=fn_add, b=1).apply(E1)"
    total = f"{_X}.unflatten(1, (H_value, D_value)).sum(-1)"
    yield own_task("heads", heads, "[H, N]", f"{total} + H_value", {"H": [1, 2, 4, 8]}), _repeated(inc, "H_value", head)
    yield own_task("fixed_heads", heads, "[H, N]", f"{total} + 3", {"H": []}), _repeated(inc, "H_value", head)
    twice = _MERGED.format(n="E_value") + "made = [step.Map(fn=fn_inc).apply(part) for part in parts]" + _MERGE
    grown = f"({_X} + 1) * {_COUNT}"
    yield own_task("experts", _ROUTED, "[M]", grown, _EXPERTS), twice
    yield own_task("experts_by_symbol", _ROUTED, "[M]", grown, _EXPERTS), twice.replace("E_value", "E")
    appended = "made = []\nfor part in parts:\n    made.append(step.Map(fn=fn_inc).apply(part))"
    yield own_task("experts_appended", _ROUTED, "[M]", grown, _EXPERTS), _MERGED.format(n="E") + appended + _MERGE
    chosen = "made = [step.Map(fn=[fn_neg, fn_inc][i - i // 2 * 2]).apply(p) for i, p in enumerate(parts)]"
    odd = f"chosen = input_data['E1']\n-{_X} * chosen[:, 0::2].sum(-1) + ({_X} + 1) * chosen[:, 1::2].sum(-1)"
    yield own_task("experts_in_turn", _ROUTED, "[M]", odd, _EXPERTS), _MERGED.format(n="E") + chosen + _MERGE
    deeper = (
        "made = []\nfor i, part in enumerate(parts):\n    for j in range(i):\n"
        "        part = step.Map(fn=fn_inc).apply(part)\n    made.append(part)"
    )
    steps = f"chosen = input_data['E1']\n{_X} * chosen.sum(-1) + chosen @ torch.arange(E_value).to(chosen.dtype)"
    yield own_task("experts_in_depth", _ROUTED, "[M]", steps, _EXPERTS), _MERGED.format(n="E_value") + deeper + _MERGE


BUNDLED_RIGHT = [  # task, mechanism, old text, new text
    ("gemm_2", "copies", "return E6", "for i in range(K_value):\n  E6, X = step.Copy().apply(E6)\nreturn E6"),
    (
        "gemm_2",
        "sums of one term",
        "return E6",
        "for i in range(K_value):\n  E6 = step.Accum(fn=fn_add, b=1).apply(step.Promote(b=0).apply(E6))\nreturn E6",
    ),
    ("skip_0", "relu again", "E7 = ", "for i in range(D_value):\n  E6 = step.Map(fn=fn_relu).apply(E6)\nE7 = "),
    (
        "digits_0",
        "twice negated",
        "return E9",
        "for i in range(2 * M_value):\n  E9 = step.Map(fn=fn_negate).apply(E9)\nreturn E9",
    ),
    (
        "pairs_0",
        "maxima of one",
        "return E2",
        "for i in range(D_value // 2):\n  E2 = step.Accum(fn=fn_max, b=1).apply(step.Promote(b=0).apply(E2))\nreturn E2",
    ),
    (
        "rope_1",
        "copies, at even sizes",
        "return E3",
        "for i in range(D_value // 2):\n  E3, X = step.Copy().apply(E3)\n  E3 = step.Identity().apply(E3)\nreturn E3",
    ),
    (
        "index_2",
        "elements of a list",
        "return E7, E2",
        "all = [E7, E2]\nreturn all[M_value // (M_value + 1)], all[M_value // M_value]",
    ),
    (
        "etoe_2",
        "empty loop",
        "return E20",
        "for i in range(M_value * K_value // K_value - M_value):\n  X = i\nreturn E20",
    ),
    (
        "expert_1",
        "experts by a loop",
        "E6, E7, E8 = step.Partition(N=3).apply((E3, E4))",
        "parts = step.Partition(N=E_value).apply((E3, E4))\nE6, E7, E8 = [parts[i] for i in range(E_value)]",
    ),
]


def right_programs() -> Iterator[tuple[Task, str, str]]:
    """Task, mechanism, program."""
    bundled = {task.id: task for task in load_tasks(("step26", "step_extra"))}
    for name, why, old, new in BUNDLED_RIGHT:
        impl = "\n".join(line.strip() for line in (bundled[name].impl or "").splitlines())
        assert impl.count(old) == 1, (name, old)
        yield bundled[name], why, impl.replace(old, new)
    for task, program in own_right():
        yield task, "its own", program
