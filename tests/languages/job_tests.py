"""The main job in a language: runs from a model server on loopback to the report, by the command line.

class TestRunsInCuda(JobTests):
    language, toolchain = "cuda", r"emulated"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from chaos.books import Contents, contents
from chaos.processes import Commands, wait_until
from models.servers import OpenAIServer

from languages.model_servers import MENDED, WRONG, answer_with_programs
from opsmith import Settings, improve
from opsmith.models.table import FAMILIES, ProviderServer, get_model
from opsmith.records import Outcome, Stage
from opsmith.store import Store
from opsmith.suites import load_tasks

KERNELS = ("row_sum", MENDED, WRONG)
SAMPLES, CONCURRENCY = 3, 2
REQUEST_USD = 40 * 2.5e-6 + 60 * 1.25e-6 + 10 * 10e-6  # gpt-4o: input, input from the cache, output
SHAPE = ("--samples", SAMPLES, "--temperature", "1.0", "--max-rounds", "1", "--agents", "single", "--seed", "1",
         "--secret", "1", "--concurrency", CONCURRENCY, "--tasks", ",".join(KERNELS), "--repair", "1")  # fmt: skip


@dataclass(frozen=True)
class WholeRun:
    """A run that nothing disturbed, what its command printed, the options of it, and the server that it asked."""

    folder: Path
    server: OpenAIServer
    options: tuple[object, ...]
    printed: dict[str, object]
    contents: Contents
    requests: int

    @property
    def name(self) -> str:
        return str(self.printed["run"])


class JobTests:
    """Three problems: one whose answers are right, one whose first answers do not compile, one whose are all wrong."""

    language: str
    toolchain: str  # a pattern of what verdicts say of their build

    @pytest.fixture(scope="class")
    @classmethod
    def whole(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeRun]:
        folder = tmp_path_factory.mktemp(cls.language)
        tasks = [*load_tasks(KERNELS, cls.language), *load_tasks(KERNELS, "c")]
        with OpenAIServer(answer_with_programs(tasks, is_fenced=True)) as server, Commands(folder) as commands:
            options = ("--model", "openai/served", "--base-url", server.url, "--target", cls.language, *SHAPE)
            printed = commands.finish("runs", *options)
            name = str(printed["run"])
            yield WholeRun(folder, server, options, printed, contents(folder / "runs", name), server.count)

    def test_every_answer_is_judged_and_counted(self, whole: WholeRun) -> None:
        per_task, usage = whole.printed["per_task"], whole.printed["usage"]
        assert isinstance(per_task, dict)
        assert isinstance(usage, dict)
        solved = {name: row["solved"] for name, row in per_task.items()}
        assert solved == {"row_sum": True, MENDED: True, WRONG: False}
        assert usage["requests"] == whole.requests == SAMPLES * sum({"row_sum": 1, MENDED: 2, WRONG: 2}.values())
        assert usage["output_tokens"] == 10 * whole.requests
        with Store.open(whole.folder / "runs") as store:
            rows = store.list_samples(whole.name)
        assert {(row.task, row.stage, row.outcome) for row in rows} == {
            ("row_sum", Stage.MATCH, Outcome.PASSED),
            (MENDED, Stage.MATCH, Outcome.PASSED),
            (WRONG, Stage.MATCH, Outcome.REFUSED),
        }, "and none is left unjudged"

    def test_verdicts_name_what_built_and_ran_the_program(self, whole: WholeRun) -> None:
        with Store.open(whole.folder / "runs") as store:
            samples = [store.find_sample(whole.name, row.id) for row in store.list_samples(whole.name)]
        builds = {entry.verdict.build for sample in samples for entry in sample.candidates if entry.verdict.passed}
        assert len(builds) == 1
        assert re.search(self.toolchain, builds.pop())

    def test_a_repair_turn_holds_the_finding_with_its_line(self, whole: WholeRun) -> None:
        with Store.open(whole.folder / "runs") as store:
            row = next(row for row in store.list_samples(whole.name) if row.task == MENDED)
            sample = store.find_sample(whole.name, row.id)
        first, last = sample.candidates
        assert (first.verdict.stage in (Stage("PARSE"), Stage("COMPILE")), last.verdict.passed) == (True, True)
        finding, told = first.verdict.errors[0], sample.calls[1].messages[-1].content
        assert finding.block() in told
        assert f"line {finding.line}" in told
        assert "/tmp" not in told

    def test_a_killed_run_goes_on_and_its_store_is_that_of_one_that_was_not(
        self, whole: WholeRun, tmp_path: Path
    ) -> None:
        before = whole.server.count
        with Commands(tmp_path) as commands:
            command = commands.run("runs", *whole.options)
            wait_until(lambda: whole.server.count >= before + 5 or not command.alive, why=lambda: command.said)
            assert command.kill(), "in the midst of the run"
            result = commands.finish("runs", *whole.options)
        assert result["run"] == whole.name
        assert whole.server.count - before <= whole.requests + CONCURRENCY
        assert contents(tmp_path / "runs", whole.name) == whole.contents

    def test_a_run_costs_what_the_provider_s_prices_say(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tasks = load_tasks([MENDED], self.language)
        with OpenAIServer(answer_with_programs(tasks)) as server, Store.open(tmp_path) as store:
            here = ProviderServer(server.url, "OPENAI_API_KEY", "openai")  # OpenAI itself, as far as prices go
            monkeypatch.setitem(FAMILIES, "openai/", replace(FAMILIES["openai/"], server=here))
            monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test-1234")
            settings = Settings(model="openai/gpt-4o", samples=1, temperatures=(1.0,), max_rounds=1, repair=1,
                                agents="single", target=self.language)  # fmt: skip
            result = improve([MENDED], get_model(settings), settings, store)
            cost = store.sum_usage(result.run).cost_usd
        assert result.solved == 1
        assert cost == pytest.approx(2 * REQUEST_USD)

    def test_the_report_has_a_column_for_each_language(self, whole: WholeRun) -> None:
        options = tuple("c" if word == self.language else word for word in whole.options)
        with Commands(whole.folder) as commands:
            in_c = commands.finish("runs", *options)["run"]
            compared = commands.start("compare", whole.name, in_c, "--out", "runs", "--json").result()["tables"]
            assert commands.start("report", "--all", "--out", "runs", "-o", "all.html").code() == 0
            listed = commands.start("runs", "--out", "runs")
            assert listed.code() == 0
        rows = compared["languages"]["rows"]
        assert [(row["language"], row["solved"], row["verdicts"], row["unjudged"]) for row in rows] == [
            (self.language, 2, 3 * SAMPLES, 0),
            ("c", 2, 3 * SAMPLES, 0),
        ]
        cells = {row.pop("problem"): [*row.values()] for row in compared["by language"]["rows"]}
        assert {name: [cell["solved"] for cell in row] for name, row in cells.items()} == {
            "row_sum": [True, True],
            MENDED: [True, True],
            WRONG: [False, False],
        }, "a problem is one row"
        page = (whole.folder / "all.html").read_text()
        assert f'<th scope="col">problem</th><th scope="col">{self.language}</th><th scope="col">c</th>' in page

    def test_what_cannot_be_had_of_the_language_is_said_in_words(self, whole: WholeRun) -> None:
        with Commands(whole.folder) as commands:
            embedded = commands.start("run", "--target", self.language, "--tasks", "row_sum", "--out", "runs")
            assert embedded.code() == 2
            assert f"target '{self.language}' has no sampler; try: --model" in embedded.said
