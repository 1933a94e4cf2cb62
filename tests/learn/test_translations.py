"""Proposers that are shown a right program in another language, or no example of their own: prompts, runs, names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from models.servers import OpenAIServer
from tiny_run import InProcess

from opsmith.agents.prompt import PromptStyle, ReferenceProgram, compose_prompt, read_prompt
from opsmith.errors import UsageError
from opsmith.learn.events import Event, Warned
from opsmith.learn.loop import improve
from opsmith.models.table import get_model
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith.targets import get_target

Run = Callable[..., tuple[RunResult, list[Any]]]
C_TASKS = load_tasks(["attn_0", "index_0"], "c")
STEP_TASKS = load_tasks(["attn_0", "index_0"])
(KERNEL,) = load_tasks(["softmax"], "c")
REFERENCE = ReferenceProgram("step", "E1 = x\n\nreturn E1")
SETTINGS = Settings(samples=1, temperatures=(0.7,), agents="single", seed=1, concurrency=1, max_rounds=1)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    """One address for all runs: it is part of their names."""
    with OpenAIServer(lambda body: "impl: |\n  x\n") as opened:
        yield opened


@pytest.fixture
def ask(server: OpenAIServer) -> Run:
    """Starts a run whose model never answers with a program: what came of it, and what was asked."""

    def run(store: Store, tasks: Any, events: list[Event] | None = None, **changes: Any) -> tuple[RunResult, list[Any]]:
        before = server.count
        settings = SETTINGS.replace(model="openai/m", base_url=server.url, **changes)
        watch = (lambda event: None) if events is None else events.append
        result = improve(tasks, get_model(settings), settings, store, judge=InProcess(), on_event=watch)
        asked = server.requests[before:]
        return result, [[message["content"] for message in body["messages"]] for body in asked]

    return run


def test_a_prompt_names_the_language_of_the_program_that_it_shows() -> None:
    without, shown = (compose_prompt(C_TASKS[0], (), get_target("c"), None, 0, reference=r) for r in (None, REFERENCE))
    assert shown.messages[0] == without.messages[0]
    user, plain = shown.messages[1].content, without.messages[1].content
    assert user.startswith(plain)
    mapping = yaml.safe_load(user)
    assert mapping["reference"].keys() == {"language", "meaning", "program"}
    assert (mapping["reference"]["language"], mapping["reference"]["program"].strip()) == ("step", REFERENCE.source)
    assert "another language" in mapping["reference"]["meaning"]
    assert read_prompt(shown.messages) == read_prompt(without.messages), "a reference is no example"


def test_a_prompt_without_the_example_is_the_same_text_up_to_it() -> None:
    c = get_target("c")
    texts = [compose_prompt(KERNEL, (), c, None, 0, style=PromptStyle(has_example=has)).messages for has in (1, 0)]
    assert texts[0][0].content.startswith(texts[1][0].content)
    assert read_prompt(texts[0]).examples
    assert not read_prompt(texts[1]).examples
    assert texts[0][1] == texts[1][1]


def test_a_language_whose_prompt_is_its_examples_cannot_leave_them_out() -> None:
    with pytest.raises(UsageError, match="no prompt without one"):
        compose_prompt(STEP_TASKS[0], (), get_target("step"), None, 0, style=PromptStyle(has_example=False))
    with pytest.raises(UsageError, match="try --prompt structural"):
        compose_prompt(STEP_TASKS[0], (), get_target("step"), None, 0, style=PromptStyle("bare"), reference=REFERENCE)


def test_a_run_shows_each_task_its_program_in_the_other_language(tmp_path: Path, ask: Run) -> None:
    with Store.open(tmp_path) as store:
        _, asked = ask(store, STEP_TASKS, translate="c")
    assert [yaml.safe_load(user)["reference"]["program"].strip() for _, user in asked] == [
        (task.impl or "").strip() for task in C_TASKS
    ]


def test_what_is_shown_is_part_of_a_run_s_name_and_the_default_is_not(tmp_path: Path, ask: Run) -> None:
    with Store.open(tmp_path) as store:
        names = [
            ask(store, STEP_TASKS, **changes)[0].run for changes in ({}, {"example": True}, {"translate": "c"}, {})
        ]
        settings = [store.summarise_run(name).info.settings for name in names]
    assert names[0] == names[1] == names[3] != names[2]
    assert "translate" not in settings[0]
    assert "example" not in settings[0]
    assert settings[2]["translate"] == "c"


def test_a_task_without_a_program_there_is_asked_without_which_is_said(tmp_path: Path, ask: Run) -> None:
    events: list[Event] = []
    with Store.open(tmp_path) as store:
        _, asked = ask(store, [*load_tasks(["attn_0"], "c"), KERNEL], events, translate="step")
        said = [event.message for event in events if isinstance(event, Warned)]
        with pytest.raises(UsageError, match="a program for none of the 1 tasks' problems"):
            ask(store, [KERNEL], translate="step")
        with pytest.raises(UsageError, match="the language of the tasks themselves"):
            ask(store, [KERNEL], translate="c")
    assert ["reference" in yaml.safe_load(user) for _, user in asked] == [True, False]
    assert any(message.startswith("task softmax: step has no program") for message in said)
