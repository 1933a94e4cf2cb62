"""study1: problems, arms behind one protocol, replies that are no proposal, and known minds asked through both SDKs."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from models.servers import AnthropicServer, OpenAIServer
from typer.testing import CliRunner

from opsmith.cli.app import build_app
from opsmith.models.table import get_model
from opsmith.settings import Settings
from opsmith_lab.evaluation.plan import ExperimentOptions
from opsmith_lab.study.arms import BUDGET, Fault, ScriptedArm, Walk, search_box, seed_search
from opsmith_lab.study.chat import SCRIPTS, answer_as_mind, read_point, read_prompt, write_prompt
from opsmith_lab.study.minds import MINDS
from opsmith_lab.study.optimisers import OPTIMISERS
from opsmith_lab.study.problems import PHYSICAL, SETS
from opsmith_lab.study.searching import SearchPlan, search_with_model
from opsmith_lab.study.studies import StudyOrder, describe_power, forecast_study1
from opsmith_lab.study.study1 import analyse_searches, compare_bests
from opsmith_lab.study.study1 import test_adaptation as adaptation_of
from opsmith_lab.study.synthetic import list_synthetic
from opsmith_lab.study.trajectory import Domain

SQUARE = Domain((-5.0, 0.0), (5.0, 1.0))
PROBLEMS = 6


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(SETS, "tiny", lambda: list_synthetic()[:PROBLEMS])


def read_user(body):
    """The prompt of a request in either protocol."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def reply_as(mind):
    return lambda body: answer_as_mind(mind, read_user(body), seed_search(read_user(body)) % 2**32)


def ask_mind(server, name, tmp_path, mind, arms=("chat",)):
    """The searches of a mind that stands behind a server."""
    plan = SearchPlan(arms, ("tiny",), (0,))
    with server(reply_as(mind)) as served:
        model = get_model(Settings(model=f"{name}/{mind}", base_url=served.url))
        searches, recording = search_with_model(
            plan, model, tmp_path / f"{name}-{mind}.jsonl", 4, None, lambda text: None
        )
    assert not searches.stopped
    return searches.done, served.requests, recording


def test_the_sets_have_their_sizes_and_the_small_one_is_affordable():
    assert [len(SETS[name]()) for name in ("synthetic", "physical")] == [100, 6]
    pytest.importorskip("cocoex")
    assert [len(SETS[name]()) for name in ("bbob-2d", "bbob-5d", "few")] == [48, 48, 30]
    order = StudyOrder(ExperimentOptions(models=("openai/gpt-4o-2024-11-20",)), (), (), None)
    forecasts = forecast_study1(order)
    assert [each.arm for each in forecasts] == list(SCRIPTS)
    assert sum(each.expected.requests for each in forecasts) == 30 * (3 * BUDGET + 14) <= 5000
    assert all(each.most.requests == 2 * each.expected.requests for each in forecasts)


@pytest.mark.parametrize("box", PHYSICAL, ids=lambda box: box.name)
def test_a_physical_system_has_a_finite_value_everywhere_and_says_its_units(box):
    corners = np.array([box.domain.lower, box.domain.upper])
    points = np.vstack([corners, np.random.default_rng(0).uniform(*corners, (2000, box.domain.dimension))])
    values = box.evaluate(points)
    assert np.isfinite(values).all()
    assert box.evaluate(points[7:8]) == pytest.approx(values[7:8])
    assert box.unit
    assert len(box.axes) == box.domain.dimension


def test_physical_systems_have_the_optima_that_their_books_say():
    absorber, orbit = (next(box for box in PHYSICAL if box.name == name) for name in ("vibration absorber", "orbit"))
    tuning, damping = (
        1 / 1.05,
        (3 * 0.05 / (8 * 1.05**3)) ** 0.5,
    )  # Den Hartog's, with a peak of about (1 + 2 / mass)^1/2
    assert absorber.evaluate(np.array([[tuning, damping]])) == pytest.approx([41**0.5], rel=0.01)
    assert orbit.evaluate(np.array([[42.2, 0.0, 28.5]])) == pytest.approx([4.14], abs=0.03)  # two burns


@pytest.mark.parametrize("name", [name for name in OPTIMISERS if name != "gp"])
def test_every_optimiser_makes_as_many_evaluations_within_the_bounds_and_the_same_ones_again(name):
    for package in {"cma": ("cma",), "tpe": ("optuna",)}.get(name, ()):
        pytest.importorskip(package)
    for box in (list_synthetic()[0], PHYSICAL[-1]):
        first, again = (search_box(box, OPTIMISERS[name](box.domain, 3)) for _ in range(2))
        assert len(first.values) == BUDGET
        assert np.array_equal(first.points, again.points)
        assert all(box.domain.contains(point) for point in first.points)


