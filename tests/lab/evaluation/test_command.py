"""`opsmith experiment` as a user calls it: listing, dry runs, a cap on costs that stops it and a higher one that goes on."""

import json
from pathlib import Path

import pytest
from models.servers import OpenAIServer
from typer.testing import CliRunner, Result

from opsmith.cli.app import build_app
from opsmith.models import table
from opsmith.models.price import price_reply
from opsmith.records import Usage
from opsmith_lab.evaluation.plan import ExperimentOptions, format_command
from opsmith_lab.evaluation.reading import read_experiment

pytestmark = pytest.mark.usefixtures("warm_runs")

MODEL = "openai/gpt-4o-2024-11-20"
TWO_ARMS = f"""\
title = "Two | arms <b>"
shows = "nothing"
analysis = "methods"
relative_to = "one"

[settings]
samples = 30
temperatures = [0.7]
max_rounds = 1

[[model]]
name = "{MODEL}"

[[arm]]
name = "one"
agents = "single"

[[arm]]
name = "two"
agents = "single"
max_tokens = 512
"""


def call(*arguments: object) -> Result:
    return CliRunner().invoke(build_app(), ["experiment", *map(str, arguments)])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch):
    """OpenAI's prices, a server on loopback; its answers are refused without running."""
    with OpenAIServer("impl: |\n  return E9\n") as served:
        family = table.FAMILIES["openai/"]
        own = table.ProviderServer(served.url, "OPENAI_API_KEY", "openai")
        monkeypatch.setitem(table.FAMILIES, "openai/", table.Family(family.suffix, family.what, family.maker, own))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen")
        yield served


def test_a_cap_on_costs_stops_the_experiment_and_a_higher_one_goes_on(server: OpenAIServer, tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(TWO_ARMS)
    each = price_reply("openai", ("gpt-4o-2024-11-20",), Usage(1, 100, 10, 60))
    assert each is not None
    common = (
        file,
        "--tasks",
        "attn_0,index_0",
        "--out",
        tmp_path / "runs",
        "--results",
        tmp_path / "results",
        "--json",
    )

    first = call(*common, "--max-cost", 61.5 * each)  # the first arm's 60 requests, and the start of the second's
    assert first.exit_code == 0, first.output
    data = json.loads(first.stdout)
    assert (data["complete"], data["stopped"]) == (False, "max cost")
    assert [run["end"] for run in data["runs"]] == ["max rounds", "max cost"]
    assert 61 < server.count <= 62 + 16  # as many as were in flight
    assert "Not complete: it stopped (max cost)" in (tmp_path / "results" / "two.md").read_text()
    assert "not complete (max cost)" in (tmp_path / "results" / "README.md").read_text()
    assert "the same command goes on from here" in first.stderr

    asked = server.count
    again = call(*common, "--max-cost", 61.5 * each)
    assert server.count == asked
    assert not json.loads(again.stdout)["complete"]

    whole = call(*common, "--max-cost", 200 * each)
    assert json.loads(whole.stdout)["complete"]
    assert server.count == 120
    text = "".join(path.read_text() for path in (tmp_path / "results").iterdir() if path.suffix != ".png")
    assert "sk-not-to-be-seen" not in text + whole.output
    assert "embedded" not in (tmp_path / "results" / "two.md").read_text().replace("no language", "").lower()


def test_texts_of_a_file_are_nothing_but_text_on_its_page(server: OpenAIServer, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(TWO_ARMS)
    options = ("--samples", 1, "--tasks", "index_0", "--out", tmp_path / "runs", "--results", tmp_path)
    assert call(tmp_path / "two.toml", *options).exit_code == 0
    page = (tmp_path / "two.md").read_text()
    assert page.startswith("# two: Two \\| arms \\<b\\>\n")
    assert "<b>" not in (tmp_path / "two.svg").read_text()
    assert "Two \\| arms" in page


def test_nothing_is_asked_in_a_dry_run(server: OpenAIServer, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(TWO_ARMS)
    done = call(tmp_path / "two.toml", "--dry-run", "--tasks", "index_0", "--out", tmp_path / "runs", "--json")
    runs = json.loads(done.stdout)["experiments"]["two"]
    assert [run["first"]["requests"] for run in runs] == [30, 30]
    assert server.count == 0
    assert not (tmp_path / "runs").exists()
    shown = call(tmp_path / "two.toml", "--dry-run", "--tasks", "index_0")
    assert "Replies: as long as max_tokens allows" in " ".join(shown.stdout.split())
    assert "batch" not in shown.stdout, "what none of the runs does is not said"


def test_a_server_of_ones_own_has_prices_and_a_window_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(TWO_ARMS)
    own = ("--model", "openai/tiny", "--base-url", "http://127.0.0.1:9/v1", "--context-window", "8192")
    done = call(tmp_path / "two.toml", "--dry-run", "--json", *own, "--price-in", "1", "--price-out", "2")
    (first, second) = json.loads(done.stdout)["experiments"]["two"]
    for usage in (first["most"], second["most"]):
        assert usage["cost_usd"] == pytest.approx((usage["input_tokens"] + 2 * usage["output_tokens"]) / 1e6)
    options = ExperimentOptions(where={"context_window": 8192, "workers": 1})
    assert format_command(read_experiment(tmp_path / "two.toml"), options).endswith(" --context-window 8192")


def test_a_missing_key_is_said_before_anything_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = call("fig8", "--tasks", "index_0", "--out", tmp_path / "runs", "--results", tmp_path / "results")
    assert done.exit_code == 2
    assert "OPENAI_API_KEY" in done.stderr
    assert "--model embedded" in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("fig22",), "did you mean 'fig2'?"),
        (("fig22",), "several at once: agents, all, kforge"),
        (("fig2", "--model", "nobody"), "model 'nobody': no such model"),
        (("fig2", "--model", "embedded", "--samples", "0"), "--samples: given 0; expected at least 1"),
        (("fig2", "--model", "embedded", "--max-cost", "0"), "--max-cost: given 0.0; expected more than 0"),
        (("fig2", "--model", "embedded", "--tasks", "none_9"), "task 'none_9': no such id"),
    ],
)
def test_wrong_options_are_said(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    done = call(*options, "--out", tmp_path / "runs", "--results", tmp_path / "results")
    assert done.exit_code == 2
    assert words in done.stderr


def test_without_a_name_the_experiments_are_listed() -> None:
    done = call("--json")
    assert {"fig2", "table1", "table2", "table4", "fig7", "fig8", "fig9", "fig11", "fig12", "fig13", "control"} <= {
        entry["name"] for entry in json.loads(done.stdout)
    }
    assert "What the guardian changes, by class of task" in call().stdout
