"""Bare prompts through the whole loop: asked for by a setting, refused where a target has none, said in a refusal."""

import random
from pathlib import Path

import pytest
from tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.agents import bare
from opsmith.agents.prompt import PromptStyle, compose_prompt, read_prompt
from opsmith.agents.reply import ReplyForm, read_reply
from opsmith.errors import UsageError
from opsmith.judging.verifier import verify
from opsmith.learn.loop import improve
from opsmith.records import Experience, Level
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith.targets.step import STEP
from opsmith_lab.models.sampling import PromptSampler

ROPE, GEMM = load_tasks(("rope_0", "gemm_2"))
SHOWN = [Experience(GEMM, GEMM.impl or "", 0.5, 0)]


def test_a_bare_prompt_is_read_back_from_its_text_alone() -> None:
    parts = read_prompt(compose_prompt(ROPE, SHOWN, STEP, None, 0, style=PromptStyle("bare")).messages, STEP)
    text, program = parts.examples[-1]
    assert (STEP.read_task(text, "x").prompt_text, program) == (GEMM.prompt_text, GEMM.impl)
    assert STEP.read_task(parts.task, "x").prompt_text == ROPE.prompt_text


def test_demonstrations_that_overflow_are_left_out_here_too() -> None:
    whole = compose_prompt(ROPE, SHOWN, STEP, None, 10, style=PromptStyle("bare"))
    assert compose_prompt(ROPE, SHOWN, STEP, whole.input_tokens + 10, 10, style=PromptStyle("bare")).left_out == ()
    assert compose_prompt(ROPE, SHOWN, STEP, whole.input_tokens + 9, 10, style=PromptStyle("bare")).left_out == tuple(
        SHOWN
    )


def test_a_target_without_bare_prompts_says_so() -> None:
    with pytest.raises(UsageError, match="prompt bare: target 'tiny' offers no bare prompts"):
        improve(TASKS, TinyModel(), SETTINGS.replace(prompt="bare"), judge=InProcess())


def test_the_embedded_model_answers_a_bare_prompt_as_the_structural_one() -> None:
    """It reads the same tasks and programs from both, so only the form of its answer differs."""
    session = PromptSampler(STEP, 0.0)
    structural, python = (
        session.sample_replies(compose_prompt(ROPE, SHOWN, STEP, None, 0, style=PromptStyle(style)).messages, 0.7, 3, 3)
        for style in ("structural", "bare")
    )
    assert all(reply.startswith("```python\ndef body(E0, E1):\n") for reply in python)
    programs = [[read_reply(STEP, ROPE, reply).source for reply in replies] for replies in (structural, python)]
    assert programs[0] == programs[1]


def test_a_reply_without_a_program_is_told_what_was_asked_for() -> None:
    (error,) = read_reply(STEP, ROPE, "I cannot.", form=ReplyForm(bare.expected_reply(STEP))).errors
    assert "`body`" in error.expected
    assert "impl:" not in str(error)


def test_a_run_in_bare_python(tmp_path: Path) -> None:
    class Here:
        async def judge(self, task, source, level=Level.CHEAP):
            return verify(task, source)

    class Scripted(TinyModel):
        def answer(self, request):
            return (
                "No."
                if random.Random(request.seed).random() < 0.5
                else f"```python\n{STEP.bare_answer(GEMM, GEMM.impl or '')}```"
            )

    settings = Settings(samples=8, temperatures=(0.7,), agents="single", prompt="bare", max_rounds=1)
    with Store.open(tmp_path) as store:
        result = improve([GEMM], Scripted(), settings, store, judge=Here())
        assert result.solved == 1
        sample = store.find_sample(result.run, next(store.list_samples(result.run)).id)
        assert sample.calls[0].messages[0].content == STEP.bare_prompt()
        refused = [row for row in store.list_samples(result.run) if row.outcome and row.outcome.value == "refused"]
        found = store.find_sample(result.run, refused[0].id).candidates[0].verdict
        assert "`body`" in found.message
    structural = settings.replace(prompt="structural")
    with Store.open(tmp_path) as store:
        assert improve([GEMM], Scripted(), structural, store, judge=Here()).run != result.run
