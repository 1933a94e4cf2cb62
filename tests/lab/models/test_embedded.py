"""The embedded model: texts in, texts out, learned from the prompt alone, the same in every process."""

import asyncio

import pytest
from tiny_target import TINY

from opsmith.agents.prompt import compose_prompt
from opsmith.agents.reply import read_reply
from opsmith.errors import UsageError
from opsmith.judging.verifier import verify_reply
from opsmith.models import Message, Reply, Request
from opsmith.records import Experience, Stage
from opsmith.suites import load_tasks
from opsmith.targets import TARGETS
from opsmith.targets.step import STEP
from opsmith_lab.models.embedded import EmbeddedModel
from opsmith_lab.models.noise import WAYS
from opsmith_lab.models.sampling import PromptSampler

ROPE, RMS, GEMM = load_tasks(("rope_0", "norm_2", "gemm_2"))


def ask(model: EmbeddedModel, *requests: Request) -> list[Reply]:
    async def all_of_them() -> list[Reply]:
        try:
            return await asyncio.gather(*(model.complete(request) for request in requests))
        finally:
            await model.close()

    return asyncio.run(all_of_them())


def request(task, demonstrations=(), seed=1, n=4, temperature=1.0) -> Request:
    shown = [Experience(demonstration, demonstration.impl, 0.1, 0) for demonstration in demonstrations]
    return Request(compose_prompt(task, shown, STEP, None, 0).messages, n, temperature, seed=seed)


def test_its_texts_depend_on_the_request_alone():
    first, again, other = ask(EmbeddedModel(STEP), request(ROPE), request(ROPE), request(ROPE, seed=2))
    assert first.texts == again.texts
    assert first.texts != other.texts
    assert ask(EmbeddedModel(STEP, workers=1), request(GEMM), request(ROPE))[1].texts == first.texts
    assert PromptSampler(STEP, 0.0).sample_replies(request(ROPE).messages, 1.0, 1, 4) == list(first.texts)


def test_an_example_taken_out_of_the_prompt_changes_its_samples():
    with_example, without, bare = ask(
        EmbeddedModel(STEP),
        request(RMS, [ROPE], n=8),
        request(RMS, n=8),
        Request((Message("system", "no examples"), request(RMS).messages[1]), 8, 1.0, seed=1),
    )
    assert len({with_example.texts, without.texts, bare.texts}) == 3


def test_every_reply_holds_a_program_that_checks():
    (reply,) = ask(EmbeddedModel(STEP), request(GEMM, n=16))
    for text in reply.texts:
        found = read_reply(STEP, GEMM, text)
        assert found.source is not None
        assert STEP.check_program(GEMM, found.source).stage == Stage.RUN


def test_usage_is_counted_and_free_and_it_is_no_language_model():
    model = EmbeddedModel(STEP)
    (reply,) = ask(model, request(ROPE))
    assert reply.usage.requests == 1
    assert reply.usage.input_tokens > 1000
    assert reply.usage.output_tokens > 20
    assert reply.usage.cost_usd == 0.0
    assert not model.is_language_model


def test_a_low_temperature_repeats_itself():
    cold, hot = ask(EmbeddedModel(STEP), request(ROPE, n=16, temperature=0.05), request(ROPE, n=16, temperature=1.5))
    assert len(set(cold.texts)) < len(set(hot.texts))


def test_noise_spoils_a_share_of_the_replies_at_every_stage():
    (reply,) = ask(EmbeddedModel(STEP, noise=1.0), request(ROPE, n=120))
    stages = {verify_reply(ROPE, text).stage for text in reply.texts}
    assert stages >= {Stage.FORMAT, Stage("PARSE"), Stage("TYPE"), Stage.MATCH}
    (clean,) = ask(EmbeddedModel(STEP), request(ROPE, n=4))
    assert all(text.startswith("```yaml\nimpl: |") for text in clean.texts)
    assert len(WAYS) >= 8


@pytest.mark.parametrize("text", ["hello", "", "task: [1, 2]", "a: &a [*a]", "input_impl: 3"])
def test_a_prompt_without_a_task_gets_an_honest_answer(text):
    (reply,) = ask(EmbeddedModel(STEP), Request((Message("user", text),), 2, seed=1))
    assert all("this message holds none" in answer for answer in reply.texts)


def test_a_guardians_request_leaves_the_program_alone():
    (reply,) = ask(EmbeddedModel(STEP), Request((Message("user", "input_impl: |\n  return E0\n"),), seed=1))
    assert reply.texts == ("```yaml\nimpl: |\n  return E0\n```\n",)


def test_a_target_that_is_registered_in_this_process_only_is_sampled_here(monkeypatch):
    monkeypatch.setitem(TARGETS, "tiny", lambda: TINY)
    task = TINY.read_task("inputs: {x: [1, 2], y: [3, 5]}\nwant: [4, 7]\n", "sum_0")
    messages = (
        Message("system", TINY.base_prompt("proposer")),
        Message("user", "task:\n  inputs: {x: [1], y: [3]}\n  want: [4]\n"),
    )
    (reply,) = ask(EmbeddedModel(TINY), Request(messages, 3, seed=5))
    assert all(read_reply(TINY, task, text).source for text in reply.texts)


def test_a_target_without_a_sampler_is_refused():
    class Unsampled(type(STEP)):
        make_sampler = None

    with pytest.raises(UsageError, match="has no sampler"):
        EmbeddedModel(Unsampled())
