"""python experiments/paired.py OTHER FIGURE,... TIMES ARGUMENT...: figures of a command here, and in another checkout.

    python experiments/paired.py ../before wall_s,client_cpu_s 9 bench run --requests 500 --json

The command is `opsmith ARGUMENT...`, with Python and packages of this environment and the sources of either checkout,
one after the other in a random order, so that what slows the machine slows both. FIGURE is a place in the JSON that it
prints (`summary.candidate_ms.median`). Printed are the pairs, and of each figure the median of here by there with its
95 % interval: above 1 the figure is larger here.
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


def main(folder: str, names: str, times: str, *arguments: str) -> None:
    checkouts = {"here": HERE, "there": Path(folder).resolve()}
    for checkout in checkouts.values():  # compiled, and in the memory of the disk
        run_command(checkout, arguments)
    rows: dict[str, list[list[float]]] = {side: [] for side in checkouts}
    for number in range(int(times)):
        for side in random.sample([*checkouts], len(checkouts)):
            printed = run_command(checkouts[side], arguments)
            rows[side].append([find_figure(printed, name) for name in names.split(",")])
        print(f"pair {number + 1}: here {rows['here'][-1]}, there {rows['there'][-1]}", flush=True)
    for name, *sides in zip(
        names.split(","), zip(*rows["there"], strict=True), zip(*rows["here"], strict=True), strict=True
    ):
        print(f"{name}, here by there: {estimate_median([compare_times(*sides)])}")


def run_command(checkout: Path, arguments: tuple[str, ...]) -> object:
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-P", "-m", "opsmith", *arguments]
    return json.loads(subprocess.run(command, env=environment, cwd=checkout, stdout=subprocess.PIPE, check=True).stdout)


def find_figure(printed: object, place: str) -> float:
    for key in place.split("."):
        assert isinstance(printed, dict), place
        printed = printed[key]
    assert isinstance(printed, int | float), place
    return float(printed)


if __name__ == "__main__":
    main(*sys.argv[1:])
