"""Tasks that no family of the bundled ones is like: from files, and made up to be as large as they may come."""

from pathlib import Path

from opsmith.records import Task
from opsmith.targets.step import STEP

FOLDER = Path(__file__).parents[3] / "fixtures" / "unseen"
FAMILIES = [STEP.read_task(path.read_text(), path.stem) for path in sorted(FOLDER.glob("*.yaml"))]

ROW, MATRIX = "Buffer(fp32, [D])", "Buffer(fp32, [D, D])"


def make_task(name: str, inputs: list[str], fns: list[tuple[list[str], list[str], bool]], outputs: list[str]) -> Task:
    """A task of streams like `fp32 [M, N]` and of fns (input fields, output fields, stateful) that compute nothing."""
    lines = [
        f"test_name: {name}",
        "global: |",
        "  H_value = 2",
        "  ctx[H] = H_value",
        "  E_value = 4",
        "  ctx[E] = E_value",
    ]
    lines += [
        "inputs:",
        *(f"  - {{name: E{i}, {written(stream)}, {drawn(stream)}}}" for i, stream in enumerate(inputs)),
    ]
    lines.append("fns:")
    for i, (takes, gives, stateful) in enumerate(fns):
        init = f", init: {[0] * len(gives)}" if stateful else ""
        types = f"input_dtype: {quoted(takes)}, output_dtype: {quoted(gives)}"
        body = f"return [{', '.join(['input[0]'] * len(gives))}]"
        lines.append(f'  - {{name: F{i}, func_name: fn_{i}, {types}{init}, apply: "{body}"}}')
    lines.append("outputs:")
    for i, stream in enumerate(outputs):
        lines.append(f"  - {{name: S{i}, {written(stream)}, data_transform: [\"input_data['E0']\"]}}")
    return STEP.read_task("\n".join(lines) + "\n", name)


def written(stream: str) -> str:
    dtype, _, dims = stream.rpartition(" [")
    return f'dtype: "{dtype}", dims: [{dims}'


def drawn(stream: str) -> str:
    return "min: 1, max: 2" if stream.startswith("Multihot") else "data_gen: torch.randn"


def quoted(fields: list[str]) -> str:
    return f'"{fields[0]}"' if len(fields) == 1 else "[" + ", ".join(f'"{field}"' for field in fields) + "]"


def scalars(
    takes: int, count: int, *, gives: int = 1, stateful: bool = False
) -> list[tuple[list[str], list[str], bool]]:
    return [(["fp32"] * takes, ["fp32"] * gives, stateful)] * count


CROWD = make_task(
    "crowd_0",
    ["fp32 [N, M]"] * 8,
    [*scalars(1, 10), *scalars(2, 12), *scalars(3, 4), *scalars(1, 4, stateful=True)],
    ["fp32 [N, M]"] * 4 + ["fp32 [M]"] * 2,
)
ARITIES = make_task("arities_0", ["fp32 [N, M]"] * 8, [*scalars(6, 10), *scalars(6, 5, gives=6)], ["fp32 [N, M]"] * 12)
UNSOLVABLE = make_task("unsolvable_0", ["fp32 [N, M]"] * 8, scalars(3, 30, gives=2), ["int32 [K, D]"] * 6)
AXES = make_task(
    "axes_0",
    [
        "fp32 [D, N, H, K, M]",
        "fp32 [D, M, H, K]",
        f"{MATRIX} [N, H]",
        "fp32 [M*N, H*K]",
        "fp32 [D/2, N]",
        f"{ROW} [H, M]",
    ],
    [
        *scalars(1, 6),
        *scalars(2, 8),
        *scalars(1, 3, stateful=True),
        ([ROW, ROW], ["fp32"], False),
        ([ROW], [MATRIX], False),
    ],
    ["fp32 [N, H, K]", f"{MATRIX} [M, K]", "fp32 [K, M, N, H, D]"],
)
EXPERTS = make_task(
    "experts_0",
    [f"{ROW} [N, M]"] * 4 + ["Multihot(fp32, E) [N, M]"] * 4,
    [([ROW], [ROW], False)] * 16
    + [([ROW, ROW], [ROW], False)] * 8
    + [([ROW], ["Multihot(fp32, E)"], False)] * 3
    + [([ROW], [ROW], True)] * 6,
    [f"{ROW} [N, M]"] * 3,
)
LARGE = [CROWD, ARITIES, UNSOLVABLE, AXES, EXPERTS]
