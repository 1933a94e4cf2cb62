"""`opsmith spent`: the bill of a run by round, agent and task, at a provider whose prices are known, and elsewhere."""

import json
from dataclasses import replace

import pytest
from models.servers import OpenAIServer

from opsmith.models.price import PRICE_LIST
from opsmith.models.table import FAMILIES, ProviderServer

PROMPT_USD = (40 * 2.5 + 60 * 1.25 + 10 * 10) / 1e6  # gpt-4o-2024-11-20: the tokens that the server states


def answer(body):
    """Right for the sum in half of the samples; the square is never solved."""
    return "impl: |\n  x y +\n" if body["seed"] % 2 and "y: [3, 5]" in str(body) else "impl: |\n  x\n"


@pytest.fixture
def provider(monkeypatch):
    """OpenAI itself, as far as prices go; it answers the guardian with what it was given."""
    with OpenAIServer(lambda body: "x" if "input_impl" in str(body) else answer(body)) as server:
        here = ProviderServer(server.url, "OPENAI_API_KEY", "openai")
        monkeypatch.setitem(FAMILIES, "openai/", replace(FAMILIES["openai/"], server=here))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test-1234")
        yield server


@pytest.fixture
def run_id(opsmith, tasks, provider):
    model = ("--model", "openai/gpt-4o", "--samples", 4, "--temperature", 0.5, "--guardian", "llm", "--max-rounds", 2)
    done = opsmith("run", *model, "--tasks", tasks, "--repair", 1, "--no-report", "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)["run"]


def test_the_bill_adds_up_whatever_it_is_read_by(opsmith, provider, run_id):
    found = json.loads(opsmith("spent", run_id, "--json").out)
    assert set(found["by"]) == {"round", "agent", "task"}
    assert {"proposer", "guardian", "repair-1"} <= set(found["by"]["agent"])
    assert set(found["by"]["task"]) == {"sum_0", "square_0"}
    assert found["total"]["requests"] == provider.count
    assert found["total"]["cost_usd"] == pytest.approx(provider.count * PROMPT_USD)
    for parts in found["by"].values():
        for name in ("requests", "input_tokens", "output_tokens", "cached_tokens"):
            assert sum(part[name] for part in parts.values()) == found["total"][name]
        assert sum(part["cost_usd"] for part in parts.values()) == pytest.approx(found["total"]["cost_usd"])
    [prices] = found["prices"]
    assert prices["version"] is not None


def test_a_person_reads_one_table_and_which_prices_held(opsmith, run_id):
    done = opsmith("spent", run_id[:9], "--by", "agent")
    assert done.out.count("proposer") == 1
    assert "sum_0" not in done.out
    assert f"prices  {PRICE_LIST} " in done.out
    assert "square_0" in opsmith("spent", run_id).out


def test_an_unknown_price_and_missing_counts_are_said(opsmith, tasks):
    body = {"model": "m", "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}
    with OpenAIServer(body) as server:
        model = ("--model", "openai/m", "--base-url", server.url, "--samples", 3, "--temperature", 0.5)
        done = opsmith("run", *model, "--tasks", tasks, "--max-rounds", 1, "--no-report", "--json")
    said = opsmith("spent", json.loads(done.out)["run"]).out
    assert "cost    unknown: no price of this model at this server is listed" in said
    assert "warning: 6 requests answered without token counts" in said


def test_what_cannot_be_shown_is_said(opsmith, run_id):
    assert "--by: given 'day'; expected one of round, agent, task" in opsmith("spent", run_id, "--by", "day").err
    assert opsmith("spent", "nothing").code == 2
    assert "no runs here" in opsmith("spent", run_id, "--out", "elsewhere").err
