"""Times operators of exported CUDA libraries beside torch eager, and one library beside another, on this machine's GPU.

    python time_operators.py OUT.json SECONDS LIBRARY [LIBRARY...]

Interleaved pairs; CUDA events around CALLS calls each. `call`: from Python, as a user calls it; `graph`: the same calls
replayed as a CUDA graph, so that Python and launches are left out. A ratio is torch's time / the operator's: above 1, the
operator is faster. Brackets: the median's 95 % interval by order statistics. Without a GPU (STAND_IN=1) the clock is the
processor's, and figures mean nothing.
"""

import importlib
import json
import math
import os
import statistics
import sys
import time

import torch

CALLS, PAIRS = 10, 31
STAND_IN = bool(os.environ.get("STAND_IN"))
DEVICE = "cpu" if STAND_IN else "cuda"
SIZES = {  # bench: the problem's own `large`; gpu: what fills the device
    "batched_gemm": ({"B": 6, "M": 112, "N": 128, "K": 128}, {"B": 16, "M": 512, "N": 512, "K": 512}),
    "bias_gelu_residual": ({"M": 512, "N": 1024}, {"M": 8192, "N": 4096}),
    "conv1d": ({"B": 3, "C": 32, "O": 32, "L": 768, "R": 4}, {"B": 16, "C": 64, "O": 64, "L": 4096, "R": 4}),
    "conv2d": ({"B": 2, "C": 32, "O": 32, "H": 28, "W": 28}, {"B": 16, "C": 64, "O": 64, "H": 56, "W": 56}),
    "cross_entropy": ({"M": 512, "N": 2048}, {"M": 8192, "N": 8192}),
    "embedding_bag": ({"T": 8192, "B": 512, "V": 4096, "D": 256}, {"T": 65536, "B": 4096, "V": 32768, "D": 256}),
    "gather": ({"T": 32768, "V": 8192, "D": 256}, {"T": 131072, "V": 32768, "D": 256}),
    "gemm_at": ({"M": 192, "N": 208, "K": 192}, {"M": 2048, "N": 2048, "K": 2048}),
    "gemm_bias_relu": ({"M": 224, "N": 240, "K": 224}, {"M": 1024, "N": 1024, "K": 1024}),
    "grouped_gemm": ({"T": 512, "G": 8, "N": 128, "K": 128}, {"T": 4096, "G": 8, "N": 512, "K": 512}),
    "inclusive_scan": ({"M": 1024, "N": 2048}, {"M": 8192, "N": 4096}),
    "int8_gemm": ({"M": 256, "N": 256, "K": 256}, {"M": 1024, "N": 1024, "K": 1024}),
    "layer_norm": ({"M": 1024, "N": 2048}, {"M": 8192, "N": 4096}),
    "masked_attention": ({"H": 4, "L": 128, "S": 160, "D": 64}, {"H": 16, "L": 1024, "S": 1024, "D": 64}),
    "max_pool2d": ({"B": 4, "C": 32, "H": 56, "W": 56}, {"B": 32, "C": 64, "H": 112, "W": 112}),
    "mean_variance": ({"M": 1024, "N": 4096}, {"M": 8192, "N": 8192}),
    "rms_norm": ({"M": 1024, "N": 2048}, {"M": 8192, "N": 4096}),
    "rope": ({"T": 1024, "H": 16, "D": 64}, {"T": 8192, "H": 32, "D": 128}),
    "row_max_argmax": ({"M": 1024, "N": 4096}, {"M": 8192, "N": 8192}),
    "row_sum": ({"M": 1024, "N": 4096}, {"M": 8192, "N": 8192}),
    "scale_shift_silu": ({"B": 8, "C": 64, "L": 1024}, {"B": 32, "C": 256, "L": 4096}),
    "scatter_add": ({"T": 16384, "V": 4096, "D": 256}, {"T": 65536, "V": 16384, "D": 256}),
    "softmax": ({"M": 512, "N": 2048}, {"M": 8192, "N": 4096}),
    "top_k": ({"M": 1024, "N": 256}, {"M": 8192, "N": 256}),
}


class Operator:
    """One operator of a library on data at given sizes, and its reference in torch eager on the same tensors."""

    def __init__(self, library, name, sizes):
        module = importlib.import_module(f"{library}.operators.{name}")
        drawing = importlib.import_module(f"{library}_proof.problems.drawing")
        problem = module.PROBLEM
        draw = drawing.draw_data(problem, sizes, 0)
        data = {key: tensor.to(DEVICE) for key, tensor in draw.input_data.items()}
        free = {key: draw.sizes[key] for key in module.OPERATOR.plan.free}
        inputs = [data[entry.name] for entry in problem.inputs]
        named = {entry.name: data[entry.name] for entry in problem.parameters}
        function = getattr(module, name)
        self.call = lambda: function(*inputs, **named, **problem.scalars, **free)
        names = dict(draw.namespace)
        exec(problem.reference, names)
        reference = next(value for key, value in reversed(names.items()) if callable(value) and key == name)

        def call_reference():
            with torch.device(DEVICE):
                return reference(**data, **problem.scalars)

        self.reference = call_reference


def flatten(result):
    return [tensor for one in (result if isinstance(result, (tuple, list)) else [result])
            for tensor in (one if isinstance(one, (tuple, list)) else [one])]


