"""Runs whose candidates are C, from a model server to the report: nothing is lost, wherever they are judged."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from chaos.books import Contents, contents
from chaos.processes import Commands, wait_until
from models.servers import OpenAIServer
from targets.native.programs import needs_compiler

from languages.model_servers import MENDED, SERVERS, WRONG, answer_with_programs
from opsmith import Settings, improve
from opsmith.models.table import FAMILIES, ProviderServer, get_model
from opsmith.records import Stage
from opsmith.store import Store
from opsmith.store.rows import REPAIR
from opsmith.suites import load_tasks

pytestmark = needs_compiler
KERNELS, STEP = ("row_sum", MENDED, WRONG), ("index_0", "rope_0")
SAMPLES, CONCURRENCY = 4, 2
REQUEST_USD = 40 * 2.5e-6 + 60 * 1.25e-6 + 10 * 10e-6  # gpt-4o: input, input from the cache, output
SHAPE = ("--samples", SAMPLES, "--temperature", "1.0", "--max-rounds", "1", "--agents", "single", "--seed", "1",
         "--secret", "1", "--concurrency", CONCURRENCY)  # fmt: skip
TASKS = (*load_tasks(KERNELS, "c"), *load_tasks(STEP, "c"), *load_tasks(STEP))


@dataclass(frozen=True)
class Whole:
    """A run that nothing disturbed, the options of its command, and the server that it asked."""

    folder: Path
    server: OpenAIServer
    options: tuple[object, ...]
    run: str
    contents: Contents
    requests: int


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    folder = tmp_path_factory.mktemp("whole")
    with OpenAIServer(answer_with_programs(TASKS)) as server, Commands(folder) as commands:
        options = ("--model", "openai/served", "--base-url", server.url, "--tasks", ",".join(KERNELS), "--target", "c",
                   "--repair", "1", *SHAPE)  # fmt: skip
        run = commands.finish("runs", *options)["run"]
        yield Whole(folder, server, options, run, contents(folder / "runs", run), server.count)


@pytest.mark.parametrize("model", SERVERS)
def test_every_answer_is_judged_and_its_cost_is_counted(tmp_path: Path, model: str) -> None:
    with SERVERS[model](answer_with_programs(TASKS)) as server, Commands(tmp_path) as commands:
        options = ("--model", model, "--base-url", server.url, "--tasks", ",".join(KERNELS), "--target", "c", *SHAPE)
        result = commands.finish("runs", *options, "--repair", "1")
    assert {name: row["solved"] for name, row in result["per_task"].items()} == {
        "row_sum": True,
        MENDED: True,
        WRONG: False,
    }
    turns = {"row_sum": 1, MENDED: 2, WRONG: 2}
    assert result["usage"]["requests"] == server.count == SAMPLES * sum(turns.values())
    assert result["usage"]["output_tokens"] == 10 * server.count
    assert result["usage"]["cost_usd"] is None, "a server of one's own has no known prices"
    with Store.open(tmp_path / "runs") as store:
        assert store.sum_usage(result["run"], REPAIR).requests == 2 * SAMPLES
        stages = {row.task: row.stage for row in store.list_samples(result["run"])}
        assert stages == {"row_sum": Stage.MATCH, MENDED: Stage.MATCH, WRONG: Stage.MATCH}


def test_what_a_run_costs_is_counted_by_the_provider_s_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(answer_with_programs(TASKS)) as server, Store.open(tmp_path) as store:
        here = ProviderServer(server.url, "OPENAI_API_KEY", "openai")  # OpenAI itself, as far as prices go
        monkeypatch.setitem(FAMILIES, "openai/", replace(FAMILIES["openai/"], server=here))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test-1234")
        settings = Settings(model="openai/gpt-4o", samples=SAMPLES, temperatures=(1.0,), max_rounds=1, repair=1,
                            agents="single", target="c")  # fmt: skip
        result = improve([MENDED], get_model(settings), settings, store)
        turns = [store.sum_usage(result.run).cost_usd, store.sum_usage(result.run, REPAIR).cost_usd]
    assert result.solved == 1
    assert turns == [pytest.approx(2 * SAMPLES * REQUEST_USD), pytest.approx(SAMPLES * REQUEST_USD)]


def test_a_repair_turn_holds_what_the_compiler_said_with_its_line(whole: Whole) -> None:
    with Store.open(whole.folder / "runs") as store:
        row = next(row for row in store.list_samples(whole.run) if row.task == MENDED)
        sample = store.find_sample(whole.run, row.id)
    first, last = sample.candidates
    assert (first.verdict.stage, last.verdict.passed) == (Stage("COMPILE"), True)
    finding = first.verdict.errors[0]
    told = sample.calls[1].messages[-1].content
    assert told.startswith("The answer was refused at COMPILE.")
    assert finding.block() in told
    assert f"line {finding.line}" in told
    assert finding.text == (first.source or "").splitlines()[(finding.line or 0) - 1].strip()
    assert "/tmp" not in told


def test_verdicts_name_the_compiler_and_its_flags(whole: Whole) -> None:
    with Store.open(whole.folder / "runs") as store:
        samples = [store.find_sample(whole.run, row.id) for row in store.list_samples(whole.run)]
    builds = {found.verdict.build for sample in samples for found in sample.candidates if found.verdict.passed}
    (build,) = builds
    assert re.search(r"gcc .*-std=gnu17 .*-march=", build)


def test_a_killed_run_goes_on_and_asks_again_only_for_what_was_in_flight(tmp_path: Path, whole: Whole) -> None:
    before = whole.server.count
    with Commands(tmp_path) as commands:
        command = commands.run("runs", *whole.options)
        wait_until(lambda: whole.server.count >= before + 5 or not command.alive, why=lambda: command.said)
        assert command.kill(), "in the midst of the run"
        result = commands.finish("runs", *whole.options)
    assert result["run"] == whole.run
    assert whole.server.count - before <= whole.requests + CONCURRENCY
    assert contents(tmp_path / "runs", whole.run) == whole.contents


def test_members_of_a_ray_cluster_compile_and_judge(
    tmp_path: Path, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="the ray extra is not installed")
    with tempfile.TemporaryDirectory(prefix="o", dir="/tmp") as short:  # leaves room for the names of Ray's sockets
        monkeypatch.setenv("TMPDIR", short)
        with Commands(tmp_path) as commands:
            result = commands.finish("runs", *whole.options, "--executor", "ray", "--workers", 1)
    assert contents(tmp_path / "runs", result["run"]) == whole.contents


def test_a_run_in_c_stands_beside_one_in_step_with_a_row_for_each_problem(tmp_path: Path, whole: Whole) -> None:
    model = ("--model", "openai/served", "--base-url", whole.server.url, "--tasks", ",".join(STEP), *SHAPE)
    with Commands(tmp_path) as commands:
        runs = [commands.finish("runs", *model, *target)["run"] for target in ((), ("--target", "c"))]
        compared = commands.start("compare", *runs, "--out", "runs", "--json").result()
        assert commands.start("report", *runs, "--out", "runs", "-o", "both.html", "--format", "html").code() == 0
        table = commands.start("compare", *runs, "--out", "runs")
        assert table.code() == 0
        assert any(line.split() == ["problem", "step", "c"] for line in table.printed.splitlines())
    rows = {row.pop("problem"): row for row in compared["tables"]["problems"]["rows"]}
    cells = {problem: {name: cell["solved"] for name, cell in row.items()} for problem, row in rows.items()}
    assert cells == {problem: {"step": True, "c": True} for problem in STEP}
    assert '<th scope="col">step</th><th scope="col">c</th>' in (tmp_path / "both.html").read_text()


def test_a_program_in_c_is_printed_as_it_was_written(whole: Whole, tmp_path: Path) -> None:
    with Store.open(whole.folder / "runs") as store:
        row = next(row for row in store.list_samples(whole.run) if row.task == MENDED)
        sample = store.find_sample(whole.run, row.id)
    with Commands(whole.folder) as commands:
        shown = commands.start("show", whole.run, row.id, "--prompt", "--out", "runs")
        assert shown.code() == 0, shown.said
        pages = commands.start("report", whole.run, "--out", "runs", "-o", tmp_path / "one.html")
        assert pages.code() == 0, pages.said
    for candidate in sample.candidates:
        assert all(line.strip() in shown.printed for line in (candidate.source or "").splitlines())
    assert "refused at COMPILE" in shown.printed
    assert "expected &#39;,&#39; or &#39;;&#39; before &#39;m&#39;" in (tmp_path / "one.html").read_text()
