"""The chat models `tuner` and `analyst`: what a suggestion names is done, what failed is not suggested again."""

import asyncio
import random

import pytest
from tiny_target import Tiny, tiny_task

from opsmith.agents.analysis import AnalystBrief, EarlierAttempt, request_analysis
from opsmith.agents.generation import GeneratorBrief, request_program
from opsmith.agents.repair import request_repair
from opsmith.agents.reply import read_reply
from opsmith.agents.suggestion import read_suggestion_reply
from opsmith.errors import UsageError
from opsmith.models import Message, Request
from opsmith.models.table import get_model
from opsmith.records import Boundary, Diagnostic, Outcome, ProfileReport, Stage, Suggestion, Verdict
from opsmith.settings import Settings
from opsmith.targets.programs import Advice, TuningMove
from opsmith.targets.step import STEP
from opsmith_lab.models.rewriting import Rewriter
from opsmith_lab.models.tuned import TuningModel
from opsmith_lab.models.tuning import ANALYST, NO_ANALYSIS, NO_MOVE, NO_PROGRAM, TUNER

SOURCE = "a b +\nc d *\n+\n"
BRIEF = GeneratorBrief(tiny_task("sum_0", SOURCE), "time", SOURCE)


class Swapper:
    """Two rewritings of postfix lines: `swap` exchanges two names, `join` takes the next line into this one."""

    def list_moves(self, source):
        rows = source.splitlines()
        swaps = [TuningMove("swap", i, "exchange both") for i, row in enumerate(rows, 1) if _is_swappable(row)]
        sizes = [(i, count) for i in range(1, len(rows)) for count in (1, 2) if i + count <= len(rows)]
        return [*swaps, *(TuningMove("join", i, "take lines", {"lines": count}) for i, count in sizes)]

    def apply_move(self, source, move):
        rows = source.splitlines()
        words = rows[move.line - 1].split()
        if move.name == "swap":
            rows[move.line - 1] = " ".join([words[1], words[0], *words[2:]])
        else:
            end = move.line + move.parameters["lines"]
            rows[move.line - 1 : end] = [" ".join(rows[move.line - 1 : end])]
        return "\n".join(rows) + "\n"

    def list_advice(self, source, profiles):
        first = "swap" if "slow" in profiles.get("remarks", "") else "join"
        second = "join" if first == "swap" else "swap"
        return [
            Advice((first,), 1, 3.0, "this way", "it says so"),
            Advice((second,), 0, 2.0, "that way", "it may help"),
        ]


class Swappable(Tiny):
    name = "swappable"

    def make_tuner(self):
        return Swapper()

    def describe_platform(self):
        return "a stack"

    def improvement_prompt(self, has_example):
        return "Write it better."


SWAPPABLE = Swappable()


def _is_swappable(row: str) -> bool:
    words = row.split()
    return len(words) == 3 and words[2] in "+*"


def ask(role: str, messages, temperature: float = 0.0, seed: int = 1) -> str:
    async def complete() -> str:
        model = TuningModel(SWAPPABLE, role)
        reply = await model.complete(Request(messages, temperature=temperature, seed=seed))
        await model.close()
        assert reply.usage.cost_usd == 0.0
        assert reply.usage.input_tokens > 0
        return reply.texts[0]

    return asyncio.run(complete())


def write_program(suggestion: Suggestion | None, temperature: float = 0.0, seed: int = 1) -> str:
    brief = GeneratorBrief(BRIEF.task, "time", SOURCE, suggestion)
    text = ask(TUNER, request_program(SWAPPABLE, brief), temperature, seed)
    source = read_reply(SWAPPABLE, BRIEF.task, text).source
    assert source is not None
    return source


def suggest(*attempts: EarlierAttempt, profiles: tuple[ProfileReport, ...] = ()) -> Suggestion | None:
    brief = AnalystBrief(BRIEF.task, "time", SOURCE, profiles, attempts)
    return read_suggestion_reply(ask(ANALYST, request_analysis(SWAPPABLE, brief))).suggestion


@pytest.mark.parametrize(
    ("suggestion", "program"),
    [
        (Suggestion("swap the operands", "line 2"), "a b +\nd c *\n+"),
        (Suggestion("Swap the operands", "in `c d *`, I think"), "a b +\nd c *\n+"),
        (Suggestion("swap", "everywhere"), "b a +\nd c *\n+"),
        (Suggestion("swap, then join", "line 1"), "b a + c d *\n+"),
        (Suggestion("join with lines 2", "line 1"), "a b + c d * +"),
        (Suggestion("join", "line 1"), "a b + c d *\n+"),
    ],
)
def test_the_moves_that_a_suggestion_names_are_applied_where_it_says(suggestion: Suggestion, program: str) -> None:
    assert write_program(suggestion).strip() == program