def differ(own, reference):
    """The largest difference, relative to the largest entry of the reference."""
    worst = 0.0
    for result, expected in zip(flatten(own()), flatten(reference()), strict=True):
        a, b = result.double(), torch.as_tensor(expected, device=result.device).double()
        same = torch.isfinite(b) & torch.isfinite(a)
        scale = b[same].abs().max().clamp_min(1e-30) if same.any() else 1.0
        worst = max(worst, float(((a - b)[same].abs().max() if same.any() else 0.0) / scale))
    return worst


def time_once(work):
    if STAND_IN:
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * 1e6 / CALLS
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / CALLS  # microseconds of a call


def repeat(function):
    def work():
        for _ in range(CALLS):
            function()
    return work


def capture(function):
    """The same as a CUDA graph; None where it cannot be captured."""
    if STAND_IN:
        return None
    try:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                function()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(CALLS):
                function()
        graph.replay()
        torch.cuda.synchronize()
        return graph.replay
    except Exception as error:
        torch.cuda.synchronize()
        print(f"  no graph: {type(error).__name__}: {str(error).splitlines()[0][:120]}", flush=True)
        return None


def interval(values):
    """Median, and the order statistics that hold it with 95 %."""
    ordered, count = sorted(values), len(values)
    low, total = 0, 0.0
    while total + math.comb(count, low) / 2**count <= 0.025:
        total += math.comb(count, low) / 2**count
        low += 1
    low = max(0, low - 1)
    return [statistics.median(ordered), ordered[low], ordered[count - 1 - low]]


def pair(own, other):
    for work in (own, other, own, other):
        time_once(work)
    times = [(time_once(own), time_once(other)) if number % 2 else tuple(reversed((time_once(other), time_once(own))))
             for number in range(PAIRS)]
    return {
        "own_us": interval([own for own, _ in times]),
        "other_us": interval([other for _, other in times]),
        "ratio": interval([other / own for own, other in times]),
    }


def compare(own, other, row):
    row["call"] = pair(repeat(own), repeat(other))
    graphs = [capture(own), capture(other)]
    row["graph"] = pair(*graphs) if all(graphs) else None
    return row


def write(row):
    def cell(figures):
        if figures is None:
            return f"{'-':>10} {'-':>10} {'-':>22}"
        ratio = figures["ratio"]
        return (f"{figures['own_us'][0]:10.1f} {figures['other_us'][0]:10.1f} "
                f"{ratio[0]:7.3f} [{ratio[1]:6.3f},{ratio[2]:6.3f}]")
    sizes = ",".join(f"{key}={value}" for key, value in row["sizes"].items())
    print(f"{row['own']:30} {row['other']:24} {row['difference']:8.1e} {cell(row['call'])} {cell(row['graph'])}  {sizes}",
          flush=True)


def main(out, seconds, libraries):
    began = time.monotonic()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "stand-in, no GPU: figures mean nothing"
    rows, failures = [], []
    print(f"{device}; torch {torch.__version__}; {PAIRS} pairs of {CALLS} calls; ratio = other / own")
    print(f"{'own':30} {'other':24} {'differ':>8} {'call us':>10} {'other us':>10} {'ratio':>24} "
          f"{'graph us':>10} {'other us':>10} {'ratio':>24}  sizes")
    names = {library: importlib.import_module(library).__all__[1:] for library in libraries}
    wanted = os.environ.get("ONLY", "").split(",") if os.environ.get("ONLY") else None
    first = [(libraries[k], name, which) for which in (1, 0) for k in range(len(libraries) - 1, -1, -1)
             for name in names[libraries[k]]]
    with torch.no_grad():
        for library, name, which in first:
            if wanted and name not in wanted:
                continue
            if time.monotonic() - began > seconds:
                failures.append(f"{library}.{name}: left out, {seconds} s were over")
                continue
            module = importlib.import_module(f"{library}.operators.{name}")
            sizes = SIZES[name][0 if STAND_IN else which] if name in SIZES else module.PROBLEM.bench["large"]
            if name not in SIZES and which == 0:
                continue
            try:
                own = Operator(library, name, sizes)
                row = {"own": f"{library}.{name}", "other": "torch eager", "sizes": sizes,
                       "difference": differ(own.call, own.reference)}
                rows.append(compare(own.call, own.reference, row))
                write(rows[-1])
                if library != libraries[0] and name in names[libraries[0]]:
                    plain = Operator(libraries[0], name, sizes)
                    row = {"own": f"{library}.{name}", "other": f"{libraries[0]}.{name}", "sizes": sizes,
                           "difference": differ(own.call, plain.call)}
                    rows.append(compare(own.call, plain.call, row))
                    write(rows[-1])
            except Exception as error:
                failures.append(f"{library}.{name}: {type(error).__name__}: {error}")
                print(f"{library}.{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            with open(out, "w") as file:
                json.dump({"device": device, "torch": torch.__version__, "stand_in": STAND_IN, "pairs": PAIRS,
                           "calls": CALLS, "rows": rows, "failures": failures}, file, indent=1)
    for library in libraries:
        for mode in ("call", "graph"):
            against = [row[mode]["ratio"][0] for row in rows
                       if row["own"].startswith(f"{library}.") and row["other"] == "torch eager" and row[mode]]
            if against:
                print(f"{library}, {mode}: geometric mean of {len(against)} ratios to torch eager: "
                      f"{math.exp(sum(map(math.log, against)) / len(against)):.3f}")
    print("\n".join(failures))
    print(f"timed for {time.monotonic() - began:.0f} s")


main(sys.argv[1], float(sys.argv[2]), sys.argv[3:])
