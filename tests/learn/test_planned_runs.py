"""Runs with plans, over the tiny language: what they solve, what they count, and that they go on where they were."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest
from planned_run import PLANNED, TASKS, run_planned
from planned_target import PlanningJudge
from tiny_run import SETTINGS, InProcess, TinyModel
from tiny_run import TASKS as UNSPLIT

from opsmith.errors import UsageError
from opsmith.learn.events import Event, NodeSolved, PlanMade, TaskSolved
from opsmith.learn.loop import improve
from opsmith.models import Reply, Request
from opsmith.records import Usage
from opsmith.report.rows import sample_rows
from opsmith.results.result import RunResult, result_of
from opsmith.store import Row, Store
from opsmith.store.plans import CONTRACT
from opsmith.store.rows import JOIN, PLANNER
from opsmith_lab.evaluation.study import count_parts

MOMENTS = {"plan", "round", "round_end", "run_end"}  # tables after whose rows a run is killed


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, RunResult, list[Event]]]:
    with Store.open(tmp_path_factory.mktemp("planned")) as store:
        yield store, *run_planned(store)


def test_children_are_solved_joined_and_show_how_hard_the_task_was(
    planned: tuple[Store, RunResult, list[Event]],
) -> None:
    store, result, events = planned
    kept = {row.experience.task.id: row for row in store.read_experiences(result.run, with_children=True)}
    plan = next(plan for plan in store.read_plans(result.run) if plan.task == "deep")
    rates = [kept[child.id].experience.success_rate for child in plan.children]
    assert result.per_task["deep"].solved
    assert result.per_task["deep"].success_rate == pytest.approx(rates[0] * rates[1])
    solution = kept["deep"].sample
    assert solution is not None
    [call] = store.find_sample(result.run, solution).calls
    assert (call.reply.model, call.reply.usage) == (JOIN, Usage())
    assert {event.experience.task.id for event in events if isinstance(event, NodeSolved)} == kept.keys() - {
        "sum_0",
        "deep",
    }
    assert {event.experience.task.id for event in events if isinstance(event, TaskSolved)} == {"sum_0", "deep"}
    made = [event.plan for event in events if isinstance(event, PlanMade)]
    assert sorted(made, key=lambda plan: (plan.round, plan.task, plan.number)) == store.read_plans(result.run)
    assert CONTRACT in {plan.planner for plan in made}
    assert any(plan.number and plan.split is not None and plan.planner == "static" for plan in made), "split otherwise"


def test_what_counts_tasks_counts_the_runs_own(planned: tuple[Store, RunResult, list[Event]]) -> None:
    store, result, _ = planned
    own, children = {task.id for task in TASKS}, {task.id for task in store.read_children(result.run)}
    assert (result.solved, set(result.per_task)) == (2, own)
    assert store.summarise_run(result.run).solved == 2
    assert {name for row in result.rounds for name in row.newly_solved} == {"sum_0", "deep"}
    assert max(row.attempted for row in result.rounds) <= len(own)
    assert not children & {tally.task for tally in store.read_tallies(result.run)}
    samples = store.sample_count(result.run)
    assert samples == sum(tally.judged for tally in store.read_tallies(result.run, with_children=True)), "as samples"
    assert (
        samples
        == sum(info.planned for info, _ in store.read_rounds(result.run))
        == len(list(sample_rows(store, [result.run])))
    )
    tallies = store.read_tallies(result.run)
    assert sum(tally.judged for tally in tallies) + count_parts(store, result.run, tallies) == samples
    assert result_of(store, result.run) == result
    assert all(row.input_tokens for row in result.per_task.values()), "a joined program has no prompt"


class _Killed(BaseException):
    pass


class _Killing(Store):
    """A store whose process is killed after the n-th write of a row that decides."""

    writes = 0

    def put(self, rows: Sequence[Row]) -> Future[None]:
        future = super().put(rows)
        if {table.name for table, _ in rows} & MOMENTS and self.writes >= 0:
            future.result()
            self.writes -= 1
            if not self.writes:
                raise _Killed
        return future


def test_killed_after_any_plan_or_round_and_started_again_it_is_the_same_run(
    planned: tuple[Store, RunResult, list[Event]], tmp_path: Path
) -> None:
    kills, finished = 0, False
    while not finished:
        with _Killing.open(tmp_path) as store:
            store.writes = 1 + kills % 3
            try:
                result, _ = run_planned(store)
                finished = True
            except _Killed:
                kills += 1
    with Store.open(tmp_path) as store:
        whole, undisturbed, _ = planned
        assert result.run == undisturbed.run
        assert store.read_contents(result.run) == whole.read_contents(result.run)
    assert kills >= 12


def test_no_more_samples_than_the_control_had_and_nothing_is_left_of_a_deleted_run(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        control = improve(TASKS, TinyModel(), SETTINGS.replace(max_rounds=3, samples=24), store, judge=InProcess())
        matched, _ = run_planned(store, PLANNED.replace(budget_from=control.run))
        assert matched.end == "budget spent"
        assert store.sample_count(matched.run) <= store.sample_count(control.run)
        assert store.read_plans(matched.run)
        store.delete_run(matched.run)
        assert (store.read_plans(matched.run), store.read_children(matched.run)) == ([], [])


class Planner(TinyModel):
    """A language model that plans by a script, and otherwise samples as ever."""

    is_language_model = True

    def __init__(self, *answers: str) -> None:
        super().__init__()
        self.answers = list(answers)
        self.prompts: list[str] = []

    async def complete(self, request: Request) -> Reply:
        if not request.messages[0].content.startswith("role: |\n  You plan."):
            return await super().complete(request)
        self.prompts.append(request.messages[-1].content)
        text = self.answers.pop(0) if self.answers else "I have no idea."
        return Reply((text,), Usage(1, 10, 5, 0, 0.25), self.name, ("stop",))


GOOD = """```yaml
nodes:
- {name: m, takes: [x, y], gives: [{name: m, dtype: int, dims: []}], code: x y *}
- {name: n, takes: [z, w], gives: [{name: n, dtype: int, dims: []}], code: z w *}
- {name: out, takes: [m, n, u], gives: [{name: out, dtype: int, dims: []}], code: m n + u max}
outputs: [out]
```"""


def test_a_model_plans_and_hears_what_is_wrong_with_its_plan(tmp_path: Path) -> None:
    faulty = GOOD.replace("m n + u max", "m n -")
    model, deep = Planner(faulty, GOOD), [task for task in TASKS if task.id == "deep"]
    settings = PLANNED.replace(plan="llm", max_rounds=2)
    with Store.open(tmp_path) as store:
        result = improve(deep, model, settings, store, judge=PlanningJudge())
        [plan] = store.read_plans(result.run)
        assert plan.split is not None
        assert [node.name for node in plan.split.nodes] == ["m", "n", "out"]
        assert "other values" in model.prompts[1]
        assert store.sum_usage(result.run, PLANNER) == Usage(2, 20, 10, 0, 0.5), "paid for"
        assert result.rounds[1].attempted == 1, "the task itself is sampled on, beside its children"


def test_a_planner_without_a_plan_leaves_the_task_to_itself(tmp_path: Path) -> None:
    model, deep = Planner(), [task for task in TASKS if task.id == "deep"]
    with Store.open(tmp_path) as store:
        result = improve(deep, model, PLANNED.replace(plan="llm", max_rounds=2), store, judge=PlanningJudge())
        problems = [plan.problem for plan in store.read_plans(result.run)]
        assert len(problems) == 2
        assert "no YAML mapping" in problems[0]
        assert len(model.prompts) == 4, "each answer goes back once"


def test_plans_that_cannot_be_made_are_refused_in_words(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        with pytest.raises(UsageError, match="'tiny' cannot split its tasks; try --plan none"):
            improve(UNSPLIT, TinyModel(), SETTINGS.replace(plan="static"), store, judge=InProcess())
        with pytest.raises(UsageError, match=r"'tiny-sampler' plans nothing.*--plan static"):
            improve(TASKS, TinyModel(), PLANNED.replace(plan="llm"), store, judge=PlanningJudge())
        assert store.list_runs() == []
