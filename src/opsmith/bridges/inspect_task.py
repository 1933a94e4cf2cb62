"""`inspect eval opsmith/step26 --model ...`: a suite as a task of Inspect AI, with our verdict as its score.

Each sample is a task with the messages of a run. A right program scores C, any other reply I; a reply that cannot be
judged has no score, only the reason: Inspect leaves it out of every metric and reducer. pass@k is Inspect's own:
`--epochs 8 --epochs-reducer pass_at_1,pass_at_8`. `opsmith/kernels` asks for the kernels in C; `-T speed=true` adds a
second score, the reward of `bridges/rewards`. Not covered: the guardian, and the rounds of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser, GenerateConfig
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, grouped, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate
from rich.markup import escape

from opsmith.bridges.judging import JudgedReply, NotJudgedError, TaskHandle, describe_verdict, judge_reply
from opsmith.bridges.questions import AskedLanguage, Question, choose_language, make_questions
from opsmith.errors import OpsmithError
from opsmith.models import Message
from opsmith.settings import Settings

REWARD = "opsmith:reward"  # in a sample's store


@task
def step26(
    tasks: str | list[str] | None = None,
    from_run: str | None = None,
    out: str = "runs",
    trust_tasks: bool = False,
    target: str | None = None,
    options: str | dict[str, Any] | None = None,
    speed: bool = False,
) -> Task:
    """Write operators, in STeP unless another language is asked for.

    Args:
        tasks: ids, suites, files or folders (with commas); none: the paper's 26 tasks.
        from_run: a run of `opsmith run` whose solutions are shown as demonstrations.
        out: the folder of that run's store.
        trust_tasks: judge tasks that are not bundled even where nothing isolates their code.
        target: the language that is asked for; none: that of the task files.
        options: how that language builds and runs programs: `threads=2 flags=-O2`.
        speed: score speed too, measured here; only for languages whose programs are timed.
    """
    return _make_task("opsmith" if tasks else "step26", tasks or (), from_run, out, trust_tasks, target, options, speed)


@task
def kernels(
    tasks: str | list[str] = "kernels",
    from_run: str | None = None,
    out: str = "runs",
    trust_tasks: bool = False,
    target: str = "c",
    options: str | dict[str, Any] | None = None,
    speed: bool = False,
) -> Task:
    """Write kernels in C; the parameters are those of step26."""
    return _make_task("kernels", tasks, from_run, out, trust_tasks, target, options, speed)


def _make_task(
    name: str,
    tasks: str | Sequence[str],
    from_run: str | None,
    out: str,
    trust_tasks: bool,
    target: str | None,
    options: str | dict[str, Any] | None,
    speed: bool,
) -> Task:
    try:
        questions = make_questions(tasks, from_run, out, choose_language(target, options))
    except OpsmithError as error:
        raise PrerequisiteError(escape(str(error))) from error  # Inspect shows the message and not where it came from
    verdicts = verdict(trust_tasks=trust_tasks, speed=speed)
    return Task(
        dataset=MemoryDataset([_make_sample(question) for question in questions], name=name),
        solver=generate(),
        scorer=[verdicts, reward()] if speed else verdicts,
        config=GenerateConfig(max_tokens=Settings().method.max_tokens),
    )


@scorer(metrics=[grouped(accuracy(), "group"), stderr()])
def verdict(trust_tasks: bool = False, speed: bool = False) -> Scorer:
    """C where the verifier passes the program in the reply, I where it refuses it, no score where it cannot tell."""

    async def score(state: TaskState, target: Target) -> Score:
        about = state.metadata
        language = AskedLanguage(about.get("target", ""), about.get("options", ""))
        handle = TaskHandle(about["task"], about["digest"], language, trust_tasks, speed)
        try:
            reply = await judge_reply(handle, state.output.completion)
        except NotJudgedError as problem:
            return _make_unscored(problem)
        state.store.set(REWARD, reply.reward)
        return _make_score(reply)

    return score


@scorer(metrics=[mean(), stderr()])
def reward() -> Scorer:
    """What `verdict`, which comes before it, found the reply to be worth: 0 to 2."""

    async def score(state: TaskState, target: Target) -> Score:
        value = state.store.get(REWARD)
        return (
            Score.unscored(reason="scoring_failed", explanation="no verdict") if value is None else Score(value=value)
        )

    return score


def _make_sample(question: Question) -> Sample:
    messages = [_make_message(message) for message in question.messages]
    about = question.about | {"demonstrations": list(question.demonstrations)}
    return Sample(input=messages, id=question.task.id, metadata=about)


def _make_message(message: Message) -> ChatMessage:
    kind = ChatMessageSystem if message.role == "system" else ChatMessageUser
    return kind(content=message.content)


def _make_score(reply: JudgedReply) -> Score:
    return Score(
        value=CORRECT if reply.verdict.passed else INCORRECT,
        answer=reply.program,
        explanation=reply.verdict.message,
        reason="invalid_response_format" if reply.program is None else None,
        metadata=reply.plain_facts,
    )


def _make_unscored(problem: NotJudgedError) -> Score:
    metadata = describe_verdict(problem.verdict) if problem.verdict else None
    return Score.unscored(reason="scoring_failed", answer=problem.program, explanation=str(problem), metadata=metadata)