@pytest.mark.parametrize(("reply", "outcome"), [
    ("[1.5, 0.25]", (1.5, 0.25)),
    ("<think>perhaps [9, 9]</think>\nMy point: [1, 0]", (1.0, 0.0)),
    ("first [9, 9], then [5, 1]", (5.0, 1.0)),
    ("", "empty"),
    ("  \n", "empty"),
    ("I cannot.", "no point"),
    ("[1]", "no point"),
    ("[1, 2, 3]", "no point"),
    ("[1, true]", "no point"),
    ("[NaN, 0]", "no point"),
    ("[1e999, 0]", "no point"),
    ('["a", "b"]', "no point"),
    ("[" * 50_000, "no point"),
    ("[5.000001, 0]", "out of bounds"),
])  # fmt: skip
def test_a_reply_is_a_point_or_a_fault_and_nothing_is_repaired(reply, outcome):
    answer = read_point(reply, SQUARE)
    assert (answer.kind if isinstance(answer, Fault) else answer) == outcome


def test_a_prompt_is_read_back_and_a_lost_evaluation_counts():
    text = write_prompt(SQUARE, [((0.1, 0.2), 3.0), (None, float("nan")), ((1.0, 0.5), -2e-7)], 3)
    domain, points, values = read_prompt(text)
    assert (domain, points.tolist(), values.tolist()) == (SQUARE, [[0.1, 0.2], [1.0, 0.5]], [3.0, -2e-7])
    assert "evaluations done: 3 of 50" in text


def walk_with(arm, replies):
    """A search in which a model says these replies in turn."""
    box, mind = list_synthetic()[0], None
    mind = ScriptedArm(SCRIPTS[arm](box.domain, 0))
    walk, enquiries = Walk(box, mind), []
    while (enquiry := walk.go_on()) is not None:
        enquiries.append(enquiry)
        mind.hear_reply(replies(len(enquiries), enquiry))
    return walk.trajectory, mind.faults, enquiries


@pytest.mark.parametrize("arm", list(SCRIPTS))
def test_a_fault_is_said_asked_once_more_and_then_costs_its_evaluation(arm):
    if arm == "centaur":
        pytest.importorskip("cma")
    trajectory, faults, enquiries = walk_with(arm, lambda number, enquiry: "[99, 99]")
    asked = 14 if arm == "centaur" else BUDGET
    assert len(enquiries) == len(faults) == 2 * asked
    assert {fault.kind for fault in faults} == {"out of bounds"}
    assert int(np.isnan(trajectory.values).sum()) == asked
    assert "refused (out of bounds)" in enquiries[1].user
    assert "refused" not in enquiries[2].user


@pytest.mark.parametrize("arm", list(SCRIPTS))
def test_a_second_reply_that_is_a_point_is_taken(arm):
    if arm == "centaur":
        pytest.importorskip("cma")

    def reply(number, enquiry):
        return "" if number % 2 else answer_as_mind("reciter", enquiry.user, number)

    trajectory, faults, _ = walk_with(arm, reply)
    assert not np.isnan(trajectory.values).any()
    assert {fault.kind for fault in faults} == {"empty"}


def test_the_tree_goes_where_values_are_small_and_a_centaur_sees_the_state_of_cma():
    box = list_synthetic()[0]
    _, _, enquiries = walk_with("mcts", lambda number, enquiry: answer_as_mind("reciter", enquiry.user, number))
    cells = [read_prompt(enquiry.user)[0] for enquiry in enquiries]
    sizes = [np.prod(np.subtract(cell.upper, cell.lower)) / 100 for cell in cells]
    assert sizes[0] == 1
    assert min(sizes) <= 1 / 16
    assert all(box.domain.contains(cell.lower) for cell in cells)
    pytest.importorskip("cma")
    _, _, enquiries = walk_with("centaur", lambda number, enquiry: answer_as_mind("reciter", enquiry.user, number))
    assert [int(re.search(r"done: (\d+)", each.user)[1]) for each in enquiries] == list(range(9, 50, 3))
    assert len(read_prompt(enquiries[-1].user)[1]) == 25
    assert "covariance" in enquiries[0].user


