import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_disk import SmallDisk, wait_for
from tiny_run import SETTINGS, TASKS, FaultyModel, InProcess, TinyModel
from tiny_target import TINY, tiny_task

import opsmith.learn.attend
from opsmith.errors import ProviderError, StoreError, TaskError, UsageError, VerifierError
from opsmith.judging.judge import Solution, import_experiences
from opsmith.learn.events import Event, RoundEnded, RoundStarted, RunEnded, RunStarted, SampleJudged, TaskSolved, Warned
from opsmith.learn.loop import improve, improve_async
from opsmith.learn.policies import RoundPlan, plan_samples
from opsmith.models import Request
from opsmith.records import Boundary, Level, Outcome, Task, Verdict
from opsmith.results.result import RunResult, result_of
from opsmith.settings import Settings
from opsmith.store import Store

SAMPLES = SETTINGS.method.samples * len(SETTINGS.method.temperatures)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as opened:
        yield opened


def run(
    store: Store, settings: Settings = SETTINGS, model: TinyModel | None = None, tasks: list[Task] = TASKS
) -> tuple[RunResult, list[Event]]:
    events: list[Event] = []
    result = improve(tasks, model or TinyModel(), settings, store, judge=InProcess(), on_event=events.append)
    return result, events


def change(**values: object) -> Settings:
    return SETTINGS.replace(**values)


