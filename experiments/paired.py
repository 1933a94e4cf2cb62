"""python experiments/paired.py OTHER FIGURE TIMES ARGUMENT...: one figure of a command here, against another checkout.

    python experiments/paired.py ../before wall_s 9 bench run --requests 500 --json

The command is `opsmith ARGUMENT...`, with Python and packages of this environment and the sources of either checkout,
one after the other in a random order, so that what slows the machine slows both. FIGURE is a place in the JSON that it
prints (`summary.candidate_ms.median`). Printed are the pairs, and the median of here by there with its 95 % interval:
above 1 the figure is larger here.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from opsmith.measuring.pairs import compare_times, estimate_median

HERE = Path(__file__).resolve().parents[1]


def main(folder: str, figure: str, times: str, *arguments: str) -> None:
    checkouts = {"here": HERE, "there": Path(folder).resolve()}
    for checkout in checkouts.values():  # compiled, and in the memory of the disk
        measure_figure(checkout, figure, arguments)
    figures: dict[str, list[float]] = {name: [] for name in checkouts}
    for number in range(int(times)):
        for name in random.sample([*checkouts], len(checkouts)):
            figures[name].append(measure_figure(checkouts[name], figure, arguments))
        print(f"pair {number + 1}: here {figures['here'][-1]:.6g}, there {figures['there'][-1]:.6g}", flush=True)
    print(f"here by there: {estimate_median([compare_times(figures['there'], figures['here'])])}")


def measure_figure(checkout: Path, figure: str, arguments: tuple[str, ...]) -> float:
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-P", "-m", "opsmith", *arguments]
    printed = subprocess.run(command, env=environment, cwd=checkout, stdout=subprocess.PIPE, check=True).stdout
    value = json.loads(printed)
    for key in figure.split("."):
        value = value[key]
    return float(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
