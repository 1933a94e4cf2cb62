"""What a whole run shows its generator: changes of other tasks once they have gained, rules and instructions by round."""

from pathlib import Path

import pytest
from optimised_run import SETTINGS, TASKS, WRONG, ScriptedModel, WordCounter, find_task
from tiny_run import InProcess

from opsmith.agents.analysis import read_analysis_prompt
from opsmith.agents.generation import GenerationPrompt, read_generation_prompt
from opsmith.learn.loop import improve
from opsmith.models import Request
from opsmith.models.roles import ANALYST, RoleModels
from opsmith.settings import Settings
from opsmith.store import Store


class RecordingModel(ScriptedModel):
    """Keeps what its prompts say."""

    def __init__(self, name: str = "generator") -> None:
        super().__init__(name)
        self.prompts: list[GenerationPrompt] = []
        self.rules: set[str] = set()

    def answer(self, request: Request) -> str:
        generated, analysed = read_generation_prompt(request.messages), read_analysis_prompt(request.messages)
        if generated is not None:
            self.prompts.append(generated)
        if analysed is not None:
            self.rules.add(analysed.rules)
        return super().answer(request)


def record(store: Store, settings: Settings) -> tuple[str, RecordingModel, RecordingModel]:
    generator, analyst = RecordingModel(), RecordingModel("analyst")
    models = RoleModels(generator, {ANALYST: analyst})
    return improve(TASKS, models, settings, store, judge=InProcess(), measurer=WordCounter()).run, generator, analyst


@pytest.mark.parametrize("count", [0, 2])
def test_gains_of_other_tasks_are_shown_in_later_rounds_and_never_without_memory(tmp_path: Path, count: int) -> None:
    with Store.open(tmp_path) as store:
        _, generator, _ = record(store, SETTINGS.replace(optimise=3, attempts=8, memory=count))
    shown = [(find_task(prompt.task), pair) for prompt in generator.prompts for pair in prompt.memory]
    assert bool(shown) is bool(count)
    assert all(pair.ratio > 1.04 and len(pair.before) > len(pair.after) for _, pair in shown)
    assert {" u +" in pair.after for task, pair in shown if task.id == "sum_1"} <= {False}, "of the other task only"
    assert all(len(prompt.memory) <= count for prompt in generator.prompts)


def test_a_run_teaches_the_next_one(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        earlier, _, _ = record(store, SETTINGS.replace(attempts=8))
        _, generator, _ = record(store, SETTINGS.replace(optimise=1, seed=2, memory_from=(earlier,)))
    assert any(prompt.memory for prompt in generator.prompts)


def test_what_the_user_denies_is_said_to_both_agents_and_refused_before_any_verdict(tmp_path: Path) -> None:
    (tmp_path / "round-2.md").write_text("fewer words")
    settings = SETTINGS.replace(optimise=2, attempts=8, deny=(rf"^\s*{WRONG}\s*$",), instructions=str(tmp_path))
    with Store.open(tmp_path) as store:
        run, generator, analyst = record(store, settings)
        verdicts = [
            candidate.verdict
            for row in store.read_steps(run)
            for candidate in store.find_sample(run, row.sample).candidates
            if candidate.source is not None and candidate.source.strip() == WRONG
        ]
    assert verdicts
    assert {verdict.errors[0].kind for verdict in verdicts} == {"RULE"}
    assert {WRONG in rules for rules in analyst.rules} == {True}
    assert all("regular expressions" in prompt.rules for prompt in generator.prompts)
    assert {prompt.instructions.strip() for prompt in generator.prompts} == {"", "fewer words"}