class Says(TinyModel):
    """Always the same answer."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def answer(self, request: Request) -> str:
        return self.text


def test_a_whole_run_learns_from_what_it_solved(store: Store) -> None:
    result, events = run(store)
    assert result.finished
    assert result.end == "demonstrations used up"
    assert result.solved == len(result.experiences) >= 3
    assert result.rounds[0].level == "none"
    assert result.rounds[0].demonstrations == 0
    assert result.rounds[1].level == "H"
    assert result.rounds[1].demonstrations > 0
    assert result.rounds[-1].newly_solved == ()
    assert result.rounds[-1].cumulative == result.solved
    assert [type(event) for event in events[:2]] == [RunStarted, RoundStarted]
    assert isinstance(events[-1], RunEnded)
    assert events[-1].result == result
    assert sum(isinstance(event, SampleJudged) for event in events) == store.sample_count(result.run)
    assert {e.experience.task.id for e in events if isinstance(e, TaskSolved)} == {
        name for name, item in result.per_task.items() if item.solved
    }


def test_a_run_that_solved_nothing_says_so(store: Store) -> None:
    result, _ = run(store, model=Says("impl: |\n  x\n"))
    assert (result.end, result.finished) == ("nothing was solved, so there is nothing to learn from", True)
    assert result_of(store, result.run).end == result.end


def test_a_solved_task_is_not_sampled_again(store: Store) -> None:
    result, _ = run(store)
    for item in result.per_task.values():
        rounds = len(result.rounds) if item.round is None else item.round + 1
        assert item.samples == rounds * SAMPLES


def test_the_demonstrations_of_a_round_stand_in_its_prompts(store: Store) -> None:
    result, _ = run(store)
    infos = [info for info, _ in store.read_rounds(result.run)]
    sources = {kept.experience.task.id: kept.experience.source for kept in store.read_experiences(result.run)}
    shown = infos[1].demonstrations
    sample = next(row for row in store.list_samples(result.run) if row.round == 1)
    user = store.find_sample(result.run, sample.id).calls[0].messages[1].content
    assert all(sources[task].splitlines()[-1] in user for task, _ in shown)
    assert user.startswith("examples:")


def test_the_figures_of_a_run_add_up(store: Store) -> None:
    result, _ = run(store)
    rates = [item.success_rate for item in result.per_task.values()]
    assert result.overall.pass_at_1 == pytest.approx(sum(rates) / len(TASKS))
    assert result.overall.pass_at_n == pytest.approx(result.solved / len(TASKS))
    assert result.usage.requests == store.sample_count(result.run)
    assert result.groups["sum"].tasks == 3
    assert result.guardian["repaired"] >= 1
    assert result.guardian["corrupted"] == 0
    printed = result.as_json()
    assert (printed["solved"], printed["tasks"]) == (result.solved, len(TASKS))
    assert printed["rounds"][0]["newly_solved"] == len(result.rounds[0].newly_solved)


def test_input_tokens_are_those_of_one_prompt_of_the_last_round_of_each_task(store: Store) -> None:
    result, _ = run(store)
    solved_at_once = [item for item in result.per_task.values() if item.round == 0]
    never = [item for item in result.per_task.values() if not item.solved]
    assert max(item.input_tokens or 0 for item in solved_at_once) < min(item.input_tokens or 0 for item in never)


def test_without_a_store_the_run_is_kept_nowhere() -> None:
    result = improve(TASKS[:1], TinyModel(), SETTINGS, judge=InProcess())
    assert result.finished


def test_equal_seeds_give_equal_runs_whatever_the_concurrency(tmp_path: Path) -> None:
    contents = []
    for concurrency in (1, 7):
        with Store.open(tmp_path / str(concurrency)) as store:
            result, _ = run(store, change(concurrency=concurrency))
            contents.append(store.read_contents(result.run))
    assert contents[0] == contents[1]


def test_the_same_command_shows_a_finished_run_again_and_asks_nothing(store: Store) -> None:
    first, _ = run(store)
    model = TinyModel()
    again, events = run(store, model=model)
    assert again == first
    assert model.asked == []
    assert [type(event) for event in events] == [RunEnded]


def test_another_setting_is_another_run_of_the_same_store(store: Store) -> None:
    first, _ = run(store)
    second, _ = run(store, change(seed=2))
    assert first.run != second.run
    assert [summary.info.id for summary in store.list_runs()] == [first.run, second.run]
    assert result_of(store, first.run) == first


def test_the_order_of_the_tasks_has_no_say(store: Store) -> None:
    first, _ = run(store)
    model = TinyModel()
    again, _ = run(store, model=model, tasks=TASKS[::-1])
    assert again.run == first.run
    assert model.asked == []


def test_the_control_spends_the_same_total_of_samples_without_demonstrations(store: Store) -> None:
    adaptive, _ = run(store)
    control, _ = run(store, change(selection="none", budget_from=adaptive.run))
    assert control.end in ("budget spent", "all solved")
    assert store.sample_count(control.run) == store.sample_count(adaptive.run)
    assert {item.level for item in control.rounds} == {"none"}
    assert {item.demonstrations for item in control.rounds} == {0}
    seeds = [
        call.seed for row in store.list_samples(control.run) for call in store.find_sample(control.run, row.id).calls
    ]
    assert len(seeds) == len(set(seeds)), "the control draws anew in every round"


def test_a_control_without_a_limit_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="--budget-from"):
        run(store, change(selection="none"))
    result, _ = run(store, change(selection="none", max_rounds=2))
    assert (result.end, len(result.rounds)) == ("max rounds", 2)


def test_a_budget_that_ends_in_a_round_is_spread_over_its_tasks() -> None:
    keys = plan_samples(RoundPlan("r", 0, ("a", "b", "c"), ("",), 4, SETTINGS.method.temperatures, limit=7))
    assert [sum(key.task == task for key in keys) for task in "abc"] == [3, 2, 2]
    assert len(set(keys)) == 7


def test_tasks_can_be_added_to_a_finished_run(store: Store) -> None:
    first, _ = run(store)
    new = tiny_task("sum_9", "a b +")
    second, events = run(store, change(from_run=first.run), tasks=[*TASKS, new])
    assert set(second.solved_before) == {name for name, item in first.per_task.items() if item.solved}
    assert second.rounds[0].level == "H"
    assert "sum_9" in second.per_task
    assert not set(second.solved_before) & set(second.per_task)
    assert isinstance(events[0], RunStarted)
    assert set(events[0].solved_before) == set(second.solved_before)


def test_a_hand_written_solution_is_an_experience_once_the_verifier_passes_it(store: Store) -> None:
    task = TASKS[4]
    assert task.impl is not None
    good = TINY.repair_program(task, task.impl) or ""
    [experience] = asyncio.run(import_experiences([Solution(task, good, 0.5)], InProcess()))
    assert (experience.origin, experience.round, experience.success_rate) == ("import", -1, 0.5)
    result = improve(TASKS, TinyModel(), SETTINGS, store, judge=InProcess(), experiences=[experience])
    assert result.solved_before == (task.id,)
    assert result.rounds[0].level == "H"
    with pytest.raises(TaskError, match=r"mul_1: the program to import is not a solution(.|\n)*AFFINE"):
        asyncio.run(import_experiences([Solution(task, task.impl)], InProcess()))


def test_a_solution_that_stands_in_its_own_prompt_is_flagged(store: Store) -> None:
    copied, own = tiny_task("copy_0", "p q +"), tiny_task("own_0", "p q + r *")
    result, _ = run(store, model=Says("impl: |\n  p q +"), tasks=[copied, own])
    assert result.per_task["copy_0"].contaminated
    with Store.open(Path(store.path).parent / "second.sqlite") as other:
        result, _ = run(other, model=Says("impl: |\n  p q + r *"), tasks=[copied, own])
    assert result.per_task["own_0"].solved
    assert not result.per_task["own_0"].contaminated


@pytest.mark.parametrize("guardian", ["static", "llm"])
def test_a_guardian_turns_reuse_into_a_right_program(store: Store, guardian: str) -> None:
    square = tiny_task("mul_0", "x x *")
    result, _ = run(store, change(guardian=guardian), Says("impl: |\n  x x *"), [square])
    if guardian == "llm":  # this model's guardian says again what was wrong
        assert result.guardian == {"repaired": 0, "corrupted": 0, "left alone": SAMPLES, "changed": 0}
        assert result.guardian_usage.requests == SAMPLES
        return
    assert result.guardian == {"repaired": SAMPLES, "corrupted": 0, "left alone": 0, "changed": 0}
    row = next(store.list_samples(result.run))
    first, second = store.find_sample(result.run, row.id).candidates
    assert (first.agent, second.agent, second.parent) == ("proposer", "guardian", first.verdict.candidate)
    assert second.final


def test_a_guardian_model_is_asked_about_every_program_and_its_answer_counts(store: Store) -> None:
    result, _ = run(store, change(guardian="llm"))
    programs = [row for row in store.list_samples(result.run) if row.stage is not None and row.stage.rank >= 2]
    assert result.guardian_usage.requests == len(programs)
    assert result.guardian["repaired"] >= 1
    assert result.usage.requests == store.sample_count(result.run) + result.guardian_usage.requests


def test_a_single_agent_has_no_guardian(store: Store) -> None:
    result, _ = run(store, change(agents="single"), Says("impl: |\n  x x *"), [tiny_task("mul_0", "x x *")])
    assert result.solved == 0
    assert sum(result.guardian.values()) == 0


def test_a_failed_request_leaves_its_sample_unjudged_and_out_of_the_count(store: Store) -> None:
    result, events = run(store, model=FaultyModel(share=0.2))
    ended = [event for event in events if isinstance(event, RoundEnded)]
    assert 0 < ended[0].unjudged < 80
    tallies = store.read_tallies(result.run, 0)
    assert sum(tally.judged for tally in tallies) == len(TASKS) * SAMPLES - ended[0].unjudged
    assert {charged for _, charged, _ in store.read_failures(result.run, 0)} == {Boundary.PROVIDER.value}
    assert result.finished


def test_a_provider_that_is_down_ends_the_session_and_the_run_goes_on_later(store: Store, tmp_path: Path) -> None:
    down = FaultyModel(dies_after=30)
    with pytest.raises(ProviderError, match="HTTP 500"):
        run(store, model=down)
    assert len(down.asked) <= 30 + 10 + SETTINGS.provider.concurrency, "it is not asked for ever"
    [summary] = store.list_runs()
    assert not summary.finished
    assert summary.end is not None
    assert "HTTP 500" in summary.end
    model = TinyModel()
    result, _ = run(store, model=model)
    assert result.finished
    assert len(model.asked) == store.sample_count(result.run) - 30
    with Store.open(tmp_path / "other") as other:
        whole, _ = run(other)
        found = {row for row in store.read_contents(result.run) if row[0] != "failure"}
        assert found == other.read_contents(whole.run)


def test_a_refused_key_ends_the_session_at_once(store: Store) -> None:
    model = FaultyModel(dies_after=0, status=401)
    with pytest.raises(ProviderError, match="HTTP 401"):
        run(store, model=model)
    assert len(model.asked) <= SETTINGS.provider.concurrency


def test_a_round_in_which_nothing_was_answered_is_no_round(store: Store) -> None:
    few = change(samples=1, temperatures=(0.4,))
    with pytest.raises(ProviderError, match="no sample could be judged"):
        run(store, few, FaultyModel(dies_after=0), TASKS[:2])
    result, _ = run(store, few, tasks=TASKS[:2])
    assert result.finished


class Breaks(InProcess):
    """A verifier that loses its worker over some programs."""

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        if source.startswith("z"):
            raise VerifierError("verifier: a worker died twice")
        return await super().judge(task, source, level)


def test_a_failure_of_ours_is_never_a_wrong_program(store: Store) -> None:
    result = improve(TASKS, TinyModel(), SETTINGS, store, judge=Breaks())
    assert result.finished
    lost = store.read_failures(result.run, 0)
    assert lost
    assert {charged for _, charged, _ in lost} == {Boundary.OURS.value}
    assert sum(tally.judged for tally in store.read_tallies(result.run, 0)) == len(TASKS) * SAMPLES - len(lost)


def test_a_task_that_is_wrong_itself_is_said_and_not_tried_further(store: Store) -> None:
    broken = TINY.read_task("inputs: {x: [1, 2]}\nwant: [1]\n", "bad_0")
    result, events = run(store, tasks=[*TASKS[:2], broken])
    assert any(isinstance(event, Warned) and "bad_0" in event.message for event in events)
    assert result.per_task["bad_0"].samples < SAMPLES
    assert all(event.round.attempted == ("sum_0", "sum_1") for event in _rounds(events)[1:])
    with pytest.raises(TaskError, match="lists of one length"):
        run(store, tasks=[broken], model=Says("impl: x"))


def _rounds(events: list[Event]) -> list[RoundStarted]:
    return [event for event in events if isinstance(event, RoundStarted)]


def test_the_cost_cap_stops_before_the_next_request_and_a_higher_one_goes_on(store: Store, tmp_path: Path) -> None:
    result, events = run(store, change(max_cost=0.5), TinyModel(price=0.01))
    warned = [event.message for event in events if isinstance(event, Warned)]
    assert warned == ["50% of --max-cost 0.5 USD are spent", "80% of --max-cost 0.5 USD are spent"]
    assert (result.end, result.finished) == ("max cost", False)
    assert result.usage.cost_usd is not None
    assert 0.5 <= result.usage.cost_usd <= 0.5 + 0.01 * SETTINGS.provider.concurrency
    again, _ = run(store, change(max_cost=0.5), TinyModel(price=0.01))
    assert again.usage == result.usage, "the same cap leaves nothing to spend"
    whole, _ = run(store, change(max_cost=100.0), TinyModel(price=0.01))
    assert (whole.run, whole.finished) == (result.run, True)
    with Store.open(tmp_path / "other") as other:
        uncapped, _ = run(other, model=TinyModel(price=0.01))
        assert store.read_contents(whole.run) == other.read_contents(uncapped.run)


def test_an_unknown_price_is_said_not_guessed(store: Store) -> None:
    result, events = run(store, change(max_cost=0.5), TinyModel(price=None))
    assert [e.message for e in events if isinstance(e, Warned)] == [
        "model tiny-sampler: its price is not known, so --max-cost cannot be kept"
    ]
    assert result.usage.cost_usd is None


def test_what_does_not_fit_the_context_window_is_left_out_and_said(store: Store) -> None:
    model = TinyModel()
    model.context_window = 190
    result, events = run(store, change(max_tokens=10), model)
    assert result.finished
    assert any(
        isinstance(event, Warned) and "left out of prompts to fit 190 tokens, the easiest first" in event.message
        for event in events
    )


def test_wrong_sets_of_tasks_are_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="given twice: sum_0"):
        run(store, tasks=[TASKS[0], TASKS[0]])
    with pytest.raises(UsageError, match="at least one"):
        run(store, tasks=[])
    with pytest.raises(UsageError, match="no such run"):
        run(store, change(from_run="gone"))


def test_keys_in_a_base_url_never_reach_the_store(store: Store) -> None:
    canary = "sk-canary-1234"
    run(store, change(base_url=f"https://me:{canary}@host.example/v1?api_key={canary}"), tasks=TASKS[:1])
    store.close()
    files = Path(store.path).parent.iterdir()
    assert not any(canary.encode() in file.read_bytes() for file in files)


def test_other_keys_of_a_reply_are_dropped_and_said(store: Store) -> None:
    reply = "impl: |\n  x y + z +\nwant: [1, 1, 1, 1]\n"
    result, _ = run(store, model=Says(reply), tasks=TASKS[:1])
    [found] = store.find_sample(result.run, next(store.list_samples(result.run)).id).candidates
    assert found.verdict.passed
    assert "'want' was dropped" in found.verdict.warnings[0]


def test_a_full_disk_pauses_the_run_and_nothing_received_is_lost_or_asked_again(tmp_path: Path) -> None:
    model = TinyModel()
    with Store.open(tmp_path / "small") as store, Store.open(tmp_path / "other") as other:
        disk = SmallDisk(store, pages=80)
        rescue = threading.Thread(target=lambda: (wait_for(lambda: bool(store.trouble)), disk.make_room()))
        rescue.start()
        result, _ = run(store, model=model)
        rescue.join()
        whole, _ = run(other)
        assert store.read_contents(result.run) == other.read_contents(whole.run)
        assert len(model.asked) == store.sum_usage(result.run).requests


def test_a_disk_that_stays_full_ends_the_session_after_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opsmith.learn.attend, "GRACE_S", 0.1)
    with Store.open(tmp_path) as store:
        SmallDisk(store, pages=80)

        async def stopped() -> RunResult:
            stop = asyncio.Event()
            watch = threading.Thread(target=lambda: (wait_for(lambda: bool(store.trouble)), store.hurry(0.1)))
            watch.start()
            try:
                return await improve_async(TASKS, TinyModel(), SETTINGS, store, InProcess(), stop=stop)
            finally:
                watch.join()

        with pytest.raises(StoreError, match="full; make room"):
            asyncio.run(stopped())


def test_requests_that_never_end_are_given_up_after_stop(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opsmith.learn.attend, "GRACE_S", 0.1)

    async def stopped() -> RunResult:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, stop.set)
        return await improve_async(TASKS, TinyModel(pause=60.0), SETTINGS, store, InProcess(), stop=stop)

    assert asyncio.run(stopped()).end == "interrupted"


def test_stop_ends_a_run_in_good_order(store: Store) -> None:
    async def stopped() -> RunResult:
        stop = asyncio.Event()
        model = TinyModel(pause=0.02)

        def seen(event: Event) -> None:
            if isinstance(event, SampleJudged):
                stop.set()

        return await improve_async(TASKS, model, SETTINGS, store, InProcess(), on_event=seen, stop=stop)

    result = asyncio.run(stopped())
    assert (result.end, result.finished) == ("interrupted", False)
    judged = sum(tally.judged for tally in store.read_tallies(result.run))
    assert judged == result.usage.requests > 0, "what was in flight was finished and judged"
    assert not [
        row for row in store.list_samples(result.run) if row.outcome is not Outcome.PASSED and row.stage is None
    ]
