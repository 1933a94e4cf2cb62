"""All searches of a study: who searches what with which seed, done once, kept, and gone on with after any end.

Optimisers run in processes of their own, one set with one seed at a time, and leave their trajectories in a folder that
is named by all that decides them. A chat model's searches are walked again from its recorded replies.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib import metadata
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from opsmith.models import ChatModel, Message, Request
from opsmith.records import Usage, content_hash
from opsmith_lab.study.arms import Fault, ScriptedArm, Walk, search_box, seed_search
from opsmith_lab.study.chat import SCRIPTS
from opsmith_lab.study.optimisers import OPTIMISERS
from opsmith_lab.study.problems import SETS
from opsmith_lab.study.recording import Inquiry, OnProgress, RecordingModel
from opsmith_lab.study.trajectory import BlackBox, Trajectory

TEMPERATURE, MAX_TOKENS = 0.7, 1024
SECONDS: Mapping[str, float] = {"gp": 1.9, "tpe": 0.1, "cma": 0.02}  # of one search; of others less
DECIDING = ("arms", "optimisers", "minds", "problems", "synthetic", "trajectory")  # modules
PACKAGES = ("opsmith", "numpy", "torch", "cma", "optuna", "coco-experiment", "scipy")


@dataclass(frozen=True)
class Search:
    """One search that is over."""

    model: str  # "": an optimiser
    arm: str
    box: BlackBox
    seed: int
    trajectory: Trajectory
    faults: Sequence[Fault] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class SearchPlan:
    """Which searches there are to be."""

    arms: tuple[str, ...]
    sets: tuple[str, ...]
    seeds: tuple[int, ...]

    @property
    def boxes(self) -> tuple[BlackBox, ...]:
        """Each problem once."""
        return tuple({box.name: box for name in self.sets for box in SETS[name]()}.values())

    def list_cells(self) -> Iterator[tuple[str, str, int]]:
        """Arm, set and seed of the optimisers' work, the longest first."""
        own = [arm for arm in self.arms if arm in OPTIMISERS]
        for arm in sorted(own, key=lambda name: -SECONDS.get(name, 0.0)):
            yield from ((arm, name, seed) for seed in choose_seeds(arm, self.seeds) for name in self.sets)


@dataclass
class ChatSearches:
    """The searches of chat models, and why there are not more."""

    done: list[Search] = field(default_factory=list)
    stopped: str = ""


def choose_seeds(arm: str, seeds: Sequence[int]) -> Sequence[int]:
    """GP has two: it takes a hundred times as long as others."""
    return seeds[:2] if arm == "gp" else seeds


