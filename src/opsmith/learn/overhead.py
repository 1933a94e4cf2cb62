"""What does a run cost beside the model's own time? One round against a loopback server with a fixed latency.

Ideal is the requests, taken `concurrency` at a time, at the server's latency. The client's processor time is that of
this process and of its workers, the verdicts and the store included; the server is a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from opsmith.agents.prompt import compose, read_prompt
from opsmith.learn.events import Event, SampleJudged
from opsmith.learn.loop import improve
from opsmith.models import Request
from opsmith.models.embedded import EmbeddedModel
from opsmith.models.table import get_model
from opsmith.records import Task
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.targets import get_target
from opsmith.verification.pool import Pool

PROGRAMS = 64  # different answers for a task; of more requests, some are answered alike
MIB = 1024  # ru_maxrss counts KiB


def measure(tasks: Sequence[Task], requests: int, concurrency: int, latency_s: float) -> dict[str, Any]:
    """Wall time and the client's processor time of about `requests` samples, as many for each task."""
    samples = max(1, round(requests / len(tasks)))
    answers = asyncio.run(_answers(tasks, min(PROGRAMS, samples)))
    settings = Settings(
        model="openai/loopback", agents="single", selection="none", samples=samples, temperatures=(1.0,),
        max_rounds=1, concurrency=concurrency,
    )  # fmt: skip
    grown = _Growth()
    with _server(answers, latency_s) as url, tempfile.TemporaryDirectory(prefix="opsmith-") as folder:
        settings = settings.model_copy(update={"base_url": url})
        model = get_model(settings)
        with Store.open(Path(folder)) as store, Pool(settings.workers) as pool:
            began, spent = time.monotonic(), _cpu_s()
            result = improve(tasks, model, settings, store, judge=pool, on_event=grown)
            wall, cpu = time.monotonic() - began, _cpu_s() - spent
    asked = samples * len(tasks)
    ideal = math.ceil(asked / concurrency) * latency_s
    return {
        "requests": asked, "judged": sum(item.samples for item in result.per_task.values()), "solved": result.solved,
        "concurrency": concurrency, "latency_s": latency_s, "wall_s": wall, "ideal_s": ideal,
        "wall_over_ideal": wall / ideal, "client_cpu_s": cpu, "client_cpu_ms_per_request": 1e3 * cpu / asked,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB, "memory_growth_mib": grown.mib,
    }  # fmt: skip


class _Growth:
    """By how much the peak of this process's memory rose after the first tenth of the samples."""

    def __init__(self) -> None:
        self._seen: list[float] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, SampleJudged):
            self._seen.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB)

    @property
    def mib(self) -> float:
        return self._seen[-1] - self._seen[len(self._seen) // 10] if self._seen else 0.0


async def _answers(tasks: Sequence[Task], count: int) -> dict[str, Sequence[str]]:
    """Programs of the embedded model, drawn in processes of its own, by the task as the server reads it."""
    model = EmbeddedModel(get_target(tasks[0].target))
    try:
        prompts = [compose(task, (), get_target(task.target), None, 0).messages for task in tasks]
        drawn = await asyncio.gather(*(model.complete(Request(prompt, count, seed=0)) for prompt in prompts))
    finally:
        await model.close()
    return {read_prompt(prompt).task: reply.texts for prompt, reply in zip(prompts, drawn, strict=True)}


def _cpu_s() -> float:
    """Seconds of processor time of this process and of its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


@contextlib.contextmanager
def _server(answers: Mapping[str, Sequence[str]], latency_s: float) -> Iterator[str]:
    command = [sys.executable, "-P", "-m", "opsmith.models.loopback", str(latency_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(answers) + "\n")
        process.stdin.flush()
        yield process.stdout.readline().strip()
        process.stdin.close()