def test_moves_are_drawn_where_nothing_is_suggested_and_equal_seeds_draw_alike() -> None:
    programs = [write_program(None, 0.7, seed) for seed in range(8)]
    assert SOURCE.strip() not in programs
    assert len(set(programs)) > 2
    assert [write_program(None, 0.7, seed) for seed in range(8)] == programs


def test_a_wrong_program_is_taken_back_and_another_one_is_answered() -> None:
    messages = request_program(SWAPPABLE, GeneratorBrief(BRIEF.task, "time", SOURCE, Suggestion("swap", "line 1")))
    finding = Diagnostic("RUN", "output", "1", "2")
    verdict = Verdict("", Stage.RUN, Outcome.REFUSED, Boundary.CANDIDATE, (finding,))
    answers = [ask(TUNER, messages)]
    for _ in range(3):
        messages = request_repair(messages, answers[-1], verdict)
        answers.append(ask(TUNER, messages))
    assert len(set(answers)) == 4


def test_a_program_that_no_move_applies_to_is_no_reply() -> None:
    assert ask(TUNER, request_program(SWAPPABLE, GeneratorBrief(BRIEF.task, "time", "a"))) == NO_MOVE


def test_messages_that_ask_for_nothing_of_theirs_are_answered_so() -> None:
    nothing = (Message("system", "Hello"), Message("user", "task: {}"))
    assert ask(TUNER, nothing) == NO_PROGRAM
    assert ask(ANALYST, nothing) == NO_ANALYSIS
    assert ask(ANALYST, request_program(SWAPPABLE, BRIEF)) == NO_ANALYSIS


def test_the_analyst_suggests_what_the_rules_expect_most_of_by_the_profiles() -> None:
    suggestion = suggest()
    assert suggestion == Suggestion("join: this way", "line 1: `a b +`", "it says so", "about 3.0 times as fast")
    remarks = ProfileReport("remarks", "text/plain", "line 1 is slow")
    assert suggest(profiles=(remarks,)) == Suggestion(
        "swap: this way", "line 1: `a b +`", "it says so", "about 3.0 times as fast"
    )


@pytest.mark.parametrize(("state", "ratio"), [("refused", None), ("right", 0.9), ("right", 1.0)])
def test_what_failed_is_not_suggested_again(state: str, ratio: float | None) -> None:
    first = suggest()
    second = suggest(EarlierAttempt(first, state, ratio))
    assert second is not None
    assert second.what == "swap: that way"
    assert second.where == "everywhere"
    assert suggest(EarlierAttempt(first, state, ratio), EarlierAttempt(second, state, ratio)) is None


def test_what_gained_less_than_another_attempt_may_be_suggested_once_more() -> None:
    first = suggest()
    better, lesser = EarlierAttempt(Suggestion("x", "line 1"), "right", 3.0), EarlierAttempt(first, "right", 1.5)
    assert suggest(better, lesser) == first
    assert suggest(better, lesser, lesser) != first


def test_a_suggestion_of_the_analyst_is_one_that_the_tuner_follows() -> None:
    suggestion = suggest()
    assert suggestion is not None
    assert write_program(suggestion).strip() == "a b + c d *\n+"


@pytest.mark.parametrize(("word", "at_least"), [("join", 2), ("swap", 3)])
def test_higher_temperatures_draw_other_parameters_and_further_moves(word: str, at_least: int) -> None:
    rewriter, suggestion = Rewriter(Swapper()), Suggestion(word, "line 1")
    programs = {
        next(rewriter.list_programs(SOURCE, suggestion, 1.0, random.Random(seed), is_first=True)) for seed in range(30)
    }
    assert len(programs) >= at_least


def test_both_models_are_named_in_the_table_and_need_a_language_with_rewritings() -> None:
    with pytest.raises(UsageError, match="'tuner': target 'step' has no rewritings"):
        get_model(Settings(model="tuner"), STEP)
    assert get_model(Settings(model="analyst"), SWAPPABLE).name == "analyst"
    with pytest.raises(UsageError, match="given no target"):
        get_model(Settings(model="analyst"))