def test_known_minds_are_told_apart_through_both_sdks(tmp_path):
    servers = {"openai": OpenAIServer, "anthropic": AnthropicServer}
    asked = {"searcher-100": "openai", "reciter": "anthropic", "greedy-mind": "anthropic", "copier": "openai"}
    found = {mind: ask_mind(servers[name], name, tmp_path, mind)[0] for mind, name in asked.items()}
    p = {mind: adaptation_of(searches)[1].p for mind, searches in found.items()}
    assert p["searcher-100"] < 0.01
    assert p["greedy-mind"] < 0.05
    assert min(p["reciter"], p["copier"]) > 0.05
    rows = analyse_searches([each for own in found.values() for each in own], {}, ()).rows
    values = {
        (row.model.partition("/")[2], row.measure): row.estimate.value
        for row in rows
        if row.of == "all" and row.estimate
    }
    assert values["copier", "copies"] > 0.8
    assert values["reciter", "copies"] < 0.1
    assert values["greedy-mind", "greed"] > 0.95
    assert values["searcher-100", "greed"] < 0.9
    assert values["greedy-mind", "copies"] == 0
    assert compare_bests(found["reciter"], found["reciter"]).value == 0.5


def test_what_was_asked_once_is_not_asked_again(tmp_path):
    done, requests, recording = ask_mind(OpenAIServer, "openai", tmp_path, "reciter")
    assert len(requests) == PROBLEMS * BUDGET == recording.usage.requests
    file = tmp_path / "openai-reciter.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:101]) + lines[101][:40])  # killed in the middle of a line
    again, asked, recording = ask_mind(OpenAIServer, "openai", tmp_path, "reciter")
    assert len(asked) == PROBLEMS * BUDGET - 100
    assert recording.usage.requests == PROBLEMS * BUDGET
    by_name = {each.box.name: each.trajectory.points for each in done}
    assert all(np.array_equal(each.trajectory.points, by_name[each.box.name]) for each in again)


def call(*arguments):
    return CliRunner().invoke(build_app(), ["experiment", *map(str, arguments)])


def test_a_study_is_asked_like_an_experiment(tmp_path):
    where = ("--out", tmp_path / "runs", "--results", tmp_path / "results")
    replies = iter(["nonsense", "", "[99, 99]", "[99, 99]"])
    with OpenAIServer(lambda body: next(replies, None) or reply_as("copier")(body)) as server:
        asked = (
            "study1",
            "--sets",
            "physical",
            "--arms",
            "random,chat",
            "--model",
            "openai/any",
            "--base-url",
            server.url,
        )
        priced = (*asked, "--price-in", 10, "--price-out", 10, "--concurrency", 2, *where)
        planned = json.loads(call(*priced, "--dry-run", "--json").stdout)["experiments"]["study1"]
        assert [each["expected"]["requests"] for each in planned] == [6 * BUDGET]
        assert planned[0]["expected"]["cost_usd"] > 0
        assert not (tmp_path / "runs").exists()
        stopped = call(*priced, "--max-cost", 0.05)
        assert "stopped (max cost)" in stopped.stderr
        assert "Not complete" in (tmp_path / "results" / "study1.md").read_text()
        before = server.count
        assert call(*priced).exit_code == 0
        assert 0 < before < server.count
        rest = server.count
        assert call(*priced).exit_code == 0
        assert server.count == rest, "all is there already"
    page = (tmp_path / "results" / "study1.md").read_text()
    assert "| chat (any) |" in page
    assert "nonsense" in page.split("Replies that were no proposal")[1]
    assert "study1" in (tmp_path / "results" / "README.md").read_text()
    assert call("study1", "--redraw", *where).exit_code == 0


def test_the_page_says_what_its_test_would_have_found():
    results = Path(__file__).parents[3] / "experiments" / "results"
    assert "with 24 problems of one domain: p < 0.05 in a share 1.00 of searcher-100, " in describe_power(results, 30)
    assert "not tried on as few as 3 problems" in describe_power(results, 3)
    assert describe_power(results / "none", 30) == describe_power(results, 30), "those that come along"
    assert "not tested" in describe_power(results, 1)


@pytest.mark.parametrize(("arguments", "words"), [
    (("study1", "--arms", "chat"), "expected --model too"),
    (("study1", "--arms", "hope"), "given 'hope'; expected some of random"),
    (("study1", "--sets", "hope"), "given 'hope'; expected some of bbob-2d"),
    (("fig2", "--arms", "random"), "expected a study: instruments, study1, study2"),
    (("instruments", "--sets", "few"), "expected none"),
])  # fmt: skip
def test_a_wrong_study_is_refused_in_words(arguments, words, tmp_path):
    result = call(*arguments, "--out", tmp_path)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_the_minds_are_arms_too():
    assert set(MINDS) <= set(OPTIMISERS)
