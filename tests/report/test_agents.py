"""Plans, tools and several models stand in `show`, the report and the data with the same figures."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents_store import HOSTILE, find_calling, write_run
from rich.console import Console

from opsmith.export.examples import examples_of
from opsmith.export.rows import ExampleRows
from opsmith.records import Usage
from opsmith.report.attempts import sample_view
from opsmith.report.closing import closing_lines, print_run
from opsmith.report.document import write_document
from opsmith.report.markdown import write_markdown
from opsmith.report.plans import print_plans, summarise_plans, view_plans
from opsmith.report.rows import to_csv
from opsmith.report.samples import conversation_text
from opsmith.report.spent import spent_of, spent_table
from opsmith.report.views import run_view
from opsmith.results.result import result_of
from opsmith.store import Store


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str]]:
    path = tmp_path_factory.mktemp("agents") / "opsmith.sqlite"
    run = write_run(path)
    with Store.open(path) as store:
        yield store, run


def printed(show, *arguments: object) -> str:
    out = io.StringIO()
    show(Console(file=out, width=240, markup=False), *arguments)
    return out.getvalue()


def test_a_tree_has_states_contracts_counts_and_who_solved_it(agents: tuple[Store, str]) -> None:
    joined, open_one = view_plans(*agents)
    assert [(node.name, node.state, node.right, node.verdicts) for node in joined.list_all()] == [
        ("sum_1", "joined", 1, 3), ("first", "solved", 1, 2), ("second", "solved", 1, 2),
    ]  # fmt: skip
    assert [child.contract for child in joined.children] == [
        "x, y → h: fp32 [N, M]",
        "h: fp32 [N, M], z → out: fp32 [N]",
    ]
    assert [(join.round, join.passed, join.sample == joined.sample) for join in joined.joins] == [(2, True, True)]
    assert [node.state for node in open_one.list_all()] == ["open", "open", "open"]
    assert str(summarise_plans([joined, open_one])).startswith("1 of 2 split tasks are solved, 2 of 4 nodes; splits")


def test_each_split_says_why_it_was_made_and_what_came_of_it(agents: tuple[Store, str]) -> None:
    text = printed(print_plans, view_plans(*agents), "sum_2.head")  # a node of a split that holds no more
    assert "sum_1" not in text
    assert HOSTILE in text
    assert "head: no program met its contract in 1 round" in text
    assert "another contract of head_again: x, y → h: fp64 [N, M]; into head_again (0 of 2), tail (0 of 6)" in text
    assert "into left (0 of 2), right (0 of 2) (holds)" in text


def test_a_joined_task_has_the_rate_of_its_nodes_everywhere(agents: tuple[Store, str]) -> None:
    view = run_view(*agents)
    assert (view.overall.solved, view.overall.tasks) == (2, 3)
    assert view.overall.value_at_1 == pytest.approx((0.5 + 0.25 + 0.0) / 3)
    assert view.overall.pass_at_1 is None  # no count of samples has that rate
    assert [(row.attempted, row.nodes) for row in view.rounds] == [(3, 0), (0, 4), (1, 2), (0, 1), (0, 2)]


def test_models_are_billed_apart_and_a_join_costs_nothing(agents: tuple[Store, str]) -> None:
    bills = {row.model: row.usage for row in run_view(*agents).models}
    assert Usage.total(bills.values()) == agents[0].sum_usage(agents[1])
    assert (bills["b"].requests, bills["join"].requests, bills["a"].reasoning_tokens) == (12, 0, 80)
    shown = printed(print_run, agents[0], result_of(*agents))
    rows = [line.split() for line in shown.splitlines()]
    assert ["12", "1,200", "240", "60", "$6.0000"] in [row[2:7] for row in rows if row[:1] == ["b"]]


def test_calls_of_tools_are_counted_and_shown_turn_by_turn(agents: tuple[Store, str]) -> None:
    store, run = agents
    name = find_calling().id
    turns = sample_view(store, run, name).turns
    assert [(turn.agent, [call.name for call in turn.calls]) for turn in turns] == [
        ("proposer", ["check"]), ("tools-1", ["try", "cost"]), ("tools-2", []),
    ]  # fmt: skip
    use = run_view(store, run).tool_use
    assert use is not None
    assert [(count.name, count.outcome, count.calls) for count in use.tools] == [
        ("check", "ok", 1), ("cost", "refused", 1), ("try", "ok", 1),
    ]  # fmt: skip
    assert (use.callers.right, use.callers.verdicts, use.silent.right, use.silent.verdicts) == (1, 1, 2, 23)
    assert "samples that called tools: 1, 1 of 1 judged are right" in printed(print_run, store, result_of(store, run))


def test_show_prints_each_turn_once(agents: tuple[Store, str]) -> None:
    store, run = agents
    detail = store.find_sample(run, find_calling().id)
    text = "\n".join(conversation_text(detail, store.read_tool_calls([detail.row.id])[detail.row.id]))
    assert text.count("Write a program.") == 1
    order = [
        "proposer: call 1, check (ok, 0.25 s)",
        "It is well formed; now I try it.",
        "tools-1: call 3, cost (refused",
    ]
    assert sorted(order, key=text.index) == order
    assert "program:\nx y\n+" in text


def test_the_report_holds_it_all_and_no_markup_of_others(agents: tuple[Store, str]) -> None:
    store, run = agents
    text = write_document(store, [run])
    assert "&lt;b&gt;unsolved&lt;/b&gt;" in text
    assert "<b>unsolved" not in text
    assert "h = input_data[&#39;x&#39;] + input_data[&#39;y&#39;]" in text
    assert "It is well formed.\n&lt;i&gt;so far&lt;/i&gt;" in text
    assert "Nodes of sum_1 and what passes between them" in text
    assert text.count("It is well formed; now I try it.") == 1


def test_a_run_without_plans_tools_and_models_says_nothing_of_them(tmp_path: Path) -> None:
    from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

    from opsmith.learn.loop import improve

    with Store.open(tmp_path / "opsmith.sqlite") as store:
        run = improve(TASKS[:1], TinyModel(), SETTINGS.replace(samples=2), store, judge=InProcess()).run
        view = run_view(store, run)
        assert (view.plans, view.models, view.tool_use) == ((), (), None)
        shown = printed(print_run, store, result_of(store, run))
        assert [word for word in ("plans", "tools", "models") if word in shown] == []


def test_each_row_of_data_says_who_was_asked_and_what_a_node_was_split_from(agents: tuple[Store, str]) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(agents[0], [agents[1]]))))
    assert Counter(row["model"] for row in rows) == {"a": 12, "b": 12, "join": 1}
    assert {row["task"] for row in rows if row["split_from"] == "sum_1"} == {"sum_1.first", "sum_1.second"}
    assert [(row["task"], row["turns"]) for row in rows if row["turns"] != "1"] == [("sum_0", "3")]


def test_examples_of_nodes_stay_on_their_task_s_side_and_a_join_is_no_model_s(agents: tuple[Store, str]) -> None:
    store, run = agents
    rows = list(ExampleRows(store, store.read_info(run), examples_of(store, run, every=True)).list_rows("sft"))
    assert {(row["task"], row["model"], row["is_language_model"], row["split_from"]) for row in rows} == {
        ("sum_0", "a", True, None), ("sum_1", "join", False, None),
        ("sum_1.first", "a", True, "sum_1"), ("sum_1.second", "a", True, "sum_1"),
    }  # fmt: skip
    assert len({row["split"] for row in rows if row["task"].startswith("sum_1")}) == 1
    assert [len(json.loads(row["tool_calls"])) for row in rows if row["tool_calls"]] == [3]


def test_markdown_and_the_bill_tell_models_plans_and_reasoning(agents: tuple[Store, str]) -> None:
    store, run = agents
    text = write_markdown(store, [run])
    assert "| b | proposer | 12 | 1,200 | 240 | 60 | $6.0000 | 12 | 0 | 0.000 [0.000, 0.266] | 0 | 0 |" in text
    assert "| sum\\_1.first | solved | 1 | 2 | 0 |" in text
    assert "samples that called tools: 1" in text
    out = io.StringIO()
    Console(file=out, width=200).print(spent_table(spent_of(store, run, ("agent",)), "agent"))
    assert "reasoning" in out.getvalue()
    assert any("140 of them reasoning" in line for line in closing_lines(result_of(store, run)))
