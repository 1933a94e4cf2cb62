"""A swarm gives the attempts of a task to its members in turn, and each member counts its own."""

import asyncio
from dataclasses import replace

import pytest
from tiny_target import TINY

from opsmith.agents.prompt import compose_prompt
from opsmith.errors import UsageError
from opsmith.forecast.prices import price_requests
from opsmith.models import ChatModel, Request
from opsmith.models.swarm import list_members
from opsmith.models.table import get_model
from opsmith.records import Task
from opsmith.settings import Settings
from opsmith.suites import load_tasks
from opsmith.targets.step import STEP

TASK, SHORT = load_tasks(("index_3", "index_0"))  # many programs, and one


def ask_attempts(model: ChatModel, attempts: list[int], task: Task = TASK) -> list[tuple[str, str]]:
    """(model, text) of each reply."""
    asked = Request(compose_prompt(task, (), STEP, None, 0).messages, temperature=1.0, seed=1)

    async def ask_in_order() -> list[tuple[str, str]]:
        replies = [await model.complete(replace(asked, attempt=attempt)) for attempt in attempts]
        await model.close()
        return [(reply.model, reply.texts[0]) for reply in replies]

    return asyncio.run(ask_in_order())


def test_the_members_take_turns_and_each_goes_on_where_its_last_turn_ended() -> None:
    alone = ask_attempts(get_model(Settings(model="search"), STEP), [0, 1])
    swarm = get_model(Settings(model="swarm:search,embedded", workers=1), STEP)
    replies = ask_attempts(swarm, [0, 1, 2, 0])
    assert [reply for reply in replies if reply[0] == "search"] == [*alone, alone[0]]
    assert [model for model, _ in replies] == ["search", "embedded", "search", "search"]
    assert (swarm.name, swarm.is_language_model) == ("swarm:search,embedded", False)


def test_a_member_without_more_programs_leaves_its_turn_to_the_next() -> None:
    swarm = get_model(Settings(model="swarm:search,embedded", workers=1), STEP)
    assert [model for model, _ in ask_attempts(swarm, [0, 2], SHORT)] == ["search", "embedded"]


@pytest.mark.parametrize("name", ["swarm:search", "swarm:search,", "swarm:search,swarm:embedded"])
def test_one_model_is_no_swarm(name: str) -> None:
    with pytest.raises(UsageError, match="expected two models or more"):
        list_members(name)


def test_a_member_that_is_no_model_is_said_before_anything_is_asked() -> None:
    with pytest.raises(UsageError, match="model 'gpt': no such model"):
        get_model(Settings(model="swarm:search,gpt"), STEP)
    with pytest.raises(UsageError, match="search"):
        get_model(Settings(model="swarm:search,embedded"), TINY)


def test_the_dearest_member_is_the_price() -> None:
    mini, large = "openai/gpt-4o-mini-2024-07-18", "openai/gpt-4o-2024-11-20"
    prices = [price_requests(name, None, 10, 1000, 100) for name in (mini, large, f"swarm:{mini},{large}")]
    assert prices[2] == prices[1] != prices[0]
    assert price_requests(f"swarm:{mini},openai/no-such-model", None, 10, 1000, 100) is None
