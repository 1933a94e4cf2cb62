"""`python tests/known_minds.py EXPERIMENT FOLDER [OPTION...]`: `study-learning` or `study3` with each of its known minds
behind both SDKs on loopback, a Markdown table on stdout. Options go to `opsmith experiment`; the same command goes on
where it was stopped."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

from models.servers import AnthropicServer, OpenAIServer, read_messages

from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith_lab.evaluation.learners import FEEDBACK_PLANTED, PLANTED, PREFIX, KnownMind


def main(experiment: str, folder: str, *options: str) -> None:
    tasks = load_tasks(["step26"])
    print("| mind | SDK | requests | seconds | found |\n|---|---|--:|--:|---|")
    for name in FEEDBACK_PLANTED if experiment == "study3" else PLANTED:
        for family, server in (("openai", OpenAIServer), ("anthropic", AnthropicServer)):
            mind, rng, began = KnownMind(name, get_target("step"), tasks), random.Random(name), time.monotonic()
            place = Path(folder) / f"{name}-{family}"
            with server(lambda body: mind.answer_messages(read_messages(body), rng)) as served:  # noqa: B023
                command = ["opsmith", "experiment", experiment, "--model", f"{family}/{PREFIX}{name}", "--json"]
                command += ["--target", "step", "--base-url", served.url]
                command += ["--out", str(place), "--results", str(place), *options]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                took = time.monotonic() - began
            found = json.loads(done.stdout)["headline"]
            print(f"| {name} | {family} | {served.count:,} | {took:.0f} | {found} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