def name_versions() -> dict[str, str]:
    """Of the packages that decide trajectories; those that are there."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def search_cell(arm: str, collection: str, seed: int, file: Path) -> float:
    """The searches of an optimiser on a set, kept in a file; the seconds of a processor that they took."""
    began = time.process_time()
    torch.set_num_threads(1)
    arrays: dict[str, Any] = {}
    for number, box in enumerate(SETS[collection]()):
        trajectory = search_box(box, OPTIMISERS[arm](box.domain, seed_search(arm, box.name, seed)))
        arrays |= {f"points{number}": trajectory.points, f"values{number}": trajectory.values}
    seconds = time.process_time() - began
    temporary = file.with_suffix(".part")
    with temporary.open("wb") as out:
        np.savez_compressed(out, seconds=np.array(seconds), **arrays)
    os.replace(temporary, file)
    return seconds


def search_classically(
    plan: SearchPlan, folder: Path, on_progress: OnProgress
) -> tuple[list[Search], dict[str, float], str]:
    """The optimisers' searches, those that are in the folder already from there; seconds of a processor by arm; why
    it stopped, if it did."""
    source = [(Path(__file__).parent / f"{name}.py").read_text("utf-8") for name in DECIDING]
    own = folder / content_hash(*source, *map(str, sorted(name_versions().items())))[:12]
    own.mkdir(parents=True, exist_ok=True)
    files = {cell: own / f"{'_'.join(map(str, cell))}.npz" for cell in plan.list_cells()}
    left = {cell: file for cell, file in files.items() if not file.exists()}
    stopped = _work_off(left, on_progress) if left else ""
    searches, seconds = {}, dict.fromkeys(plan.arms, 0.0)
    for (arm, name, seed), file in files.items():
        if not file.exists():
            continue
        with np.load(file) as arrays:
            seconds[arm] += float(arrays["seconds"])
            for number, box in enumerate(SETS[name]()):
                trajectory = Trajectory(box.domain, arrays[f"points{number}"], arrays[f"values{number}"])
                searches[arm, box.name, seed] = Search("", arm, box, seed, trajectory)
    return list(searches.values()), seconds, stopped


def _work_off(left: Mapping[tuple[str, str, int], Path], on_progress: OnProgress) -> str:
    """Why it stopped; "": all is done."""
    weights = {cell: SECONDS.get(cell[0], 0.01) * len(SETS[cell[1]]()) + 1 for cell in left}
    began, done = time.monotonic(), 0.0
    with ProcessPoolExecutor(min(len(left), os.cpu_count() or 1), get_context("spawn")) as pool:
        try:
            futures = {pool.submit(search_cell, *cell, file): cell for cell, file in left.items()}
            for number, future in enumerate(as_completed(futures), 1):
                future.result()
                done += weights[futures[future]]
                seconds = (time.monotonic() - began) * (sum(weights.values()) / done - 1)
                on_progress(f"{number} of {len(left)} sets with an optimiser and a seed; about {seconds:.0f} s left")
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():  # what is under way is minutes long
                process.terminate()
            return "interrupted"
    return ""


def name_recording(folder: Path, model: str, server: str | None) -> Path:
    """Where the replies of a model at a server are kept."""
    return folder / f"{re.sub(r'[^A-Za-z0-9.-]+', '_', model)}-{content_hash(model, server or '')[:8]}.jsonl"


def search_with_model(
    plan: SearchPlan,
    model: ChatModel,
    file: Path,
    concurrency: int,
    max_cost: float | None,
    on_progress: OnProgress,
) -> tuple[ChatSearches, RecordingModel]:
    """The searches of the plan's chat arms by one model, as far as money and provider let them come."""
    recording = RecordingModel(model, file)
    return asyncio.run(_ask_all(plan, recording, concurrency, max_cost, on_progress)), recording


async def _ask_all(
    plan: SearchPlan, model: RecordingModel, concurrency: int, max_cost: float | None, on_progress: OnProgress
) -> ChatSearches:
    arms = [arm for arm in plan.arms if arm in SCRIPTS]
    orders = [(arm, box, seed) for seed in plan.seeds for box in plan.boxes for arm in arms]
    asking = Inquiry(model, max_cost)

    async def search(order: tuple[str, BlackBox, int]) -> Search | None:
        return await _ask_search(*order, asking)

    done = await asking.answer_all(orders, search, concurrency, "searches", on_progress)
    return ChatSearches(done, asking.stopped)


async def _ask_search(arm: str, box: BlackBox, seed: int, asking: Inquiry) -> Search | None:
    """None: all searches were stopped before this one was over."""
    number = seed_search(arm, box.name, seed)
    mind = ScriptedArm(SCRIPTS[arm](box.domain, number))
    walk, usage = Walk(box, mind), Usage()
    while (enquiry := walk.go_on()) is not None:
        messages = (Message("system", enquiry.system), Message("user", enquiry.user))
        reply = await asking.ask(Request(messages, 1, TEMPERATURE, MAX_TOKENS, number % 2**31))
        if reply is None:
            return None
        usage += reply.usage
        mind.hear_reply(reply.texts[0])
    return Search(asking.model.name, arm, box, seed, walk.trajectory, mind.faults, usage)
