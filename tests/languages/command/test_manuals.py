"""A model that knows an instruction only where a prompt shows it gains by the manual as planted, and by nothing else."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from manuals.chips import (
    BUDGETS,
    CHIPS,
    HELD_OUT,
    SEEN,
    Chip,
    list_needs,
    measure_recall,
    write_book,
    write_chip,
    write_program,
)

from languages.model_servers import SERVERS, write_reply
from opsmith.results.bests import list_best
from opsmith.running import sandbox
from opsmith.store import Store

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing())
TRIED = ("row_total", "mirror", "gate", "softmax")  # of the problems: verdicts of all take minutes
SETTINGS = "--samples 1 --temperature 1.0 --repair 1 --max-rounds 2 --agents single --selection none --no-report"


def read_text(body: dict[str, Any]) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"] if message["role"] == "user")


def answer_by_the_manual(chip: Chip) -> Callable[[dict[str, Any]], str]:
    def answer(body: dict[str, Any]) -> str:
        text = read_text(body)
        name = re.search(r"^  problem: (\w+)$", text, re.MULTILINE)
        assert name
        return write_reply(write_program(chip, name[1], text))

    return answer


def run_reader(chip: Chip, model: str, folder: Path, sections: str, kill_after: int = 0) -> tuple[set[str], list[str]]:
    """What a run solves, and the texts that it asked; killed, where that is said, after so many requests, and resumed."""
    answer, killed = answer_by_the_manual(chip), []

    def answer_or_kill(body: dict[str, Any]) -> str:
        if kill_after and server.count >= kill_after and not killed:
            killed.append(process)
            os.kill(process.pid, signal.SIGKILL)
        return answer(body)

    with SERVERS[model](answer_or_kill) as server:
        store = folder / f"{sections}-{kill_after}"
        tasks = ",".join(f"problems/{name}.yaml" for name in TRIED)
        command = (
            f"run --tasks {tasks} --target chip.toml --model {model} --base-url {server.url} --out {store} {SETTINGS}"
        )
        manual = f"--manual ../{chip.name}{chip.suffix} --manual-tokens 3000 --manual-sections {sections}"
        words = [sys.executable, "-m", "opsmith", *command.split(), *manual.split()]
        for status in [-signal.SIGKILL, 0] if kill_after else [0]:
            with subprocess.Popen(
                words, cwd=folder / "chip", stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            ) as process:
                printed = process.communicate(timeout=600)[0].decode()
            assert process.returncode == status, printed
    with Store.open(store) as opened:
        best = list_best(opened, opened.list_runs()[0].info.id)
        return {each.experience.task.id for each in best}, list(map(read_text, server.requests))


@pytest.mark.parametrize(
    ("chip", "model"), list(zip(CHIPS, SERVERS, strict=True)), ids=["kestrel-openai", "morrow-anthropic"]
)
def test_a_reader_gains_by_the_sections_that_it_needs(chip: Chip, model: str, tmp_path: Path) -> None:
    write_chip(chip, tmp_path / "chip")
    (tmp_path / f"{chip.name}{chip.suffix}").write_text(write_book(chip))
    solved, texts = run_reader(chip, model, tmp_path, "likeliest")
    planted = {
        name for name in TRIED if any(f"problem: {name}\n" in text and is_enough(chip, name, text) for text in texts)
    }
    assert solved == planted
    assert solved == set(TRIED)
    assert run_reader(chip, model, tmp_path, "none")[0] == set()
    assert len(run_reader(chip, model, tmp_path, "random")[0]) <= 1
    if chip is CHIPS[0]:  # once is enough: a run goes on in the same way whoever serves its model
        resumed, asked = run_reader(chip, model, tmp_path, "likeliest", kill_after=3)
        assert resumed == solved
        assert set(asked) == set(texts), "byte for byte"


def is_enough(chip: Chip, problem: str, text: str) -> bool:
    program = write_program(chip, problem, text)
    folds = {chip.names["sum"], chip.names["max"]} & set(list_needs(chip, problem))
    return "guess." not in program and (not folds or chip.names["settle"] in program)


@pytest.mark.parametrize(
    ("chip", "words", "least"),
    [
        (CHIPS[0], 25_000, (0.9, 1.0, 1.0)),
        (CHIPS[1], 25_000, (1.0, 1.0, 1.0)),
        (SEEN[0], 15_000, (1.0, 1.0, 1.0)),
        (SEEN[1], 8_000, (0.55, 0.75, 0.75)),
        (HELD_OUT, 8_000, (0.8, 1.0, 1.0)),  # nothing was fitted to it, and nothing may be
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_problems_need_is_in_their_first_prompts(
    chip: Chip, words: int, least: tuple[float, ...], tmp_path: Path
) -> None:
    """12 problems need 22 sections; by chance at most 5, 23 and 41 % of them are there."""
    assert len(write_book(chip).split()) >= words
    (tmp_path / f"manual{chip.suffix}").write_text(write_book(chip))
    recall = measure_recall(chip, tmp_path / f"manual{chip.suffix}", tmp_path / "chip")
    assert all(recall[tokens] >= share for tokens, share in zip(BUDGETS, least, strict=True)), recall
