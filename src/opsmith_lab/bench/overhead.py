"""What a run costs beside the model's own time: one round against a loopback server with a fixed latency.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from opsmith.agents.prompt import compose_prompt, read_prompt
from opsmith.judging.pool import Pool
from opsmith.learn.events import Event, OnEvent, SampleJudged
from opsmith.learn.loop import improve
from opsmith.models import Request
from opsmith.models.sdk import load_sdk
from opsmith.models.table import get_model
from opsmith.records import Task
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.targets import get_target
from opsmith_lab.models.embedded import EmbeddedModel

PROGRAMS = 64  # different answers for a task; of more requests, some are answered alike
MIB = 1024  # ru_maxrss counts KiB


def _tell_nobody(text: str) -> None:
    pass


def measure_overhead(
    tasks: Sequence[Task],
    requests: int,
    concurrency: int,
    latency_s: float,
    tell: Callable[[str], None] = _tell_nobody,
) -> dict[str, Any]:
    """Wall time and the client's processor time of about `requests` samples, as many for each task.

    `tell` hears how many samples are judged. Raises UsageError without the SDK that a server is asked with.
    """
    load_sdk("openai")
    samples = max(1, round(requests / len(tasks)))
    answers = asyncio.run(_draw_answers(tasks, min(PROGRAMS, samples)))
    request_count = samples * len(tasks)
    growth = _Growth(request_count, tell)
    with _start_server(answers, latency_s) as url:
        settings = Settings(
            model="openai/loopback", base_url=url, agents="single", selection="none", samples=samples,
            temperatures=(1.0,), max_rounds=1, concurrency=concurrency,
        )  # fmt: skip
        result, wall, cpu = _time_run(tasks, settings, growth)
    judged_count = sum(task.samples for task in result.per_task.values())
    ideal = math.ceil(request_count / concurrency) * latency_s
    return {
        "requests": request_count, "judged": judged_count, "solved": result.solved,
        "concurrency": concurrency, "latency_s": latency_s, "wall_s": wall, "ideal_s": ideal,
        "wall_over_ideal": wall / ideal, "client_cpu_s": cpu, "client_cpu_ms_per_request": 1e3 * cpu / request_count,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB, "memory_growth_mib": growth.growth_mib,
    }  # fmt: skip


def _time_run(tasks: Sequence[Task], settings: Settings, on_event: OnEvent) -> tuple[RunResult, float, float]:
    """A run on a store of its own, its wall time and its processor time in seconds."""
    model = get_model(settings)
    with (
        tempfile.TemporaryDirectory(prefix="opsmith-") as folder,
        Store.open(Path(folder)) as store,
        Pool(settings.place.workers) as pool,
    ):
        began, spent = time.monotonic(), _read_cpu_seconds()
        result = improve(tasks, model, settings, store, judge=pool, on_event=on_event)
        return result, time.monotonic() - began, _read_cpu_seconds() - spent


class _Growth:
    """By how much the peak of this process's memory rose after the first tenth of the samples."""

    def __init__(self, samples: int, tell: Callable[[str], None]) -> None:
        self._seen: list[float] = []
        self._samples, self._tell = samples, tell

    def __call__(self, event: Event) -> None:
        if isinstance(event, SampleJudged):
            self._seen.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB)
            self._tell(f"samples judged: {len(self._seen)} of {self._samples}")

    @property
    def growth_mib(self) -> float:
        return self._seen[-1] - self._seen[len(self._seen) // 10] if self._seen else 0.0


async def _draw_answers(tasks: Sequence[Task], count: int) -> dict[str, Sequence[str]]:
    """Programs of the embedded model, drawn in processes of its own, by the task as the server reads it."""
    model = EmbeddedModel(get_target(tasks[0].target))
    try:
        prompts = [compose_prompt(task, (), get_target(task.target), None, 0).messages for task in tasks]
        drawn = await asyncio.gather(*(model.complete(Request(prompt, count, seed=0)) for prompt in prompts))
    finally:
        await model.close()
    return {read_prompt(prompt).task: reply.texts for prompt, reply in zip(prompts, drawn, strict=True)}


def _read_cpu_seconds() -> float:
    """Seconds of processor time of this process and of its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


@contextlib.contextmanager
def _start_server(answers: Mapping[str, Sequence[str]], latency_s: float) -> Iterator[str]:
    command = [sys.executable, "-P", "-m", "opsmith_lab.bench.loopback", str(latency_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(answers) + "\n")
        process.stdin.flush()
        yield process.stdout.readline().strip()
        process.stdin.close()
